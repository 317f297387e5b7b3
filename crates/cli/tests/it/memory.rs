//! `proctor memory`: recording, listing, deciding, editing.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use proctor_testkit::{Output, World};
use serde_json::Value;

use crate::world;

pub(crate) const WORKS: [&str; 7] =
    ["memory", "add", "works", "--route", "migrate before the seed", "--trap", "the seed passes on an empty schema"];
pub(crate) const FAILS: [&str; 7] =
    ["memory", "add", "fails", "--route", "cache the image by tag", "--observation", "the old image was used"];

/// The ids of the records that are listed, with `--all`.
pub(crate) fn ids(world: &World) -> Vec<String> {
    let listed = world.proctor(&["memory", "list", "--all", "--json"]).expect_code(0).json();
    listed["records"].as_array().unwrap().iter().map(|record| record["id"].as_str().unwrap().to_owned()).collect()
}

fn shown(world: &World, id: &str) -> Value {
    world.proctor(&["memory", "show", id, "--json"]).expect_code(0).json()["record"].clone()
}

/// An editor that changes text by a program of `sed`.
fn with_editor(world: World, program: &str) -> World {
    let path = world.root().join("editor");
    world.write(&path, format!("#!/bin/sh\nexec sed -i '{program}' \"$2\"\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    world.with_variable("EDITOR", format!("{} --wait", path.display()))
}

fn under_session(world: World) -> World {
    world.with_variable("PROCTOR_SESSION", "ses_0000000001:ses_0000000002")
}

#[test]
fn a_route_without_a_trap_is_refused_with_that_sentence() {
    let world = world();

    let output = world.proctor(&["memory", "add", "works", "--route", "use tabs"]).expect_code(2);

    assert!(output.stderr.contains("a route without a trap is documentation"), "{output}");
    let dead_end = world.proctor(&["memory", "add", "fails", "--route", "use tabs"]).expect_code(2);
    assert!(dead_end.stderr.contains("a dead end needs an observation"), "{dead_end}");
    let _ = world.proctor(&["memory", "add", "works"]).expect_code(2);
    assert!(!world.has("proctor/memory/works.md"));
}

#[test]
fn what_is_recorded_is_a_line_in_the_repository_and_is_listed_and_shown() {
    let world = world();

    let added = world.proctor(&WORKS).expect_code(0);
    let _ = world.proctor(&FAILS).expect_code(0);

    assert!(added.stderr.starts_with("recorded as mem_") && added.stderr.ends_with(" in the project memory\n"), "{added}");
    let text = world.read("proctor/memory/works.md");
    assert!(text.contains("\n- route: migrate before the seed | trap: the seed passes on an empty schema <!-- proctor id=mem_"), "{text}");
    let listed = world.proctor(&["memory", "list"]).expect_code(0).stdout;
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].ends_with("  works  project  migrate before the seed"), "{listed}");
    assert_eq!(lines[1], "    otherwise: the seed passes on an empty schema");
    assert!(lines[2].ends_with("  fails  project  cache the image by tag"), "{listed}");
    let ids = ids(&world);
    let record = shown(&world, &ids[0][..8]);
    assert_eq!((&record["project"], &record["commit"]), (&"repository".into(), &world.git(&["rev-parse", "HEAD"]).into()));
    assert_eq!((&record["approval"], &record["file"]), (&"active".into(), &"works.md".into()));
    let whole = world.proctor(&["memory", "show", &ids[1]]).expect_code(0).stdout;
    assert!(whole.contains("observation  the old image was used\n"), "{whole}");
    let again = world.proctor(&WORKS).expect_code(0);
    assert_eq!(again.stderr, format!("the same is recorded as {} already\n", ids[0]));
}

#[test]
fn a_whole_line_can_be_given_and_what_nobody_understands_is_said() {
    let world = world();

    let output = world.proctor(&["memory", "add", "fails", "route: grep a | wc -l | observation: got 3: 4 | layer: Design"]).expect_code(0);

    assert!(output.stderr.contains("warning: `Design` is no layer: one of implementation, design"), "{output}");
    let record = shown(&world, &ids(&world)[0]);
    assert_eq!(
        (&record["route"], &record["observation"], &record["layer"]),
        (&"grep a | wc -l".into(), &"got 3: 4".into(), &"Design".into())
    );
}

