//! Cards that are as they should be.

use std::path::PathBuf;

use proctor_cards::{BoxDefaults, Layout, Source, key_reference, read_procedure};
use proctor_domain::procedure::{
    AgentSpec, Definition, InputKind, InputSpec, Isolation, MemoryUse, PhaseSpec, PrecheckSpec, Records, RetrySpec, Severity, StepId,
    StepSpec, ValidateSpec,
};
use proctor_domain::{CardDuration, Expiry, MicroDollars};

use super::{card, findings, read, read_in, step};

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn id(text: &str) -> StepId {
    StepId::try_from(text.to_owned()).unwrap()
}

fn plain_step(name: &str, lines: (usize, usize)) -> StepSpec {
    StepSpec {
        id: id(name),
        description: String::new(),
        precheck: None,
        run: None,
        validate: None,
        timeout: None,
        env: Vec::new(),
        when: None,
        outputs: None,
        retry: None,
        approve: None,
        budget: None,
        memory: MemoryUse::On,
        lines,
    }
}

/// Every documented key once.
const WHOLE: &str = r#"---
name: release-check
type: procedure
description: Is the release fit to ship?
run-expiry: 6w
failed-run-expiry: never
records: git
isolation: worktree
memory: off
inputs:
  - name: version
    required: true
    description: As in 1.2.3
  - {name: level, type: choice, choices: [fast, 2], default: 2}
  - {name: dry-run, type: bool, default: true}
  - {name: jobs, type: int, default: 4}
  - {name: share, type: float, default: 0.50}
  - {name: target, type: path, default: ./out}
steps:
  - id: build
    description: Make it
    outputs: [image-tag]
    timeout: 1.5h
    retry: {max: 3, backoff: 10s, on: [shell]}
    approve: Build it now?
    budget: 2.50
    memory: off
    env:
      LEVEL: ${{ inputs.level }}
      PORT: 8080
    precheck:
      pass-output: true
      whys: [so that nothing is built twice]
      shells:
        - |-
          test -e out && exit "$CHECK_SKIP"
          echo "not there"
    run:
      agents:
        - prompt: >-
            Build ${{ inputs.version }}
            now.
          model: strong
          max-turns: 25
      shells: ["make \"$LEVEL\"", true]
      whys: [w]

  - id: ship
    when: not inputs.dry-run and steps.build.outputs.image-tag != ''
    validate:
      severity: abort
      model: balanced
      shells:
        - test -e out
      instructions: [It is complete.]
      whys: [Users see it.]
---

"#;

