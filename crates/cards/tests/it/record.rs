//! The card of a run is true of the commit that it goes into.

use std::collections::BTreeMap;

use proctor_cards::{RunCard, read_run_card, render_run_card};
use proctor_domain::procedure::{Owed, Records, Run, RunEvent, RunStarted, Severity, SkipReason, StepId, StepPlan};
use proctor_domain::session::{Excerpt, Phase, SessionEnd, SessionReport, ShellEnd};
use proctor_domain::{Branch, CardDuration, Expiry, Oid, RepoPath, SessionId, Timestamp};

fn id(name: &str) -> StepId {
    StepId::try_from(name.to_owned()).unwrap()
}

fn started(steps: &[(&str, &[Phase])]) -> RunStarted {
    let plan =
        |(name, phases): &(&str, &[Phase])| StepPlan { id: id(name), phases: phases.to_vec(), severity: Severity::Abort, retry: None };
    RunStarted {
        procedure: "p".to_owned(),
        card: RepoPath::new("proctor/procedures/p.procedure.card"),
        snapshot: "0".to_owned(),
        steps: steps.iter().map(plan).collect(),
        records: Records::Git,
        directive: Some("go".to_owned()),
        inputs: BTreeMap::new(),
        only: None,
        worktree: RepoPath::new("/r"),
        card_root: RepoPath::new(""),
        branch: Branch::Named("main".to_owned()),
        head: Some(Oid("0".repeat(40))),
        folder: Some(RepoPath::new("proctor/runs/p")),
        foreign: Vec::new(),
        foreign_snapshot: None,
        run_expiry: Expiry::After(CardDuration::days(30)),
        failed_run_expiry: Expiry::Never,
    }
}

fn report(exit_code: i32, stdout: &str, stderr: &str) -> SessionReport {
    let excerpt = |text: &str| Excerpt { head: text.to_owned(), ..Excerpt::default() };
    SessionReport {
        end: SessionEnd::Completed,
        shells: vec![ShellEnd { exit_code, duration_ms: 1 }],
        stdout: excerpt(stdout),
        stderr: excerpt(stderr),
        outputs: [("tag".to_owned(), "v1".to_owned())].into(),
        output_error: None,
        ended_orphans: 0,
        lingering: Vec::new(),
        log_note: None,
        duration_ms: 1,
    }
}

/// Plays a run whose sessions end as `ends` says, and returns the card of each commit in it.
fn cards(steps: &[(&str, &[Phase])], ends: &mut dyn FnMut(&str, Phase) -> SessionReport) -> Vec<(String, RunCard)> {
    let mut run = Run::start(Timestamp(0), started(steps));
    let mut cards = Vec::new();
    for tick in 1..200 {
        let at = Timestamp(tick * 1_000);
        let events = match run.owes() {
            Owed::Begin(index) if run.steps[index].plan.phases.is_empty() => {
                vec![RunEvent::StepSkipped { step: run.steps[index].plan.id.clone(), reason: SkipReason::Condition }]
            }
            Owed::Begin(index) => vec![RunEvent::StepBegan { step: run.steps[index].plan.id.clone(), baseline: run.head.clone() }],
            Owed::OpenSession(_, phase) => {
                vec![RunEvent::SessionOpened { session: SessionId::from_bits(u64::try_from(tick).unwrap()), phase }]
            }
            Owed::Drive(session) => {
                let step = run.current_step().unwrap();
                let phase = step.sessions.last().unwrap().phase;
                vec![RunEvent::SessionEnded { session, report: Box::new(ends(step.plan.id.as_str(), phase)) }]
            }
            Owed::Survey(_) => vec![RunEvent::Surveyed { changed: vec![RepoPath::new("file")], commits: Vec::new(), failure: None }],
            Owed::Commit(purpose, _) => {
                cards.push((format!("{purpose:?}"), RunCard::of(&run, at)));
                let planned = RunEvent::CommitPlanned { purpose: purpose.clone(), parent: run.head.clone() };
                vec![planned, RunEvent::Committed { purpose, commit: Oid(format!("{tick:040x}")) }]
            }
            Owed::End(outcome) => {
                cards.push(("ended".to_owned(), RunCard::of(&run, at)));
                vec![RunEvent::Ended { outcome, expires: None }]
            }
            Owed::Nothing => {
                cards.push(("over".to_owned(), RunCard::of(&run, at)));
                return cards;
            }
            Owed::Restore(_) | Owed::PlanRetry { .. } | Owed::Wait(_) => panic!("nothing here is lost or repeated"),
        };
        for event in events {
            run.apply(at, event).unwrap();
        }
    }
    panic!("the run did not end: {:?}", run.position)
}

/// What a card says of the run and its steps, in short.
fn outline(cards: &[(String, RunCard)]) -> String {
    let line = |(commit, card): &(String, RunCard)| {
        let outcome = card.outcome.map_or("open", |outcome| outcome.name());
        let steps: Vec<String> = card.steps.iter().map(|step| format!("{} {}", step.id, step.status.name())).collect();
        format!("{commit}: {outcome}, {}, expires {:?}", steps.join(", "), card.expires)
    };
    cards.iter().map(line).collect::<Vec<_>>().join("\n")
}

const ALL: &[Phase] = &[Phase::Precheck, Phase::Run, Phase::Validate];

