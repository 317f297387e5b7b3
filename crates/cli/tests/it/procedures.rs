//! Cards that several tests run, and waiting for what their runs do.

use std::time::Duration;

use proctor_testkit::{Background, Output, World, redact, wait_for};

/// No test waits longer for anything.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Completes: one step that changes a file, one that is skipped, one that changes nothing.
pub(crate) const COMPLETES: &str = "\
description: Completes
steps:
  - id: write
    run:
      shells: ['echo one > one.txt', 'echo answer=42 >> \"$PROCTOR_OUTPUT\"']
  - id: skipped
    precheck:
      shells: ['exit $CHECK_SKIP']
    run:
      shells: ['false']
  - id: look
    validate:
      shells: ['test \"$STEP_WRITE_ANSWER\" = 42']
";

/// Fails in its second step, having printed to both streams, unless there is a file `fixed`.
pub(crate) const FAILS: &str = "\
description: Fails once
steps:
  - id: write
    run:
      shells: ['echo one > one.txt']
  - id: check
    run:
      shells: ['echo working; echo two > two.txt']
    validate:
      severity: abort
      shells:
        - echo looking
        - |
          echo checking the result
          test -e fixed && exit
          echo 'the result is wrong' >&2
          exit 7
  - id: last
    run:
      shells: ['true']
";

/// Skips its only step.
pub(crate) const SKIPS: &str = "\
description: Has nothing to do
steps:
  - id: skipped
    precheck:
      shells: ['exit $CHECK_SKIP']
    run:
      shells: ['false']
";

/// Says hello in its first step and waits in its second until there is a file `go` beside the repository.
pub(crate) const WAITS: &str = "\
description: Waits
steps:
  - id: greet
    run:
      shells: ['echo hello']
  - id: wait
    run:
      shells:
        - |
          echo waiting; echo grumbling >&2; touch ../waiting
          while ! test -e ../go; do read -rt 0.02 _ <> <(:) || true; done
          echo done
";

/// Runs `arguments` and waits until the step `wait` of [`WAITS`] is at work.
pub(crate) fn start_waiting(world: &World, arguments: &[&str]) -> Background {
    let driver = world.start(arguments);
    wait_for("the step is at work", LIMIT, || world.has("../waiting"));
    driver
}

/// Lets the step `wait` of [`WAITS`] go on.
pub(crate) fn let_go(world: &World) {
    world.write("../go", "");
}

/// The id of the newest run.
pub(crate) fn newest_run(world: &World) -> String {
    let runs = world.proctor(&["runs", "--all", "--json", "--limit", "1"]).json();
    runs["runs"][0]["run"].as_str().expect("a run").to_owned()
}

/// The ids of the sessions of a run, in order.
pub(crate) fn sessions_of(world: &World, run: &str) -> Vec<String> {
    let shown = world.proctor(&["show", run, "--json"]).json();
    let steps = shown["steps"].as_array().expect("steps");
    let sessions = steps.iter().flat_map(|step| step["sessions"].as_array().expect("sessions"));
    sessions.map(|session| session["id"].as_str().expect("an id").to_owned()).collect()
}

/// Kills the driver and every process of its sessions at once, as a power cut would.
pub(crate) fn kill_all(world: &World, driver: Background) {
    let _ = driver.kill();
    wait_for("everything is dead", LIMIT, || {
        for leftover in world.leftovers() {
            let _ = world.run("bash", &["-c", &format!("kill -9 {} || true", leftover.pid)]);
        }
        world.leftovers().is_empty()
    });
}

/// The output's snapshot without durations.
pub(crate) fn snapshot(output: &Output) -> String {
    without_durations(&output.snapshot())
}

/// `text` with everything replaced that differs from run to run, durations included.
pub(crate) fn plain(world: &World, text: &str) -> String {
    without_durations(&redact(text, world.root()))
}

fn without_durations(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let (before, from) = rest.split_at(start);
        shown.push_str(before);
        let free = !before.ends_with(|letter: char| letter.is_alphanumeric() || "_.".contains(letter));
        let length = if free { duration(from) } else { None };
        let number = from.len() - from.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
        shown.push_str(if length.is_some() { "[duration]" } else { &from[..number] });
        rest = &from[length.unwrap_or(number)..];
    }
    shown + rest
}

/// The length of the duration at the start of `text`: `12 ms`, `1.2 s`, `1 min 2 s`.
fn duration(text: &str) -> Option<usize> {
    let digits = |text: &str| text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let first = digits(text);
    let after = &text[first..];
    if after.starts_with(" ms") {
        return Some(first + " ms".len());
    }
    if let Some(after) = after.strip_prefix('.') {
        let second = digits(after);
        return (second > 0 && after[second..].starts_with(" s")).then_some(first + 1 + second + " s".len());
    }
    let after = after.strip_prefix(" min ")?;
    let second = digits(after);
    after[second..].starts_with(" s").then_some(first + " min ".len() + second + " s".len())
}

#[test]
fn durations_are_taken_out_of_snapshots() {
    assert_eq!(
        without_durations("in 12 ms, 1.2 s; after 1 min 2 s; exit 7, 2 steps, v1.2 ms"),
        "in [duration], [duration]; after [duration]; exit 7, 2 steps, v1.2 ms"
    );
}
