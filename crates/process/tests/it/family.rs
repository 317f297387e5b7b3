use std::time::{Duration, Instant};

use proctor_process::family::{self, EndedProcesses, Ending, end_marked, marked};
use proctor_process::{ProcessIdentity, Signal};

use crate::world::{bash, bash_in, pid_in, run_scene, until};

/// Runs `script` under a subreaper, which then ends what is left; returns what it said of that.
fn sweep(script: &str, grace_ms: u32) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::File::create(folder.path().join("script"))
        .and_then(|mut file| std::io::Write::write_all(&mut file, script.as_bytes()))
        .unwrap();
    let finished = run_scene("subreaper", folder.path(), &[("SCENE_GRACE_MS", &grace_ms.to_string())]);
    let printed = String::from_utf8_lossy(&finished.stdout).into_owned();
    let line = printed.lines().find(|line| line.contains("left=")).unwrap_or_else(|| panic!("{printed}"));
    line[line.find("left=").unwrap()..].to_owned()
}

const DEAF: &str = "trap '' TERM HUP INT; exec >/dev/null 2>&1 </dev/null; cd /; while :; do sleep 1000; done";

#[test]
fn a_grandchild_in_a_session_of_its_own_that_refuses_to_go_is_found_by_descent() {
    let script = format!("setsid bash -c \"{DEAF}\" & sleep 0.2");

    assert_eq!(sweep(&script, 200), "left=2 ended=2 survivors=0 children=false");
}

#[test]
fn an_empty_environment_hides_nobody_from_the_subreaper() {
    let script = format!("env -i setsid /bin/bash -c \"{DEAF}\" & sleep 0.2");

    assert_eq!(sweep(&script, 200), "left=2 ended=2 survivors=0 children=false");
}

#[test]
fn a_double_fork_is_found() {
    assert_eq!(sweep("(setsid sleep 1000 >/dev/null 2>&1 &) ; (sleep 1001 &)", 5_000), "left=2 ended=2 survivors=0 children=false");
}

#[test]
fn those_that_go_when_asked_are_not_waited_for() {
    let begun = Instant::now();

    assert_eq!(sweep("sleep 1000 & sleep 1001 &", 600_000), "left=2 ended=2 survivors=0 children=false");

    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_stopped_process_is_asked_too() {
    assert_eq!(sweep("sleep 1000 & kill -STOP $!", 600_000), "left=1 ended=1 survivors=0 children=false");
}

#[test]
fn a_chain_in_which_each_starts_the_next_and_exits_comes_to_its_end() {
    let script = "hydra() { trap '' TERM; sleep 0.01; hydra & }; hydra & sleep 0.2";

    let said = sweep(script, 100);

    assert!(said.ends_with("survivors=0 children=false"), "{said}");
}

#[test]
fn a_modest_fork_bomb_comes_to_its_end() {
    let script = "bomb() { trap '' TERM; for i in 1 2 3; do [ $1 -gt 0 ] && bomb $(($1 - 1)) & done; while :; do sleep 1000; done; }; bomb 3 & sleep 0.3";

    let said = sweep(script, 100);

    assert!(said.ends_with("survivors=0 children=false"), "{said}");
}

#[test]
fn what_is_asked_as_a_group_is_asked_once() {
    let folder = tempfile::tempdir().unwrap();
    let child = bash_in(folder.path(), "trap 'echo x >> asked; exit' TERM; echo $$ > pid; while :; do sleep 0.01; done");
    let pid = pid_in(&folder.path().join("pid"));

    let mut find = || ProcessIdentity::of(pid).into_iter().chain(family::descendants(pid)).collect::<Vec<_>>();
    let ended = family::end(&mut find, Ending { grace: Duration::from_secs(20), first: Some(&child), wait: &mut family::wait_for_end });

    assert!(ended.survivors.is_empty());
    assert_eq!(std::fs::read_to_string(folder.path().join("asked")).unwrap(), "x\n");
}

#[test]
fn descendants_are_found_through_groups_and_sessions_and_others_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let child = bash_in(folder.path(), "setsid bash -c 'echo $$ > inner; sleep 1000; true' & echo $! > outer; sleep 1001; true");
    let inner = pid_in(&folder.path().join("inner"));
    assert!(until(|| family::descendants(child.pid()).len() >= 3));

    let found = family::descendants(child.pid());

    assert!(found.iter().any(|identity| identity.pid == inner));
    assert!(family::descends_from(inner, child.pid()) && family::descends_from(child.pid(), std::process::id()));
    assert!(!family::descends_from(child.pid(), inner) && !family::descends_from(inner, inner));
    assert!(!found.iter().any(|identity| identity.pid == std::process::id() || identity.pid == child.pid()));
    for identity in found.iter().chain(&child.identity()) {
        identity.signal(Signal::Kill).unwrap();
    }
}

