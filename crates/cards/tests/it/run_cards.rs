//! Run cards: what is written reads back, older forms are read, one line can be changed.

use std::collections::BTreeMap;

use proctor_cards::{
    PrecheckRecord, PrecheckStatus, RunCard, RunPhaseRecord, RunStepRecord, StepStatus, Streams, ValidateRecord, read_run_card,
    render_run_card, set_expires,
};
use proctor_domain::procedure::{CheckResult, Outcome, SkipReason};
use proctor_domain::retention::Expires;
use proctor_domain::{Oid, RunId, Timestamp};
use proptest::option;
use proptest::prelude::*;

fn step(id: &str, status: StepStatus) -> RunStepRecord {
    RunStepRecord {
        id: id.to_owned(),
        status,
        started_at: None,
        completed_at: None,
        attempts: 0,
        error: None,
        earlier_errors: Vec::new(),
        precheck: None,
        run: None,
        validate: None,
        outputs: BTreeMap::new(),
        commits: Vec::new(),
    }
}

fn open(procedure: &str) -> RunCard {
    RunCard {
        run: None,
        procedure: procedure.to_owned(),
        outcome: None,
        started_at: None,
        completed_at: None,
        directive: None,
        inputs: BTreeMap::new(),
        expires: Expires::Unset,
        steps: Vec::new(),
    }
}

fn example() -> RunCard {
    let streams =
        |code: i32, stdout: &str, stderr: &str| Streams { exit_code: Some(code), stdout: stdout.to_owned(), stderr: stderr.to_owned() };
    RunCard {
        run: Some(RunId::from_bits(7)),
        outcome: Some(Outcome::Failed),
        started_at: Some(Timestamp(1_772_431_200_000)),
        completed_at: Some(Timestamp(1_772_431_450_250)),
        directive: Some("only the tomatoes: all of them".to_owned()),
        inputs: [("version".to_owned(), "1.50".to_owned())].into(),
        expires: Expires::Never,
        steps: vec![
            RunStepRecord {
                started_at: Some(Timestamp(1_772_431_200_000)),
                completed_at: Some(Timestamp(1_772_431_450_000)),
                attempts: 2,
                error: Some("validate shell 1: exit 1".to_owned()),
                earlier_errors: vec!["run shell 1: exit 2".to_owned()],
                precheck: Some(PrecheckRecord { status: PrecheckStatus::Pass, streams: streams(0, "packets: 3\n", "") }),
                run: Some(RunPhaseRecord {
                    session: Some("ses_0000000001".to_owned()),
                    streams: streams(0, "line 1\n  line 2\n", "\u{1b}[33mwarning\u{1b}[0m\n"),
                    error: None,
                    git_ref: Some("9ac11e0".to_owned()),
                }),
                validate: Some(ValidateRecord {
                    status: CheckResult::Fail,
                    streams: streams(1, "", "no such file\n"),
                    review: Some("Two basil packets are in the shade bed.".to_owned()),
                    error: Some("validate shell 1: exit 1".to_owned()),
                    reason: None,
                }),
                outputs: [("image-tag".to_owned(), "v1".to_owned())].into(),
                commits: vec![Oid("9ac11e0000000000000000000000000000000000".to_owned())],
                ..step("sort", StepStatus::Failed)
            },
            step("report", StepStatus::Skipped(Some(SkipReason::Condition))),
            step("done", StepStatus::Pending),
        ],
        ..open("_config/procedures/tidy-seeds.procedure.card")
    }
}

