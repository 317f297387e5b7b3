//! How runs are written for people: times, marks, the ends of what was printed.

use jiff::tz::TimeZone;
use proctor_domain::Timestamp;
use proctor_domain::procedure::{Answer, Approval, StepRecord};
use proctor_domain::session::{Excerpt, Phase, Work};

use crate::printer::{Style, visible_line};
use crate::progress::seconds;

/// No more of one line of output is shown.
const LONGEST_LINE: usize = 400;

/// An instant as a person's clock shows it.
pub fn local_time(at: Timestamp) -> String {
    let mut text = String::with_capacity(19);
    LocalClock::new().push(&mut text, at);
    text
}

/// A person's clock, for those who ask it thousands of times: the time zone is looked up once, and nothing is
/// allocated for an instant.
pub struct LocalClock(TimeZone);

impl LocalClock {
    /// The clock of this machine, or of `TZ`.
    pub fn new() -> Self {
        Self(TimeZone::system())
    }

    /// Appends `2026-03-02 06:04:10`.
    pub fn push(&self, text: &mut String, at: Timestamp) {
        let shown = self.0.to_datetime(instant(at));
        let fields = [
            (i32::from(shown.year()), 4, '-'),
            (i32::from(shown.month()), 2, '-'),
            (i32::from(shown.day()), 2, ' '),
            (i32::from(shown.hour()), 2, ':'),
            (i32::from(shown.minute()), 2, ':'),
            (i32::from(shown.second()), 2, '\0'),
        ];
        for (number, digits, after) in fields {
            for position in (0..digits).rev() {
                let digit = number.unsigned_abs() / 10_u32.pow(position) % 10;
                text.push(char::from_digit(digit, 10).unwrap_or('0'));
            }
            if after != '\0' {
                text.push(after);
            }
        }
    }
}

impl Default for LocalClock {
    fn default() -> Self {
        Self::new()
    }
}

/// An instant as programs exchange it: UTC, with milliseconds.
pub fn utc_time(at: Timestamp) -> String {
    format!("{:.3}", instant(at))
}

fn instant(at: Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}

/// The sign and the colour of a state's or an outcome's word, as JSON writes it.
pub fn mark(word: &str) -> (&'static str, Style) {
    match word {
        "completed" => ("✓", Style::Good),
        "failed" => ("✗", Style::Bad),
        "skipped" => ("○", Style::Dim),
        "running" => ("▸", Style::Strong),
        "interrupted" => ("!", Style::Doubtful),
        "parked" => ("‖", Style::Doubtful),
        "inconclusive" => ("?", Style::Doubtful),
        _ => ("·", Style::Dim),
    }
}

/// How long something with this word took, or has taken so far: ` in 5.2 s`, ` for 5.2 s`, ` after 5.2 s`.
pub fn lasted(word: &str, millis: u64) -> String {
    let how = match word {
        "running" => "for",
        "interrupted" | "parked" => "after",
        _ => "in",
    };
    format!(" {how} {}", seconds(millis))
}

/// `agent 1 was cut off: crashed`, for a step whose agents did not end by themselves. Whoever reads on should know, although
/// its checks may have passed all the same.
pub fn cut_off_text(step: &StepRecord) -> Option<String> {
    let ends: Vec<String> = step.cut_off().iter().map(|(number, end)| format!("agent {number} was cut off: {}", end.name())).collect();
    (!ends.is_empty()).then(|| ends.join(", "))
}

/// That a server of tools, which an engine was told of, is not there. Both texts come from outside.
pub fn server_failed(name: &str, reason: Option<&str>) -> String {
    let reason = reason.map(|reason| format!(": {}", visible_line(reason))).unwrap_or_default();
    format!("the server `{}` of the agent's tools did not start{reason}", visible_line(name))
}

