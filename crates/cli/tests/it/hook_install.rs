//! `proctor hook install`, `uninstall` and `status`: settings of other programs, changed and given back.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use proctor_testkit::{Output, World};
use serde_json::{Value, json};

use crate::world;

const HOSTS: [(&str, &str); 3] =
    [("claude-code", ".claude/settings.json"), ("codex", ".codex/hooks.json"), ("cursor", ".cursor/hooks.json")];

const THEIRS: &str = "{\n    \"model\" : \"opus\",\n    \"hooks\": {\n        \"PreToolUse\": [\n            {\"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"./mine.sh hook\"}]}\n        ],\n        \"Stop\": []\n    },\n    \"é\": [1,2,   3]\n}";

fn install(world: &World, host: &str, more: &[&str]) -> Output {
    world.proctor(&[&["hook", "install", host], more].concat())
}

fn uninstall(world: &World, host: &str, more: &[&str]) -> Output {
    world.proctor(&[&["hook", "uninstall", host], more].concat())
}

fn of_user(world: &World, file: &str) -> PathBuf {
    world.home().join(file)
}

fn commands(text: &str) -> Vec<String> {
    let quoted = text.split('"').filter(|part| part.contains("proctor hook "));
    let mut commands: Vec<String> = quoted.map(|part| part[part.find("proctor hook ").unwrap()..].to_owned()).collect();
    commands.sort();
    commands
}

#[test]
fn what_is_installed_twice_and_taken_out_leaves_every_byte() {
    for (host, file) in HOSTS {
        for text in [THEIRS, "{}", "{\"hooks\":{}}\n", "{\n\t\"hooks\": {\"PreToolUse\": []}\n}\n", "{ \"version\": 1 }"] {
            let world = world();
            let path = of_user(&world, file);
            world.write(&path, text);

            let first = install(&world, host, &["--json"]).expect_code(0).json();
            let once = world.read(&path);
            let second = install(&world, host, &["--json"]).expect_code(0).json();

            assert_eq!((&first["change"], &second["change"]), (&json!("written"), &json!("unchanged")));
            assert_eq!(world.read(&path), once);
            assert!(serde_json::from_str::<Value>(&once).is_ok(), "{once}");
            assert_eq!(commands(&once), ["pre-edit", "session-start"].map(|event| format!("proctor hook {host} {event}")), "{once}");
            assert_eq!(fs::read_to_string(first["backup"].as_str().unwrap()).unwrap(), text);
            let _ = uninstall(&world, host, &[]).expect_code(0);
            assert_eq!(world.read(&path), text, "{host}");
            assert_eq!(uninstall(&world, host, &["--json"]).expect_code(0).json()["change"], "unchanged");
        }
    }
}

#[test]
fn a_file_that_was_not_there_is_gone_again() {
    for (host, file) in HOSTS {
        let world = world();
        let path = of_user(&world, file);

        let _ = install(&world, host, &["--read-budget"]).expect_code(0);
        assert_eq!(commands(&world.read(&path)).len(), 3);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let _ = install(&world, host, &[]).expect_code(0);
        assert_eq!(commands(&world.read(&path)).len(), 2, "the read budget is not wanted any more");
        let _ = uninstall(&world, host, &[]).expect_code(0);

        assert!(!path.exists());
    }
}

