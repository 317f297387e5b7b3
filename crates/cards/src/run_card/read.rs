//! From text to a run card: the newer form (`outcome`) and the older one (`status`).

use std::collections::BTreeMap;
use std::path::Path;

use proctor_domain::procedure::{CheckResult, Outcome, SkipReason};
use proctor_domain::retention::Expires;
use proctor_domain::{Oid, RunId, Timestamp};

use super::{PrecheckRecord, PrecheckStatus, RunCard, RunPhaseRecord, RunStepRecord, StepStatus, Streams, ValidateRecord};
use crate::Finding;
use crate::finding::{At, Level, Located, shown};
use crate::front::{self, FrontMatter};
use crate::yaml::{self, Node, Value};

/// What findings call a run card. A caller that knows the real path puts it into the finding.
const FILE_NAME: &str = "run.procedure-run.card";

/// Reads a run card, the older form (`status`) or the newer (`outcome`). Keys it does not know are ignored,
/// and an `expires` that is no time comes back as [`Expires::Unreadable`]: people edit that line.
///
/// # Errors
/// It has no front matter, is no YAML, or holds something else where a value that matters is due.
pub fn read_run_card(text: &str) -> Result<RunCard, Finding> {
    let located = Located::new(Path::new(FILE_NAME), text);
    let (_, root) = parse(&located)?;
    Reading { located: &located }.card(&root)
}

/// The front matter of a run card and what it says.
pub(super) fn parse(located: &Located<'_>) -> Result<(FrontMatter, Node), Finding> {
    let front = front::split(located.text).map_err(|error| located.finding(Level::Error, error.at(), error.to_string()))?;
    let yaml = &located.text[front.yaml.start()..front.yaml.end()];
    match yaml::parse(yaml, front.yaml.start()) {
        Ok(Some(root)) => Ok((front, root)),
        Ok(None) => Err(located.finding(Level::Error, front.closing, "the front matter is empty")),
        Err(error) => Err(located.finding(Level::Error, error.at, error.message)),
    }
}

struct Reading<'t> {
    located: &'t Located<'t>,
}

