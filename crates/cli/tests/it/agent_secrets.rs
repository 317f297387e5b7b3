//! A secret that an agent or a shell prints is in no file that a run leaves.

use std::fs;
use std::path::{Path, PathBuf};

use proctor_testkit::World;

use crate::agent_scene::{in_box, run_of, with_secret, world_of};

const CANARY: &str = "canary-7f3a9c\"quoted\"-value";

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
            files_below(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// Files of the state and the repository that hold the value in one of its forms.
fn holding(world: &World, forms: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    files_below(&world.state(), &mut files);
    files_below(&world.repository(), &mut files);
    let holds = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap_or_default();
        forms.iter().any(|form| bytes.windows(form.len()).any(|window| window == form.as_bytes()))
    };
    files.into_iter().filter(|path| holds(path)).collect()
}

#[test]
fn a_canary_is_in_no_file_that_a_run_leaves() {
    let agent = r#"
[[scenario]]
contains = "Judge the work"
turn = [{ do = [{ run = "env" }, { think = "canary-7f3a9c\"quoted\"-value" }, { result = { passed = false, reasoning = "It holds canary-7f3a9c\"quoted\"-value." } }] }]

[[default.turn]]
do = [
  { say = "The key is canary-7f3a9c\"quoted\"-value." },
  { think = "canary-7f3a9c\"quoted\"-value" },
  { run = 'printf %s "$CANARY"; printf "%s\n" "$CANARY" >&2' },
  { run = 'printf "{\"key\": \"%s\"}" "$CANARY"' },
  { run = 'echo "answer=$CANARY" >> "$PROCTOR_OUTPUT"' },
  { print-part = 'canary-7f3a9c\"quo' },
  { print = 'ted\"-value' },
  { print = 'canary-7f3a9c"quoted"-value' },
  { stderr = "warning: canary-7f3a9c\"quoted\"-value" },
  { write = { path = "built", content = "x" } },
]
"#;
    let card = "
records: git
steps:
  - id: build
    precheck:
      pass-output: true
      shells: ['echo \"$CANARY\"']
    run:
      agents:
        - prompt: Build it
      shells:
        - |
          echo \"whole $CANARY\"; echo \"$CANARY\" >&2
          printf %s \"${CANARY:0:9}\"; printf '%s\\n' \"${CANARY:9}\"
          echo \"also=$CANARY\" >> \"$PROCTOR_OUTPUT\"
    validate:
      severity: warn
      shells: ['echo \"$CANARY\"; echo \"$CANARY\" >&2; exit 3']
      instructions: ['Nothing secret is said']
  - id: look
    run:
      agents:
        - prompt: Look at what is there
";
    for kind in ["auto", "none"] {
        let mut world = in_box(with_secret(world_of(card, agent), "CANARY", CANARY), kind);
        world.set_variable("PROCTOR_PASS_ENV", "CANARY");

        let output = world.proctor(&["procedure", "run", "work"]).expect_code(0);

        let forms = [CANARY, "canary-7f3a9c\\\"quoted\\\"-value"];
        assert!(forms.iter().all(|form| !output.stderr.contains(form) && !output.stdout.contains(form)), "{output}");
        // The script is the test's own and lies beside the repository.
        assert_eq!(holding(&world, &forms), Vec::<PathBuf>::new(), "{kind}");
        let show = world.proctor(&["show", &crate::procedures::newest_run(&world), "--json"]).expect_code(0);
        assert!(forms.iter().all(|form| !show.stdout.contains(form)), "{show}");
        let steps = run_of(&world).steps;
        assert!(steps[0].outputs.values().all(|value| !value.contains("7f3a9c")), "{:?}", steps[0].outputs);
        assert!(show.stdout.contains("[redacted"), "what was taken out is marked: {show}");
    }
}

#[test]
fn what_an_agent_puts_into_its_own_commits_is_its_own_doing_and_kept_out_of_the_state() {
    let agent = r#"
[[default.turn]]
do = [{ write = { path = "built", content = "x" } }, { run = 'git add built && git commit -m "Use $CANARY"' }]
"#;
    let mut world =
        with_secret(world_of("steps:\n  - id: build\n    run:\n      agents:\n        - prompt: Build it\n", agent), "CANARY", CANARY);
    world.set_variable("PROCTOR_PASS_ENV", "CANARY");

    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);

    let state = world.state();
    let held: Vec<PathBuf> = holding(&world, &[CANARY]).into_iter().filter(|path| path.starts_with(&state)).collect();
    assert_eq!(held, Vec::<PathBuf>::new());
}
