//! What the tools of a session do: they take in what its agent tells.

use proctor_domain::session::{AgentReport, Learned, SessionEnd, Told};
use serde_json::{Map, Value, json};

use super::assignment::Agent;
use super::door::Called;
use crate::agent::{Access, validate_result};
use crate::tools::{OfferedTool, ToolAnswer};

/// Notes beyond these are not kept.
const MOST_NOTES: usize = 50;
/// A longer text is cut, in bytes.
const LONGEST_TEXT: usize = 4 * 1024;

/// A tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SessionTool {
    /// Gives the result that is owed.
    SubmitResult,
    /// Has something kept.
    Note,
    /// Says what a repair taught.
    Learned,
    /// Says that there is no going on.
    ReportBlocked,
    /// Asks a person.
    Ask,
}

impl SessionTool {
    const ALL: [Self; 5] = [Self::SubmitResult, Self::Note, Self::Learned, Self::ReportBlocked, Self::Ask];

    fn name(self) -> &'static str {
        match self {
            Self::SubmitResult => "submit_result",
            Self::Note => "note",
            Self::Learned => "learned",
            Self::ReportBlocked => "report_blocked",
            Self::Ask => "ask",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::SubmitResult => {
                "Gives the structured result of your task. It is checked at once: when it is refused, correct it and give it again. \
                 What was accepted last counts."
            }
            Self::Note => {
                "Keeps a short text for whoever reads about this session later: what you decided and why, what you did not do, what \
                 looks wrong elsewhere. It changes nothing else."
            }
            Self::Learned => {
                "Says what this repair taught, for whoever meets the same: `route`, what has to be done, and `trap`, what goes wrong for who \
                 does it otherwise, as you saw it. Call it only where that could not be known from the repository. It counts once every \
                 check has passed and a person agrees. What you said last counts."
            }
            Self::ReportBlocked => {
                "Says that you can't do the task, and why: what is missing, what you tried. Call it instead of working around what \
                 you were not asked to change, then end your turn."
            }
            Self::Ask => {
                "Asks a person something that you can't go on without and can't find out. It may take days, so nothing waits for it: end \
                 your turn after it, and the answer comes as your next prompt. Ask everything at once, and say what you would do."
            }
        }
    }

    /// What it is given.
    fn fields(self) -> &'static [&'static str] {
        match self {
            Self::SubmitResult => &["result"],
            Self::Note => &["text"],
            Self::Learned => &["route", "trap"],
            Self::ReportBlocked => &["reason"],
            Self::Ask => &["question"],
        }
    }
}

/// What an agent has told so far.
#[derive(Debug, Default)]
pub(super) struct Calls {
    schema: Option<String>,
    access: Access,
    hears_lessons: bool,
    told: Told,
    result: Option<String>,
}

impl Calls {
    pub(super) fn of(agent: &Agent, access: Access) -> Self {
        Self { schema: agent.schema.clone(), access, hears_lessons: agent.hears_lessons, ..Self::default() }
    }

    /// Whether a result was accepted.
    pub(super) fn has_result(&self) -> bool {
        self.result.is_some()
    }

    /// Puts into the report what was told. An accepted result is the session's, whatever its engine made of the last words.
    pub(super) fn settle(self, end: &mut SessionEnd, report: &mut AgentReport) {
        report.told = self.told;
        if self.result.is_some() {
            report.result = self.result;
            if *end == SessionEnd::NoResult {
                *end = SessionEnd::Completed;
                report.error = None;
            }
        }
    }

    fn offers(&self, tool: SessionTool) -> bool {
        match tool {
            SessionTool::SubmitResult => self.schema.is_some(),
            SessionTool::Note => true,
            SessionTool::Learned => self.hears_lessons,
            // One that only looks is a judge, who says so in the verdict.
            SessionTool::ReportBlocked | SessionTool::Ask => self.access == Access::Full,
        }
    }