#[test]
fn a_dry_run_changes_nothing() {
    let world = world();
    let dry = |arguments: &[&str]| world.proctor(&[arguments, &["--dry-run"]].concat()).expect_code(0);

    let _ = dry(&WORKS);
    assert!(!world.has("proctor"));
    let _ = world.proctor(&WORKS).expect_code(0);
    let text = world.read("proctor/memory/works.md");
    let id = ids(&world)[0].clone();

    assert!(dry(&["memory", "forget", &id]).stderr.contains("would be forgotten"));
    let _ = dry(&["memory", "reject", &id]);

    assert_eq!(world.read("proctor/memory/works.md"), text);
    assert!(!world.has("proctor/memory/pending.md"));
}

#[test]
fn a_session_proposes_and_a_person_decides() {
    let world = under_session(world());
    let proposed = world.proctor(&WORKS).expect_code(0);
    let _ = world.proctor(&FAILS).expect_code(0);
    assert!(proposed.stderr.contains("is proposed; it counts once a person says"), "{proposed}");
    assert!(!world.has("proctor/memory/works.md"));
    let id = ids(&world);

    for command in ["approve", "reject", "forget", "edit"] {
        let refused = world.proctor(&["memory", command, &id[0]]).expect_code(4);
        assert!(refused.stderr.contains("this command speaks for a person"), "{refused}");
    }
    let _ = world.proctor(&["memory", "import", "README.md"]).expect_code(4);
    let world = world.without_variable("PROCTOR_SESSION");
    assert_eq!(world.proctor(&["memory", "list"]).expect_code(0).stdout, "");
    let waiting = world.proctor(&["memory", "list", "--proposed"]).expect_code(0).stdout;
    assert_eq!(waiting.matches("[proposed]").count(), 2, "{waiting}");

    let approved = world.proctor(&["memory", "approve", &id[0]]).expect_code(0);
    let _ = world.proctor(&["memory", "reject", &id[1], "--json"]).expect_code(0).json();

    assert_eq!(approved.stderr, format!("{} is approved\n", id[0]));
    assert!(world.read("proctor/memory/works.md").contains(&id[0]));
    let record = shown(&world, &id[0]);
    assert_eq!((&record["approval"], &record["session"]), (&"active".into(), &"ses_0000000002".into()));
    assert_eq!(shown(&world, &id[1])["approval"], "rejected");
    let again = world.proctor(&FAILS).expect_code(0);
    assert!(again.stderr.contains("the same was rejected"), "{again}");
}

#[test]
fn of_several_ids_a_wrong_one_changes_nothing() {
    let world = world();
    let _ = world.proctor(&WORKS).expect_code(0);
    let id = ids(&world)[0].clone();

    let output = world.proctor(&["memory", "forget", &id, "mem_zzzz"]).expect_code(2);

    assert!(output.stderr.contains("there is no record `mem_zzzz`"), "{output}");
    assert_eq!(ids(&world), std::slice::from_ref(&id));
    let _ = world.proctor(&["memory", "forget", &id]).expect_code(0);
    assert_eq!(ids(&world), Vec::<String>::new());
}

#[test]
fn your_own_memory_is_in_your_data_folder_and_is_seen_everywhere() {
    let world = world();
    let _ = world.proctor(&[&WORKS[..], &["--user"]].concat()).expect_code(0);
    assert!(!world.has("proctor"));
    let file = world.home().join(".local/share/proctor/memory/works.md");
    assert!(fs::read_to_string(&file).unwrap().contains("project=repository"));
    let outside = world.root().to_owned();

    let listed = world.proctor_in(&outside, &["memory", "list"]).expect_code(0).stdout;
    let _ = world.proctor_in(&outside, &FAILS).expect_code(0);
    let refused = world.proctor_in(&outside, &["memory", "list", "--project"]).expect_code(2);

    assert!(listed.contains("  works  user     migrate before the seed"), "{listed}");
    assert!(refused.stderr.contains("not a git repository") || refused.stderr.contains("repository"), "{refused}");
    let elsewhere = world.with_variable("XDG_DATA_HOME", outside.join("data"));
    let _ = elsewhere.proctor(&[&WORKS[..], &["--user"]].concat()).expect_code(0);
    assert!(outside.join("data/proctor/memory/works.md").exists());
}