#[test]
fn a_branch_that_does_not_belong_is_left_out_whole() {
    let folder = tempfile::tempdir().unwrap();
    let child = bash_in(folder.path(), "bash -c 'sleep 1000 & echo $! > leaf; echo $$ > branch; wait; true' & sleep 1001; true");
    let branch = pid_in(&folder.path().join("branch"));
    let leaf = pid_in(&folder.path().join("leaf"));

    let found = family::descendants_if(child.pid(), &mut |identity| identity.pid != branch);

    assert!(found.iter().all(|identity| identity.pid != branch && identity.pid != leaf));
    for identity in family::descendants(child.pid()).iter().chain(&child.identity()) {
        identity.signal(Signal::Kill).unwrap();
    }
}

#[test]
fn marked_processes_are_found_by_the_value_of_their_variable() {
    let mark = format!("mark-{}", std::process::id());
    let with = |value: String| bash("exec sleep 1000").env([("PROCTOR_TEST_MARK", value)]).spawn().unwrap();
    let (ours, other) = (with(format!("a:{mark}:b")), with(format!("{mark}x")));
    let has = |value: &[u8]| value.split(|&byte| byte == b':').any(|part| part == mark.as_bytes());

    let found = marked("PROCTOR_TEST_MARK", has);
    let EndedProcesses { ended, survivors } = end_marked("PROCTOR_TEST_MARK", has, Duration::from_secs(20));

    assert_eq!(found, ended);
    assert_eq!((ended[0].pid, survivors.len()), (ours.pid(), 0));
    assert!(other.identity().is_some_and(|identity| identity.is_alive()));
    other.signal(Signal::Kill).unwrap();
}

#[test]
fn a_marked_process_is_found_however_often_it_becomes_another_program() {
    let folder = tempfile::tempdir().unwrap();
    let mark = format!("restless-{}", std::process::id());
    let script = "echo $$ > pid; echo 'exec bash again' > again; exec bash again";
    bash(script).dir(folder.path()).env([("PROCTOR_TEST_MARK", mark.as_str())]).spawn().unwrap();
    let pid = pid_in(&folder.path().join("pid"));

    let missed = (0..200).filter(|_| !marked("PROCTOR_TEST_MARK", |value| value == mark.as_bytes()).iter().any(|one| one.pid == pid));

    assert_eq!(missed.count(), 0);
    end_marked("PROCTOR_TEST_MARK", |value| value == mark.as_bytes(), Duration::from_millis(50));
}

#[test]
fn a_marked_process_that_refuses_is_made_to_go() {
    let folder = tempfile::tempdir().unwrap();
    let mark = format!("deaf-{}", std::process::id());
    let script = format!("echo $$ > pid; {DEAF}");
    let child = bash(&script).dir(folder.path()).env([("PROCTOR_TEST_MARK", mark.as_str())]).spawn().unwrap();
    pid_in(&folder.path().join("pid"));

    let ended = end_marked("PROCTOR_TEST_MARK", |value| value == mark.as_bytes(), Duration::from_millis(50));

    assert!(ended.survivors.is_empty() && !ended.ended.is_empty(), "{ended:?}");
    assert!(child.identity().is_none());
}

#[test]
fn a_program_is_known_by_its_file_and_by_its_scripts_name() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("build-server-with-a-long-name");
    bash(&format!(
        "printf '#!/bin/bash\\necho $$ > pid\\nread -r -d \"\" < <(exec sleep 1000)\\n' > '{0}'; chmod +x '{0}'",
        script.display()
    ))
    .run(None)
    .unwrap();
    let child = proctor_process::Program::new(&script).dir(folder.path()).env([("PATH", "/usr/bin:/bin")]).own_group().spawn().unwrap();
    let identity = ProcessIdentity::of(pid_in(&folder.path().join("pid"))).unwrap();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();

    assert_eq!(
        family::program_among(&identity, &names(&["other", "build-server-with-a-long-name"])),
        Some("build-server-with-a-long-name")
    );
    assert_eq!(family::program_among(&identity, &names(&["bash"])), Some("bash"));
    assert_eq!(family::program_among(&identity, &names(&["sleep", "build"])), None);
    child.signal_group(Signal::Kill).unwrap();
}
