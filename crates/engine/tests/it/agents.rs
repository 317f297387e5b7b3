//! Agents under the session host: small programs that print what a scripted agent prints.

use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use proctor_domain::session::{Excerpt, SessionEnd, SessionReport};
use proctor_engine::agent::EngineKind;
use proctor_engine::{Stream, TRANSCRIPT, Waited, agent_files, replay_transcript};
use proctor_process::{ProcessIdentity, Signal};

use crate::scene;
use crate::world::{DEAF, World, agent, bash, ended, is_gone, live, until, wait};

const STARTED: &str = r#"{"type":"started","conversation":"c-1","model":"m"}"#;
const MIB: u64 = 1024 * 1024;

fn claim(report: &SessionReport) -> Option<&str> {
    report.agent.as_ref()?.claim.as_deref()
}

/// All files of the session, as one heap of bytes.
fn everything_in(folder: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap).filter(|entry| entry.file_type().unwrap().is_file()) {
        all.extend(std::fs::read(entry.path()).unwrap());
    }
    all
}

fn fifo(world: &World) {
    bash("mkfifo go").dir(&world.spec.directory).run(None).unwrap();
}

fn go(world: &World) {
    bash("echo > go").dir(&world.spec.directory).run(None).unwrap();
}

#[test]
fn a_program_that_can_not_be_started_is_a_crash_that_names_it() {
    let mut world = agent("true");
    world.run_mut().argv = vec!["/no/such/agent".into()];

    let report = world.run();

    let expected = "failed to start /no/such/agent: there is no such program in /no/such";
    assert_eq!(report.end, SessionEnd::Crashed { reason: expected.to_owned() });
    assert!(report.agent.is_some_and(|agent| !agent.responded && agent.conversation.is_none()));
}

