use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, Instant};

use proctor_process::{Finished, ProcessIdentity, Program, ProgramError, Signal, Sink, Stdin};

use crate::world::{LIMIT, bash, pid_in, until};

fn run(program: Program) -> Finished {
    program.run(Some(LIMIT)).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_program_that_is_not_there_is_named_with_where_it_was_looked_for() {
    let error = Program::new("no-such-program").env([("PATH", "/usr/bin:/bin")]).run(None).unwrap_err();

    assert!(matches!(error, ProgramError::NotFound { .. }), "{error:?}");
    assert_eq!(error.to_string(), "start no-such-program: there is no such program in /usr/bin:/bin");
}

#[test]
fn a_program_that_can_not_be_run_is_an_error_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plain");
    File::create(&path).unwrap();

    let error = Program::new(&path).run(None).unwrap_err();

    assert!(matches!(error, ProgramError::Spawn { .. }), "{error:?}");
}

#[test]
fn a_directory_that_is_not_there_is_told_from_a_missing_program() {
    let error = bash("true").dir("/nonexistent/folder").run(None).unwrap_err();

    assert!(matches!(error, ProgramError::Directory { .. }), "{error:?}");
    assert!(error.to_string().contains("/nonexistent/folder"));
}

#[test]
fn what_no_program_can_be_given_is_refused() {
    let nul = OsString::from_vec(b"a\0b".to_vec());

    assert!(matches!(bash("true").arg(&nul).run(None), Err(ProgramError::Invalid { .. })));
    assert!(matches!(bash("true").env([("", "x")]).run(None), Err(ProgramError::Invalid { .. })));
    assert!(matches!(bash("true").env([("A=B", "x")]).run(None), Err(ProgramError::Invalid { .. })));
    let long = "x".repeat(200 * 1024);
    assert!(matches!(bash("true").env([("LONG", long)]).run(None), Err(ProgramError::TooLong { .. })));
}

#[test]
fn the_environment_is_what_was_given_and_nothing_else() {
    let finished = run(Program::new("env").env([("PATH", "/usr/bin:/bin"), ("A", "1"), ("B", "x y")]).env([("A", "2")]));

    let printed = text(&finished.stdout);
    let seen: BTreeMap<&str, &str> = printed.lines().filter_map(|line| line.split_once('=')).collect();
    assert_eq!(seen, BTreeMap::from([("PATH", "/usr/bin:/bin"), ("A", "2"), ("B", "x y")]));
}

#[test]
fn a_program_is_looked_up_in_the_childs_path_and_never_in_its_directory() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("bin");
    std::fs::create_dir(&there).unwrap();
    for (path, says) in [(there.join("tool"), "right"), (folder.path().join("tool"), "planted")] {
        run(bash(&format!("printf '#!/bin/sh\\necho {says}\\n' > '{0}'; chmod +x '{0}'", path.display())));
    }
    let path = format!(".::relative:{}", there.display());

    let finished = run(Program::new("tool").dir(folder.path()).env([("PATH", path)]));

    assert_eq!(text(&finished.stdout), "right\n");
}

#[test]
fn arguments_arrive_as_bytes() {
    let odd = OsString::from_vec(b"\xff -n\n$(x)".to_vec());

    let finished = run(bash("printf '%s|' \"$@\"").arg("name").arg(&odd).arg(""));

    assert_eq!(finished.stdout, b"\xff -n\n$(x)||");
}

#[test]
fn exit_codes_and_signals_are_told_apart() {
    let exited = run(bash("exit 7")).status;
    let killed = run(bash("kill -9 $$")).status;

    assert_eq!((exited.code, exited.signal, exited.shell_code()), (Some(7), None, 7));
    assert_eq!((killed.code, killed.signal, killed.shell_code()), (None, Some(9), 137));
}

#[test]
fn both_pipes_are_drained_while_input_is_written() {
    let input = vec![b'x'; 3 * 1024 * 1024];

    let finished = run(bash("tee /dev/stderr").stdin(Stdin::Bytes(input.clone())));

    assert!(finished.stdout == input && finished.stderr == input);
}

#[test]
fn a_child_that_reads_nothing_of_its_input_is_no_error() {
    let finished = run(bash("exit 3").stdin(Stdin::Bytes(vec![b'x'; 1024 * 1024])));

    assert_eq!(finished.status.code, Some(3));
}