#[test]
fn each_commit_of_a_run_that_completes_holds_what_is_true_then() {
    let cards = cards(&[("first", ALL), ("never", &[]), ("skipped", &[Phase::Precheck]), ("last", &[Phase::Run])], &mut |step, phase| {
        report(if step == "skipped" { 75 } else { 0 }, &format!("{} of {step}\n", phase.name()), "")
    });

    insta::assert_snapshot!(outline(&cards), @r#"
    Start: open, first running, never pending, skipped pending, last pending, expires Unset
    Step(StepId("first")): open, first completed, never pending, skipped pending, last pending, expires Unset
    Step(StepId("last")): open, first completed, never skipped, skipped skipped, last completed, expires Unset
    End: completed, first completed, never skipped, skipped skipped, last completed, expires At(Timestamp(2592021000))
    ended: completed, first completed, never skipped, skipped skipped, last completed, expires At(Timestamp(2592022000))
    over: completed, first completed, never skipped, skipped skipped, last completed, expires Never
    "#);
    insta::assert_snapshot!(render_run_card(&cards[cards.len() - 2].1), @r#"
    ---
    procedure: proctor/procedures/p.procedure.card
    outcome: completed
    started-at: 1970-01-01T00:00:00Z
    completed-at: 1970-01-01T00:00:22Z
    directive: go
    expires: 1970-01-31T00:00:22Z
    steps:
      - id: first
        status: completed
        started-at: 1970-01-01T00:00:01Z
        completed-at: 1970-01-01T00:00:10Z
        attempts: 1
        precheck:
          status: pass
          exit-code: 0
          stdout: |
            precheck of first
        run:
          session-id: ses_0000000005
          exit-code: 0
          stdout: |
            run of first
          git-ref: 000000000000000000000000000000000000000a
        validate:
          status: pass
          exit-code: 0
          stdout: |
            validate of first
        outputs:
          tag: v1
        commits:
          - 000000000000000000000000000000000000000a
      - id: never
        status: skipped
        skip-reason: condition
        completed-at: 1970-01-01T00:00:11Z
      - id: skipped
        status: skipped
        skip-reason: precheck
        started-at: 1970-01-01T00:00:12Z
        completed-at: 1970-01-01T00:00:15Z
        attempts: 1
        precheck:
          status: skip
          exit-code: 75
          stdout: |
            precheck of skipped
        outputs:
          tag: v1
      - id: last
        status: completed
        started-at: 1970-01-01T00:00:16Z
        completed-at: 1970-01-01T00:00:20Z
        attempts: 1
        run:
          session-id: ses_000000000h
          exit-code: 0
          stdout: |
            run of last
          git-ref: "0000000000000000000000000000000000000014"
        outputs:
          tag: v1
        commits:
          - "0000000000000000000000000000000000000014"
    ---
    "#);
}

#[test]
fn the_record_of_a_failed_step_says_what_failed_and_what_was_printed() {
    let cards = cards(&[("first", ALL), ("second", ALL)], &mut |_, phase| match phase {
        Phase::Precheck | Phase::Run => report(0, "", ""),
        Phase::Validate => report(3, "looked\n", "no such file\n"),
    });

    insta::assert_snapshot!(outline(&cards), @r#"
    Start: open, first running, second pending, expires Unset
    Step(StepId("first")): open, first failed, second pending, expires Unset
    End: failed, first failed, second pending, expires Never
    ended: failed, first failed, second pending, expires Never
    over: failed, first failed, second pending, expires Never
    "#);
    insta::assert_snapshot!(render_run_card(&cards.last().unwrap().1), @r#"
    ---
    procedure: proctor/procedures/p.procedure.card
    outcome: failed
    started-at: 1970-01-01T00:00:00Z
    completed-at: 1970-01-01T00:00:12Z
    directive: go
    expires: never
    steps:
      - id: first
        status: failed
        started-at: 1970-01-01T00:00:01Z
        completed-at: 1970-01-01T00:00:10Z
        attempts: 1
        error: "validate shell 1: exit 3"
        precheck:
          status: pass
          exit-code: 0
        run:
          session-id: ses_0000000005
          exit-code: 0
          git-ref: 000000000000000000000000000000000000000a
        validate:
          status: fail
          exit-code: 3
          stdout: |
            looked
          stderr: |
            no such file
          error: "validate shell 1: exit 3"
        outputs:
          tag: v1
        commits:
          - 000000000000000000000000000000000000000a
      - id: second
        status: pending
    ---
    "#);
}

#[test]
fn a_precheck_that_fails_first_is_in_the_very_first_commit() {
    let cards = cards(&[("first", ALL)], &mut |_, _| report(9, "", "broken\n"));

    insta::assert_snapshot!(outline(&cards), @r#"
    Start: open, first failed, expires Unset
    Step(StepId("first")): open, first failed, expires Unset
    End: failed, first failed, expires Never
    ended: failed, first failed, expires Never
    over: failed, first failed, expires Never
    "#);
}

#[test]
fn every_card_of_a_run_reads_back() {
    for code in [0, 1, 75] {
        for (_, card) in cards(&[("first", ALL), ("second", ALL)], &mut |_, _| report(code, "\u{1b}[1mx\r\n", "\0")) {
            assert_eq!(read_run_card(&render_run_card(&card)), Ok(card));
        }
    }
}