#[test]
fn what_somebody_wrote_since_stays_and_only_ours_goes() {
    let world = world();
    let path = of_user(&world, ".claude/settings.json");
    world.write(&path, THEIRS);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let _ = install(&world, "claude-code", &["--read-budget"]).expect_code(0);
    let text = world.read(&path).replace("\"opus\"", "\"haiku\"");
    world.write(&path, &text);

    let _ = uninstall(&world, "claude-code", &[]).expect_code(0);

    assert_eq!(world.read(&path), THEIRS.replace("opus", "haiku"));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn a_dry_run_writes_nothing() {
    let world = world();
    let path = of_user(&world, ".claude/settings.json");

    let output = install(&world, "claude-code", &["--dry-run"]).expect_code(0);

    assert!(output.stderr.contains("would be written") && output.stderr.contains("hook claude-code pre-edit"), "{output}");
    assert!(!path.exists() && !path.parent().unwrap().exists());
    let _ = install(&world, "claude-code", &[]).expect_code(0);
    let before = world.read(&path);
    assert_eq!(uninstall(&world, "claude-code", &["--dry-run", "--json"]).expect_code(0).json()["change"], "removed");
    assert_eq!(world.read(&path), before);
}

#[test]
fn a_file_that_is_not_understood_is_left_alone_with_a_sentence() {
    for (text, why) in [
        ("{\"a\":1,}", "it is not JSON"),
        ("", "it is not JSON"),
        ("// mine\n{}", "it is not JSON"),
        ("[]", "it is no JSON object"),
        ("{\"hooks\": []}", "its `hooks` is no object"),
        ("{\"hooks\": {\"PreToolUse\": {}}}", "an event in its `hooks` has no list"),
    ] {
        let world = world();
        let path = of_user(&world, ".claude/settings.json");
        world.write(&path, text);

        for output in [install(&world, "claude-code", &[]), uninstall(&world, "claude-code", &[])] {
            let output = output.expect_code(2);
            assert!(output.stderr.contains(&format!("settings.json was left alone: {why}")), "{output}");
        }
        assert_eq!(world.read(&path), text);
    }
}

#[test]
fn a_link_is_followed_for_a_user_and_never_out_of_a_repository() {
    let world = world();
    let (path, target) = (of_user(&world, ".claude/settings.json"), world.home().join("dotfiles.json"));
    world.write(&target, "{}");
    fs::create_dir(path.parent().unwrap()).unwrap();
    symlink(&target, &path).unwrap();
    fs::create_dir(world.repository().join(".claude")).unwrap();
    symlink(&target, world.repository().join(".claude/settings.json")).unwrap();
    symlink(world.home(), world.repository().join(".cursor")).unwrap();
    symlink("nowhere", world.home().join(".codex")).unwrap();

    let _ = install(&world, "claude-code", &[]).expect_code(0);
    let installed = world.read(&target);
    let out = install(&world, "claude-code", &["--project"]).expect_code(2);
    let folder = install(&world, "cursor", &["--project"]).expect_code(2);
    let nowhere = install(&world, "codex", &[]).expect_code(2);

    assert!(path.is_symlink() && commands(&installed).len() == 2, "{installed}");
    assert!(
        out.stderr.contains("it leads out of the repository") && folder.stderr.contains("it leads out of the repository"),
        "{out}{folder}"
    );
    assert!(nowhere.stderr.contains("is a link that leads nowhere"), "{nowhere}");
    assert_eq!(world.read(&target), installed);
    assert!(!world.home().join("hooks.json").exists());
    let _ = uninstall(&world, "claude-code", &[]).expect_code(0);
    assert_eq!((world.read(&target).as_str(), path.is_symlink()), ("{}", true));
}

#[test]
fn a_repository_s_settings_name_the_program_as_everybody_does() {
    let world = world();

    let _ = install(&world, "codex", &["--project"]).expect_code(0);

    let text = world.read(".codex/hooks.json");
    assert!(text.contains("\"command\": \"proctor hook codex pre-edit\""), "{text}");
    let status = world.proctor(&["hook", "status", "--json"]).expect_code(0).json();
    let codex = status["hosts"].as_array().unwrap().iter().find(|host| host["host"] == "codex" && host["place"] == "project").unwrap();
    assert_eq!(codex["commands"].as_array().unwrap().len(), 2);
    assert_eq!(codex["commands"][0]["works"], false, "it is not in the path of the test");
    let outside = World::without_repository(env!("CARGO_BIN_EXE_proctor"));
    fs::create_dir(outside.repository()).unwrap();
    let _ = install(&outside, "codex", &["--project"]).expect_code(2);
}

#[test]
fn a_session_can_t_install_anything() {
    let world = world().with_variable("PROCTOR_SESSION", "ses_0000000001");

    let output = install(&world, "claude-code", &[]);

    assert_ne!(output.code, Some(0), "{output}");
    assert!(!of_user(&world, ".claude/settings.json").exists());
    let _ = install(&world, "claude-code", &["--dry-run"]).expect_code(0);
}

#[test]
fn two_that_install_at_once_enter_everything_once() {
    let world = world();
    let path = of_user(&world, ".claude/settings.json");
    world.write(&path, THEIRS);

    let script = "for n in 1 2 3 4 5 6; do \"$0\" hook install claude-code & done; wait";
    let _ = world.run("sh", &["-c", script, world.program().to_str().unwrap()]).expect_code(0);

    assert_eq!(commands(&world.read(&path)).len(), 2);
    let _ = uninstall(&world, "claude-code", &[]).expect_code(0);
    assert_eq!(world.read(&path), THEIRS);
}