#[test]
fn every_key_is_read() {
    let card = read(WHOLE).unwrap();

    let input = |name: &str, kind, default: Option<&str>| InputSpec {
        name: name.to_owned(),
        kind,
        default: default.map(str::to_owned),
        required: false,
        description: String::new(),
    };
    let build = StepSpec {
        description: "Make it".to_owned(),
        precheck: Some(PrecheckSpec {
            phase: PhaseSpec {
                shells: texts(&["test -e out && exit \"$CHECK_SKIP\"\necho \"not there\""]),
                whys: texts(&["so that nothing is built twice"]),
                ..PhaseSpec::default()
            },
            pass_output: true,
        }),
        run: Some(PhaseSpec {
            shells: texts(&["make \"$LEVEL\"", "true"]),
            agents: vec![AgentSpec {
                prompt: "Build ${{ inputs.version }} now.".to_owned(),
                model: Some("strong".to_owned()),
                max_turns: Some(25),
            }],
            whys: texts(&["w"]),
            ..PhaseSpec::default()
        }),
        timeout: Some(CardDuration::from_millis(5_400_000)),
        env: vec![("LEVEL".to_owned(), "${{ inputs.level }}".to_owned()), ("PORT".to_owned(), "8080".to_owned())],
        outputs: Some(texts(&["image-tag"])),
        retry: Some(RetrySpec { max: 3, backoff: CardDuration::from_millis(10_000) }),
        approve: Some("Build it now?".to_owned()),
        budget: Some(MicroDollars(2_500_000)),
        memory: MemoryUse::Off,
        ..plain_step("build", (20, 46))
    };
    let ship = StepSpec {
        when: Some("not inputs.dry-run and steps.build.outputs.image-tag != ''".to_owned()),
        validate: Some(ValidateSpec {
            phase: PhaseSpec {
                shells: texts(&["test -e out"]),
                instructions: texts(&["It is complete."]),
                whys: texts(&["Users see it."]),
                ..PhaseSpec::default()
            },
            severity: Severity::Abort,
            model: Some("balanced".to_owned()),
        }),
        ..plain_step("ship", (48, 56))
    };
    let expected = Definition {
        memory: MemoryUse::Off,
        name: "release-check".to_owned(),
        description: "Is the release fit to ship?".to_owned(),
        run_expiry: Some(Expiry::After(CardDuration::days(42))),
        failed_run_expiry: Some(Expiry::Never),
        inputs: vec![
            InputSpec { required: true, description: "As in 1.2.3".to_owned(), ..input("version", InputKind::String, None) },
            input("level", InputKind::Choice(texts(&["fast", "2"])), Some("2")),
            input("dry-run", InputKind::Bool, Some("true")),
            input("jobs", InputKind::Int, Some("4")),
            input("share", InputKind::Float, Some("0.50")),
            input("target", InputKind::Path, Some("./out")),
        ],
        records: Some(Records::Git),
        isolation: Some(Isolation::Worktree),
        steps: vec![build, ship],
    };
    assert_eq!(card.definition, expected);
}

#[test]
fn every_documented_key_stands_in_the_card_that_is_read_whole() {
    let only_in_boxes = ["title", "contains", "contains-evidence", "todos", "symbol", "prominence", "theme"];

    for key in key_reference().iter().filter(|key| !only_in_boxes.contains(&key.path)) {
        let name = key.path.rsplit('.').next().unwrap().trim_end_matches("[]");

        assert!(WHOLE.contains(&format!("{name}:")), "{}", key.path);
        assert!(!key.kind.is_empty() && key.description.ends_with('.'), "{}", key.path);
    }
}

#[test]
fn the_example_of_the_bee_box_reference_is_read() {
    let text = r#"---
name: tidy-seeds
description: Sort new seed packets into beds
run-expiry: 6w
failed-run-expiry: never
steps:
  - id: sort
    description: Place each packet
    precheck:
      pass-output: true
      shells:
        - |-
          n=$(find _content/inbox/seeds -name '*.record.card' 2>/dev/null | wc -l)
          if [ "$n" -eq 0 ]; then exit "$CHECK_SKIP"; fi
          echo "packets: $n"
    run:
      agents:
        - prompt: >-
            Put every packet card under a bed directory.
          model: balanced
          max-turns: 25
      shells:
        - ./tools/update-bed-index
    validate:
      severity: review
      model: strong
      shells:
        - test -z "$(ls _content/inbox/seeds 2>/dev/null)"
      instructions:
        - No packet sits in a bed whose sun level contradicts its label.
      whys:
        - Misplaced seedlings die and nobody notices for a month.
---
"#;

    let card = read_in(Layout::BeeBox, text).unwrap();

    assert_eq!(card.warnings, []);
    assert_eq!(card.definition.steps[0].lines, (7, 32));
    assert!(card.definition.needs_agents());
}

#[test]
fn a_card_needs_only_a_name_and_steps() {
    let expected = Definition {
        name: "p".to_owned(),
        description: String::new(),
        run_expiry: None,
        failed_run_expiry: None,
        inputs: Vec::new(),
        records: None,
        isolation: None,
        memory: MemoryUse::On,
        steps: Vec::new(),
    };

    assert_eq!(read(&card("steps: []\n")).map(|card| card.definition), Ok(expected));
}