/// The last `most` lines of what a stream held, each made harmless for a screen; a line before them says when
/// there were more.
pub fn last_lines(excerpt: &Excerpt, most: usize) -> Vec<String> {
    // With bytes left out, what stands before the gap is far from the end.
    let text = if excerpt.omitted > 0 { excerpt.tail.clone() } else { excerpt.text() };
    let lines: Vec<&str> = text.lines().collect();
    let cut = lines.len().saturating_sub(most);
    let more = cut > 0 || excerpt.omitted > 0;
    let shown = lines[cut..].iter().map(|line| short_line(line, LONGEST_LINE));
    more.then(|| "…".to_owned()).into_iter().chain(shown).collect()
}

/// A text on one line, harmless for a screen, with at most `longest` characters.
pub fn short_line(line: &str, longest: usize) -> String {
    // An escaped character is longer than itself, never shorter: what is cut off here would not be shown anyway.
    let end = line.char_indices().nth(longest + 1).map_or(line.len(), |(end, _)| end);
    let shown = visible_line(&line[..end]);
    if shown.chars().count() <= longest {
        return shown.into_owned();
    }
    shown.chars().take(longest).chain(['…']).collect()
}

/// What a session did: the name of its phase, `agent 1`, `judge`, `judge, try 2`, `repair`.
pub fn work_name(phase: Phase, work: Work) -> String {
    match work {
        Work::Shells => phase.name().to_owned(),
        Work::Agent(number) => format!("agent {number}"),
        Work::Judge(number) if number > 1 => format!("judge, try {number}"),
        Work::Judge(_) | Work::Repair => work.name().to_owned(),
    }
}

/// `approved 2026-03-02 06:04:10: not before Monday`.
pub fn approval_text(approval: &Approval) -> String {
    let word = match approval.answer {
        Answer::Approve => "approved",
        Answer::Reject => "rejected",
    };
    let message = approval.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
    format!("{word} {}{message}", local_time(approval.at))
}

/// `1 step`, `2 steps`.
pub fn counted(count: usize, noun: &str) -> String {
    let ending = if noun.ends_with('s') { "es" } else { "s" };
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}{ending}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(head: &str, tail: &str, omitted: u64) -> Excerpt {
        Excerpt { head: head.to_owned(), tail: tail.to_owned(), omitted }
    }

    #[test]
    fn a_noun_is_put_in_its_plural() {
        assert_eq!([counted(1, "process"), counted(2, "process"), counted(0, "step")], ["1 process", "2 processes", "0 steps"]);
    }

    #[test]
    fn the_end_of_a_stream_says_when_more_came_before() {
        for (excerpt, most, expected) in [
            (excerpt("", "", 0), 3, vec![]),
            (excerpt("a\nb\n", "", 0), 3, vec!["a", "b"]),
            (excerpt("a\nb\n", "", 0), 1, vec!["…", "b"]),
            (excerpt("a\n", "b\nc", 0), 2, vec!["…", "b", "c"]),
            (excerpt("start\n", "end\n", 100), 5, vec!["…", "end"]),
            (excerpt("\u{1b}[2J", "", 0), 5, vec!["\\u{1b}[2J"]),
        ] {
            assert_eq!(last_lines(&excerpt, most), expected, "{excerpt:?} {most}");
        }
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let lines = last_lines(&excerpt(&"x".repeat(3_000), "", 0), 5);

        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].chars().count(), LONGEST_LINE + 1);
    }

    #[test]
    fn instants_are_exchanged_in_utc_with_milliseconds() {
        assert_eq!(utc_time(Timestamp(1_772_431_450_007)), "2026-03-02T06:04:10.007Z");
        assert_eq!(utc_time(Timestamp(1_772_431_450_000)), "2026-03-02T06:04:10.000Z");
    }

    #[test]
    fn a_persons_clock_shows_every_field_in_full() {
        let mut text = String::new();

        LocalClock(TimeZone::UTC).push(&mut text, Timestamp(1_772_431_450_007));

        assert_eq!(text, "2026-03-02 06:04:10");
    }
}