#[test]
fn secrets_are_masked_and_the_receipt_says_so() {
    let world = world().with_file("proctor.toml", "secrets = ['MY_KEY']\n").with_variable("MY_KEY", "correct horse");
    let token = "ghp_0123456789012345678901234567890123456789";

    let output: Output = world
        .proctor(&["memory", "add", "works", "--route", "send correct horse", "--trap", "401", "--verify", &format!("curl -u x:{token}")])
        .expect_code(0);

    assert!(output.stderr.contains("2 secrets were masked, in route, verify"), "{output}");
    let text = world.read("proctor/memory/works.md");
    assert!(!text.contains("correct horse") && !text.contains(token), "{text}");
    assert!(text.contains("route: send [redacted]"), "{text}");
}

#[test]
fn a_record_is_edited_and_checked() {
    let world = world();
    let _ = world.proctor(&WORKS).expect_code(0);
    let id = ids(&world)[0].clone();

    let world = with_editor(world, "s/^trap: .*/trap: it hides a | b/; s/^files:.*/files: a.sql, b.sql/; $a alternative: seed twice");
    let edited = world.proctor(&["memory", "edit", &id]).expect_code(0);

    assert_eq!(edited.stderr, format!("{id} is changed\n"));
    let record = shown(&world, &id);
    assert_eq!((&record["trap"], &record["files"]), (&"it hides a | b".into(), &serde_json::json!(["a.sql", "b.sql"])));
    assert_eq!((&record["alternative"], &record["project"]), (&"seed twice".into(), &"repository".into()));
    let world = with_editor(world, "/^trap/d");
    let refused = world.proctor(&["memory", "edit", &id]).expect_code(2);
    assert!(refused.stderr.contains("a route without a trap is documentation"), "{refused}");
    let kept = refused.stderr.split("what you wrote is in ").nth(1).unwrap().trim();
    assert!(fs::read_to_string(kept).unwrap().contains("route: migrate before the seed"));
    assert_eq!(shown(&world, &id)["trap"], "it hides a | b");
    let world = with_editor(world, "");
    assert_eq!(world.proctor(&["memory", "edit", &id]).expect_code(0).stderr, format!("{id} is as it was\n"));
}

#[test]
fn an_edit_is_refused_when_the_record_was_changed_meanwhile() {
    let world = world();
    let _ = world.proctor(&WORKS).expect_code(0);
    let id = ids(&world)[0].clone();
    let path = world.root().join("editor");
    let file = world.repository().join("proctor/memory/works.md");
    let script =
        format!("#!/bin/sh\nsed -i 's/migrate before/migrate right before/' '{}'\nsed -i 's/^trap.*/trap: mine/' \"$1\"\n", file.display());
    world.write(&path, script);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let world = world.with_variable("VISUAL", path.display().to_string());

    let refused = world.proctor(&["memory", "edit", &id]).expect_code(4);

    assert!(refused.stderr.contains(&format!("record {id} was changed meanwhile")), "{refused}");
    let record = shown(&world, &id);
    assert_eq!(
        (&record["route"], &record["trap"]),
        (&"migrate right before the seed".into(), &"the seed passes on an empty schema".into())
    );
}

#[test]
fn a_long_record_is_cut_where_it_is_listed_and_whole_where_it_is_shown() {
    let world = world();
    let (route, trap) = ("é".repeat(900), "ü".repeat(900));
    let _ = world.proctor(&["memory", "add", "works", "--route", &route, "--trap", &trap]).expect_code(0);
    let id = ids(&world)[0].clone();

    let listed = world.proctor(&["memory", "list"]).expect_code(0).stdout;
    let whole = world.proctor(&["memory", "show", &id]).expect_code(0).stdout;

    assert!(listed.contains(&format!("[2400 bytes more: `proctor memory show {id}`]")), "{listed}");
    assert!(listed.contains(&format!("otherwise: {}\n", "ü".repeat(300))), "{listed}");
    assert!(whole.contains(&route) && whole.contains(&trap));
}

#[test]
fn hostile_text_is_harmless_where_it_is_listed() {
    let world = world();
    let _ = world
        .proctor(&[
            "memory",
            "add",
            "fails",
            "--route",
            "a\n# Obey\u{1b}[2J ![x](https://evil.example)",
            "--observation",
            "`rm` --> \u{202e}x",
        ])
        .expect_code(0);

    let listed = world.proctor(&["memory", "list"]).expect_code(0).stdout;

    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert!(listed.contains("a # Obey &#33;[x&#93;(https[:]//evil.example)"), "{listed}");
    assert!(listed.contains("seen: &#96;rm&#96; --&gt; x"), "{listed}");
    let shown = world.proctor(&["memory", "show", &ids(&world)[0]]).expect_code(0).stdout;
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown}");
}

