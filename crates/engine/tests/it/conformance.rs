//! What every engine owes, each through the real session host: one suite, and for each engine a script that makes its cases
//! happen. Claude Code is the real one, and talks to the loopback model.

mod acp;
mod claude;
mod claude_alone;
mod codex;
mod matrix;
mod opencode;
mod scripted;
mod stage;

use std::path::Path;
use std::time::Duration;

use proctor_domain::session::{SessionEnd, SessionReport, Usage};
use proctor_domain::{Cost, MicroDollars};
use proctor_engine::agent::{Access, AgentEvent, AgentTask, EngineKind, Stop, read_said, validate_result};
use proctor_engine::{Said, Waited, replay_transcript, say};
use proctor_process::{ProcessIdentity, Signal};

use crate::world::{ended, is_gone, wait};
use stage::{Case, RESET, SCHEMA, SECRET, Stage, task};

/// Each of these is a test of each engine.
macro_rules! conformance {
    ($($behaviour:ident),* $(,)?) => {
        conformance!(@ with_claude, Claude, $($behaviour),*);
        conformance!(@ with_codex, Codex, $($behaviour),*);
        conformance!(@ with_scripted, Scripted, $($behaviour),*);
    };
    (@ $module:ident, $kind:ident, $($behaviour:ident),*) => {
        mod $module {
            pub(crate) const BEHAVIOURS: &[&str] = &[$(stringify!($behaviour)),*];
            $(#[test] fn $behaviour() { super::$behaviour(super::EngineKind::$kind); })*
        }
    };
}

conformance!(
    a_conversation_that_is_not_known_answers_nothing_and_says_so,
    a_login_that_is_refused_ends_soon_without_an_answer,
    a_provider_that_asks_to_wait_for_good_is_waited_for_by_nobody,
    a_provider_that_asks_to_wait_for_an_hour_does_not_hold_the_session,
    a_provider_that_is_overloaded_is_one_that_asks_to_wait,
    a_provider_that_asks_to_wait_once_is_waited_for,
    a_quota_that_is_used_up_says_until_when,
    an_answer_that_always_breaks_off_is_a_crash,
    an_answer_that_breaks_off_once_is_asked_for_again,
    a_result_that_is_wrong_every_time_is_none,
    a_result_that_is_prose_is_none,
    a_result_that_is_wrong_at_first_is_asked_for_again,
    a_result_is_what_the_schema_asks_for,
    a_turn_cap_holds,
    a_money_cap_holds_after_the_turn_that_breaks_it,
    an_interrupted_conversation_goes_on_later,
    a_host_that_is_asked_to_end_ends_its_agent,
    a_program_that_stays_when_it_is_done_has_done_its_work,
    a_process_that_a_tool_left_is_ended,
    one_that_only_looks_writes_nothing,
    a_secret_that_a_tool_printed_is_in_no_file_of_the_session,
    what_was_used_and_spent_is_told_by_model,
    a_model_without_a_price_costs_nobody_knows_what,
    an_answer_is_the_claim_and_the_session_is_completed,
    a_conversation_goes_on_and_knows_what_was_said,
    a_prompt_of_any_length_and_a_system_prompt_arrive,
    a_session_tool_that_is_called_is_heard,
    a_prompt_is_a_text_whatever_it_begins_with,
    a_word_said_while_it_works_is_heard,
    an_interrupted_turn_ends_as_interrupted,
    a_tool_that_fails_is_told_of_and_the_session_goes_on,
    a_flood_of_what_a_tool_prints_ends_nothing,
    a_time_limit_ends_a_session_with_all_that_it_started,
    a_session_that_is_silent_for_too_long_is_ended,
    an_agent_that_is_killed_leaves_nothing_and_its_conversation_goes_on,
    a_killed_host_leaves_a_conversation_that_goes_on,
    a_tool_that_is_not_allowed_is_denied_and_the_session_goes_on,
);

// What it can't show, the matrix says.
conformance!(@ with_opencode, OpenCode,
    a_conversation_that_is_not_known_answers_nothing_and_says_so,
    a_login_that_is_refused_ends_soon_without_an_answer,
    a_provider_that_asks_to_wait_for_good_is_waited_for_by_nobody,
    a_provider_that_asks_to_wait_for_an_hour_does_not_hold_the_session,
    a_provider_that_is_overloaded_is_one_that_asks_to_wait,
    a_provider_that_asks_to_wait_once_is_waited_for,
    a_quota_that_is_used_up_says_until_when,
    an_answer_that_always_breaks_off_is_a_crash,
    an_answer_that_breaks_off_once_is_asked_for_again,
    a_result_that_is_wrong_at_first_is_asked_for_again,
    a_result_is_what_the_schema_asks_for,
    a_turn_cap_holds,
    a_money_cap_holds_after_the_turn_that_breaks_it,
    an_interrupted_conversation_goes_on_later,
    a_host_that_is_asked_to_end_ends_its_agent,
    a_program_that_stays_when_it_is_done_has_done_its_work,
    a_process_that_a_tool_left_is_ended,
    one_that_only_looks_writes_nothing,
    a_secret_that_a_tool_printed_is_in_no_file_of_the_session,
    a_model_without_a_price_costs_nobody_knows_what,
    an_answer_is_the_claim_and_the_session_is_completed,
    a_conversation_goes_on_and_knows_what_was_said,
    a_prompt_of_any_length_and_a_system_prompt_arrive,
    a_session_tool_that_is_called_is_heard,
    a_prompt_is_a_text_whatever_it_begins_with,
    a_word_said_while_it_works_is_heard,
    an_interrupted_turn_ends_as_interrupted,
    a_tool_that_fails_is_told_of_and_the_session_goes_on,
    a_flood_of_what_a_tool_prints_ends_nothing,
    a_time_limit_ends_a_session_with_all_that_it_started,
    a_session_that_is_silent_for_too_long_is_ended,
    an_agent_that_is_killed_leaves_nothing_and_its_conversation_goes_on,
    a_killed_host_leaves_a_conversation_that_goes_on,
    a_tool_that_is_not_allowed_is_denied_and_the_session_goes_on
);

// The adapter of Claude Code, as the quickest agent of the Agent Client Protocol.
conformance!(@ with_acp, Acp,
    a_conversation_that_is_not_known_answers_nothing_and_says_so,
    a_login_that_is_refused_ends_soon_without_an_answer,
    a_provider_that_asks_to_wait_for_good_is_waited_for_by_nobody,
    a_provider_that_asks_to_wait_for_an_hour_does_not_hold_the_session,
    a_provider_that_is_overloaded_is_one_that_asks_to_wait,
    a_provider_that_asks_to_wait_once_is_waited_for,
    a_quota_that_is_used_up_says_until_when,
    an_answer_that_always_breaks_off_is_a_crash,
    an_answer_that_breaks_off_once_is_asked_for_again,
    a_result_that_is_wrong_every_time_is_none,
    a_result_that_is_prose_is_none,
    a_result_that_is_wrong_at_first_is_asked_for_again,
    a_result_is_what_the_schema_asks_for,
    a_turn_cap_holds,
    an_interrupted_conversation_goes_on_later,
    a_host_that_is_asked_to_end_ends_its_agent,
    a_program_that_stays_when_it_is_done_has_done_its_work,
    a_process_that_a_tool_left_is_ended,
    one_that_only_looks_writes_nothing,
    a_secret_that_a_tool_printed_is_in_no_file_of_the_session,
    what_was_used_and_spent_is_told_by_model,
    an_answer_is_the_claim_and_the_session_is_completed,
    a_conversation_goes_on_and_knows_what_was_said,
    a_prompt_of_any_length_and_a_system_prompt_arrive,
    a_session_tool_that_is_called_is_heard,
    a_word_said_while_it_works_is_heard,
    an_interrupted_turn_ends_as_interrupted,
    a_tool_that_fails_is_told_of_and_the_session_goes_on,
    a_flood_of_what_a_tool_prints_ends_nothing,
    a_time_limit_ends_a_session_with_all_that_it_started,
    a_session_that_is_silent_for_too_long_is_ended,
    an_agent_that_is_killed_leaves_nothing_and_its_conversation_goes_on,
    a_killed_host_leaves_a_conversation_that_goes_on,
    a_tool_that_is_not_allowed_is_denied_and_the_session_goes_on
);

/// What most sessions come to: the end, and the last words.
fn outcome(report: &SessionReport) -> (SessionEnd, Option<&str>) {
    (report.end.clone(), report.agent.as_ref().and_then(|agent| agent.claim.as_deref()))
}

const DONE: (SessionEnd, Option<&str>) = (SessionEnd::Completed, Some("It is done."));

fn owing() -> AgentTask {
    AgentTask { schema: Some(SCHEMA.to_owned()), ..task("Judge it.") }
}

fn going_on(report: &SessionReport) -> AgentTask {
    AgentTask { resume: report.agent.as_ref().unwrap().conversation.clone(), ..task("Go on.") }
}

fn turns(report: &SessionReport) -> u32 {
    report.agent.as_ref().unwrap().turns
}

fn responded(report: &SessionReport) -> bool {
    report.agent.as_ref().unwrap().responded
}

/// How many processes tools left, of which so many are known. The adapter of Claude Code may be gone before the program that
/// it drives is.
fn left_by_tools(kind: EngineKind, report: &SessionReport, known: u32) -> u32 {
    if kind == EngineKind::Acp { report.ended_orphans.min(known) } else { report.ended_orphans }
}

/// Runs one session of an engine in which this happens.
fn play(kind: EngineKind, case: Case, task: &AgentTask) -> Option<(Stage, SessionReport)> {
    let mut stage = Stage::of(kind, case)?;
    let report = stage.play(task);
    assert_eq!(report.agent.as_ref().unwrap().unknown_lines, 0, "{}", stage.transcript());
    Some((stage, report))
}

fn a_conversation_that_is_not_known_answers_nothing_and_says_so(kind: EngineKind) {
    let unknown = "11111111-2222-3333-4444-555555555555";
    let task = AgentTask { resume: Some(unknown.to_owned()), ..task("Go on.") };
    let Some((_, report)) = play(kind, Case::Answers, &task) else { return };

    assert!(matches!(report.end, SessionEnd::Refused | SessionEnd::Crashed { .. }), "{report:?}");
    let agent = report.agent.unwrap();
    assert!(!agent.responded && agent.error.as_ref().is_some_and(|error| error.contains(unknown)), "{agent:?}");
}

fn a_login_that_is_refused_ends_soon_without_an_answer(kind: EngineKind) {
    let Some((_, report)) = play(kind, Case::IsNotLoggedIn, &task("Do it.")) else { return };

    assert_eq!((&report.end, responded(&report)), (&SessionEnd::Refused, false), "{report:?}");
    assert!(report.agent.as_ref().unwrap().error.is_some());
    assert!(report.duration_ms < 30_000, "{}", report.duration_ms);
}

fn a_provider_that_asks_to_wait_for_good_is_waited_for_by_nobody(kind: EngineKind) {
    let Some((_, report)) = play(kind, Case::IsSlowedDown, &task("Do it.")) else { return };

    assert_eq!((&report.end, responded(&report)), (&SessionEnd::RateLimited { until: None }, false), "{report:?}");
}

fn a_provider_that_asks_to_wait_for_an_hour_does_not_hold_the_session(kind: EngineKind) {
    let Some((_, report)) = play(kind, Case::IsSlowedDownForLong, &task("Do it.")) else { return };

    assert!(matches!(report.end, SessionEnd::RateLimited { .. }) && !responded(&report), "{report:?}");
}

fn a_provider_that_is_overloaded_is_one_that_asks_to_wait(kind: EngineKind) {
    let Some((_, report)) = play(kind, Case::IsOverloaded, &task("Do it.")) else { return };

    assert_eq!((&report.end, responded(&report)), (&SessionEnd::RateLimited { until: None }, false), "{report:?}");
}

fn a_provider_that_asks_to_wait_once_is_waited_for(kind: EngineKind) {
    let Some((stage, report)) = play(kind, Case::IsSlowedDownOnce, &task("Do it.")) else { return };

    assert_eq!((outcome(&report), turns(&report)), (DONE, 1), "{}", stage.transcript());
    // The case is one. There are engines that say nothing of it.
    assert!(stage.transcript().contains("429") || stage.asked() > 1, "{}", stage.transcript());
}

fn a_quota_that_is_used_up_says_until_when(kind: EngineKind) {
    let Some((_, report)) = play(kind, Case::IsUsedUp, &task("Do it.")) else { return };

    let SessionEnd::UsageLimit { until: Some(until) } = report.end else { panic!("{report:?}") };
    // There are engines that tell whole minutes.
    assert!((0..60_000).contains(&(until.0 - RESET * 1_000)) && !responded(&report), "{report:?}");
}

fn an_answer_that_always_breaks_off_is_a_crash(kind: EngineKind) {
    let Some((_, report)) = play(kind, Case::BreaksOff, &task("Do it.")) else { return };

    assert!(matches!(report.end, SessionEnd::Crashed { .. }), "{report:?}");
}

fn an_answer_that_breaks_off_once_is_asked_for_again(kind: EngineKind) {
    let Some((_, report)) = play(kind, Case::BreaksOffOnce, &task("Do it.")) else { return };

    assert_eq!((outcome(&report), turns(&report)), (DONE, 1), "{report:?}");
}

fn a_result_that_is_wrong_every_time_is_none(kind: EngineKind) {
    let Some((_, report)) = play(kind, Case::GivesWrongResultAlways, &owing()) else { return };

    let agent = report.agent.unwrap();
    assert_eq!((report.end, agent.result, agent.turns), (SessionEnd::NoResult, None, 5));
    assert!(agent.error.is_some() && agent.responded);
}

fn a_result_that_is_prose_is_none(kind: EngineKind) {
    let Some((_, report)) = play(kind, Case::Answers, &owing()) else { return };

    assert_eq!(outcome(&report), (SessionEnd::NoResult, Some("It is done.")), "{report:?}");
}

fn a_result_that_is_wrong_at_first_is_asked_for_again(kind: EngineKind) {
    let Some((_, report)) = play(kind, Case::GivesWrongResultFirst, &owing()) else { return };

    assert_eq!((&report.end, turns(&report)), (&SessionEnd::Completed, 2), "{report:?}");
    validate_result(SCHEMA, &report.agent.unwrap().result.unwrap()).unwrap();
}

fn a_result_is_what_the_schema_asks_for(kind: EngineKind) {
    let Some((_, report)) = play(kind, Case::GivesResult, &owing()) else { return };

    assert_eq!(report.end, SessionEnd::Completed, "{report:?}");
    assert_eq!(report.agent.unwrap().result.as_deref(), Some(r#"{"passed":true}"#));
}

fn a_session_tool_that_is_called_is_heard(kind: EngineKind) {
    // As of a judge, who may do nothing else than look.
    let task = AgentTask { access: Access::ReadOnly, ..owing() };
    let Some((stage, report)) = play(kind, Case::CallsSessionTools, &task) else { return };

    let agent = report.agent.as_ref().unwrap();
    assert_eq!(agent.told.notes, ["The tests were slow."], "{}", stage.transcript());
    assert_eq!((&report.end, agent.result.as_deref()), (&SessionEnd::Completed, Some(r#"{"passed":true}"#)), "{}", stage.transcript());
    assert!(stage.transcript().contains("/passed"), "what is refused is said: {}", stage.transcript());
}

fn a_turn_cap_holds(kind: EngineKind) {
    let task = AgentTask { max_turns: Some(2), ..task("Do it.") };
    let Some((stage, report)) = play(kind, Case::NeverEnds, &task) else { return };

    assert_eq!(report.end, SessionEnd::TurnLimit, "{report:?}");
    // Where the host holds it, it has to see the turn that is one too many.
    assert_eq!(turns(&report), if stage.capabilities().turn_cap { 2 } else { 3 }, "{report:?}");
}

fn a_money_cap_holds_after_the_turn_that_breaks_it(kind: EngineKind) {
    let task = AgentTask { max_cost: Some(MicroDollars::dollars(1)), max_turns: Some(5), ..task("Do it.") };
    let Some((_, report)) = play(kind, Case::IsExpensive, &task) else { return };

    assert_eq!((&report.end, turns(&report)), (&SessionEnd::Budget, 1), "{report:?}");
    assert!(report.agent.unwrap().cost().known().is_some_and(|cost| cost > MicroDollars::dollars(1)));
}

fn an_interrupted_conversation_goes_on_later(kind: EngineKind) {
    let Some(mut stage) = Stage::of(kind, Case::Works) else { return };
    let mut attached = stage.start(&task("Do it."));
    let tool = stage.world.process("pid");

    attached.interrupt();
    let report = ended(wait(&mut attached));
    let next = stage.play(&going_on(&report));

    assert_eq!((&report.end, responded(&report)), (&SessionEnd::Interrupted, true), "{report:?}");
    assert!(is_gone(&tool));
    assert_eq!(outcome(&next), (SessionEnd::Completed, Some("Going on.")), "{next:?}");
    assert!(stage.model_saw("Do it.") && stage.model_saw("Go on."));
}

fn a_host_that_is_asked_to_end_ends_its_agent(kind: EngineKind) {
    let Some(mut stage) = Stage::of(kind, Case::Works) else { return };
    let mut attached = stage.start(&task("Do it."));
    let tool = stage.world.process("pid");

    attached.host().unwrap().signal(Signal::Terminate).unwrap();
    let report = ended(wait(&mut attached));

    assert_eq!((&report.end, responded(&report)), (&SessionEnd::Interrupted, true), "{report:?}");
    assert!(is_gone(&tool));
}

fn a_program_that_stays_when_it_is_done_has_done_its_work(kind: EngineKind) {
    let Some((_, report)) = play(kind, Case::Stays, &task("Do it.")) else { return };

    assert_eq!(outcome(&report), DONE, "{report:?}");
    assert!(report.duration_ms < 50_000, "{}", report.duration_ms);
}

fn a_process_that_a_tool_left_is_ended(kind: EngineKind) {
    let Some((stage, report)) = play(kind, Case::LeavesProcess, &task("Do it.")) else { return };

    assert_eq!((outcome(&report), left_by_tools(kind, &report, 1)), (DONE, 1), "{}", stage.transcript());
    let pid: u32 = std::fs::read_to_string(stage.world.work("far")).unwrap().trim().parse().unwrap();
    assert!(ProcessIdentity::of(pid).is_none());
}

fn one_that_only_looks_writes_nothing(kind: EngineKind) {
    let looking = AgentTask { access: Access::ReadOnly, ..task("Do it.") };
    let Some((mut stage, report)) = play(kind, Case::Writes, &looking) else { return };
    let written = stage.world.work("written");

    assert_eq!((outcome(&report), written.exists()), (DONE, false), "{}", stage.transcript());
    assert_eq!(outcome(&stage.play(&task("Do it."))), DONE);
    assert!(written.exists(), "the case is one: {}", stage.transcript());
}

fn a_secret_that_a_tool_printed_is_in_no_file_of_the_session(kind: EngineKind) {
    let Some(mut stage) = Stage::of(kind, Case::SaysSecret) else { return };
    stage.world.spec.secrets = vec![SECRET.as_bytes().to_vec()];

    let report = stage.play(&task("Do it."));

    let claim = outcome(&report).1.unwrap();
    assert!(claim.starts_with("It printed ") && claim.contains("[redacted]"), "{report:?}");
    assert_eq!(report.outputs.get("token").map(String::as_str), Some("[redacted]"));
    assert!(stage.transcript().contains("[redacted]") && !format!("{report:?}").contains(SECRET));
    assert_eq!(files_with(&stage.world.spec.folder, SECRET), [""; 0]);
}

/// The files under this folder that hold this text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(files_with(&path, text));
        } else if kind.is_file() && std::fs::read(&path).unwrap().windows(text.len()).any(|window| window == text.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
    found
}

fn what_was_used_and_spent_is_told_by_model(kind: EngineKind) {
    let Some((stage, report)) = play(kind, Case::IsCounted, &task("Do it.")) else { return };

    let agent = report.agent.unwrap();
    let [spending] = agent.spent.as_slice() else { panic!("{agent:?}") };
    assert_eq!(spending.usage, Usage { input: 1_000, output: 100, cache_read: 500, cache_write: 50 });
    assert_eq!(agent.cost().known().is_some_and(|cost| cost > MicroDollars(0)), stage.capabilities().cost, "{agent:?}");
}

fn a_model_without_a_price_costs_nobody_knows_what(kind: EngineKind) {
    // OpenCode names a model with its provider.
    let model = if kind == EngineKind::OpenCode { "loopback/model-of-nobody" } else { "model-of-nobody" };
    let task = AgentTask { model: Some(model.to_owned()), ..task("Do it.") };
    let Some((stage, report)) = play(kind, Case::Answers, &task) else { return };

    assert_eq!(outcome(&report), DONE, "{report:?}");
    assert!(stage.model_saw(r#""model":"model-of-nobody""#));
    let agent = report.agent.unwrap();
    assert_eq!((agent.model.as_deref(), agent.cost()), (Some(model), Cost::Unknown), "{:?}", agent.spent);
}

fn an_answer_is_the_claim_and_the_session_is_completed(kind: EngineKind) {
    let Some((_, report)) = play(kind, Case::Answers, &task("Do it.")) else { return };

    assert_eq!((outcome(&report), turns(&report), left_by_tools(kind, &report, 0)), (DONE, 1, 0), "{report:?}");
    let agent = report.agent.unwrap();
    assert!(agent.responded && agent.conversation.is_some() && agent.error.is_none() && agent.result.is_none(), "{agent:?}");
}

fn a_conversation_goes_on_and_knows_what_was_said(kind: EngineKind) {
    let Some((mut stage, first)) = play(kind, Case::IsCounted, &task("Do it with care.")) else { return };

    let second = stage.play(&going_on(&first));

    assert_eq!(outcome(&second), (SessionEnd::Completed, Some("Going on.")), "{second:?}");
    assert!(stage.model_saw("Do it with care.") && stage.model_saw("It is done."));
    let (first, second) = (first.agent.unwrap(), second.agent.unwrap());
    assert_eq!((&first.conversation, second.turns), (&second.conversation, 1));
    assert!(second.spent[0].usage.input < first.spent[0].usage.input, "what was paid for before is not paid again: {second:?}");
}

fn a_prompt_of_any_length_and_a_system_prompt_arrive(kind: EngineKind) {
    // An argument holds 128 KiB.
    let task = AgentTask { system: "You are examined at desk 4711.".to_owned(), ..task(&format!("{}needle", "hay ".repeat(75_000))) };
    let Some((stage, report)) = play(kind, Case::Answers, &task) else { return };

    assert_eq!(outcome(&report), DONE, "{report:?}");
    assert!(stage.model_saw("hay needle") && stage.model_saw("You are examined at desk 4711."));
}

fn a_prompt_is_a_text_whatever_it_begins_with(kind: EngineKind) {
    let Some(mut stage) = Stage::of(kind, Case::Answers) else { return };
    stage.put("note.txt", "never to be sent along");

    for prompt in ["/compact", "@note.txt", "--help"] {
        let report = stage.play(&task(prompt));

        assert_eq!(outcome(&report), DONE, "{prompt}: {report:?}");
        assert!(stage.model_saw(prompt), "{prompt}");
        assert!(kind == EngineKind::Scripted || !stage.model_saw("never to be sent along"), "{prompt}");
    }
}

fn a_word_said_while_it_works_is_heard(kind: EngineKind) {
    let Some(mut stage) = Stage::of(kind, Case::Hears) else { return };
    let mut attached = stage.start(&task("Do it."));
    stage.world.process("pid");

    let said = say(&stage.world.spec.folder, "Mind desk 4711").unwrap();
    stage.put("go", "");
    let report = ended(wait(&mut attached));

    if !stage.capabilities().steering {
        return assert_eq!((said, outcome(&report)), (Some(Said::Deaf), DONE), "{report:?}");
    }
    let (end, claim) = outcome(&report);
    assert_eq!((said, end), (Some(Said::Passed), SessionEnd::Completed), "{report:?}");
    // Claude Code hands it to its model with what the tool said, which is no prompt to the loopback model.
    let answers = kind == EngineKind::Claude || claim.is_some_and(|claim| claim.contains("desk 4711"));
    assert!(answers && stage.model_saw("Mind desk 4711"), "{report:?}\n{}", stage.transcript());
    assert!(stage.transcript().lines().filter_map(|line| read_said(line.as_bytes())).eq(["Mind desk 4711"]));
    assert_eq!(say(&stage.world.spec.folder, "Too late").unwrap(), Some(Said::Over));
}

fn an_interrupted_turn_ends_as_interrupted(kind: EngineKind) {
    let Some(mut stage) = Stage::of(kind, Case::Works) else { return };
    let mut attached = stage.start(&task("Do it."));
    let tool = stage.world.process("pid");

    attached.interrupt();
    let report = ended(wait(&mut attached));

    assert_eq!(report.end, SessionEnd::Interrupted, "{report:?}");
    assert!(is_gone(&tool));
    // The others are ended by a signal, and say nothing.
    let breaks_off = !matches!(kind, EngineKind::Scripted | EngineKind::OpenCode);
    let says_so = stage.events().iter().any(|event| matches!(event, AgentEvent::Finished(finish) if finish.stop == Stop::Interrupted));
    assert_eq!(says_so, breaks_off, "{}", stage.transcript());
}

fn a_tool_that_fails_is_told_of_and_the_session_goes_on(kind: EngineKind) {
    let Some((stage, report)) = play(kind, Case::Fails, &task("Do it.")) else { return };

    assert_eq!(outcome(&report), DONE, "{}", stage.transcript());
    let told = |event: &AgentEvent| matches!(event, AgentEvent::ToolResult { failed: true, text, .. } if text.contains("it is broken"));
    assert!(stage.events().iter().any(told) && stage.model_saw("it is broken"), "{}", stage.transcript());
}

fn a_flood_of_what_a_tool_prints_ends_nothing(kind: EngineKind) {
    let Some((stage, report)) = play(kind, Case::Floods, &task("Do it.")) else { return };

    assert_eq!(outcome(&report), DONE, "{report:?}");
    assert!(stage.transcript().contains("what nobody reads"));
}

fn a_time_limit_ends_a_session_with_all_that_it_started(kind: EngineKind) {
    let Some(mut stage) = Stage::of(kind, Case::Works) else { return };
    stage.world.spec.wall_limit = Duration::from_secs(4);

    let report = ended(wait(&mut stage.start(&task("Do it."))));

    assert_eq!(report.end, SessionEnd::Timeout, "{report:?}");
    // Where the limit came first, there was no tool yet.
    assert!(!stage.world.work("pid").exists() || is_gone_with_pid(&stage));
}

fn a_session_that_is_silent_for_too_long_is_ended(kind: EngineKind) {
    let Some(mut stage) = Stage::of(kind, Case::Works) else { return };
    stage.limit_silence(Duration::from_secs(4));

    let report = ended(wait(&mut stage.start(&task("Do it."))));

    assert_eq!(report.end, SessionEnd::Silent, "{report:?}");
    assert!(!stage.world.work("pid").exists() || is_gone_with_pid(&stage));
}

/// Whether the process of a tool is gone.
fn is_gone_with_pid(stage: &Stage) -> bool {
    let pid = std::fs::read_to_string(stage.world.work("pid")).unwrap();
    pid.trim().parse().is_ok_and(|pid| ProcessIdentity::of(pid).is_none())
}

/// The process that the host started, from one that a tool of it runs in.
fn agent_of(host: u32, tool: u32) -> ProcessIdentity {
    let stat = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // After the name, which may hold anything, come the state and the parent.
    let parent = |pid: u32| stat(pid).rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap().parse::<u32>().unwrap();
    let mut pid = tool;
    while parent(pid) != host {
        pid = parent(pid);
    }
    ProcessIdentity::of(pid).unwrap()
}

fn an_agent_that_is_killed_leaves_nothing_and_its_conversation_goes_on(kind: EngineKind) {
    let Some(mut stage) = Stage::of(kind, Case::Works) else { return };
    let mut attached = stage.start(&task("Do it."));
    let tool = stage.world.process("pid");

    agent_of(attached.host().unwrap().pid, tool.pid).signal(Signal::Kill).unwrap();
    let report = ended(wait(&mut attached));
    let next = stage.play(&going_on(&report));

    assert!(matches!(report.end, SessionEnd::Crashed { .. }) && responded(&report), "{report:?}");
    assert!(is_gone(&tool));
    assert_eq!(outcome(&next), (SessionEnd::Completed, Some("Going on.")), "{next:?}");
    assert!(stage.model_saw("Do it.") && stage.model_saw("Go on."));
}

fn a_killed_host_leaves_a_conversation_that_goes_on(kind: EngineKind) {
    let Some(mut stage) = Stage::of(kind, Case::Works) else { return };
    let mut attached = stage.start(&task("Do it."));
    let tool = stage.world.process("pid");

    attached.host().unwrap().signal(Signal::Kill).unwrap();
    let waited = wait(&mut attached);
    let left = replay_transcript(&stage.world.spec.folder, stage.setup.name.clone(), kind).unwrap();
    let next = stage.play(&AgentTask { resume: left.conversation, ..task("Go on.") });

    assert!(matches!(waited, Waited::Lost) && left.responded, "{waited:?}");
    assert!(is_gone(&tool), "who finds out that a host is gone ends what it left");
    assert_eq!(outcome(&next), (SessionEnd::Completed, Some("Going on.")), "{next:?}");
    assert!(stage.model_saw("Do it.") && stage.model_saw("Go on."));
}

fn a_tool_that_is_not_allowed_is_denied_and_the_session_goes_on(kind: EngineKind) {
    let Some(mut stage) = Stage::of(kind, Case::Writes) else { return };
    // Those that never ask are held to looking.
    let asks = matches!(kind, EngineKind::Claude | EngineKind::Acp);
    let access = if asks { Access::Full } else { Access::ReadOnly };
    stage.ask_first();

    let report = stage.play(&AgentTask { access, ..task("Do it.") });

    assert_eq!((outcome(&report), stage.world.work("written").exists()), (DONE, false), "{}", stage.transcript());
    // Of what Codex does not let its model do, it does not tell.
    let denied = |event: &AgentEvent| matches!(event, AgentEvent::ToolResult { failed: true, .. });
    assert!(kind == EngineKind::Codex || stage.events().iter().any(denied), "{}", stage.transcript());
}
