//! The card of a run is true of the commit that it goes into.

use std::collections::BTreeMap;

use proctor_cards::{RunCard, read_run_card, render_run_card};
use proctor_domain::procedure::{Owed, Records, Run, RunEvent, RunStarted, Severity, SkipReason, StepId, StepPlan, Task, Verdict};
use proctor_domain::session::{AgentReport, Excerpt, Phase, SessionEnd, SessionReport, ShellEnd, Told, Work};
use proctor_domain::{Branch, CardDuration, Expiry, Oid, RepoPath, SessionId, Timestamp};

fn id(name: &str) -> StepId {
    StepId::try_from(name.to_owned()).unwrap()
}

fn plan(name: &str, phases: &[Phase]) -> StepPlan {
    StepPlan { id: id(name), phases: phases.to_vec(), agents: 0, judged: false, approve: None, severity: Severity::Abort, retry: None }
}

fn started(steps: Vec<StepPlan>) -> RunStarted {
    RunStarted {
        procedure: "p".to_owned(),
        card: RepoPath::new("proctor/procedures/p.procedure.card"),
        snapshot: "0".to_owned(),
        steps,
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
        isolated: None,
        engine: None,
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
        agent: None,
        killed_by: None,
    }
}

/// What a session of an agent, a judge or a repair comes to.
fn answered(end: SessionEnd) -> SessionReport {
    let agent = AgentReport {
        engine: "scripted".parse().unwrap(),
        conversation: None,
        model: None,
        responded: end != SessionEnd::Refused,
        turns: 1,
        spent: Vec::new(),
        claim: None,
        result: None,
        error: None,
        unknown_lines: 0,
        told: Told::default(),
    };
    SessionReport { end, shells: Vec::new(), outputs: BTreeMap::new(), agent: Some(Box::new(agent)), ..report(0, "", "") }
}

/// Plays a run of shells whose sessions end as `ends` says, and returns the card of each commit in it.
fn cards(steps: &[(&str, &[Phase])], ends: &mut dyn FnMut(&str, Phase) -> SessionReport) -> Vec<(String, RunCard)> {
    let plans = steps.iter().map(|(name, phases)| plan(name, phases)).collect();
    cards_of(plans, &mut |step, task| (ends(step, task.phase), None))
}

type Ended = (SessionReport, Option<Verdict>);

/// Plays a run whose sessions end as `ends` says, and returns the card of each commit in it.
fn cards_of(plans: Vec<StepPlan>, ends: &mut dyn FnMut(&str, Task) -> Ended) -> Vec<(String, RunCard)> {
    let mut run = Run::start(Timestamp(0), started(plans));
    let mut cards = Vec::new();
    for tick in 1..200 {
        let at = Timestamp(tick * 1_000);
        let Some(events) = answer(&run, tick, &mut cards, ends) else { return cards };
        for event in events {
            run.apply(at, event).unwrap();
        }
    }
    panic!("the run did not end: {:?}", run.position)
}

