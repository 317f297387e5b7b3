//! Documents and what else is not Rust.

use std::collections::BTreeSet;

use super::Finding;
use super::source::Source;

const LONGEST_AGENTS: usize = 60;

/// Packages in `Cargo.lock`. Each costs build time and trust; raise it in the commit that adds one, and say why.
const MOST_PACKAGES: usize = 261;

/// Where changes wait for a release: one file for each change that a user can notice.
const CHANGES: &str = "changes/unreleased/";

/// Every rule about documents. `paths` are all files of the repository.
pub(crate) fn check(sources: &[Source], paths: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        findings.extend(machine_paths(source));
        if source.path.ends_with(".md") {
            findings.extend(broken_links(source, paths));
        }
        if source.path.rsplit('/').next() == Some("AGENTS.md") {
            findings.extend(long_agents(source));
        }
        if source.path == "Cargo.lock" {
            findings.extend(many_packages(source));
        }
        if source.path == "CHANGELOG.md" {
            findings.extend(missing_changes(source, paths));
        }
        if source.path.starts_with(CHANGES) && source.text.trim().is_empty() {
            findings.push(Finding::error(&source.path, 1, "changes", "say what a user notices, in a sentence or two"));
        }
    }
    findings
}

/// A path of the machine on which somebody happened to work.
fn machine_paths(source: &Source) -> Vec<Finding> {
    // Put together here, so that this file does not break its own rule.
    let forbidden = concat!("/wo", "rk/");
    source
        .text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.contains(forbidden))
        .map(|(index, _)| {
            Finding::error(&source.path, index + 1, "machine-path", format!("`{forbidden}`: a stranger's machine has no such folder"))
        })
        .collect()
}

/// Links to files that are not there.
fn broken_links(source: &Source, paths: &BTreeSet<String>) -> Vec<Finding> {
    let folder = source.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut findings = Vec::new();
    let mut in_code = false;
    for (index, line) in source.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for target in targets(line) {
            let resolved = resolve(folder, target);
            let exists = paths.contains(&resolved) || paths.iter().any(|path| path.starts_with(&format!("{resolved}/")));
            if !exists {
                findings.push(Finding::error(&source.path, index + 1, "link", format!("`{target}` is not in this repository")));
            }
        }
    }
    findings
}

/// The files that a line of Markdown links to, without their anchors.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("](").filter_map(|(position, opening)| {
        let rest = &line[position + opening.len()..];
        let target = rest.split([')', ' ']).next()?.split('#').next()?;
        let elsewhere = target.is_empty() || target.contains("://") || target.starts_with("mailto:");
        (!elsewhere).then_some(target)
    })
}

fn resolve(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> =
        if target.starts_with('/') { Vec::new() } else { folder.split('/').filter(|part| !part.is_empty()).collect() };
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn long_agents(source: &Source) -> Option<Finding> {
    let lines = source.text.lines().count();
    (lines > LONGEST_AGENTS).then(|| {
        Finding::error(
            &source.path,
            LONGEST_AGENTS + 1,
            "agents",
            format!("{lines} lines; it is read every time, so at most {LONGEST_AGENTS}"),
        )
    })
}

fn many_packages(source: &Source) -> Option<Finding> {
    let packages = source.text.lines().filter(|line| *line == "[[package]]").count();
    (packages > MOST_PACKAGES).then(|| {
        Finding::error(
            &source.path,
            1,
            "lock",
            format!("{packages} packages, and the cap is {MOST_PACKAGES}; see crates/xtask/src/tidy/documents.rs"),
        )
    })
}

/// A changelog that points to the folder of unreleased changes needs one there.
fn missing_changes(source: &Source, paths: &BTreeSet<String>) -> Option<Finding> {
    let line = source.text.lines().position(|line| line.contains(CHANGES.trim_end_matches('/')))?;
    let has_changes = paths.iter().any(|path| path.starts_with(CHANGES) && path.ends_with(".md") && !path.ends_with("/README.md"));
    (!has_changes).then(|| Finding::error(&source.path, line + 1, "changes", format!("it points to {CHANGES}, which has no change")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(path: &str, text: &str, others: &[&str]) -> Vec<(&'static str, usize)> {
        let paths = others.iter().copied().chain([path]).map(ToOwned::to_owned).collect();
        check(&[Source::new(path, text)], &paths).into_iter().map(|finding| (finding.rule, finding.line)).collect()
    }

    #[test]
    fn a_link_to_a_file_that_is_not_there_is_found() {
        let text =
            "[a](b.md) [c](../README.md#d)\n[e](https://e.example/f) [g](#h)\n```\n[i](j.md)\n```\n[k](gone.md \"title\")\n[l](..)\n";

        assert_eq!(broken("docs/a.md", text, &["docs/b.md", "README.md"]), [("link", 6), ("link", 7)]);
        assert_eq!(broken("README.md", "[docs](docs) [docs](docs/) [x](./x)", &["docs/b.md"]), [("link", 1)]);
    }

    #[test]
    fn a_machine_path_is_found_anywhere() {
        for path in ["README.md", "crates/a/src/b.rs", "x.sh"] {
            assert_eq!(broken(path, &format!("a\n{}", concat!("cd /wo", "rk/main")), &[]), [("machine-path", 2)]);
        }
    }

    #[test]
    fn long_instructions_for_agents_are_found() {
        assert_eq!(broken("AGENTS.md", &"x\n".repeat(61), &[]), [("agents", 61)]);
        assert_eq!(broken("crates/a/AGENTS.md", &"x\n".repeat(60), &[]), []);
    }

    #[test]
    fn a_lock_file_with_too_many_packages_is_found() {
        assert_eq!(broken("Cargo.lock", &"[[package]]\n".repeat(MOST_PACKAGES + 1), &[]), [("lock", 1)]);
    }

    #[test]
    fn a_changelog_that_promises_changes_needs_some() {
        let text = "# Changes\nSee `changes/unreleased`.\n";

        assert_eq!(broken("CHANGELOG.md", text, &[]), [("changes", 2)]);
        assert_eq!(broken("CHANGELOG.md", text, &["changes/unreleased/README.md"]), [("changes", 2)]);
        assert_eq!(broken("CHANGELOG.md", text, &["changes/unreleased/first.md"]), []);
        assert_eq!(broken("CHANGELOG.md", "# Changes\n", &[]), []);
        assert_eq!(broken("changes/unreleased/first.md", " \n", &[]), [("changes", 1)]);
    }
}