impl Reading<'_> {
    fn card(&self, root: &Node) -> Result<RunCard, Finding> {
        self.mapping(root, "the front matter")?;
        let outcomes =
            [Outcome::Completed, Outcome::Failed, Outcome::Inconclusive, Outcome::Skipped].map(|outcome| (outcome.name(), Some(outcome)));
        let outcome = match root.get("outcome").filter(|node| !node.is_null()) {
            Some(node) => self.word(node, "outcome", &outcomes)?,
            // The older form says `pending` or `running` of a run that is open.
            None => match root.get("status").filter(|node| !node.is_null()) {
                Some(node) => self.word(node, "status", &[&[("pending", None), ("running", None)], &outcomes[..]].concat())?,
                None => None,
            },
        };
        let Some(procedure) = self.text(root, "procedure")? else {
            return Err(self.error(At { end: root.at.start, ..root.at }, "the card has no `procedure`"));
        };
        Ok(RunCard {
            run: self.run_id(root)?,
            procedure,
            outcome,
            started_at: self.time(root, "started-at")?,
            completed_at: self.time(root, "completed-at")?,
            directive: self.text(root, "directive")?,
            inputs: self.texts(root, "inputs")?,
            expires: read_expires(root),
            steps: self.list(root, "steps")?.iter().map(|node| self.step(node)).collect::<Result<_, _>>()?,
        })
    }

    fn run_id(&self, root: &Node) -> Result<Option<RunId>, Finding> {
        let Some(text) = self.text(root, "run")? else { return Ok(None) };
        let at = root.get("run").map_or(root.at, |node| node.at);
        text.parse().map(Some).map_err(|_| self.error(at, format!("`{}` is not the id of a run", shown(&text))))
    }

    fn step(&self, node: &Node) -> Result<RunStepRecord, Finding> {
        self.mapping(node, "a step")?;
        let Some(id) = self.text(node, "id")? else {
            return Err(self.error(At { end: node.at.start, ..node.at }, "this step has no `id`"));
        };
        Ok(RunStepRecord {
            id,
            status: self.status(node)?,
            started_at: self.time(node, "started-at")?,
            completed_at: self.time(node, "completed-at")?,
            attempts: self.number(node, "attempts")?.unwrap_or(0),
            error: self.text(node, "error")?,
            earlier_errors: self
                .list(node, "earlier-errors")?
                .iter()
                .map(|node| self.scalar(node, "earlier-errors"))
                .collect::<Result<_, _>>()?,
            precheck: self.phase(node, "precheck")?.map(|phase| self.precheck(phase)).transpose()?,
            run: self.phase(node, "run")?.map(|phase| self.run(phase)).transpose()?,
            validate: self.phase(node, "validate")?.map(|phase| self.validate(phase)).transpose()?,
            outputs: self.texts(node, "outputs")?,
            commits: self.list(node, "commits")?.iter().map(|node| self.scalar(node, "commits").map(Oid)).collect::<Result<_, _>>()?,
        })
    }

    fn status(&self, step: &Node) -> Result<StepStatus, Finding> {
        let Some(node) = step.get("status") else { return Ok(StepStatus::Pending) };
        let words = [
            ("pending", StepStatus::Pending),
            ("running", StepStatus::Running),
            ("completed", StepStatus::Completed),
            ("skipped", StepStatus::Skipped(None)),
            ("failed", StepStatus::Failed),
        ];
        let status = self.word(node, "status", &words)?;
        match step.get("skip-reason") {
            Some(node) if matches!(status, StepStatus::Skipped(_)) => {
                let reasons = [SkipReason::Precheck, SkipReason::Condition, SkipReason::NotSelected].map(|reason| (reason.name(), reason));
                Ok(StepStatus::Skipped(Some(self.word(node, "skip-reason", &reasons)?)))
            }
            Some(_) | None => Ok(status),
        }
    }

    fn precheck(&self, node: &Node) -> Result<PrecheckRecord, Finding> {
        let words = [PrecheckStatus::Pass, PrecheckStatus::Skip, PrecheckStatus::Fail].map(|status| (status.name(), status));
        Ok(PrecheckRecord { status: self.needed_word(node, "status", &words)?, streams: self.streams(node)? })
    }

    fn run(&self, node: &Node) -> Result<RunPhaseRecord, Finding> {
        Ok(RunPhaseRecord {
            session: self.text(node, "session-id")?,
            streams: self.streams(node)?,
            error: self.text(node, "error")?,
            git_ref: self.text(node, "git-ref")?,
        })
    }

    fn validate(&self, node: &Node) -> Result<ValidateRecord, Finding> {
        let words =
            [CheckResult::Pass, CheckResult::Fail, CheckResult::Warn, CheckResult::Inconclusive].map(|result| (result.name(), result));
        Ok(ValidateRecord {
            status: self.needed_word(node, "status", &words)?,
            streams: self.streams(node)?,
            review: self.text(node, "review")?,
            error: self.text(node, "error")?,
            reason: self.text(node, "reason")?,
        })
    }

    fn streams(&self, node: &Node) -> Result<Streams, Finding> {
        Ok(Streams {
            exit_code: self.number(node, "exit-code")?,
            stdout: self.text(node, "stdout")?.unwrap_or_default(),
            stderr: self.text(node, "stderr")?.unwrap_or_default(),
        })
    }

    fn error(&self, at: At, message: impl Into<String>) -> Finding {
        self.located.finding(Level::Error, at, message)
    }

    fn mapping(&self, node: &Node, what: &str) -> Result<(), Finding> {
        let Value::Mapping(entries) = &node.value else {
            return Err(self.error(node.at, format!("{what} must be a mapping, and is {}", node.kind())));
        };
        let mut seen = std::collections::HashSet::new();
        for (key, _) in entries {
            if let Some(name) = key.scalar()
                && !seen.insert(&*name.text)
            {
                return Err(self.error(key.at, format!("duplicate key `{}`", shown(&name.text))));
            }
        }
        Ok(())
    }

    fn phase<'n>(&self, step: &'n Node, key: &str) -> Result<Option<&'n Node>, Finding> {
        let Some(node) = step.get(key).filter(|node| !node.is_null()) else { return Ok(None) };
        self.mapping(node, &format!("`{key}`"))?;
        Ok(Some(node))
    }

    /// Any single value, as it is written: another program may have written a number without quotes.
    fn scalar(&self, node: &Node, key: &str) -> Result<String, Finding> {
        match node.scalar() {
            Some(scalar) => Ok(scalar.text.to_string()),
            None => Err(self.error(node.at, format!("`{key}` must be a text, and is {}", node.kind()))),
        }
    }

    fn text(&self, mapping: &Node, key: &str) -> Result<Option<String>, Finding> {
        mapping.get(key).filter(|node| !node.is_null()).map(|node| self.scalar(node, key)).transpose()
    }

    fn number<T: std::str::FromStr>(&self, mapping: &Node, key: &str) -> Result<Option<T>, Finding> {
        let Some(node) = mapping.get(key).filter(|node| !node.is_null()) else { return Ok(None) };
        let text = self.scalar(node, key)?;
        text.parse().map(Some).map_err(|_| self.error(node.at, format!("`{key}` is `{}`, which is not a number of its kind", shown(&text))))
    }

    fn time(&self, mapping: &Node, key: &str) -> Result<Option<Timestamp>, Finding> {
        let Some(node) = mapping.get(key).filter(|node| !node.is_null()) else { return Ok(None) };
        let text = self.scalar(node, key)?;
        read_time(&text).map(Some).ok_or_else(|| self.error(node.at, format!("`{key}` is `{}`, which is not a time", shown(&text))))
    }

    fn texts(&self, mapping: &Node, key: &str) -> Result<BTreeMap<String, String>, Finding> {
        let Some(node) = mapping.get(key).filter(|node| !node.is_null()) else { return Ok(BTreeMap::new()) };
        self.mapping(node, &format!("`{key}`"))?;
        let entries = match &node.value {
            Value::Mapping(entries) => entries.as_slice(),
            Value::Scalar(_) | Value::Sequence(_) => &[],
        };
        entries.iter().map(|(name, value)| Ok((self.scalar(name, key)?, self.scalar(value, key)?))).collect()
    }

    fn list<'n>(&self, mapping: &'n Node, key: &str) -> Result<&'n [Node], Finding> {
        match mapping.get(key).filter(|node| !node.is_null()) {
            None => Ok(&[]),
            Some(Node { value: Value::Sequence(items), .. }) => Ok(items),
            Some(node) => Err(self.error(node.at, format!("`{key}` must be a list, and is {}", node.kind()))),
        }
    }

    fn word<T: Copy>(&self, node: &Node, key: &str, words: &[(&str, T)]) -> Result<T, Finding> {
        let text = self.scalar(node, key)?;
        words.iter().find(|(word, _)| *word == text).map(|(_, meant)| *meant).ok_or_else(|| {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.error(node.at, format!("`{key}` is `{}`, and not one of {}", shown(&text), known.join(", ")))
        })
    }

    fn needed_word<T: Copy>(&self, mapping: &Node, key: &str, words: &[(&str, T)]) -> Result<T, Finding> {
        match mapping.get(key) {
            Some(node) => self.word(node, key, words),
            None => Err(self.error(At { end: mapping.at.start, ..mapping.at }, format!("there is no `{key}`"))),
        }
    }
}

fn read_expires(root: &Node) -> Expires {
    let Some(node) = root.get("expires").filter(|node| !node.is_null()) else { return Expires::Unset };
    let Some(scalar) = node.scalar() else { return Expires::Unreadable(node.kind().to_owned()) };
    let text = scalar.text.trim();
    if text == "never" {
        return Expires::Never;
    }
    read_time(text).map_or_else(|| Expires::Unreadable(scalar.text.to_string()), Expires::At)
}

/// A time as programs and people write it: with an offset, or in UTC, or a day on its own (its beginning).
fn read_time(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let instant = text.parse::<jiff::Timestamp>().ok().or_else(|| {
        let civil = text.parse::<jiff::civil::DateTime>().ok()?;
        jiff::tz::TimeZone::UTC.to_timestamp(civil).ok()
    });
    instant.map(|instant| Timestamp(instant.as_millisecond()))
}
