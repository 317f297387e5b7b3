//! The tools, each with what it takes, what it answers and what it may do.

use std::fmt::Write;
use std::sync::Arc;

use rmcp::model::{JsonObject, ToolAnnotations};
use serde_json::Value;

use super::answer::{Answer, Refusal};
use super::caller::{Call, Seat};
use super::field::{self, Fields, Given, Need, Shape};
use super::{finding, listing, recording, runs, taking_back};

/// What a tool may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nature {
    /// It looks.
    Reads,
    /// It adds what counts only once a person approved it. The same twice is once.
    Proposes,
    /// It removes what was proposed through this server.
    TakesBack,
}

impl Nature {
    fn annotations(self, title: &str) -> ToolAnnotations {
        let [reads, destroys, same_twice] = match self {
            Self::Reads => [true, false, true],
            Self::Proposes => [false, false, true],
            Self::TakesBack => [false, true, true],
        };
        ToolAnnotations::from_raw(Some(title.to_owned()), Some(reads), Some(destroys), Some(same_twice), Some(false))
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Reads => "Reads only.",
            Self::Proposes => "Proposes: what it records counts once a person approved it.",
            Self::TakesBack => "Removes what was proposed, and nothing else.",
        }
    }
}

/// A tool.
pub(super) struct Tool {
    name: &'static str,
    title: &'static str,
    about: &'static str,
    nature: Nature,
    fields: Fields,
    output: fn() -> Value,
    run: fn(&Call<'_>) -> Result<Answer, Refusal>,
}

/// Every tool, in the order in which they are listed.
static TOOLS: [Tool; 10] = [
    Tool {
        name: "before_you_try",
        title: "Before you try",
        about: "What is known about an approach before you take it: dead ends first, then what works and its trap. Ask before anything that \
                takes more than a few minutes or is hard to undo. Where no dead end is found, that is no approval.",
        nature: Nature::Reads,
        fields: finding::OF_TRY,
        output: finding::schema_of_try,
        run: finding::before_you_try,
    },
    Tool {
        name: "record_procedure",
        title: "Record what works",
        about: "Proposes a procedure: what to do, and the trap of doing it otherwise. Record what you saw work, not what the code or its \
                documentation says already. Tell your user what the receipt says.",
        nature: Nature::Proposes,
        fields: recording::OF_PROCEDURE,
        output: recording::schema,
        run: recording::procedure,
    },
    Tool {
        name: "record_dead_end",
        title: "Record a dead end",
        about: "Proposes a dead end: what was done, and what was seen when it failed. Record it when you give a route up, before you take the \
                next. Tell your user what the receipt says.",
        nature: Nature::Proposes,
        fields: recording::OF_DEAD_END,
        output: recording::schema,
        run: recording::dead_end,
    },
    Tool {
        name: "remember",
        title: "Remember",
        about: "Proposes a record of either kind, by its parts or as one line. Procedures and dead ends are kept, and nothing else.",
        nature: Nature::Proposes,
        fields: recording::OF_REMEMBER,
        output: recording::schema,
        run: recording::remember,
    },
    Tool {
        name: "recall",
        title: "Recall",
        about: "Records that speak of something, of both kinds; or all of one record, by its id.",
        nature: Nature::Reads,
        fields: finding::OF_RECALL,
        output: finding::schema_of_recall,
        run: finding::recall,
    },
    Tool {
        name: "forget",
        title: "Take back a proposal",
        about: "Takes back a record that was proposed through this server and that no person has decided on. All others only a person forgets.",
        nature: Nature::TakesBack,
        fields: taking_back::FIELDS,
        output: taking_back::schema,
        run: taking_back::forget,
    },
    Tool {
        name: "why",
        title: "Why is this file so",
        about: "What is known of a file: the records that name it, and the commits of runs that changed it. Ask before you change what looks odd.",
        nature: Nature::Reads,
        fields: finding::OF_WHY,
        output: finding::schema_of_why,
        run: finding::why,
    },
    Tool {
        name: "list_records",
        title: "List records",
        about: "Records, the newest first.",
        nature: Nature::Reads,
        fields: listing::FIELDS,
        output: listing::schema,
        run: listing::list,
    },
    Tool {
        name: "run_status",
        title: "Status of a run",
        about: "How a run of a procedure stands: its steps, why it failed, how to go on.",
        nature: Nature::Reads,
        fields: runs::OF_STATUS,
        output: runs::schema_of_status,
        run: runs::status,
    },
    Tool {
        name: "run_log",
        title: "Log of a run",
        about: "The last lines that a run, or one session of it, wrote.",
        nature: Nature::Reads,
        fields: runs::OF_LOG,
        output: runs::schema_of_log,
        run: runs::log,
    },
];

/// The tools in the protocol's words.
pub(super) fn described() -> Vec<rmcp::model::Tool> {
    let object = |value: Value| Arc::new(value.as_object().cloned().unwrap_or_default());
    let describe = |tool: &Tool| {
        rmcp::model::Tool::new(tool.name, tool.about, Arc::new(field::schema(tool.fields)))
            .with_title(tool.title)
            .with_raw_output_schema(object((tool.output)()))
            .with_annotations(tool.nature.annotations(tool.title))
    };
    TOOLS.iter().map(describe).collect()
}

/// Calls a tool; `None` where there is no such tool.
pub(super) fn call(seat: &Seat, name: &str, arguments: Option<JsonObject>, agent: Option<&str>) -> Option<Result<Answer, Refusal>> {
    let tool = TOOLS.iter().find(|tool| tool.name == name)?;
    let given = Given::read(tool.fields, arguments);
    Some(given.and_then(|given| (tool.run)(&Call::new(seat, &given, agent))))
}

/// The tools as Markdown, for `docs/`.
pub fn reference() -> String {
    let mut text = String::new();
    for tool in &TOOLS {
        let _ = write!(text, "## `{}`\n\n{} *{}*\n\n| argument | | |\n|---|---|---|\n", tool.name, tool.about, tool.nature.in_words());
        for (field, need) in tool.fields {
            let need = if *need == Need::Must { "required" } else { "" };
            let _ = writeln!(text, "| `{}` | {need} | {} |", field.name, meaning(field).replace('|', "\\|"));
        }
        text.push('\n');
    }
    text.trim_end().to_owned() + "\n"
}

fn meaning(field: &field::Field) -> String {
    let about = field.about;
    match field.shape {
        Shape::Text => about.to_owned(),
        Shape::Word(words) => format!("{about}: {}", words().iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")),
        Shape::Texts => format!("{about}; a list"),
        Shape::Number { least, most, otherwise: Some(otherwise) } => format!("{about}; from {least} to {most}, else {otherwise}"),
        Shape::Number { least, most, otherwise: None } => format!("{about}; from {least} to {most}"),
    }
}
