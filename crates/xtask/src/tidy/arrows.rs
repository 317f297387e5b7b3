//! Who may depend on whom, and what belongs to a package.

use anyhow::{Context, ensure};
use serde_json::Value;

use super::Finding;

/// A shipping crate and the crates it may use.
type Arrows = (&'static str, &'static [&'static str]);

/// A new row or a new arrow is a change of the architecture: say so in the commit's title.
const ARROWS: [Arrows; 10] = [
    ("domain", &[]),
    ("process", &[]),
    ("cards", &["domain"]),
    ("journal", &["domain", "process"]),
    ("workspace", &["domain", "process"]),
    ("engine", &["domain", "process"]),
    ("recall", &["domain", "process", "engine"]),
    ("loopback", &[]),
    ("orchestrator", &["domain", "process", "cards", "journal", "workspace", "engine", "recall"]),
    ("cli", &["domain", "process", "cards", "journal", "workspace", "engine", "recall", "loopback", "orchestrator"]),
];

/// Crates that are never shipped. They may use any other; the others may use `testkit` in their tests only.
const DEVELOPMENT: [&str; 2] = ["testkit", "xtask"];
const FOR_TESTS: &str = "testkit";

/// Shipping crates there may ever be.
const MOST_CRATES: usize = 14;

/// A package of this repository, as `cargo metadata` tells.
#[derive(Debug, Default)]
pub(crate) struct Package {
    name: String,
    /// The folder under `crates/`.
    folder: String,
    dependencies: Vec<Dependency>,
    /// Names of its integration test binaries.
    tests: Vec<String>,
}

#[derive(Debug)]
struct Dependency {
    /// Its folder under `crates/`.
    folder: String,
    name: String,
    use_: Use,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Shipped,
    Tests,
}

/// Reads the output of `cargo metadata --no-deps`.
pub(crate) fn packages(metadata: &str) -> anyhow::Result<Vec<Package>> {
    let metadata: Value = serde_json::from_str(metadata).context("read the output of cargo metadata")?;
    let packages = metadata["packages"].as_array().context("find packages in the output of cargo metadata")?;
    ensure!(!packages.is_empty(), "cargo metadata names no package");
    Ok(packages.iter().map(package).collect())
}

fn package(package: &Value) -> Package {
    let list = |key: &str| package[key].as_array().cloned().unwrap_or_default();
    let is_test = |target: &Value| target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "test"));
    Package {
        name: text(&package["name"]),
        folder: folder(&text(&package["manifest_path"]), "/Cargo.toml"),
        dependencies: list("dependencies").iter().filter(|dependency| dependency["path"].is_string()).map(dependency).collect(),
        tests: list("targets").iter().filter(|target| is_test(target)).map(|target| text(&target["name"])).collect(),
    }
}

fn dependency(dependency: &Value) -> Dependency {
    let use_ = if dependency["kind"] == "dev" { Use::Tests } else { Use::Shipped };
    Dependency { folder: folder(&text(&dependency["path"]), ""), name: text(&dependency["name"]), use_ }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn folder(path: &str, suffix: &str) -> String {
    path.strip_suffix(suffix).unwrap_or(path).rsplit('/').next().unwrap_or_default().to_owned()
}

/// Every rule about packages. `manifest` gives the text of a crate's `Cargo.toml`, to find lines in.
pub(crate) fn check(packages: &[Package], manifest: impl Fn(&str) -> String) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let path = format!("crates/{}/Cargo.toml", package.folder);
        let text = manifest(&path);
        let line_of = |start: &str| text.lines().position(|line| line.starts_with(start)).map_or(1, |index| index + 1);
        findings.extend(name_problem(package).map(|sentence| Finding::error(&path, line_of("name"), "package", sentence)));
        for dependency in &package.dependencies {
            let problem = arrow_problem(package, dependency);
            findings.extend(problem.map(|sentence| Finding::error(&path, line_of(&dependency.name), "arrow", sentence)));
        }
        for test in package.tests.iter().filter(|test| *test != "it") {
            let sentence = format!("test binary `{test}`: a crate has one, tests/it/main.rs, because each one is linked anew");
            findings.push(Finding::error(&path, 1, "test-binary", sentence));
        }
    }
    let shipped = packages.iter().filter(|package| !DEVELOPMENT.contains(&package.folder.as_str())).count();
    if shipped > MOST_CRATES {
        findings.push(Finding::error(
            "Cargo.toml",
            1,
            "package",
            format!("{shipped} shipping crates, and there are at most {MOST_CRATES}"),
        ));
    }
    findings
}

