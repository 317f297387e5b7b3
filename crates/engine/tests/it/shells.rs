use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;

use proctor_domain::session::SessionEnd;
use proctor_engine::{Found, HostError, start};

use crate::world::{World, assert_printed, bash, ended, exit_codes, host_program, live, wait, world};

#[test]
fn a_directory_that_is_not_there_crashes_the_session_with_a_sentence() {
    let mut world = world(&["true"]);
    world.spec.directory = "/nonexistent/place".into();

    let report = world.run();

    let SessionEnd::Crashed { reason } = &report.end else { panic!("{report:?}") };
    assert_eq!(reason, "failed to start bash in /nonexistent/place: the directory can't be entered");
    assert!(report.shells.is_empty());
}

#[test]
fn a_path_without_bash_crashes_the_session_with_a_sentence() {
    let mut world = world(&["true"]);
    world.spec.environment[0].1 = "/nonexistent".into();

    let report = world.run();

    let SessionEnd::Crashed { reason } = &report.end else { panic!("{report:?}") };
    assert_eq!(reason, "failed to start bash: there is no such program in /nonexistent");
}

#[test]
fn a_program_that_is_no_host_leaves_the_session_never_started() {
    let world = world(&["true"]);

    let error = start(&world.spec, "/nonexistent/proctor".as_ref()).unwrap_err();

    assert!(matches!(error, HostError::Start(_)), "{error:?}");
    assert!(matches!(world.find().unwrap(), Found::NeverStarted));
    assert_printed(&world.run(), "");
}

#[test]
fn a_session_is_never_started_twice() {
    let world = world(&["true"]);
    world.run();

    let error = start(&world.spec, &host_program()).unwrap_err();

    assert!(matches!(error, HostError::AlreadyStarted { .. }), "{error:?}");
}

#[test]
fn shells_run_in_order_until_one_fails() {
    let world = world(&["echo one; echo two >&2", "exit 7", "echo never"]);

    let report = world.run();

    assert_eq!((exit_codes(&report), report.exit_code()), (vec![0, 7], Some(7)));
    assert_printed(&report, "one\n");
    assert_eq!(report.stderr.text(), "two\n");
    assert_eq!((world.read("stdout.log"), world.read("stderr.log")), ("one\n".to_owned(), "two\n".to_owned()));
}

#[test]
fn bash_is_strict_and_names_the_lines_of_the_text() {
    for (script, code, said) in [
        ("false\necho never", 1, ""),
        ("true\necho $UNSET_NAME", 1, "line 2: UNSET_NAME: unbound variable"),
        ("false | true\necho never", 1, ""),
        ("\n\nno-such-program", 127, "line 3: no-such-program: command not found"),
        ("kill -9 $$", 137, ""),
    ] {
        let report = world(&[script]).run();

        assert_eq!(exit_codes(&report), [code], "{script}");
        assert!(report.stderr.text().contains(said), "{script}: {}", report.stderr.text());
        assert!(report.stdout.is_empty(), "{script}");
    }
}

#[test]
fn shells_get_the_given_environment_and_it_is_in_no_file() {
    let mut world = world(&["env"]);
    world.spec.environment.push(("SECRET".into(), "hunter2".into()));
    let expected: BTreeSet<&str> =
        BTreeSet::from(["PATH", "PROCTOR_SESSION", "GREETING", "SECRET", "PROCTOR_OUTPUT", "PWD", "SHLVL", "_", "OLDPWD"]);

    let report = world.run();

    let printed = report.stdout.text();
    let seen: BTreeMap<&str, &str> = printed.lines().filter_map(|line| line.split_once('=')).collect();
    assert!(seen.keys().all(|name| expected.contains(name)), "{seen:?}");
    assert_eq!((seen["GREETING"], seen["PROCTOR_OUTPUT"]), ("hello", world.file("output").to_str().unwrap()));
    for name in ["host.json", "shell-1.sh"] {
        assert!(!world.read(name).contains("hunter2"), "{name}");
    }
}