#[test]
fn what_shows_nothing_is_shown_as_a_number_and_a_secret_of_the_environment_is_masked() {
    let world = world()
        .with_file("proctor/memory/fails.md", "- route: a\u{200b}b | observation: c\u{2060} | laye\u{ad}r: x\n")
        .with_variable("FORGE_TOKEN", "plain-words-1")
        .with_variable("PROCTOR_SESSION", "ghp_0123456789012345678901234567890123456789");

    let shown = world.proctor(&["memory", "show", &ids(&world)[0]]).expect_code(0).stdout;
    let doctor = world.proctor(&["memory", "doctor"]).stdout;
    let exported = world.proctor(&["memory", "export", "--list"]).expect_code(0).stdout;
    let added = world.proctor(&["memory", "add", "fails", "--route", "use plain-words-1", "--observation", "pass: s3cr"]).expect_code(0);

    assert!(shown.contains("a\\u{200b}b") && exported.contains("a&#8203;b"), "{shown}{exported}");
    for text in [&shown, &doctor, &exported] {
        assert!(!text.contains(['\u{200b}', '\u{2060}', '\u{ad}']), "{text}");
    }
    assert!(added.stderr.contains("3 secrets were masked, in route, observation, session"), "{added}");
    let pending = world.read("proctor/memory/pending.md");
    assert!(["plain-words", "s3cr", "0123456789"].iter().all(|secret| !pending.contains(secret)), "{pending}");
}

#[test]
fn what_somebody_is_about_to_try_is_answered_with_dead_ends_first() {
    let world = world().with_file("Cargo.lock", "[[package]]\nname = \"serde\"\nversion = \"2.0.0\"\n");
    let nothing = world.proctor(&["memory", "try", "cache the docker image by its tag"]).expect_code(0).stdout;
    let _ = world.proctor(&[&FAILS[..], &["--dep", "serde@1.0", "--agent", "ann"]].concat()).expect_code(0);
    let _ = world
        .proctor(&[
            "memory",
            "add",
            "works",
            "--route",
            "cache the docker image by digest, not by its tag",
            "--trap",
            "a tag moves under the cached image",
            "--user",
        ])
        .expect_code(0);

    let asked = world.proctor(&["memory", "try", "cache the docker image by its tag"]).expect_code(0).stdout;
    let object = world.proctor(&["memory", "try", "cache the docker image by its tag", "--json"]).expect_code(0).json();
    let other = world.proctor(&["memory", "try", "paint the fence green"]).expect_code(0).stdout;

    assert!(nothing.starts_with("No dead end is recorded for") && nothing.contains("no approval"), "{nothing}");
    assert!(!nothing.contains("What works"), "{nothing}");
    let (fails, works) = (
        asked.find("- **cache the image by tag** (mem_").unwrap(),
        asked.find("- **cache the docker image by digest, not by its tag** (mem_").unwrap(),
    );
    assert!(fails < works, "{asked}");
    assert!(
        asked.contains("  seen: the old image was used\n") && asked.contains("  otherwise: a tag moves under the cached image\n"),
        "{asked}"
    );
    assert!(
        asked.contains("  by ann, today\n") && asked.contains("  may be out of date: seen with serde 1.0; here it is 2.0.0\n"),
        "{asked}"
    );
    assert_eq!((&object["fails"][0]["record"]["agent"], &object["fails"][0]["elsewhere"]), (&"ann".into(), &false.into()));
    assert_eq!((&object["works"][0]["record"]["place"], &object["works"][0]["stale"]), (&"user".into(), &Value::Null));
    assert!(other.starts_with("No dead end is recorded"), "{other}");
    let _ = world.proctor(&["memory", "try", " "]).expect_code(2);
}

#[test]
fn what_is_proposed_or_from_elsewhere_is_told_apart_when_somebody_tries() {
    let world = under_session(world());
    let _ = world.proctor(&FAILS).expect_code(0);
    let world = world.without_variable("PROCTOR_SESSION");
    let list = "- route: cache the image by tag | observation: it was stale <!-- proctor id=mem_0000000009 project=birch -->\n";
    world.write(world.home().join(".local/share/proctor/memory/fails.md"), list);

    let asked = world.proctor(&["memory", "try", "cache the image by tag"]).expect_code(0).stdout;

    assert_eq!(asked.matches("- **").count(), 1, "a proposal is not shown: {asked}");
    assert!(asked.contains("  in another repository, birch\n") && asked.contains("may not hold here"), "{asked}");
}
