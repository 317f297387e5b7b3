//! Commits that exist.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use proctor_domain::{Oid, RepoPath};

use crate::git::unreadable;
use crate::repository::parse_oid;
use crate::{Repository, WorkspaceError};

/// What is known of one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitFacts {
    /// Its name.
    pub oid: Oid,
    /// What it goes on top of.
    pub parents: Vec<Oid>,
    /// The tree it holds.
    pub tree: Oid,
    /// When it was committed, in seconds since the Unix epoch.
    pub committed_at: i64,
    /// The first line of its message.
    pub subject: String,
    /// Its trailers, in order.
    pub trailers: Vec<(String, String)>,
}

impl CommitFacts {
    /// The value of the first trailer with this name.
    pub fn trailer(&self, name: &str) -> Option<&str> {
        self.trailers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

impl Repository {
    /// The commits of HEAD that `base` does not reach, oldest first; all of HEAD's where `base` is `None`.
    pub fn commits_since(&self, base: Option<&Oid>) -> Result<Vec<CommitFacts>, WorkspaceError> {
        match self.head()?.commit {
            Some(head) => self.commits_between(base, &head),
            None => Ok(Vec::new()),
        }
    }

    /// The commits that `tip` reaches and `base` does not, oldest first.
    pub fn commits_between(&self, base: Option<&Oid>, tip: &Oid) -> Result<Vec<CommitFacts>, WorkspaceError> {
        if base == Some(tip) {
            return Ok(Vec::new());
        }
        let range = base.map_or_else(|| tip.0.clone(), |base| format!("{base}..{tip}"));
        // Signatures are not shown because verifying them starts a program.
        let git = self.quiet("log")?.args(["-z", "--topo-order", "--reverse", "--no-show-signature", "--no-color", "--encoding=UTF-8"]);
        let output = git.args(["--no-patch", "--format=tformat:%H%n%P%n%T%n%ct%n%B", &range]).arg("--").run()?.stdout;
        parse_commits(&output)
    }

    /// The newest commits of HEAD and of branches that changed `path`, at most `most` of them.
    pub fn commits_that_changed(&self, path: &RepoPath, most: usize) -> Result<Vec<CommitFacts>, WorkspaceError> {
        if self.head()?.commit.is_none() {
            return Ok(Vec::new());
        }
        let git = self.quiet("log")?.args(["-z", "--no-show-signature", "--no-color", "--encoding=UTF-8", "--no-patch", "--branches"]);
        let git = git.args([&format!("--max-count={most}"), "--format=tformat:%H%n%P%n%T%n%ct%n%B", "HEAD", "--"]);
        // A path may look like a pattern.
        let pathspec = [&b":(top,literal)"[..], path.as_bytes()].concat();
        parse_commits(&git.args([OsString::from_vec(pathspec)]).run()?.stdout)
    }

    /// Whether `ancestor` is `descendant` or behind it.
    pub fn is_ancestor(&self, ancestor: &Oid, descendant: &Oid) -> Result<bool, WorkspaceError> {
        if ancestor == descendant {
            return Ok(true);
        }
        let git = self.quiet("merge-base")?.args(["--is-ancestor", &ancestor.0, &descendant.0]);
        Ok(git.accept(&[0, 1]).run()?.code == 0)
    }
}

fn parse_commits(output: &[u8]) -> Result<Vec<CommitFacts>, WorkspaceError> {
    let records = output.split(|&byte| byte == 0).filter(|record| !record.is_empty());
    records.map(|record| parse_commit(record).ok_or_else(|| unreadable("log", record))).collect()
}

fn parse_commit(record: &[u8]) -> Option<CommitFacts> {
    let text = String::from_utf8_lossy(record);
    let mut lines = text.splitn(5, '\n');
    let oid = parse_oid(lines.next()?.as_bytes())?;
    let parents: Option<Vec<Oid>> = lines.next()?.split_ascii_whitespace().map(|parent| parse_oid(parent.as_bytes())).collect();
    let tree = parse_oid(lines.next()?.as_bytes())?;
    let committed_at = lines.next()?.parse().ok()?;
    let message = lines.next().unwrap_or_default();
    let (subject, trailers) = parse_message(message);
    Some(CommitFacts { oid, parents: parents?, tree, committed_at, subject, trailers })
}

/// The subject and the trailers of a message.
///
/// Git looks at the last paragraph only. We look for our own trailers in commits that a hook may have
/// added a paragraph to, so every paragraph counts that consists of trailers alone, and in the last one
/// also those among other lines.
pub(crate) fn parse_message(message: &str) -> (String, Vec<(String, String)>) {
    let mut paragraphs: Vec<Vec<&str>> = vec![Vec::new()];
    for line in message.lines() {
        match paragraphs.last_mut() {
            Some(paragraph) if !line.trim().is_empty() => paragraph.push(line),
            Some(paragraph) if paragraph.is_empty() => {}
            Some(_) | None => paragraphs.push(Vec::new()),
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    let subject = paragraphs.first().and_then(|first| first.first()).map_or_else(String::new, |line| (*line).to_owned());
    let mut trailers = Vec::new();
    let last = paragraphs.len().saturating_sub(1);
    for (index, paragraph) in paragraphs.iter().enumerate().skip(1) {
        let (found, complete) = parse_trailers(paragraph);
        if complete || index == last {
            trailers.extend(found);
        }
    }
    (subject, trailers)
}

/// The trailers in a paragraph, and whether it holds nothing else.
fn parse_trailers(paragraph: &[&str]) -> (Vec<(String, String)>, bool) {
    let mut trailers: Vec<(String, String)> = Vec::new();
    let mut complete = true;
    for line in paragraph {
        let continues = line.starts_with([' ', '\t']);
        match (line.split_once(':'), trailers.last_mut()) {
            (_, Some((_, value))) if continues => {
                value.push(' ');
                value.push_str(line.trim());
            }
            (Some((name, value)), _) if is_trailer_name(name) => trailers.push((name.to_owned(), value.trim().to_owned())),
            (_, _) => complete = false,
        }
    }
    (trailers, complete)
}

fn is_trailer_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(message: &str, subject: &str, trailers: &[(&str, &str)]) {
        let expected: Vec<(String, String)> = trailers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!(parse_message(message), (subject.to_owned(), expected), "{message:?}");
    }

    #[test]
    fn trailers_are_read_from_the_last_paragraph() {
        check("Subject\n\nBody: not one\nof them\n\nRun: run_1\nStep: a\n", "Subject", &[("Run", "run_1"), ("Step", "a")]);
        check("Subject: x\n", "Subject: x", &[]);
        check("", "", &[]);
    }

    #[test]
    fn a_paragraph_that_a_hook_added_does_not_hide_ours() {
        check("S\n\nRun: run_1\nStep: a\n\nRefs #12\n", "S", &[("Run", "run_1"), ("Step", "a")]);
        check("S\n\nRun: run_1\n\nChange-Id: I1\n", "S", &[("Run", "run_1"), ("Change-Id", "I1")]);
        check("S\n\nRun: run_1\nRefs #12\n", "S", &[("Run", "run_1")]);
    }

    #[test]
    fn folded_values_are_one_value() {
        check("S\n\nStep: a\n  b\nRun: r\n", "S", &[("Step", "a b"), ("Run", "r")]);
    }
}