#[test]
fn the_sessions_id_ends_the_marker_whatever_the_caller_gave() {
    let outer = world(&["echo $PROCTOR_SESSION"]);
    let id = outer.spec.session.to_string();
    for (given, expected) in [(Some("ses_outer"), format!("ses_outer:{id}")), (Some(&id), id.clone()), (None, id.clone())] {
        let mut world = world(&["echo $PROCTOR_SESSION"]);
        world.spec.session = outer.spec.session.clone();
        world.spec.environment.retain(|(name, _)| name != "PROCTOR_SESSION");
        world.spec.environment.extend(given.map(|value| ("PROCTOR_SESSION".into(), value.into())));

        assert_eq!(world.run().stdout.text(), format!("{expected}\n"));
    }
}

#[test]
fn shells_have_no_terminal_no_input_and_a_group_of_their_own() {
    let world = world(&["cat; readlink /proc/self/fd/0; (echo x > /dev/tty) 2>/dev/null || echo no terminal
        read -r pid _ _ _ group session _ < /proc/$$/stat; [ $pid = $group ] && [ $pid != $session ] && echo own group
        ls /proc/self/fd | wc -l"]);

    // The descriptors are the standard three and the one that lists them.
    assert_printed(&world.run(), "/dev/null\nno terminal\nown group\n4\n");
}

#[test]
fn a_shell_text_may_be_large_and_begin_with_anything() {
    let large = format!("# {}\necho done", "x".repeat(5 * 1024 * 1024));
    let world = world(&[&large, "#!/bin/false\necho still bash: ${BASH_VERSION:0:1}", ""]);

    let report = world.run();

    assert_eq!(exit_codes(&report), [0, 0, 0]);
    assert!(report.stdout.text().starts_with("done\nstill bash: "), "{report:?}");
}

#[test]
fn a_shell_that_closes_its_streams_is_still_waited_for() {
    let world = world(&["exec >&- 2>&-; sleep 0.3; touch finished", "echo next"]);

    let report = world.run();

    assert!(world.work("finished").exists());
    assert_printed(&report, "next\n");
}

#[test]
fn outputs_are_read_from_all_shells() {
    let world = world(&["echo version=1.2 >> $PROCTOR_OUTPUT; echo a=1 >> $PROCTOR_OUTPUT", "printf 'a=2\\r\\n' >> $PROCTOR_OUTPUT"]);

    let report = world.run();

    let expected = [("a", "2"), ("version", "1.2")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!((report.outputs, report.output_error), (BTreeMap::from(expected), None));
}

#[test]
fn outputs_that_can_not_be_used_are_said_with_their_line() {
    let report = world(&["echo fine=1 >> $PROCTOR_OUTPUT; echo nonsense >> $PROCTOR_OUTPUT"]).run();

    assert_eq!(report.end, SessionEnd::Completed);
    assert_eq!(report.output_error.as_deref(), Some("line 2 of $PROCTOR_OUTPUT has no `=`: write name=value"));
    assert!(report.outputs.is_empty());
}

#[test]
fn a_report_is_found_again() {
    let world = world(&["echo hello"]);
    let report = world.run();

    let Found::Ended(found) = world.find().unwrap() else { panic!("not ended") };

    assert_eq!(found, report);
}

#[test]
fn a_deep_folder_is_no_obstacle() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("d".repeat(120)).join("e".repeat(120)).join("a b\n c");
    std::fs::create_dir_all(&deep).unwrap();
    let world = World::at(folder, &deep, &["echo here; read -r _ < go"]);
    bash(&format!("mkfifo '{}'", world.work("go").display())).run(None).unwrap();
    drop(world.start());

    let mut attached = live(world.find().unwrap());
    bash("echo > go").dir(&world.spec.directory).run(None).unwrap();

    assert_printed(&ended(wait(&mut attached)), "here\n");
}

#[test]
fn what_a_session_keeps_is_private() {
    let world = world(&["echo x; echo y >&2; echo z=1 >> $PROCTOR_OUTPUT"]);
    world.run();

    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&world.spec.folder), 0o700);
    for name in ["host.json", "report.json", "stdout.log", "stderr.log", "shell-1.sh", "output"] {
        assert_eq!(mode(&world.file(name)), 0o600, "{name}");
    }
    assert_eq!(mode(&world.spec.lock), 0o600);
}