    fn input(&self, tool: SessionTool) -> Value {
        let field = || match (tool, &self.schema) {
            (SessionTool::SubmitResult, Some(schema)) => schema_of_field(schema),
            (SessionTool::SubmitResult | SessionTool::Note | SessionTool::Learned | SessionTool::ReportBlocked | SessionTool::Ask, _) => {
                json!({ "type": "string" })
            }
        };
        let names = tool.fields();
        let fields: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), field())).collect();
        json!({ "type": "object", "properties": fields, "required": names, "additionalProperties": false })
    }

    fn submit(&mut self, result: &Value) -> ToolAnswer {
        let Some(schema) = &self.schema else { return not_offered(SessionTool::SubmitResult.name()) };
        let as_given = validate_result(schema, &result.to_string());
        // There are models that write the value down as text.
        let accepted = as_given.or_else(|error| match result.as_str() {
            Some(text) => validate_result(schema, text),
            None => Err(error),
        });
        match accepted {
            Ok(result) => {
                self.result = Some(result.to_string());
                ToolAnswer::done("Accepted: this is your result. Nothing more is needed; end your turn.")
            }
            Err(error) => ToolAnswer::failed(format!("failed to {error}. Correct it and call `submit_result` again.")),
        }
    }

    fn note(&mut self, text: &str) -> ToolAnswer {
        if self.told.notes.len() >= MOST_NOTES {
            return ToolAnswer::failed(format!("{MOST_NOTES} notes are kept, and no more"));
        }
        self.told.notes.push(shortened(text));
        ToolAnswer::done("Kept.")
    }

    /// What was learnt, told by both its halves.
    fn learned(&mut self, route: &str, trap: &str) -> ToolAnswer {
        self.told.learned = Some(Learned { route: shortened(route), trap: shortened(trap) });
        ToolAnswer::done("Kept, and proposed to memory if every check passes now.")
    }

    fn report_blocked(&mut self, reason: &str) -> ToolAnswer {
        self.told.blocked = Some(shortened(reason));
        ToolAnswer::done("Noted that you are blocked. End your turn, unless there is a part of the task that you can do.")
    }

    /// The one that was asked last is put to the person, so that a better question can replace another.
    fn ask(&mut self, question: &str) -> ToolAnswer {
        self.told.question = Some(shortened(question));
        ToolAnswer::done("A person is asked. End your turn now: the answer will be your next prompt.")
    }
}

impl Called for Calls {
    fn offer(&self) -> Vec<OfferedTool> {
        let offered = SessionTool::ALL.into_iter().filter(|tool| self.offers(*tool));
        let described = |tool: SessionTool| OfferedTool {
            name: tool.name().to_owned(),
            description: tool.description().to_owned(),
            input: self.input(tool),
        };
        offered.map(described).collect()
    }

    fn call(&mut self, tool: &str, input: &Value) -> ToolAnswer {
        let Some(called) = SessionTool::ALL.into_iter().find(|known| known.name() == tool && self.offers(*known)) else {
            return not_offered(tool);
        };
        let text = |name: &str| input[name].as_str().map(str::trim).filter(|text| !text.is_empty());
        let names = called.fields();
        let texts: Vec<&str> = names.iter().filter_map(|name| text(name)).collect();
        match (called, texts.as_slice()) {
            (SessionTool::SubmitResult, _) => self.submit(&input["result"]),
            (SessionTool::Note, [text]) => self.note(text),
            (SessionTool::Learned, [route, trap]) => self.learned(route, trap),
            (SessionTool::ReportBlocked, [text]) => self.report_blocked(text),
            (SessionTool::Ask, [text]) => self.ask(text),
            (SessionTool::Note | SessionTool::Learned | SessionTool::ReportBlocked | SessionTool::Ask, _) => {
                let missing = names.iter().find(|name| text(name).is_none()).copied().unwrap_or_default();
                ToolAnswer::failed(format!("`{tool}` needs a text as `{missing}`"))
            }
        }
    }
}

fn not_offered(tool: &str) -> ToolAnswer {
    ToolAnswer::failed(format!("`{}` is no tool of this session", tool.chars().take(60).collect::<String>()))
}

/// The schema as that of one field. One that refers to its own parts does so from its top, which it no longer is.
fn schema_of_field(schema: &str) -> Value {
    match serde_json::from_str(schema) {
        Ok(Value::Object(fields)) if !schema.contains("\"$ref\"") => Value::Object(fields),
        Ok(_) | Err(_) => json!({ "description": format!("A value that this JSON schema accepts: {schema}") }),
    }
}

