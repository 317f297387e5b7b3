use std::io::{Write, pipe};
use std::os::fd::AsFd;
use std::time::{Duration, Instant, SystemTime};

use proctor_domain::session::SessionEnd;
use proctor_engine::{Waited, last_sign_of_life};
use proctor_process::Signal;

use crate::world::{DEAF, LIMIT, assert_printed, bash, ended, exit_codes, is_gone, live, until, wait, world};

#[test]
fn at_its_limit_a_session_ends_with_everything_it_started() {
    let world = world(&["setsid sleep 1000 & echo $! > far; sleep 1000 & echo $! > near; echo begun; wait", "echo never"])
        .with_limit(Duration::from_millis(500));

    let report = world.run();

    assert_eq!((&report.end, exit_codes(&report)), (&SessionEnd::Timeout, vec![143]));
    assert_eq!(report.stdout.text(), "begun\n");
    assert!(report.duration_ms < 30_000);
    for name in ["far", "near"] {
        let pid: u32 = std::fs::read_to_string(world.work(name)).unwrap().trim().parse().unwrap();
        assert!(proctor_process::ProcessIdentity::of(pid).is_none(), "{name}");
    }
}

#[test]
fn a_session_that_refuses_to_end_at_its_limit_is_made_to() {
    let world = world(&["trap '' TERM; echo $$ > pid; while :; do sleep 1000 || true; done"]).with_limit(Duration::from_millis(300));

    let mut attached = world.start();
    let shell = world.process("pid");
    let report = ended(wait(&mut attached));

    assert_eq!((&report.end, exit_codes(&report)), (&SessionEnd::Timeout, vec![137]));
    assert!((5_000..LIMIT.as_millis()).contains(&u128::from(report.duration_ms)), "{}", report.duration_ms);
    assert!(is_gone(&shell));
}

#[test]
fn a_session_may_clean_up_at_its_limit() {
    let world = world(&["trap 'echo cleaned; exit 3' TERM; while :; do sleep 0.05; done"]).with_limit(Duration::from_millis(300));

    let report = world.run();

    assert_eq!((&report.end, exit_codes(&report)), (&SessionEnd::Timeout, vec![3]));
    assert_eq!(report.stdout.text(), "cleaned\n");
}

#[test]
fn the_limit_is_for_all_shells_together() {
    let world = world(&["sleep 0.4", "sleep 0.4", "sleep 1000"]).with_limit(Duration::from_millis(1_000));

    let report = world.run();

    assert_eq!((&report.end, exit_codes(&report)), (&SessionEnd::Timeout, vec![0, 0, 143]));
}

#[test]
fn an_interrupted_session_ends_soon_and_says_so() {
    let world = world(&["echo $$ > pid; sleep 1000", "echo never"]);
    let mut attached = world.start();
    world.process("pid");

    attached.interrupt();
    let report = ended(wait(&mut attached));

    assert_eq!((&report.end, exit_codes(&report)), (&SessionEnd::Interrupted, vec![143]));
    assert!(report.duration_ms < 5_000 || cfg!(debug_assertions), "{}", report.duration_ms);
}