#[test]
fn an_error_result_is_one_whatever_the_exit_code() {
    let report = agent(r#"started; echo '{"type":"result","stop":"failed","reason":"no model"}'; exit 0"#).run();

    assert_eq!(report.end, SessionEnd::Crashed { reason: "no model".to_owned() });
    assert_eq!(report.agent.unwrap().error.as_deref(), Some("no model"));
}

#[test]
fn half_a_line_before_a_death_is_kept_and_is_no_event() {
    let world = agent(r#"started; turn; printf '{"type":"text","te'; kill -9 $$"#);

    let report = world.run();

    let reason = "the engine ended with exit code 137 and without a result".to_owned();
    assert_eq!(report.end, SessionEnd::Crashed { reason });
    assert!(world.read(TRANSCRIPT).ends_with("\n{\"type\":\"text\",\"te"), "{}", world.read(TRANSCRIPT));
    let agent = report.agent.unwrap();
    assert_eq!((agent.conversation.as_deref(), agent.turns, agent.claim), (Some("c-1"), 1, None));
}

#[test]
fn an_agent_that_owes_a_result_and_gives_none_is_said_to() {
    let mut world = agent("started; turn; finished");
    world.run_mut().opening.schema = Some("{}".to_owned());

    assert_eq!(world.run().end, SessionEnd::NoResult);
}

#[test]
fn an_agent_reads_its_prompt_and_what_it_prints_is_its_report() {
    let mut world =
        agent(r#"started; printf '{"type":"text","text":"%s"}\n' "$(cat)"; turn; echo note >&2; echo a=b >> "$PROCTOR_OUTPUT"; finished"#);
    world.run_mut().opening.prompt = "what is asked".to_owned();
    world.run_mut().opening.system = "what it is".to_owned();

    let report = world.run();

    assert_eq!((&report.end, claim(&report)), (&SessionEnd::Completed, Some("what is asked")));
    assert_eq!((report.stdout, report.stderr.text().as_str(), report.shells), (Excerpt::default(), "note\n", Vec::new()));
    assert_eq!(report.outputs.get("a").map(String::as_str), Some("b"));
    assert!(world.read(TRANSCRIPT).starts_with(STARTED) && !world.file("stdout.log").exists());
    let files = agent_files(&world.spec.folder, Path::new("/kept"));
    assert_eq!(std::fs::read_to_string(files.system).unwrap(), "what it is");
    assert_eq!((files.prompt, files.conversations.as_path()), (world.file("prompt.md"), Path::new("/kept")));
}

#[test]
fn a_program_that_stays_after_its_result_is_ended_and_has_done_its_work() {
    let mut world = agent("started; turn; finished; echo $$ > pid; sleep 1000");
    world.run_mut().silence_limit = Duration::from_millis(500);

    let mut attached = world.start();
    let child = world.process("pid");
    let report = ended(wait(&mut attached));

    assert_eq!(report.end, SessionEnd::Completed, "{report:?}");
    assert!(is_gone(&child));
}

#[test]
fn a_grandchild_that_holds_the_output_open_keeps_no_session() {
    let world = agent("started; (setsid sleep 1000 & echo $! > far); turn; finished");

    let report = world.run();

    assert_eq!((report.end, report.ended_orphans), (SessionEnd::Completed, 1));
    let pid: u32 = std::fs::read_to_string(world.work("far")).unwrap().trim().parse().unwrap();
    assert!(ProcessIdentity::of(pid).is_none());
}

#[test]
fn what_ends_by_itself_right_after_its_agent_was_not_left_behind() {
    let world = agent("started; (setsid bash -c \"while kill -0 $$; do :; done\" >/dev/null 2>&1 &); turn; finished");

    let report = world.run();

    assert_eq!((report.end, report.ended_orphans), (SessionEnd::Completed, 0));
}

#[test]
fn an_agent_that_gives_no_more_than_heartbeats_is_silent() {
    let mut world = agent(r#"started; exec 9<> go; while :; do echo '{"type":"heartbeat"}'; read -t 0.3 -u 9 || true; done"#);
    fifo(&world);
    world.run_mut().silence_limit = Duration::from_millis(1500);

    let report = world.run();

    assert_eq!(report.end, SessionEnd::Silent, "{report:?}");
    assert!(world.read(TRANSCRIPT).matches("heartbeat").count() > 1);
    assert_eq!(report.agent.unwrap().conversation.as_deref(), Some("c-1"));
}

#[test]
fn an_agent_whose_tool_is_busy_is_not_silent() {
    // Several, so that they get their tenth of a processor on a crowded machine too.
    let busy = "for _ in 1 2 3 4; do setsid bash -c 'while [ ! -e stop ]; do :; done' & done; touch begun; wait";
    let mut world = agent(&format!("started; {busy}; turn; finished"));
    world.run_mut().silence_limit = Duration::from_secs(2);
    let mut attached = world.start();
    assert!(until(|| world.work("begun").exists()));
    let begun = Instant::now();
    assert!(until(|| begun.elapsed() > Duration::from_secs(6)));

    bash("touch stop").dir(&world.spec.directory).run(None).unwrap();

    assert_eq!(ended(wait(&mut attached)).end, SessionEnd::Completed);
}

#[test]
fn a_line_of_50_mib_is_cut_before_anybody_reads_it() {
    let long = r#"printf '{"type":"text","text":"'; head -c 52428800 /dev/zero | tr '\0' x; echo '"}'"#;
    let world = agent(&format!("started; {long}; turn; touch printed; read -r _ < go; finished"));
    fifo(&world);
    let mut attached = world.start();
    assert!(until(|| world.work("printed").exists() && world.read(TRANSCRIPT).ends_with("}\n")));

    let memory = crate::output::peak(attached.host().unwrap().pid);
    go(&world);
    let report = ended(wait(&mut attached));

    assert_eq!((&report.end, report.agent.as_ref().map(|agent| agent.turns)), (&SessionEnd::Completed, Some(1)));
    assert_eq!(report.log_note.as_deref(), Some("transcript.jsonl: 1 line over 8388608 bytes cut"));
    assert!(memory < 40 * MIB, "{memory}");
}

#[test]
fn an_agent_that_refuses_to_end_at_its_limit_is_made_to_with_all_that_it_started() {
    let world = agent(&format!(
        "started; (setsid bash -c \"echo \\$\\$ > far; {DEAF}\" &); trap '' TERM; echo $$ > pid; while :; do sleep 1000 || true; done"
    ))
    .with_limit(Duration::from_millis(500));

    let mut attached = world.start();
    let (child, far) = (world.process("pid"), world.process("far"));
    let report = ended(wait(&mut attached));

    assert_eq!(report.end, SessionEnd::Timeout);
    assert!(report.duration_ms >= 5_000, "{}", report.duration_ms);
    assert!(!child.is_alive() && !far.is_alive());
}

#[test]
fn an_interrupt_counts_unless_the_agent_is_done() {
    for (script, expected) in [
        ("started; echo $$ > pid; sleep 1000", SessionEnd::Interrupted),
        ("trap finished TERM; started; echo $$ > pid; sleep 1000 & wait", SessionEnd::Interrupted),
        ("started; turn; finished; echo $$ > pid; sleep 1000", SessionEnd::Completed),
    ] {
        let world = agent(script);
        let mut attached = world.start();
        world.process("pid");
        assert!(
            until(|| world.file(TRANSCRIPT).exists() && (expected != SessionEnd::Completed || world.read(TRANSCRIPT).contains("done")))
        );

        attached.interrupt();

        assert_eq!(ended(wait(&mut attached)).end, expected, "{script}");
    }
}

#[test]
fn a_secret_is_in_no_file_of_the_session_however_it_was_written() {
    let say = r#"printf '{"type":"text","text":"it is hush-'; printf 'hush-' >&2; echo ready >&2; read -r _ < go"#;
    let secret = r#"hush-hush-4711"#;
    let world = agent(&format!(
        "started; {say}; printf 'hush-4711.\"}}\\n'; printf 'hush-hush-47' >&2; printf '11\\n' >&2; turn; \
         echo \"a={secret}\" >> \"$PROCTOR_OUTPUT\"; printf '{{\"type\":\"result\",\"stop\":\"done\",\"text\":\"{secret}\"}}\\n'"
    ));
    let mut world = world;
    fifo(&world);
    world.spec.secrets = vec![secret.as_bytes().to_vec()];
    world.spec.environment.push(("TOKEN".into(), secret.into()));
    world.run_mut().opening.prompt = format!("use {secret} for it");
    world.run_mut().opening.system = format!("{secret} is yours");

    let mut attached = world.start();
    assert!(until(|| world.file("stderr.log").exists() && world.read("stderr.log").contains("ready")));
    go(&world);
    let report = ended(wait(&mut attached));

    let all = String::from_utf8_lossy(&everything_in(&world.spec.folder)).into_owned();
    assert!(!all.contains(secret), "{all}");
    assert!(!format!("{report:?}").contains(secret));
    assert_eq!(claim(&report), Some("[redacted]"));
    assert!(world.read(TRANSCRIPT).contains("it is [redacted].") && world.read("prompt.md").contains("use [redacted] for it"));
    assert_eq!(report.outputs.get("a").map(String::as_str), Some("[redacted]"));
}

#[test]
fn a_secret_of_a_shell_is_in_no_log_of_it() {
    let mut world = crate::world::world(&["printf 'it is %s' hush-; sleep 0; printf 'hush-4711 there\\n'"]);
    world.spec.secrets = vec![b"hush-hush-4711".to_vec()];

    let report = world.run();

    assert_eq!(
        (report.stdout.text().as_str(), world.read("stdout.log").as_str()),
        ("it is [redacted] there\n", "it is [redacted] there\n")
    );
}

#[test]
fn the_transcript_of_a_killed_host_still_says_which_conversation_it_was() {
    let world = agent("started; turn; sleep 1000");
    let mut attached = world.start();
    assert!(until(|| world.file(TRANSCRIPT).exists() && world.read(TRANSCRIPT).contains("\"turn\"")));

    attached.host().unwrap().signal(Signal::Kill).unwrap();
    let waited = wait(&mut attached);

    assert!(matches!(waited, Waited::Lost), "{waited:?}");
    let report = replay_transcript(&world.spec.folder, EngineKind::Scripted.engine_name(), EngineKind::Scripted).unwrap();
    assert_eq!((report.conversation.as_deref(), report.turns, report.responded), (Some("c-1"), 1, true));
    assert_eq!(replay_transcript(Path::new("/nonexistent"), EngineKind::Scripted.engine_name(), EngineKind::Scripted), None);
}

#[test]
fn who_follows_an_agent_sees_its_transcript_grow() {
    let world = agent("started; read -r _ < go; turn; finished");
    fifo(&world);
    drop(world.start());
    assert!(until(|| world.file(TRANSCRIPT).exists()));
    let mut attached = live(world.find().unwrap());
    attached.follow();
    let (silent, _writer) = std::io::pipe().unwrap();
    let mut seen = Vec::new();

    attached
        .wait(silent.as_fd(), &mut |progress| {
            assert_eq!(progress.stream, Stream::Out);
            if seen.is_empty() {
                go(&world);
            }
            seen.extend_from_slice(progress.bytes);
        })
        .unwrap();

    assert_eq!(String::from_utf8(seen).unwrap(), world.read(TRANSCRIPT));
    assert_eq!(world.read(TRANSCRIPT).lines().count(), 3);
}

/// At each of its own points the host dies; see the same for shells.
#[test]
fn the_host_of_an_agent_may_die_at_any_point() {
    for (point, ran, outcome) in [
        ("before-lock", false, "lost"),
        ("after-lock", false, "lost"),
        ("before-spawn", false, "lost"),
        ("after-spawn", true, "lost"),
        ("after-child-exit", true, "lost"),
        ("before-report", true, "lost"),
        ("after-report", true, "ended"),
        ("no such point", true, "ended"),
    ] {
        let world = agent("setsid sleep 1000 & echo $! > orphan; echo x >> ran; started; turn; finished");

        let finished = scene::driver(&world, &[("PROCTOR_HOST_KILLPOINT", &format!("1:{point}"))]).run(Some(crate::world::LIMIT)).unwrap();

        let said = String::from_utf8_lossy(&finished.stdout).into_owned();
        assert!(said.contains(&format!("waited={outcome}")), "{point}: {said}");
        let times = std::fs::read_to_string(world.work("ran")).unwrap_or_default();
        assert!(if point == "after-spawn" { times.len() <= 2 } else { times.is_empty() != ran && times.len() <= 2 }, "{point}: {times}");
        if let Ok(pid) = std::fs::read_to_string(world.work("orphan")) {
            assert!(pid.trim().parse().ok().and_then(ProcessIdentity::of).is_none(), "{point}");
        }
    }
}

#[test]
fn of_64_sessions_at_once_nothing_is_lost() {
    let script = r#"started; for i in $(seq 200); do printf '{"type":"text","text":"%s of %s"}\n' $i "$GREETING"; turn; done; finished"#;
    let worlds: Vec<World> = (0..64)
        .map(|number| {
            let mut world = agent(script);
            world.spec.environment.push(("GREETING".into(), number.to_string().into()));
            world
        })
        .collect();

    let attached: Vec<_> = worlds.iter().map(World::start).collect();
    let reports: Vec<SessionReport> = attached.into_iter().map(|mut attached| ended(wait(&mut attached))).collect();

    for (number, (world, report)) in worlds.iter().zip(&reports).enumerate() {
        assert_eq!((&report.end, claim(report)), (&SessionEnd::Completed, Some(format!("200 of {number}").as_str())), "{report:?}");
        assert_eq!(report.agent.as_ref().map(|agent| agent.turns), Some(200));
        assert_eq!(world.read(TRANSCRIPT).lines().count(), 402);
    }
}
