//! The read budget: a long file that is read whole fills an agent's context with what it does not need.
//!
//! It says no to what it has understood and measured. Whatever else there is (a pipe, an expansion, an option that it does not know, a
//! file that it can't read) passes: it saves tokens and keeps nobody from anything.

mod command;
mod extent;
mod shell;

use std::path::{Path, PathBuf};

use proctor_recall::hygiene::inline;

use self::command::Reading;
use self::extent::Extent;
use super::answer::Reply;
use super::call::{Call, Tool};
use super::marks::Marks;
use crate::Invocation;
use crate::environment::{self, Environment};

/// The name under which it is waived.
const RULE: &str = "core.context:unbounded-read";
const USUAL_LINES: i64 = 350;
const MOST_BYTES: u64 = 64 << 10;

/// What may be read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Budget {
    lines: u64,
    bytes: u64,
}

impl Budget {
    fn of(environment: &Environment) -> Self {
        let text = environment.get(&environment::READ_BUDGET).and_then(|text| text.to_str()).map(str::trim);
        Self { lines: text.map_or(USUAL_LINES, lines).unsigned_abs(), bytes: MOST_BYTES }
    }

    fn has_room_for(self, extent: Extent) -> bool {
        extent.lines <= self.lines && extent.bytes <= self.bytes
    }
}

/// A number above 0, and however long it is; otherwise what is usual.
fn lines(text: &str) -> i64 {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if is_number { text.parse().unwrap_or(i64::MAX) } else { USUAL_LINES };
    if number > 0 { number } else { USUAL_LINES }
}

/// Says no to reading more at once than the budget has.
pub(super) fn reply(invocation: &Invocation, host: &str, call: &Call) -> Reply {
    let environment = &invocation.environment;
    if environment.get(&environment::HOOKS_DISABLED).is_some_and(|value| value == "1") {
        return Reply::Nothing;
    }
    let budget = Budget::of(environment);
    let directory = call.directory.as_deref().unwrap_or(&invocation.directory);
    let Some(wanted) = over_budget(&call.tool, directory, environment, budget) else { return Reply::Nothing };
    let waived = environment.get(&environment::WAIVE).and_then(|list| list.to_str()).is_some_and(waives);
    if waived || wanted.is_waived {
        invocation.printer.warn(&format!("{RULE} is waived for this read"));
        return Reply::Nothing;
    }
    let marks = Marks::of(environment, host, call.session.as_deref());
    Reply::Deny(refusal(&wanted, budget, marks.is_first("guard", RULE)))
}

/// Whether a list of names has this rule's.
fn waives(list: &str) -> bool {
    list.split(|letter: char| letter == ',' || letter.is_whitespace()).any(|name| name == RULE)
}

/// A read that is longer than the budget.
struct Wanted {
    /// The first of its files.
    file: PathBuf,
    extent: Extent,
    /// The command itself says that the rule does not hold for it.
    is_waived: bool,
}

fn over_budget(tool: &Tool, directory: &Path, environment: &Environment, budget: Budget) -> Option<Wanted> {
    match tool {
        Tool::Read { has_limit: true, .. } | Tool::Edit { .. } | Tool::Other => None,
        Tool::Read { file, has_limit: false } => {
            let file = directory.join(file);
            let extent = extent::of(&file, extent::Part::All)?;
            (!budget.has_room_for(extent)).then_some(Wanted { file, extent, is_waived: false })
        }
        Tool::Shell { command } => {
            let readings = command::readings(command, directory, environment)?;
            readings.into_iter().find_map(|reading| of_reading(reading, budget))
        }
    }
}

/// What one command reads of all its files together.
fn of_reading(reading: Reading, budget: Budget) -> Option<Wanted> {
    let extents = reading.files.iter().filter_map(|(file, part)| extent::of(file, *part));
    let extent = extents.fold(Extent::default(), Extent::and);
    if budget.has_room_for(extent) {
        return None;
    }
    let file = reading.files.into_iter().next()?.0;
    Some(Wanted { file, extent, is_waived: reading.waives.as_deref().is_some_and(waives) })
}

fn refusal(wanted: &Wanted, budget: Budget, is_first: bool) -> String {
    let name = wanted.file.file_name().unwrap_or(wanted.file.as_os_str()).to_string_lossy();
    let short = format!(
        "Not read: {} would give {}; the read budget is {} lines and {} KiB at once. Read a part of it.",
        inline(&name),
        wanted.extent,
        budget.lines,
        budget.bytes >> 10
    );
    if !is_first {
        return short;
    }
    format!(
        "{short}\n\nTwo ways to go on. Search first (`grep -n`), and read the lines that matter: with an offset and a limit, or with `sed -n \
         'FROM,TOp' FILE`. Or have a subagent read all of it and report what you need to know. Later refusals in this session are shorter."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_that_is_no_number_above_zero_is_the_usual_one() {
        for (text, expected) in [
            ("100", 100),
            ("1", 1),
            ("0", 350),
            ("-5", 350),
            ("", 350),
            ("many", 350),
            ("3.5", 350),
            ("+7", 350),
            ("99999999999999999999999", i64::MAX),
        ] {
            assert_eq!(lines(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_waiver_is_the_whole_name_in_a_list() {
        assert!(waives(RULE));
        assert!(waives("other, core.context:unbounded-read"));
        assert!(waives("other core.context:unbounded-read"));
        assert!(!waives("core.context"));
        assert!(!waives("core.context:unbounded-reads"));
        assert!(!waives("1"));
    }

    #[test]
    fn the_long_explanation_comes_once() {
        let wanted = Wanted { file: "/w/long`x.txt".into(), extent: Extent { lines: 400, bytes: 1600 }, is_waived: false };
        let budget = Budget { lines: 350, bytes: MOST_BYTES };

        let (first, second) = (refusal(&wanted, budget, true), refusal(&wanted, budget, false));

        let short =
            "Not read: long&#96;x.txt would give 400 lines (2 KiB); the read budget is 350 lines and 64 KiB at once. Read a part of it.";
        assert_eq!(second, short);
        assert!(first.starts_with(short) && first.contains("Two ways to go on"), "{first}");
    }
}