fn name_problem(package: &Package) -> Option<String> {
    let expected = match package.folder.as_str() {
        "cli" => "proctor".to_owned(),
        "xtask" => "xtask".to_owned(),
        folder => format!("proctor-{folder}"),
    };
    (package.name != expected).then(|| format!("the package in crates/{} is called `{expected}`, not `{}`", package.folder, package.name))
}

fn arrow_problem(package: &Package, dependency: &Dependency) -> Option<String> {
    let (from, to) = (package.folder.as_str(), dependency.folder.as_str());
    if DEVELOPMENT.contains(&from) {
        return None;
    }
    if dependency.use_ == Use::Tests && to == FOR_TESTS {
        return None;
    }
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == from) else {
        return Some(format!("`{from}` has no row in the table of arrows"));
    };
    (!allowed.contains(&to)).then(|| format!("`{from}` may not use `{to}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(folder: &str, name: &str, dependencies: &[(&str, Use)], tests: &[&str]) -> Package {
        let dependency =
            |(folder, use_): &(&str, Use)| Dependency { folder: (*folder).to_owned(), name: format!("proctor-{folder}"), use_: *use_ };
        Package {
            name: name.to_owned(),
            folder: folder.to_owned(),
            dependencies: dependencies.iter().map(dependency).collect(),
            tests: tests.iter().map(|test| (*test).to_owned()).collect(),
        }
    }

    fn broken(package: Package) -> Vec<(&'static str, usize)> {
        let manifest = "name = \"x\"\n[dependencies]\nproctor-journal.workspace = true\n";
        check(&[package], |_| manifest.to_owned()).into_iter().map(|finding| (finding.rule, finding.line)).collect()
    }

    #[test]
    fn an_arrow_that_is_not_in_the_table_is_found() {
        assert_eq!(broken(sample("cards", "proctor-cards", &[("domain", Use::Shipped), ("journal", Use::Shipped)], &[])), [("arrow", 3)]);
        assert_eq!(broken(sample("cards", "proctor-cards", &[("journal", Use::Tests)], &["it"])), [("arrow", 3)]);
        assert_eq!(broken(sample("cli", "proctor", &[("testkit", Use::Shipped)], &[])), [("arrow", 1)]);
        assert_eq!(broken(sample("cli", "proctor", &[("testkit", Use::Tests)], &[])), []);
        assert_eq!(broken(sample("xtask", "xtask", &[("journal", Use::Shipped)], &[])), []);
        assert_eq!(broken(sample("novel", "proctor-novel", &[("domain", Use::Shipped)], &[])), [("arrow", 1)]);
    }

    #[test]
    fn a_package_with_another_name_than_its_folder_is_found() {
        assert_eq!(broken(sample("cards", "proctor-card", &[], &[])), [("package", 1)]);
    }

    #[test]
    fn a_second_test_binary_is_found() {
        assert_eq!(broken(sample("cards", "proctor-cards", &[], &["it", "more"])), [("test-binary", 1)]);
    }

    #[test]
    fn too_many_crates_are_found() {
        let packages: Vec<Package> = (0..15).map(|number| sample(&format!("c{number}"), &format!("proctor-c{number}"), &[], &[])).collect();

        assert_eq!(check(&packages, |_| String::new()).len(), 1);
    }

    #[test]
    fn packages_are_read_from_what_cargo_says() {
        let metadata = r#"{"packages":[{"name":"proctor-cards","manifest_path":"/x/crates/cards/Cargo.toml",
            "dependencies":[{"name":"serde","kind":null},{"name":"proctor-testkit","kind":"dev","path":"/x/crates/testkit"}],
            "targets":[{"kind":["lib"],"name":"proctor_cards"},{"kind":["test"],"name":"it"}]}]}"#;

        let packages = packages(metadata).unwrap();

        assert_eq!(
            (packages[0].name.as_str(), packages[0].folder.as_str(), packages[0].tests.as_slice()),
            ("proctor-cards", "cards", &["it".to_owned()][..])
        );
        assert_eq!(packages[0].dependencies.len(), 1);
        assert_eq!((packages[0].dependencies[0].folder.as_str(), packages[0].dependencies[0].use_), ("testkit", Use::Tests));
        assert!(super::packages("{}").is_err());
    }
}
