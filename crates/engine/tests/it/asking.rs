//! Results of engines that take no schema: they are asked for in words, found in the answer, and asked for again.
//!
//! The engine is a small bash program that prints an answer, under the real host.

use proctor_domain::session::{SessionEnd, SessionReport};
use proctor_engine::agent::{Access, AgentTask, EngineKind, EngineSetup};
use proctor_engine::{AgentPlace, AgentRun, SessionWork, agent_files};

use crate::world::{LIMIT, World, world};

const SCHEMA: &str = r#"{"type":"object","required":["passed"],"properties":{"passed":{"type":"boolean"}}}"#;

/// A session of a program that answers so; `$n` is how often it was asked, and `$asked` what it read.
fn answering(text: &str) -> World {
    let mut world = world(&[]);
    let setup = EngineSetup {
        program: "bash".into(),
        arguments: vec!["-c".into(), format!("asked=$(cat); echo x >> count; n=$(wc -l < count)\n{text}")],
        ..EngineSetup::usual(EngineKind::Command)
    };
    let task = AgentTask {
        system: "You judge.".to_owned(),
        prompt: "Look at it.".to_owned(),
        resume: None,
        model: None,
        schema: Some(SCHEMA.to_owned()),
        max_turns: None,
        max_cost: None,
        access: Access::ReadOnly,
    };
    let files = agent_files(&world.spec.folder, world.path());
    let place = AgentPlace { directory: &world.spec.directory, silence_limit: LIMIT };
    world.spec.work = SessionWork::Agent(Box::new(AgentRun::new(&setup, &task, &files, &|_| None, place)));
    world
}

fn result(report: &SessionReport) -> Option<&str> {
    report.agent.as_ref()?.result.as_deref()
}

fn times_asked(world: &World) -> usize {
    std::fs::read_to_string(world.spec.directory.join("count")).unwrap().lines().count()
}

#[test]
fn a_program_is_told_everything_in_its_prompt() {
    let world = answering(r#"printf '%s' "$asked" > asked; echo '{"passed":true}'"#);

    let report = world.run();

    assert_eq!((&report.end, result(&report)), (&SessionEnd::Completed, Some(r#"{"passed":true}"#)));
    let asked = std::fs::read_to_string(world.spec.directory.join("asked")).unwrap();
    assert!(asked.starts_with("You judge.\n\nLook at it.\n\nEnd with your result:") && asked.contains(SCHEMA), "{asked}");
}

#[test]
fn a_result_that_is_wrong_at_first_is_asked_for_again_by_what_is_wrong_with_it() {
    let world =
        answering(r#"if [ $n = 1 ]; then echo 'Well: {"passed":"yes"}'; else printf '%s' "$asked" > asked; echo '{"passed":false}'; fi"#);

    let report = world.run();

    assert_eq!((&report.end, result(&report)), (&SessionEnd::Completed, Some(r#"{"passed":false}"#)));
    assert_eq!((times_asked(&world), report.agent.as_ref().unwrap().turns), (2, 2));
    let asked = std::fs::read_to_string(world.spec.directory.join("asked")).unwrap();
    assert!(asked.contains("Look at it.") && asked.contains("at `/passed`"), "{asked}");
}

#[test]
fn a_result_that_never_comes_is_asked_for_five_times_in_all() {
    let world = answering("echo 'It passed, I promise.'");

    let report = world.run();

    assert_eq!((&report.end, result(&report), times_asked(&world)), (&SessionEnd::NoResult, None, 5));
}

#[test]
fn nothing_is_asked_of_a_program_that_failed_or_was_ended() {
    let failing = answering("echo prose; exit 3");
    let mut late = answering("echo prose; exec sleep 1000");
    late.spec.wall_limit = std::time::Duration::from_millis(300);

    let (failed, ended) = (failing.run(), late.run());

    assert_eq!(failed.end, SessionEnd::Crashed { reason: "the program failed (exit 3)".to_owned() });
    assert_eq!((ended.end, times_asked(&failing), times_asked(&late)), (SessionEnd::Timeout, 1, 1));
}
