//! What holds for every run, whatever its card declares and whatever the world answers.

use proctor_domain::procedure::{
    CheckResult, CommitPurpose, Failure, HaltReason, Outcome, Owed, Position, Records, Run, RunEvent, RunStarted, Severity, StepPlan,
    StepState, Task,
};
use proctor_domain::session::{Phase, SessionEnd, Work};
use proptest::prelude::*;

use crate::fixtures::{ALL, isolated, plan, retrying, started};
use crate::oracle::{self, Came};
use crate::simulator::{Choices, Played, play};

fn any_plan(name: &'static str) -> impl Strategy<Value = StepPlan> {
    let phases = proptest::sample::subsequence(ALL.to_vec(), 0..=3);
    let severity = prop_oneof![Just(Severity::Warn), Just(Severity::Review), Just(Severity::Abort)];
    (phases, 0_u32..4, any::<bool>(), prop::bool::weighted(0.3), severity, prop_oneof![Just(None), (1_u32..3).prop_map(Some)]).prop_map(
        move |(phases, agents, judged, asks, severity, retry)| StepPlan {
            agents,
            judged,
            approve: asks.then(|| "ship it?".to_owned()),
            severity,
            ..retry.map_or_else(|| plan(name, &phases), |max| retrying(name, &phases, max))
        },
    )
}

/// Steps with every mixture of work, and a run that is recorded here or there, in place or not.
fn any_started() -> impl Strategy<Value = RunStarted> {
    let steps = (any_plan("a"), any_plan("b"), any_plan("c")).prop_map(|(a, b, c)| vec![a, b, c]);
    (steps, any::<bool>(), any::<bool>()).prop_map(|(steps, in_git, apart)| {
        let started = started(if in_git { Records::Git } else { Records::State }, steps);
        if apart { isolated(started) } else { started }
    })
}

fn any_played() -> impl Strategy<Value = Played> {
    (any_started(), prop::collection::vec(any::<u8>(), 0..160)).prop_map(|(started, bytes)| play(started, &mut Choices::new(bytes)))
}

fn events_of(played: &Played) -> Vec<RunEvent> {
    played.events.iter().map(|(_, event)| event.clone()).collect()
}

/// What a step went through each time that it was begun.
fn parts(played: &Played) -> Vec<(&StepPlan, Vec<RunEvent>)> {
    let plan_of = |id| played.run.steps.iter().map(|step| &step.plan).find(|plan| plan.id == id).unwrap();
    oracle::begun(&played.events).into_iter().map(|(step, events)| (plan_of(step), events)).collect()
}

fn opens(event: &RunEvent, wanted: fn(Work) -> bool) -> bool {
    matches!(event, RunEvent::SessionOpened { work, .. } if wanted(*work))
}