fn shortened(text: &str) -> String {
    let cut = text.floor_char_boundary(LONGEST_TEXT);
    if cut == text.len() { text.to_owned() } else { format!("{} [… {} bytes not shown …]", &text[..cut], text.len() - cut) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"type":"object","required":["passed"],"properties":{"passed":{"type":"boolean"}}}"#;

    fn names(calls: &Calls) -> Vec<String> {
        calls.offer().into_iter().map(|tool| tool.name).collect()
    }

    #[test]
    fn a_judge_gives_its_result_and_keeps_notes_and_one_that_works_can_be_blocked() {
        let judge = Calls { schema: Some(SCHEMA.to_owned()), access: Access::ReadOnly, ..Calls::default() };
        let mut worker = Calls { access: Access::Full, ..Calls::default() };

        assert_eq!(names(&judge), ["submit_result", "note"]);
        assert_eq!(names(&worker), ["note", "report_blocked", "ask"]);
        assert!(worker.call("submit_result", &json!({ "result": {} })).failed);
        assert!(!worker.call("report_blocked", &json!({ "reason": "No network." })).failed);
        assert!(
            !worker.call("ask", &json!({ "question": "Left?" })).failed && !worker.call("ask", &json!({ "question": "Right?" })).failed
        );
        assert_eq!(worker.told.question.as_deref(), Some("Right?"));
        assert_eq!(worker.told.blocked.as_deref(), Some("No network."));
    }

    #[test]
    fn a_repair_tells_what_it_learnt_by_both_halves_and_nobody_else_does() {
        let mut repair = Calls { access: Access::Full, hears_lessons: true, ..Calls::default() };
        let mut worker = Calls { access: Access::Full, ..Calls::default() };
        let whole = json!({ "route": "format first", "trap": "the check reads it" });

        assert_eq!(names(&repair), ["note", "learned", "report_blocked", "ask"]);
        assert!(worker.call("learned", &whole).failed);
        let half = repair.call("learned", &json!({ "route": "format first", "trap": " " }));
        assert!(half.failed && half.text.contains("`trap`"), "{half:?}");
        assert!(!repair.call("learned", &whole).failed);
        assert_eq!(repair.told.learned.unwrap().trap, "the check reads it");
    }

    #[test]
    fn a_result_is_what_was_accepted_last() {
        let mut calls = Calls { schema: Some(SCHEMA.to_owned()), ..Calls::default() };

        let refused = calls.call("submit_result", &json!({ "result": { "passed": "yes" } }));
        assert!(refused.failed && refused.text.contains("/passed"), "{refused:?}");
        assert!(!calls.has_result());
        assert!(!calls.call("submit_result", &json!({ "result": { "passed": false } })).failed);
        assert!(!calls.call("submit_result", &json!({ "result": r#"{"passed":true}"# })).failed);
        assert!(calls.call("submit_result", &json!({})).failed);

        assert_eq!(calls.result.as_deref(), Some(r#"{"passed":true}"#));
    }

    #[test]
    fn notes_are_bounded_in_length_and_number() {
        let mut calls = Calls::default();

        let long = calls.call("note", &json!({ "text": "ä".repeat(LONGEST_TEXT) }));
        let all = (1..MOST_NOTES).all(|_| !calls.call("note", &json!({ "text": "again" })).failed);
        let over = calls.call("note", &json!({ "text": "one more" }));

        assert!(!long.failed && all && over.failed);
        assert!(calls.call("note", &json!({ "text": " " })).failed && calls.call("note", &json!(null)).failed);
        let notes = calls.told.notes;
        assert_eq!(notes.len(), MOST_NOTES);
        assert!(notes[0].len() < LONGEST_TEXT + 50 && notes[0].ends_with("bytes not shown …]"));
    }

    #[test]
    fn a_schema_that_refers_to_its_parts_is_told_in_words() {
        let plain = Calls { schema: Some(SCHEMA.to_owned()), ..Calls::default() };
        let referring = Calls { schema: Some(r##"{"$ref":"#/$defs/a","$defs":{"a":{}}}"##.to_owned()), ..Calls::default() };

        let field = |calls: &Calls| calls.input(SessionTool::SubmitResult)["properties"]["result"].clone();

        assert_eq!(field(&plain), serde_json::from_str::<Value>(SCHEMA).unwrap());
        assert!(field(&referring)["description"].as_str().unwrap().contains("$defs") && field(&referring).get("$ref").is_none());
    }
}