/// What happens next in a run, and the card of the commit that is made then; `None` when it is over.
fn answer(run: &Run, tick: i64, cards: &mut Vec<(String, RunCard)>, ends: &mut dyn FnMut(&str, Task) -> Ended) -> Option<Vec<RunEvent>> {
    let at = Timestamp(tick * 1_000);
    Some(match run.owes() {
        Owed::Begin(index) if run.steps[index].plan.tasks().is_empty() => {
            vec![RunEvent::StepSkipped { step: run.steps[index].plan.id.clone(), reason: SkipReason::Condition }]
        }
        Owed::Begin(index) => vec![RunEvent::StepBegan { step: run.steps[index].plan.id.clone(), baseline: run.head.clone() }],
        Owed::OpenSession(_, Task { phase, work }) => {
            let session = SessionId::from_bits(u64::try_from(tick).unwrap());
            vec![RunEvent::SessionOpened { session, phase, work, evidence: None, known: Vec::new() }]
        }
        Owed::Drive(session) => {
            let step = run.current_step().unwrap();
            let last = step.sessions.last().unwrap();
            let (report, verdict) = ends(step.plan.id.as_str(), Task { phase: last.phase, work: last.work });
            vec![RunEvent::SessionEnded { session, report: Box::new(report), verdict }]
        }
        Owed::Collect(_) => vec![RunEvent::Collected { changed: vec![RepoPath::new("file")], commits: Vec::new(), failure: None }],
        Owed::Survey(_) => vec![RunEvent::Surveyed { changed: vec![RepoPath::new("file")], commits: Vec::new(), failure: None }],
        Owed::Commit(purpose, _) => {
            cards.push((format!("{purpose:?}"), RunCard::of(run, at)));
            let planned = RunEvent::CommitPlanned { purpose: purpose.clone(), parent: run.head.clone() };
            vec![planned, RunEvent::Committed { purpose, commit: Oid(format!("{tick:040x}")) }]
        }
        Owed::End(outcome) => {
            cards.push(("ended".to_owned(), RunCard::of(run, at)));
            vec![RunEvent::Ended { outcome, expires: None, with_warnings: false }]
        }
        Owed::Nothing => {
            cards.push(("over".to_owned(), RunCard::of(run, at)));
            return None;
        }
        owed @ (Owed::Restore(_)
        | Owed::PlanRetry { .. }
        | Owed::Wait(_)
        | Owed::MakeWorktree
        | Owed::Park(_)
        | Owed::Merge
        | Owed::Propose) => {
            panic!("nothing here is lost, repeated, asked or isolated: {owed:?}")
        }
    })
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

fn verdict(passed: bool, reasoning: &str) -> Option<Verdict> {
    Some(Verdict { passed, reasoning: reasoning.to_owned() })
}

#[test]
fn the_record_of_a_judged_step_holds_the_review_and_its_last_session() {
    let plans = vec![StepPlan { agents: 1, judged: true, severity: Severity::Review, ..plan("sort", &[Phase::Validate]) }];
    let mut verdicts = vec![verdict(true, "Each packet is in its bed."), verdict(false, "Two packets are in the shade.\n")];

    let cards = cards_of(plans, &mut |_, task| match task.work {
        Work::Shells => (report(0, "looked\n", ""), None),
        Work::Agent(_) | Work::Repair => (answered(SessionEnd::Completed), None),
        Work::Judge(_) => (answered(SessionEnd::Completed), verdicts.pop().unwrap()),
    });

    insta::assert_snapshot!(outline(&cards), @r#"
    Start: open, sort running, expires Unset
    Work(StepId("sort")): open, sort running, expires Unset
    Work(StepId("sort")): open, sort running, expires Unset
    Step(StepId("sort")): open, sort completed, expires Unset
    End: completed, sort completed, expires At(Timestamp(2592021000))
    ended: completed, sort completed, expires At(Timestamp(2592022000))
    over: completed, sort completed, expires Never
    "#);
    insta::assert_snapshot!(render_run_card(&cards.last().unwrap().1), @r#"
    ---
    procedure: proctor/procedures/p.procedure.card
    outcome: completed
    started-at: 1970-01-01T00:00:00Z
    completed-at: 1970-01-01T00:00:22Z
    directive: go
    expires: never
    steps:
      - id: sort
        status: completed
        started-at: 1970-01-01T00:00:01Z
        completed-at: 1970-01-01T00:00:20Z
        attempts: 1
        run:
          session-id: ses_000000000b
          git-ref: "0000000000000000000000000000000000000014"
        validate:
          status: pass
          exit-code: 0
          stdout: |
            looked
          review: Each packet is in its bed.
        outputs:
          tag: v1
        commits:
          - "0000000000000000000000000000000000000006"
          - 000000000000000000000000000000000000000e
          - "0000000000000000000000000000000000000014"
    ---
    "#);
}

#[test]
fn the_record_of_a_step_without_a_verdict_says_why_there_is_none() {
    let plans = vec![StepPlan { agents: 1, judged: true, ..plan("sort", &[]) }];

    let cards = cards_of(plans, &mut |_, task| match task.work {
        Work::Judge(_) => (answered(SessionEnd::TurnLimit), None),
        Work::Shells | Work::Agent(_) | Work::Repair => (answered(SessionEnd::Completed), None),
    });

    insta::assert_snapshot!(outline(&cards), @r#"
    Start: open, sort running, expires Unset
    Work(StepId("sort")): open, sort running, expires Unset
    Step(StepId("sort")): open, sort completed, expires Unset
    End: inconclusive, sort completed, expires Never
    ended: inconclusive, sort completed, expires Never
    over: inconclusive, sort completed, expires Never
    "#);
    insta::assert_snapshot!(render_run_card(&cards.last().unwrap().1), @r#"
    ---
    procedure: proctor/procedures/p.procedure.card
    outcome: inconclusive
    started-at: 1970-01-01T00:00:00Z
    completed-at: 1970-01-01T00:00:14Z
    directive: go
    expires: never
    steps:
      - id: sort
        status: completed
        started-at: 1970-01-01T00:00:01Z
        completed-at: 1970-01-01T00:00:12Z
        attempts: 1
        run:
          session-id: ses_0000000003
          git-ref: 000000000000000000000000000000000000000c
        validate:
          status: inconclusive
          reason: max-turns
        commits:
          - "0000000000000000000000000000000000000006"
          - 000000000000000000000000000000000000000c
    ---
    "#);
}

#[test]
fn the_record_of_a_negative_verdict_holds_what_was_found_wanting() {
    for (severity, status, error) in [(Severity::Warn, "warn", "judged: thin"), (Severity::Abort, "fail", "judged: thin")] {
        let plans = vec![StepPlan { judged: true, severity, ..plan("sort", &[]) }];

        let cards = cards_of(plans, &mut |_, _| (answered(SessionEnd::Completed), verdict(false, "thin")));

        let validate = cards.last().unwrap().1.steps[0].validate.clone().unwrap();
        assert_eq!((validate.status.name(), validate.review.as_deref(), validate.error.as_deref()), (status, Some("thin"), Some(error)));
        assert_eq!(validate.reason, None);
    }
}

#[test]
fn the_record_of_an_unanswered_session_stands_with_its_phase() {
    let refused = |plan: StepPlan, silent: Work| {
        let cards = cards_of(vec![plan], &mut |_, task| match task.work == silent {
            true => (answered(SessionEnd::Refused), None),
            false => (report(0, "tidied up\n", ""), None),
        });
        let card = cards.last().unwrap().1.clone();
        assert_eq!(read_run_card(&render_run_card(&card)), Ok(card.clone()));
        card.steps[0].clone()
    };

    let agent = refused(StepPlan { agents: 1, ..plan("sort", &[Phase::Run]) }, Work::Agent(1));
    let judge = refused(StepPlan { judged: true, severity: Severity::Warn, ..plan("sort", &[Phase::Run]) }, Work::Judge(1));

    let run = agent.run.unwrap();
    assert_eq!(run.error.as_deref(), Some("agent 1 gave no answer: its session ended with `refused`"));
    assert_eq!(run.streams.stdout, "tidied up\n", "its shells ran before the step failed");
    let validate = judge.validate.unwrap();
    assert_eq!(validate.status.name(), "inconclusive", "nothing was found wanting");
    assert_eq!(validate.error.as_deref(), Some("the judge gave no answer: its session ended with `refused`"));
    assert_eq!(judge.error, validate.error);
}
