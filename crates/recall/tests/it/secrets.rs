//! Secrets do not reach a file.

use proctor_recall::hygiene::Mask;
use proctor_recall::{Effect, FileKind, Line, Record};

use crate::{Scene, works};

const TOKEN: &str = "ghp_0123456789012345678901234567890123456789";

#[test]
fn a_secret_in_any_field_is_masked_before_the_record_is_written() {
    let canary = "canary value 77";
    let mask = Mask::new(&[canary.as_bytes().to_vec()]);
    let record = Record {
        trap: Some(format!("without {canary} it fails")),
        verify: Some(format!("curl -H 'Authorization: Bearer {TOKEN}' | jq")),
        observation: Some("ghp_0123456789012345\n678901234567890123456789".to_owned()),
        alternative: Some("postgres://app:s3cr3tpass@db".to_owned()),
        agent: Some(TOKEN.to_owned()),
        files: vec![format!("logs/{TOKEN}.txt")],
        ..works("set API_KEY=Zk3vQ9xT1mB7rN5cW8yH2jL6 first")
    };
    let mut line = Line::of(record);

    let masked = line.mask(&mask);

    let scene = Scene::new();
    scene.folder.change(Effect::Write, |contents| contents.add(line.clone())).unwrap();
    let text = scene.text(FileKind::Works);
    for secret in [canary, "0123456789", "678901234567890123456789", "s3cr3tpass", "Zk3vQ9xT1mB7rN5cW8yH2jL6"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert_eq!(masked.fields, ["route", "trap", "observation", "alternative", "verify", "agent", "files"]);
    assert_eq!(masked.count, 7);
}

#[test]
fn a_secret_in_a_part_that_nobody_understands_is_masked_too() {
    let mut line = Line::read(proctor_recall::Polarity::Works, &format!("route: a | trap: b | colour: {TOKEN}"));

    let masked = line.mask(&Mask::default());

    assert_eq!((masked.count, line.body.as_str()), (1, "route: a | trap: b | colour: [redacted]"));
}

#[test]
fn a_secret_in_what_came_from_the_environment_is_masked_and_nothing_else_of_the_line_is_touched() {
    let mut line = Line::read(proctor_recall::Polarity::Works, "route: a | trap: b | colour: blue");
    line.record = Record {
        session: Some(TOKEN.to_owned()),
        commit: Some(TOKEN.to_owned()),
        dependencies: vec![proctor_recall::Dependency::parse(&format!("{TOKEN}@1"))],
        other: vec![("note".to_owned(), TOKEN.to_owned())],
        ..line.record
    };

    let masked = line.mask(&Mask::default());

    assert_eq!((masked.count, masked.fields), (4, vec!["session", "commit", "deps", "metadata"]));
    assert_eq!(line.body, "route: a | trap: b | colour: blue");
    assert!(!line.text().contains("0123456789"), "{}", line.text());
}