fn is_agent(work: Work) -> bool {
    matches!(work, Work::Agent(_))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_run_ends_with_the_outcome_of_its_steps(played in any_played()) {
        let Position::Ended(outcome) = played.run.position else { panic!("not ended: {:?}", played.run.position) };
        let plans: Vec<StepPlan> = played.run.steps.iter().map(|step| step.plan.clone()).collect();

        let came = oracle::all_came(&plans, &played.events);

        prop_assert_eq!(outcome, oracle::outcome(&came), "{:?}", came);
        for (step, came) in came {
            let record = played.run.steps.iter().find(|record| record.plan.id == step).unwrap();
            let stands = match &record.state {
                StepState::Failed(_) => Came::Failed,
                StepState::Skipped(_) => Came::Skipped,
                StepState::Completed if record.validate == Some(CheckResult::Inconclusive) => Came::Unjudged,
                StepState::Completed => Came::Through,
                state @ (StepState::Pending | StepState::Running | StepState::Failing(_) | StepState::Skipping) => panic!("{state:?}"),
            };
            prop_assert_eq!(stands, came, "{}", step);
        }
    }

    #[test]
    fn every_prefix_of_a_run_replays_to_what_it_was(played in any_played()) {
        for (index, (_, _, after)) in played.moves().into_iter().enumerate() {
            let replayed = Run::replay(played.events[..index + 2].iter().cloned()).unwrap().unwrap();

            prop_assert_eq!(replayed.owes(), after.owes());
            prop_assert_eq!(replayed, after);
        }
    }

    #[test]
    fn each_commit_is_planned_and_made_at_most_once(played in any_played()) {
        let events = events_of(&played);
        let count = |wanted: &dyn Fn(&RunEvent) -> bool| events.iter().filter(|event| wanted(event)).count();
        let made = |purpose: &CommitPurpose| count(&|event| matches!(event, RunEvent::Committed { purpose: made, .. } if made == purpose));
        let ends = count(&|event| matches!(event, RunEvent::Ended { .. }));

        prop_assert!(made(&CommitPurpose::Start) <= 1);
        prop_assert!(made(&CommitPurpose::End) <= ends);
        for (before, event, _) in played.moves() {
            if let RunEvent::Committed { purpose, .. } | RunEvent::CommitRefused { purpose, .. } = &event {
                prop_assert!(before.commit_was_planned());
                prop_assert!(matches!(before.owes(), Owed::Commit(owed, _) if owed == *purpose));
            }
        }
        for (step, events) in parts(&played) {
            let made = |purpose: CommitPurpose| events.iter().filter(|event| matches!(event, RunEvent::Committed { purpose: made, .. } if *made == purpose)).count();
            let collections = events.iter().filter(|event| matches!(event, RunEvent::Collected { changed, failure: None, .. } if !changed.is_empty()));
            prop_assert!(made(CommitPurpose::Step(step.id.clone())) <= 1);
            prop_assert!(made(CommitPurpose::Work(step.id.clone())) <= collections.count());
        }
    }

    #[test]
    fn an_event_out_of_place_is_refused_and_changes_nothing(played in any_played(), cut in any::<prop::sample::Index>(), stray in any::<prop::sample::Index>()) {
        let mut run = Run::replay(played.events[..=cut.index(played.events.len())].iter().cloned()).unwrap().unwrap();
        let before = run.clone();

        let (at, event) = played.events[stray.index(played.events.len())].clone();

        if run.apply(at, event).is_err() {
            prop_assert_eq!(run, before);
        }
    }

    #[test]
    fn every_event_survives_its_json(played in any_played()) {
        for (_, event) in played.events {
            let text = serde_json::to_string(&event).unwrap();
            prop_assert_eq!(serde_json::from_str::<RunEvent>(&text).unwrap(), event);
        }
    }

    #[test]
    fn agents_come_first_in_their_order_and_not_again_once_they_were_collected(played in any_played()) {
        for (step, events) in parts(&played) {
            let collected = events.iter().position(|event| matches!(event, RunEvent::Collected { .. })).unwrap_or(events.len());
            let runs_shells = |event: &RunEvent| matches!(event, RunEvent::SessionOpened { phase: Phase::Run, work: Work::Shells, .. });

            prop_assert!(!events[collected..].iter().any(|event| opens(event, is_agent)));
            prop_assert!(step.agents == 0 || !events[..collected].iter().any(runs_shells));
            let numbers: Vec<u32> = oracle::that_count(&events).iter().filter_map(|session| match session.work {
                Work::Agent(number) => Some(number),
                Work::Shells | Work::Judge(_) | Work::Repair => None,
            }).collect();
            prop_assert_eq!(&numbers, &(1..=u32::try_from(numbers.len()).unwrap()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_step_is_repaired_at_most_once_and_then_checked_again(played in any_played()) {
        for (step, events) in parts(&played) {
            let sat = oracle::that_count(&events);
            let repairs = sat.iter().filter(|session| session.work == Work::Repair).count();

            prop_assert!(repairs <= 1);
            if let Some(place) = sat.iter().position(|session| session.work == Work::Repair) {
                prop_assert!(step.agents == 1 && step.severity == Severity::Review);
                let goes_on = sat[place].responded() && !events.iter().any(|event| matches!(event, RunEvent::Collected { failure: Some(_), .. } | RunEvent::CommitRefused { purpose: CommitPurpose::Work(_), .. }));
                prop_assert_eq!(sat.get(place + 1).is_some_and(|session| session.phase == Phase::Validate || session.phase == Phase::Run), goes_on);
            }
        }
    }

    #[test]
    fn a_judge_has_two_tries_at_each_piece_of_work(played in any_played()) {
        let mut tries = 0;
        for session in oracle::sessions(&events_of(&played)) {
            tries = match session.work {
                Work::Judge(1) if session.counts() => 1,
                Work::Judge(number) if session.counts() => {
                    prop_assert_eq!((number, tries), (2, 1));
                    2
                }
                // A limit or a lost host says nothing about the work: the same try is made again.
                Work::Judge(number) => {
                    prop_assert!(number <= 2);
                    tries
                }
                Work::Shells | Work::Agent(_) | Work::Repair => 0,
            };
        }
    }

    #[test]
    fn a_verdict_never_fails_a_step_that_only_warns(played in any_played()) {
        for step in played.run.steps.iter().filter(|step| step.plan.severity == Severity::Warn) {
            let StepState::Failed(failure) = &step.state else { continue };

            let of_check = matches!(failure, Failure::Judged { .. }) || (failure.phase() == Some(Phase::Validate) && !matches!(failure, Failure::NoResponse { .. }));
            prop_assert!(!of_check, "{}", failure);
        }
    }

    #[test]
    fn no_verdict_neither_gates_nor_repairs(played in any_played()) {
        for (before, event, after) in played.moves() {
            let RunEvent::SessionEnded { report, verdict: None, .. } = &event else { continue };
            let Some(Work::Judge(2)) = before.current_step().and_then(|step| step.sessions.last()).map(|session| session.work) else { continue };
            let responded = report.agent.as_ref().unwrap().responded;
            let counts = !matches!(report.end, SessionEnd::Interrupted | SessionEnd::UsageLimit { .. } | SessionEnd::RateLimited { .. });
            let Position::InStep(index, _) = before.position else { panic!("{:?}", before.position) };
            if responded && counts {
                let step = &after.steps[index];
                prop_assert_eq!(step.validate, Some(CheckResult::Inconclusive));
                prop_assert!(step.unjudged.is_some());
                prop_assert!(matches!(step.state, StepState::Running | StepState::Completed));
                prop_assert!(!matches!(after.owes(), Owed::OpenSession(same, _) if same == index));
            }
        }
    }

    #[test]
    fn without_any_answer_of_its_model_a_step_fails_and_its_shells_still_run(played in any_played()) {
        for (step, events) in parts(&played) {
            let sat = oracle::that_count(&events);
            let Some(place) = sat.iter().position(|session| is_agent(session.work) && !session.responded()) else { continue };

            let collected = !events.iter().any(|event| matches!(event, RunEvent::Collected { failure: Some(_), .. } | RunEvent::CommitRefused { purpose: CommitPurpose::Work(_), .. }));
            let after: Vec<(Phase, Work)> = sat[place + 1..].iter().map(|session| (session.phase, session.work)).collect();
            let expected = if collected && step.phases.contains(&Phase::Run) { vec![(Phase::Run, Work::Shells)] } else { Vec::new() };
            prop_assert_eq!(after, expected);
        }
    }

    #[test]
    fn attempts_count_what_was_begun_and_neither_limits_nor_answers(played in any_played()) {
        let mut part: Vec<RunEvent> = Vec::new();
        for (before, event, after) in played.moves() {
            let attempts = |run: &Run| run.steps.iter().map(|step| step.attempts).sum::<u32>();
            if let RunEvent::StepBegan { .. } = event {
                part.clear();
            }
            part.push(event.clone());
            let sat = oracle::sessions(&part);
            let of_model = sat.last().is_some_and(|session| session.work != Work::Shells);
            let afresh = sat.split_last().is_some_and(|(last, earlier)| {
                oracle::is_tried_afresh(earlier, last) || oracle::is_tried_again(earlier, last)
            });
            let interrupted = matches!(&event, RunEvent::SessionEnded { report, .. } if report.end == SessionEnd::Interrupted);
            let begins = matches!(event, RunEvent::StepBegan { .. } | RunEvent::Restored | RunEvent::RetryBegan);
            let loses = matches!(event, RunEvent::SessionLost { .. }) || interrupted;
            let ends = matches!(event, RunEvent::SessionEnded { .. });
            let failed = matches!(before.position, Position::Ended(Outcome::Failed));
            let judged_anew = failed && matches!(after.owes(), Owed::OpenSession(_, task) if task == Task::judge(1));
            let expected = u32::from(judged_anew || begins || (of_model && loses) || (afresh && ends));

            prop_assert_eq!(attempts(&after) - attempts(&before), expected, "{:?}", event);
        }
    }

    #[test]
    fn a_park_holds_until_it_is_answered_or_resumed(played in any_played()) {
        for (before, event, after) in played.moves() {
            let Owed::Park(reason) = before.owes() else { continue };
            prop_assert!(reason.is_parked());
            prop_assert_eq!(&event, &RunEvent::Halted { reason: reason.clone() });
            prop_assert_eq!(after.owes(), Owed::Nothing);

            let mut resumed = after.clone();
            let goes_on = RunEvent::Resumed { head: after.head.clone(), accepted: Vec::new(), snapshot: None, directive: None, last_sign: None };
            resumed.apply(proctor_domain::Timestamp(0), goes_on).unwrap();

            match reason {
                HaltReason::Approval { .. } | HaltReason::Question { .. } => prop_assert_eq!(resumed.owes(), Owed::Park(reason)),
                HaltReason::Limited { .. } => prop_assert!(matches!(resumed.owes(), Owed::OpenSession(..))),
                HaltReason::NotMerged { .. }
                | HaltReason::Interrupted
                | HaltReason::ForeignChanges(_)
                | HaltReason::ForeignCommits(_)
                | HaltReason::BranchMoved { .. }
                | HaltReason::HistoryRewritten { .. }
                | HaltReason::Operation(_)
                | HaltReason::HookChanged { .. }
                | HaltReason::RecordRefused { .. }
                | HaltReason::HostsLost(_) => prop_assert!(false, "{:?}", reason),
            }
        }
    }

    #[test]
    fn judging_again_touches_no_tree(played in any_played()) {
        let mut again = false;
        for (before, event, after) in played.moves() {
            again = oracle::is_judging_again(again, &event);
            if again {
                let owed = after.owes();
                let of_tree = matches!(owed, Owed::Survey(_) | Owed::Collect(_) | Owed::Restore(_) | Owed::Begin(_) | Owed::Commit(CommitPurpose::Start | CommitPurpose::Work(_) | CommitPurpose::Step(_), _));
                prop_assert!(!of_tree, "{:?} after {:?}", owed, event);
                prop_assert!(!matches!(owed, Owed::OpenSession(_, task) if !matches!(task.work, Work::Judge(_))), "{:?}", before.position);
            }
        }
    }

    #[test]
    fn only_what_is_completed_is_merged_by_itself(played in any_played()) {
        let apart = played.run.started.isolated.is_some();
        let Position::Ended(outcome) = played.run.position else { panic!("{:?}", played.run.position) };

        prop_assert_eq!(played.run.worktree_made, apart);
        if outcome == proctor_domain::procedure::Outcome::Completed {
            prop_assert_eq!(played.run.merged.is_some(), apart);
        }
        prop_assert!(apart || played.run.merged.is_none());
    }
}

/// What can be seen in these moves, in words.
fn sights(played: &Played) -> Vec<String> {
    let word = |text: String| text.split([' ', '(', '{']).next().unwrap().to_owned();
    let mut sights = Vec::new();
    let mut again = false;
    for (_, event, after) in played.moves() {
        if let (true, RunEvent::Ended { outcome, .. }) = (again, &event) {
            sights.push(format!("judged again: {}", outcome.name()));
        }
        again = oracle::is_judging_again(again, &event);
        sights.push(word(format!("{event:?}")));
        if let Owed::OpenSession(_, task) = after.owes() {
            sights.push(task.work.name().to_owned());
        }
        if let Owed::Park(reason) = after.owes() {
            sights.push(word(format!("{reason:?}")));
        }
        for step in &after.steps {
            if let StepState::Failed(failure) = &step.state {
                sights.push(format!("failed: {}", word(format!("{failure:?}"))));
            }
        }
    }
    sights
}

/// Otherwise the properties would hold of nothing.
#[test]
fn the_simulated_world_goes_through_all_that_can_happen() {
    let everything = StepPlan { agents: 1, judged: true, approve: Some("?".into()), severity: Severity::Review, ..retrying("a", &ALL, 1) };
    let mut seen = std::collections::BTreeSet::new();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..1_500 {
        let mut byte = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random.to_le_bytes()[3]
        };
        let bytes = (0..160).map(|_| byte()).collect();
        let started = isolated(started(Records::Git, vec![everything.clone()]));
        seen.extend(sights(&play(started, &mut Choices::new(bytes))));
    }

    let seen: Vec<&str> = seen.iter().map(String::as_str).collect();

    let all = [
        "Answered",
        "Approval",
        "Collected",
        "CommitPlanned",
        "CommitRefused",
        "Committed",
        "Ended",
        "Halted",
        "Limited",
        "Merged",
        "Proposed",
        "Question",
        "RejudgeAsked",
        "RestorePlanned",
        "Restored",
        "Resumed",
        "RetryBegan",
        "RetryPlanned",
        "SessionEnded",
        "SessionLost",
        "SessionOpened",
        "StepBegan",
        "StepRejected",
        "StepSkipped",
        "Surveyed",
        "WorktreeMade",
        "agent",
        "failed: ChangedGit",
        "failed: Exit",
        "failed: HookRefused",
        "failed: Judged",
        "failed: NoResponse",
        "failed: Outputs",
        "failed: Rejected",
        "failed: Template",
        "failed: Timeout",
        "failed: Uncommittable",
        "judge",
        "judged again: completed",
        "judged again: failed",
        "judged again: inconclusive",
        "repair",
        "shells",
    ];
    assert_eq!(seen, all);
}