#[test]
fn a_card_is_written_for_people() {
    insta::assert_snapshot!(render_run_card(&example()), @r#"
    ---
    run: run_0000000007
    procedure: _config/procedures/tidy-seeds.procedure.card
    outcome: failed
    started-at: 2026-03-02T06:00:00Z
    completed-at: 2026-03-02T06:04:10.25Z
    directive: "only the tomatoes: all of them"
    expires: never
    inputs:
      version: "1.50"
    steps:
      - id: sort
        status: failed
        started-at: 2026-03-02T06:00:00Z
        completed-at: 2026-03-02T06:04:10Z
        attempts: 2
        error: "validate shell 1: exit 1"
        earlier-errors:
          - "run shell 1: exit 2"
        precheck:
          status: pass
          exit-code: 0
          stdout: |
            packets: 3
        run:
          session-id: ses_0000000001
          exit-code: 0
          stdout: |
            line 1
              line 2
          stderr: "\x1b[33mwarning\x1b[0m\n"
          git-ref: 9ac11e0
        validate:
          status: fail
          exit-code: 1
          stderr: |
            no such file
          review: Two basil packets are in the shade bed.
          error: "validate shell 1: exit 1"
        outputs:
          image-tag: v1
        commits:
          - 9ac11e0000000000000000000000000000000000
      - id: report
        status: skipped
        skip-reason: condition
      - id: done
        status: pending
    ---
    "#);
    insta::assert_snapshot!(render_run_card(&open("p")), @"
    ---
    procedure: p
    steps: []
    ---
    ");
}

#[test]
fn what_is_written_reads_back() {
    assert_eq!(read_run_card(&render_run_card(&example())), Ok(example()));
    assert_eq!(read_run_card(&render_run_card(&example()).replace('\n', "\r\n")), Ok(example()));
}

#[test]
fn the_older_form_is_read() {
    let text = r#"---
procedure: _config/procedures/tidy-seeds.procedure.card
status: failed
started-at: 2026-03-02T06:00:00Z
completed-at: 2026-03-02T08:04:10+02:00
directive: only the tomatoes
expires: never
colour: red
steps:
  - id: sort
    status: failed
    started-at: 2026-03-02T06:00:00Z
    precheck: { status: pass }
    run: { session-id: 3d1c, git-ref: 9110, stdout: 5 }
    validate: { status: fail, review: "Two basil packets are in the shade bed.", reason: max-turns }
  - { id: report, status: pending }
---
"#;

    let expected = RunCard {
        outcome: Some(Outcome::Failed),
        started_at: Some(Timestamp(1_772_431_200_000)),
        completed_at: Some(Timestamp(1_772_431_450_000)),
        directive: Some("only the tomatoes".to_owned()),
        expires: Expires::Never,
        steps: vec![
            RunStepRecord {
                started_at: Some(Timestamp(1_772_431_200_000)),
                precheck: Some(PrecheckRecord { status: PrecheckStatus::Pass, streams: Streams::default() }),
                run: Some(RunPhaseRecord {
                    session: Some("3d1c".to_owned()),
                    streams: Streams { stdout: "5".to_owned(), ..Streams::default() },
                    git_ref: Some("9110".to_owned()),
                    error: None,
                }),
                validate: Some(ValidateRecord {
                    status: CheckResult::Fail,
                    streams: Streams::default(),
                    review: Some("Two basil packets are in the shade bed.".to_owned()),
                    error: None,
                    reason: Some("max-turns".to_owned()),
                }),
                ..step("sort", StepStatus::Failed)
            },
            step("report", StepStatus::Pending),
        ],
        ..open("_config/procedures/tidy-seeds.procedure.card")
    };
    assert_eq!(read_run_card(text), Ok(expected));
}

#[test]
fn the_marks_of_an_open_and_an_ended_run_are_read_in_both_forms() {
    for (line, outcome) in [
        ("", None),
        ("status: pending\n", None),
        ("status: running\n", None),
        ("status: completed\n", Some(Outcome::Completed)),
        ("outcome: inconclusive\n", Some(Outcome::Inconclusive)),
        ("outcome: skipped\n", Some(Outcome::Skipped)),
        ("status: running\noutcome: failed\n", Some(Outcome::Failed)),
        ("outcome:\n", None),
    ] {
        let text = format!("---\nprocedure: p\n{line}---\n");

        assert_eq!(read_run_card(&text).map(|card| card.outcome), Ok(outcome), "{line}");
    }
}

#[test]
fn an_edited_expiry_is_read_as_people_write_it() {
    for (value, expires) in [
        ("never", Expires::Never),
        ("2026-03-02T06:00:00Z", Expires::At(Timestamp(1_772_431_200_000))),
        ("2026-03-02T06:00:00.250+00:00", Expires::At(Timestamp(1_772_431_200_250))),
        ("'2026-03-02 06:00'", Expires::At(Timestamp(1_772_431_200_000))),
        ("2026-03-02", Expires::At(Timestamp(1_772_409_600_000))),
        ("next week", Expires::Unreadable("next week".to_owned())),
        ("[2026]", Expires::Unreadable("a list".to_owned())),
        ("", Expires::Unset),
    ] {
        let text = format!("---\nprocedure: p\nexpires: {value}\n---\n");

        assert_eq!(read_run_card(&text).map(|card| card.expires), Ok(expires), "{value}");
    }
}

#[test]
fn a_damaged_card_says_where() {
    let refusal = |lines: &str| read_run_card(&format!("---\n{lines}---\n")).unwrap_err().to_string();

    insta::assert_snapshot!(refusal(""), @"
    run.procedure-run.card:2:1: error: the front matter is empty
      2 | ---
        | ^^^
    ");
    insta::assert_snapshot!(refusal("steps: []\n"), @"
    run.procedure-run.card:2:1: error: the card has no `procedure`
      2 | steps: []
        | ^
    ");
    insta::assert_snapshot!(refusal("procedure: p\noutcome: done\n"), @"
    run.procedure-run.card:3:10: error: `outcome` is `done`, and not one of completed, failed, inconclusive, skipped
      3 | outcome: done
        |          ^^^^
    ");
    insta::assert_snapshot!(refusal("procedure: p\nstarted-at: yesterday\n"), @"
    run.procedure-run.card:3:13: error: `started-at` is `yesterday`, which is not a time
      3 | started-at: yesterday
        |             ^^^^^^^^^
    ");
    insta::assert_snapshot!(refusal("procedure: p\nsteps:\n  - id: a\n    attempts: many\n"), @"
    run.procedure-run.card:5:15: error: `attempts` is `many`, which is not a number of its kind
      5 |     attempts: many
        |               ^^^^
    ");
    insta::assert_snapshot!(refusal("procedure: p\nsteps:\n  - status: failed\n"), @"
    run.procedure-run.card:4:5: error: this step has no `id`
      4 |   - status: failed
        |     ^
    ");
    insta::assert_snapshot!(refusal("procedure: p\nprocedure: q\n"), @"
    run.procedure-run.card:3:1: error: duplicate key `procedure`
      3 | procedure: q
        | ^^^^^^^^^
    ");
    insta::assert_snapshot!(refusal("procedure: p\n<<<<<<< HEAD\noutcome: failed\n"), @"
    run.procedure-run.card:3:1: error: not valid YAML: simple key expected ':'
      3 | <<<<<<< HEAD
        | ^
    ");
    insta::assert_snapshot!(refusal("procedure: p\nrun: x\n"), @"
    run.procedure-run.card:3:6: error: `x` is not the id of a run
      3 | run: x
        |      ^
    ");
}

#[test]
fn only_the_line_of_the_expiry_changes() {
    for (before, after) in [
        (
            "---\nprocedure: p\nexpires: 2026-03-02T06:00:00Z # until then\nsteps: []\n---\n",
            "---\nprocedure: p\nexpires: never # until then\nsteps: []\n---\n",
        ),
        (
            "---\r\nprocedure:   p  \r\nexpires: \"x\"\r\nsteps: []\r\n---\r\nbody\r\n",
            "---\r\nprocedure:   p  \r\nexpires: never\r\nsteps: []\r\n---\r\nbody\r\n",
        ),
        (
            "---\r\nprocedure: p # é\r\nsteps:\r\n  - id: a\r\n---\r\n",
            "---\r\nprocedure: p # é\r\nexpires: never\r\nsteps:\r\n  - id: a\r\n---\r\n",
        ),
        ("---\nprocedure: p\n---", "---\nprocedure: p\nexpires: never\n---"),
        ("\u{feff}---\n  procedure: p\n  expires:\n---\n", "\u{feff}---\n  procedure: p\n  expires: never\n---\n"),
        ("---\nexpires: >-\n  some\n  day\nprocedure: p\n---\n", "---\nexpires: >-\n  never\nprocedure: p\n---\n"),
        ("---\n'expires' : soon\nprocedure: p\n---\n", "---\n'expires' : never\nprocedure: p\n---\n"),
        ("---\n{procedure: p, expires: soon}\n---\n", "---\n{procedure: p, expires: never}\n---\n"),
    ] {
        assert_eq!(set_expires(before, "never").as_deref(), Ok(after));
    }
}

#[test]
fn a_form_that_can_not_be_changed_alone_is_left_alone() {
    let refusal = |text: &str, value: &str| set_expires(text, value).unwrap_err().to_string();

    insta::assert_snapshot!(refusal("---\n{procedure: p}\n---\n", "never"), @"
    run.procedure-run.card:3:1: error: not valid YAML: did not find expected <document start>
      3 | expires: never
        | ^
    ");
    insta::assert_snapshot!(refusal("---\nprocedure: p\nexpires: [a]\n---\n", "never"), @"
    run.procedure-run.card:3:1: error: `expires` can't be changed in this form
      3 | expires: [a]
        | ^^^^^^^
      hint: edit it by hand: expires: never
    ");
    insta::assert_snapshot!(refusal("---\nprocedure: p\n---\n", "soon\nprocedure: q"), @"run.procedure-run.card: error: `soon�procedure: q` is neither `never` nor a time");
    insta::assert_snapshot!(refusal("no card", "never"), @"
    run.procedure-run.card:1:1: error: a card begins with a line `---`, and this text does not
      1 | no card
        | ^^^^^^^
    ");
}

fn text() -> BoxedStrategy<String> {
    prop_oneof![
        "(?s).{0,30}",
        "[ -~\n]{0,60}",
        "[ \t\r\n:#'\"\\-|>a]{0,20}",
        Just("---\n---\n".to_owned()),
        Just("null".to_owned()),
        Just("2026-03-02".to_owned()),
        Just("x".repeat(2_000)),
    ]
    .boxed()
}

fn texts() -> BoxedStrategy<BTreeMap<String, String>> {
    proptest::collection::btree_map(text(), text(), 0..3).boxed()
}

fn time() -> BoxedStrategy<Option<Timestamp>> {
    option::of((-60_000_000_000_000_i64..253_000_000_000_000).prop_map(Timestamp)).boxed()
}

fn streams() -> BoxedStrategy<Streams> {
    (option::of(any::<i32>()), text(), text()).prop_map(|(exit_code, stdout, stderr)| Streams { exit_code, stdout, stderr }).boxed()
}

fn step_status() -> BoxedStrategy<StepStatus> {
    prop_oneof![
        Just(StepStatus::Pending),
        Just(StepStatus::Running),
        Just(StepStatus::Completed),
        Just(StepStatus::Failed),
        Just(StepStatus::Skipped(None)),
        Just(StepStatus::Skipped(Some(SkipReason::Precheck))),
        Just(StepStatus::Skipped(Some(SkipReason::Condition))),
        Just(StepStatus::Skipped(Some(SkipReason::NotSelected))),
    ]
    .boxed()
}

fn precheck() -> BoxedStrategy<Option<PrecheckRecord>> {
    let status = prop_oneof![Just(PrecheckStatus::Pass), Just(PrecheckStatus::Skip), Just(PrecheckStatus::Fail)];
    option::of((status, streams()).prop_map(|(status, streams)| PrecheckRecord { status, streams })).boxed()
}

fn run() -> BoxedStrategy<Option<RunPhaseRecord>> {
    option::of(
        (option::of(text()), streams(), option::of(text()), option::of(text()))
            .prop_map(|(session, streams, error, git_ref)| RunPhaseRecord { session, streams, error, git_ref }),
    )
    .boxed()
}

fn validate() -> BoxedStrategy<Option<ValidateRecord>> {
    let status = prop_oneof![Just(CheckResult::Pass), Just(CheckResult::Fail), Just(CheckResult::Warn), Just(CheckResult::Inconclusive)];
    option::of(
        (status, streams(), option::of(text()), option::of(text()), option::of(text()))
            .prop_map(|(status, streams, review, error, reason)| ValidateRecord { status, streams, review, error, reason }),
    )
    .boxed()
}

fn any_step() -> BoxedStrategy<RunStepRecord> {
    let head = (text(), step_status(), time(), time(), any::<u32>(), option::of(text()), proptest::collection::vec(text(), 0..3));
    let tail = (precheck(), run(), validate(), texts(), proptest::collection::vec("[0-9a-f]{40}".prop_map(Oid), 0..3));
    (head, tail)
        .prop_map(
            |((id, status, started_at, completed_at, attempts, error, earlier_errors), (precheck, run, validate, outputs, commits))| {
                RunStepRecord {
                    id,
                    status,
                    started_at,
                    completed_at,
                    attempts,
                    error,
                    earlier_errors,
                    precheck,
                    run,
                    validate,
                    outputs,
                    commits,
                }
            },
        )
        .boxed()
}

fn any_card() -> BoxedStrategy<RunCard> {
    let outcome =
        option::of(prop_oneof![Just(Outcome::Completed), Just(Outcome::Failed), Just(Outcome::Inconclusive), Just(Outcome::Skipped)]);
    let expires = prop_oneof![
        Just(Expires::Never),
        Just(Expires::Unset),
        time().prop_map(|at| at.map_or(Expires::Unset, Expires::At)),
        Just(Expires::Unreadable("next: week #".to_owned())),
    ];
    let run = option::of(any::<u64>().prop_map(RunId::from_bits));
    (run, text(), outcome, time(), time(), option::of(text()), texts(), expires, proptest::collection::vec(any_step(), 0..4))
        .prop_map(|(run, procedure, outcome, started_at, completed_at, directive, inputs, expires, steps)| RunCard {
            run,
            procedure,
            outcome,
            started_at,
            completed_at,
            directive,
            inputs,
            expires,
            steps,
        })
        .boxed()
}

proptest! {
    #[test]
    fn any_card_reads_back_as_itself(card in any_card()) {
        let text = render_run_card(&card);

        prop_assert_eq!(read_run_card(&text).map_err(|finding| format!("{finding}\n{text}")), Ok(card));
    }

    #[test]
    fn any_card_keeps_everything_but_its_expiry(card in any_card(), at in time()) {
        let text = render_run_card(&card);
        let (value, expires) = match at {
            None => ("never".to_owned(), Expires::Never),
            Some(at) => (jiff::Timestamp::from_millisecond(at.0).unwrap().to_string(), Expires::At(at)),
        };

        let edited = set_expires(&text, &value).map_err(|finding| TestCaseError::fail(format!("{finding}\n{text}")))?;

        prop_assert_eq!(read_run_card(&edited), Ok(RunCard { expires, ..card }));
        let others = |text: &str| text.lines().filter(|line| !line.starts_with("expires:")).map(str::to_owned).collect::<Vec<_>>();
        prop_assert_eq!(others(&edited), others(&text));
    }
}
