//! I8: `domain` reads no clock, disk, network or randomness.

use std::path::Path;

const FORBIDDEN: [&str; 9] =
    ["std::fs", "std::env", "std::net", "std::io", "std::process", "std::thread", "SystemTime::", "Instant::", "getrandom"];

#[test]
fn i8_the_domain_names_nothing_that_reads_the_world() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut read = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for name in FORBIDDEN {
                assert!(!text.contains(name), "{} names {name}", path.display());
            }
            read += 1;
        }
    }
    assert!(read > 10, "the sources were found");
}

#[test]
fn i8_the_domain_depends_on_nothing_that_could() {
    let manifest = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let dependencies = manifest.split("[dependencies]").nth(1).unwrap().split("\n[").next().unwrap();

    let names: Vec<&str> = dependencies.lines().filter(|line| !line.is_empty()).filter_map(|line| line.split('.').next()).collect();

    assert_eq!(names, ["serde", "thiserror"]);
}
