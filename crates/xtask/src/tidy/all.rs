//! Every rule over the whole repository.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use proctor_process::Program;

use super::source::Source;
use super::{Finding, arrows, documents, layout, length, names, phrases};

/// What breaks a rule, sorted by place.
pub(crate) fn findings(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let paths = tracked(root)?;
    let sources: Vec<Source> =
        paths.iter().filter_map(|path| Some(Source::new(path.clone(), fs::read_to_string(root.join(path)).ok()?))).collect();
    let mut findings: Vec<Finding> = sources
        .iter()
        .flat_map(|source| [phrases::check(source), names::check(source), layout::check(source)].into_iter().flatten())
        .collect();
    let list = fs::read_to_string(root.join(length::LIST)).unwrap_or_default();
    findings.extend(length::check(&sources, &list));
    findings.extend(documents::check(&sources, &paths));
    let metadata = output(root, "cargo", &["metadata", "--no-deps", "--offline", "--format-version", "1"])?;
    findings.extend(arrows::check(&arrows::packages(&metadata)?, |path| fs::read_to_string(root.join(path)).unwrap_or_default()));
    findings.sort();
    Ok(findings)
}

/// Every file that is, or could be, committed.
fn tracked(root: &Path) -> anyhow::Result<BTreeSet<String>> {
    let listed = output(root, "git", &["ls-files", "-z", "--cached", "--others", "--exclude-standard"])?;
    let present = listed.split('\0').filter(|path| root.join(path).is_file()).map(ToOwned::to_owned);
    Ok(present.collect())
}

fn output(root: &Path, program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let run = Program::new(program).args(arguments.iter().copied()).dir(root).env(std::env::vars_os()).run(None);
    let finished = run.with_context(|| format!("run {program}"))?;
    let said = String::from_utf8_lossy(&finished.stderr);
    ensure!(finished.status.code == Some(0), "{program} {} failed: {}", arguments.join(" "), said.trim());
    String::from_utf8(finished.stdout).with_context(|| format!("read what {program} wrote"))
}
