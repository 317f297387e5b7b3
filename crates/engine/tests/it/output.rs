use std::io::pipe;
use std::os::fd::AsFd;

use proctor_domain::session::{Excerpt, SessionEnd};
use proctor_engine::{Stream, Waited};

use crate::world::{assert_printed, bash, ended, until, wait, world};

const MIB: u64 = 1024 * 1024;

/// The most memory that the process with this pid ever had at once, in bytes.
pub(crate) fn peak(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn a_line_of_50_mib_is_cut_and_what_follows_is_not() {
    let world = world(&["head -c 52428800 /dev/zero | tr '\\0' x; echo; echo after; touch printed; read -r _ < go"]);
    bash("mkfifo go").dir(&world.spec.directory).run(None).unwrap();
    let mut attached = world.start();
    assert!(until(|| world.work("printed").exists()));

    let memory = peak(attached.host().unwrap().pid);
    bash("echo > go").dir(&world.spec.directory).run(None).unwrap();
    let report = ended(wait(&mut attached));

    assert_eq!(report.end, SessionEnd::Completed);
    assert!(memory < 16 * MIB, "{memory}");
    let log = world.read("stdout.log");
    let expected = format!("[… {} bytes of this line cut …]\nafter\n", 50 * MIB - 8 * MIB);
    assert!(log.ends_with(&expected) && log.len() as u64 == 8 * MIB + expected.len() as u64);
    assert!(report.stdout.tail.ends_with("x\nafter\n"));
    assert_eq!(report.stdout.omitted, 50 * MIB + 7 - (Excerpt::HEAD + Excerpt::TAIL) as u64);
    assert_eq!(report.log_note.as_deref(), Some("stdout.log: 1 line over 8388608 bytes cut"));
}

#[test]
fn a_flood_on_both_streams_is_kept_at_both_ends_in_little_memory() {
    let flood = "seq 10000000 20000000 | head -c 80000000; touch printed; read -r _ < go";
    let world = world(&[&format!("set +o pipefail; seq 1 12000000 | head -c 70000000 >&2 & {flood}; wait")]);
    bash("mkfifo go").dir(&world.spec.directory).run(None).unwrap();
    let mut attached = world.start();
    assert!(until(|| world.work("printed").exists()));

    let memory = peak(attached.host().unwrap().pid);
    bash("echo > go").dir(&world.spec.directory).run(None).unwrap();
    let report = ended(wait(&mut attached));

    assert_eq!(report.end, SessionEnd::Completed, "{report:?}");
    assert!(memory < 16 * MIB, "{memory}");
    for (name, printed, start) in [("stdout.log", 80_000_000, "10000000\n10000001\n"), ("stderr.log", 70_000_000, "1\n2\n3\n")] {
        let length = std::fs::metadata(world.file(name)).unwrap().len();
        assert!((48 * MIB..=64 * MIB + 100).contains(&length), "{name}: {length}");
        let log = world.read(name);
        let (head, rest) = log.split_once("\n[… ").unwrap();
        let (cut, tail) = rest.split_once(" bytes cut …]\n").unwrap();
        assert!(head.starts_with(start));
        assert_eq!(head.len() + cut.parse::<usize>().unwrap() + tail.len(), printed, "{name}");
    }
    let names: Vec<_> = std::fs::read_dir(&world.spec.folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().contains("tail")), "{names:?}");
}

#[test]
fn bytes_that_are_no_text_are_kept_in_the_log_and_replaced_in_the_report() {
    let world = world(&["printf 'a\\xff\\xc3(\\0b'"]);

    let report = world.run();

    assert_eq!(std::fs::read(world.file("stdout.log")).unwrap(), b"a\xff\xc3(\0b");
    assert_printed(&report, "a\u{fffd}\u{fffd}(\0b");
}

#[test]
fn an_excerpt_has_the_first_and_the_last_bytes() {
    let report = world(&["seq 100000 199999"]).run();

    assert!(report.stdout.head.starts_with("100000\n100001\n") && report.stdout.tail.ends_with("199998\n199999\n"));
    assert_eq!((report.stdout.head.len(), report.stdout.tail.len()), (Excerpt::HEAD, Excerpt::TAIL));
    assert_eq!(report.stdout.omitted, 700_000 - (Excerpt::HEAD + Excerpt::TAIL) as u64);
    assert_eq!(report.log_note, None);
}

#[test]
fn the_last_words_of_a_shell_are_not_lost() {
    for _ in 0..20 {
        let report = world(&["head -c 60000 /dev/zero | tr '\\0' y; echo last >&2; kill -9 $$"]).run();

        assert_eq!(report.stdout.head.len() as u64 + report.stdout.tail.len() as u64 + report.stdout.omitted, 60_000);
        assert_eq!(report.stderr.text(), "last\n");
    }
}

#[test]
fn who_follows_sees_all_output_while_it_is_printed() {
    let world = world(&["echo one; echo problem >&2; read -r _ < go; echo two"]);
    bash("mkfifo go").dir(&world.spec.directory).run(None).unwrap();
    let mut attached = world.start();
    attached.follow();
    let (silent, _writer) = pipe().unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut answered = false;

    let waited = attached
        .wait(silent.as_fd(), &mut |progress| {
            match progress.stream {
                Stream::Out => out.extend_from_slice(progress.bytes),
                Stream::Err => err.extend_from_slice(progress.bytes),
            }
            // The session goes on only when its first line has been seen.
            if out == b"one\n" && !answered {
                answered = true;
                bash("echo > go").dir(&world.spec.directory).run(None).unwrap();
            }
        })
        .unwrap();

    assert!(matches!(waited, Waited::Ended(_)), "{waited:?}");
    assert_eq!((out, err), (b"one\ntwo\n".to_vec(), b"problem\n".to_vec()));
}

#[test]
fn who_comes_later_sees_what_was_printed_before() {
    let world = world(&["echo one; touch printed; read -r _ < go"]);
    bash("mkfifo go").dir(&world.spec.directory).run(None).unwrap();
    drop(world.start());
    assert!(until(|| world.work("printed").exists()));
    let mut attached = crate::world::live(world.find().unwrap());
    attached.follow();
    let (silent, _writer) = pipe().unwrap();
    let mut out = Vec::new();

    attached
        .wait(silent.as_fd(), &mut |progress| {
            out.extend_from_slice(progress.bytes);
            bash("echo > go").dir(&world.spec.directory).run(None).unwrap();
        })
        .unwrap();

    assert_eq!(out, b"one\n");
}