#[test]
fn an_interrupted_session_that_refuses_ends_within_ten_seconds() {
    let world = world(&[&format!(
        "setsid bash -c \"echo \\$\\$ > deaf; {DEAF}\" & trap '' TERM; echo $$ > pid; while :; do sleep 1000 || true; done"
    )]);
    let mut attached = world.start();
    world.process("pid");
    let deaf = world.process("deaf");
    let begun = Instant::now();

    attached.interrupt();
    let report = ended(wait(&mut attached));

    assert_eq!(report.end, SessionEnd::Interrupted);
    assert!((5..10).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    assert!(!deaf.is_alive());
}

#[test]
fn signals_to_the_host_interrupt_it_and_a_hangup_does_not() {
    for (signal, expected) in [(Signal::Terminate, true), (Signal::Interrupt, true), (Signal::Hangup, false)] {
        let world = world(&["echo $$ > pid; read -r _ < go; echo went on"]);
        bash("mkfifo go").dir(&world.spec.directory).run(None).unwrap();
        let mut attached = world.start();
        world.process("pid");

        attached.host().unwrap().signal(signal).unwrap();
        if !expected {
            bash("echo > go").dir(&world.spec.directory).run(None).unwrap();
        }
        let report = ended(wait(&mut attached));

        let end = if expected { SessionEnd::Interrupted } else { SessionEnd::Completed };
        assert_eq!((report.end, report.stdout.text().contains("went on")), (end, !expected), "{signal:?}");
    }
}

#[test]
fn a_session_whose_socket_was_removed_can_still_be_found_and_interrupted() {
    let world = world(&["echo $$ > pid; sleep 1000"]);
    drop(world.start());
    world.process("pid");
    std::fs::remove_file(world.file("control.sock")).unwrap();

    let mut attached = live(world.find().unwrap());
    attached.interrupt();

    assert_eq!(ended(wait(&mut attached)).end, SessionEnd::Interrupted);
}

#[test]
fn a_wait_is_woken_and_the_session_goes_on() {
    let world = world(&["read -r _ < go; echo done"]);
    bash("mkfifo go").dir(&world.spec.directory).run(None).unwrap();
    let mut attached = world.start();
    let (reader, mut writer) = pipe().unwrap();
    writer.write_all(b"x").unwrap();

    let waited = attached.wait(reader.as_fd(), &mut |_| {}).unwrap();

    assert!(matches!(waited, Waited::Woken), "{waited:?}");
    bash("echo > go").dir(&world.spec.directory).run(None).unwrap();
    assert_printed(&ended(wait(&mut attached)), "done\n");
}

#[test]
fn a_running_session_gives_signs_of_life() {
    let world = world(&["read -r _ < go"]);
    bash("mkfifo go").dir(&world.spec.directory).run(None).unwrap();
    assert_eq!(last_sign_of_life(&world.spec.lock), None);
    let mut attached = world.start();
    assert!(until(|| world.file("host.json").exists()));
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
    std::fs::File::options().write(true).open(&world.spec.lock).unwrap().set_modified(long_ago).unwrap();

    assert!(until(|| last_sign_of_life(&world.spec.lock).is_some_and(|time| time > long_ago)));

    bash("echo > go").dir(&world.spec.directory).run(None).unwrap();
    ended(wait(&mut attached));
}

/// Sends lines to the control socket of the session with this folder, and prints the first that comes back.
const TELLS: &str = r#"$SIG{PIPE} = "IGNORE"; socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die; chdir $ARGV[0] or die;
    connect($s, pack_sockaddr_un("control.sock")) or die; syswrite($s, $ARGV[1]); print "heard [" . (<$s> // "nothing") . "]\n""#;

#[test]
fn what_a_session_started_can_neither_break_it_off_nor_speak_as_a_person() {
    let lines = r#"{"version":1,"say":"forged","interrupt":true}"#;
    for way in ["", "env -i", "setsid --wait env -i"] {
        let world = world(&[&format!("perl=$(command -v perl); {way} $perl -MSocket -e '{TELLS}' \"${{PROCTOR_OUTPUT%/*}}\" '{lines}\n'")]);

        assert_printed(&world.run(), "heard [nothing]\n");
    }
}

#[test]
fn what_is_of_another_session_is_no_person() {
    let world = world(&["echo $$ > pid; sleep 1000"]);
    let mut attached = world.start();
    world.process("pid");
    let say = |marker: &str| {
        let script = format!("perl -MSocket -e '{TELLS}' \"$1\" '{{\"version\":1,\"say\":\"Hello\"}}\n' > heard");
        let folder = world.file("").display().to_string();
        let script = script.replace("$1", &folder);
        bash(&script).env([("PROCTOR_SESSION", marker)]).dir(&world.spec.directory).run(None).unwrap();
        std::fs::read_to_string(world.work("heard")).unwrap()
    };

    let (by_session, by_person) = (say("ses_0000000000"), say(""));
    attached.interrupt();
    let _ = wait(&mut attached);

    assert!(by_session.contains("no-person") && by_person.contains("no-agent"), "{by_session} {by_person}");
}