#[test]
fn standard_input_is_empty_unless_said() {
    assert_eq!(text(&run(bash("cat; readlink /proc/self/fd/0")).stdout), "/dev/null\n");
}

#[test]
fn a_broken_pipe_ends_a_child_as_usual() {
    let finished = run(bash("set -o pipefail; yes | head -n 1; echo ${PIPESTATUS[0]}"));

    assert_eq!(text(&finished.stdout), "y\n141\n");
    assert_eq!(text(&finished.stderr), "");
}

#[test]
fn what_a_grandchild_holds_open_keeps_nobody_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let begun = Instant::now();

    let finished = run(bash("sleep 1000 & echo $! > pid; echo done").dir(folder.path()));

    assert_eq!(text(&finished.stdout), "done\n");
    assert!(begun.elapsed() < LIMIT);
    ProcessIdentity::of(pid_in(&folder.path().join("pid"))).unwrap().signal(Signal::Kill).unwrap();
}

#[test]
fn a_grandchild_that_floods_the_pipe_keeps_nobody_waiting() {
    let folder = tempfile::tempdir().unwrap();

    let finished = run(bash("yes & echo $! > pid").dir(folder.path()));

    assert_eq!(finished.status.code, Some(0));
    if let Some(flood) = ProcessIdentity::of(pid_in(&folder.path().join("pid"))) {
        flood.signal(Signal::Kill).unwrap();
    }
}

#[test]
fn at_its_limit_a_program_is_ended_with_its_group_even_when_it_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap '' TERM; sleep 1000 & echo $! > pid; while :; do sleep 1000; done";

    let finished = bash(script).dir(folder.path()).own_group().run(Some(Duration::from_millis(200))).unwrap();

    assert!(finished.timed_out);
    assert_eq!(finished.status.signal, Some(9));
    let grandchild = pid_in(&folder.path().join("pid"));
    assert!(until(|| ProcessIdentity::of(grandchild).is_none()));
}

#[test]
fn at_its_limit_a_program_may_clean_up() {
    let finished =
        bash("trap 'echo bye; exit 9' TERM; while :; do sleep 0.05; done").own_group().run(Some(Duration::from_millis(200))).unwrap();

    assert!(finished.timed_out);
    assert_eq!((finished.status.code, text(&finished.stdout).as_str()), (Some(9), "bye\n"));
}

#[test]
fn output_goes_into_a_file_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let log = || File::options().create(true).append(true).open(&path).unwrap();

    let finished = run(bash("echo out; echo err >&2").stdout(Sink::File(log())).stderr(Sink::File(log())));

    assert_eq!(std::fs::read_to_string(&path).unwrap(), "out\nerr\n");
    assert!(finished.stdout.is_empty() && finished.stderr.is_empty());
}

#[test]
fn no_descriptor_but_the_three_reaches_a_child() {
    let _open = File::open("/").unwrap();

    let finished = run(bash("exec ls /proc/self/fd"));

    // The fourth is the one with which the list is read.
    assert_eq!(text(&finished.stdout), "0\n1\n2\n3\n");
}

#[test]
fn a_descriptor_can_be_a_childs_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in");
    run(bash("echo hello > in").dir(folder.path()));

    let finished = run(bash("cat").stdin(Stdin::Descriptor(File::open(path).unwrap().into())));

    assert_eq!(text(&finished.stdout), "hello\n");
}

#[test]
fn groups_and_sessions_are_as_asked() {
    // Fields 1, 5 and 6 of stat: the pid, the group, the session.
    let script =
        "read -r pid _ _ _ group session _ < /proc/$$/stat; [ $pid = $group ] && echo group; [ $pid = $session ] && echo session; true";

    assert_eq!(text(&run(bash(script)).stdout), "");
    assert_eq!(text(&run(bash(script).own_group()).stdout), "group\n");
    assert_eq!(text(&run(bash(script).own_session()).stdout), "group\nsession\n");
}

#[test]
fn dropped_children_are_reaped_by_a_later_start() {
    let child = bash("exec sleep 1000").spawn().unwrap();
    let identity = child.identity().unwrap();
    drop(child);
    assert!(identity.is_alive());
    identity.signal(Signal::Kill).unwrap();

    // A zombie has an entry in /proc; one that was reaped has none.
    let entry = format!("/proc/{}", identity.pid);
    assert!(until(|| {
        run(bash("true"));
        !std::fs::exists(&entry).unwrap()
    }));
}