#[test]
fn the_model_of_the_box_stands_in_where_an_agent_names_none() {
    let text = step("run: {agents: [{prompt: x}, {prompt: y, model: strong}]}");
    let source = Source { path: PathBuf::from("p"), text };
    let defaults = BoxDefaults { agent_model: Some("opus".to_owned()), ..BoxDefaults::default() };

    let card = read_procedure(&source, Layout::BeeBox, &defaults).unwrap();

    let models: Vec<_> = card.definition.steps[0].run.as_ref().unwrap().agents.iter().map(|agent| agent.model.as_deref()).collect();
    assert_eq!(models, [Some("opus"), Some("strong")]);
}

#[test]
fn a_step_asks_a_question_the_usual_one_or_none() {
    for (value, question) in [
        ("true", Some("go on with this step?")),
        ("false", None),
        ("Ship ${VERSION}?", Some("Ship ${VERSION}?")),
        ("'Really: now?'", Some("Really: now?")),
        ("|\n  First line.\n  Second?", Some("First line.\nSecond?\n")),
        ("42", Some("42")),
    ] {
        let text = step(&format!("run: {{shells: [ls]}}\napprove: {value}"));

        for text in [text.replace('\n', "\r\n"), text] {
            let card = read(&text).unwrap();

            assert_eq!(card.definition.steps[0].approve.as_deref(), question, "{value}");
            assert_eq!(card.warnings, []);
        }
    }
}

#[test]
fn a_budget_is_in_dollars_with_or_without_quotes() {
    for (value, micros) in [("2", 2_000_000), ("0.25", 250_000), ("'1.5'", 1_500_000), ("0.000001", 1), ("010", 10_000_000)] {
        for lines in ["run: {agents: [{prompt: x}]}", "validate: {instructions: [It is good.]}"] {
            let text = step(&format!("{lines}\nbudget: {value}"));

            for text in [text.replace('\n', "\r\n"), text] {
                let card = read(&text).unwrap();

                assert_eq!(card.definition.steps[0].budget, Some(MicroDollars(micros)), "{value}");
                assert_eq!(card.warnings, []);
            }
        }
    }
}

#[test]
fn lines_of_a_step_end_with_its_last_word() {
    let text = card(
        "steps:\n  - id: a\n    run:\n      shells:\n        - |\n          one\n\n          two\n\n\n  # about b\n  - {id: b,\n     run: {shells: [ls]}}\n  - id: c\n    run: {shells: ['x\n        y']}\n",
    );

    let lines: Vec<_> = read(&text).unwrap().definition.steps.iter().map(|step| step.lines).collect();

    assert_eq!(lines, [(4, 10), (14, 15), (16, 18)]);
}

#[test]
fn aliases_repeat_what_they_name() {
    let text = card("steps:\n  - id: a\n    run: &work\n      shells: [ls]\n  - id: b\n    run: *work\n");

    let definition = read(&text).unwrap().definition;

    assert_eq!(definition.steps[0].run, definition.steps[1].run);
}

#[test]
fn shells_keep_their_text_with_comments_quotes_and_indentation() {
    let text = step(
        "run:\n  shells:\n    - |\n      # comment\n      cat <<'X'\n        a: $b {{ c }}\n      X\n    - 'it''s'\n    - plain # comment",
    );

    let shells = read(&text).unwrap().definition.steps[0].run.clone().unwrap().shells;

    assert_eq!(shells, ["# comment\ncat <<'X'\n  a: $b {{ c }}\nX\n", "it's", "plain"]);
    assert_eq!(findings(&text), "");
}

#[test]
fn memory_is_on_unless_the_procedure_or_the_step_says_off() {
    let with = |top: &str, step: &str| {
        let agent = "run: {agents: [{prompt: x}]}";
        let card = format!("---\nname: p\n{top}steps:\n  - {{id: a, {step}{agent}}}\n  - {{id: b, {agent}}}\n---\n");
        let definition = read(&card).unwrap().definition;
        definition.steps.iter().map(|step| definition.uses_memory(&step.id)).collect::<Vec<_>>()
    };

    assert_eq!(with("", ""), [true, true]);
    assert_eq!(with("", "memory: off, "), [false, true]);
    assert_eq!(with("memory: off\n", "memory: on, "), [false, false]);
}
