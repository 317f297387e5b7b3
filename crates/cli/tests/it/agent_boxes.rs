//! What an agent's session may write and see, end to end, in each kind of box that this machine has.

use proctor_domain::session::Work;
use proctor_process::confine::BoxKind;
use proctor_testkit::{Output, World};

use crate::agent_scene::{PASSES, ends, in_box, kind_of, step_of, world_of, write_script};
use crate::box_scene::is_here;
use crate::scene::uncommitted;

/// A linked worktree is what every kind of box can express.
const ISOLATED: &str = "isolation: worktree\nsteps:\n  - id: build\n    run:\n      agents:\n        - prompt: Build it\n";
const IN_PLACE: &str = "steps:\n  - id: build\n    run:\n      agents:\n        - prompt: Build it\n";

fn run(world: &World) -> Output {
    world.proctor(&["procedure", "run", "work"])
}

/// An agent that runs this and keeps what was printed in `seen`.
fn runs(text: &str) -> String {
    format!("[[default.turn]]\ndo = [{{ run = '''({text}) > seen 2>&1; true''' }}]\n")
}

/// Tries to write in each place, and to append to each file, and says which it could.
fn tries(world: &World, card: &str) -> String {
    let root = world.root().display();
    let git = format!("{root}/repository/.git");
    let own = if card == IN_PLACE { String::new() } else { format!("{root}/repository/planted {root}/repository/README.md ") };
    let places = format!(
        "own:$PWD/new session:$TMPDIR/new null:/dev/null objects:{git}/objects/new refs:{git}/refs/heads/new home:$HOME/planted \
         gitconfig:$HOME/.gitconfig world:{root}/planted others-tmp:{root}/tmp/planted tmp:/var/tmp/proctor-planted config:{git}/config \
         hook:{git}/hooks/pre-commit attributes:{git}/info/attributes {}",
        own.split_whitespace().map(|path| format!("checkout:{path} ")).collect::<String>()
    );
    let state = world.state();
    let state = state.display();
    // In a box that hides the state there is an empty folder in its place, where writing comes to nothing.
    let hidden = format!("echo planted >> {state}/journal.db; touch {state}/sessions/planted; rm -rf {state}/runs");
    format!(
        "({hidden}) 2>/dev/null; for place in {places}; do if ( : >> \"${{place#*:}}\" ) 2>/dev/null; then echo \"${{place%%:*}}\"; fi; done; rm -f {git}/objects/new {git}/refs/heads/new new"
    )
}

#[test]
fn in_a_box_an_agent_writes_in_its_worktree_and_nowhere_that_matters() {
    for (kind, card) in [(BoxKind::Bwrap, ISOLATED), (BoxKind::Landlock, ISOLATED), (BoxKind::Bwrap, IN_PLACE)] {
        if !is_here(kind) {
            continue;
        }
        let world = in_box(world_of(card, &runs("true")), kind.name());
        // So that there is a state folder to name.
        let _ = run(&world).expect_code(0);
        write_script(&world, &runs(&tries(&world, card)));

        let _ = run(&world).expect_code(0);

        assert_eq!(world.read("seen"), "own\nsession\nnull\nobjects\nrefs\n", "{kind} {card}");
        let state = world.state();
        assert!(!state.join("sessions/planted").exists() && state.join("runs").exists(), "{kind}");
        assert!(!std::fs::read(state.join("journal.db")).expect("the journal").ends_with(b"planted\n"), "{kind}");
        for path in ["../planted", "../home/planted", "../tmp/planted", ".git/hooks/pre-commit", "planted"] {
            assert!(!world.has(path), "{kind}: {path}");
        }
    }
}

#[test]
fn which_box_it_is_is_said_once_and_recorded() {
    let card = format!(
        "{IN_PLACE}        - prompt: Build more\n    validate:\n      instructions: ['It is good']\n  - id: again\n    run:\n      agents:\n        - \
         prompt: Build the rest\n"
    );
    for (kind, said) in [(BoxKind::Bwrap, "agents are held in a bwrap box"), (BoxKind::None, "agents work outside of any box")] {
        if kind == BoxKind::Bwrap && !is_here(kind) {
            continue;
        }
        let world = in_box(world_of(&card, &format!("{PASSES}{}", runs("echo x"))), kind.name());

        let output = run(&world).expect_code(0);

        assert_eq!(output.stderr.matches(said).count(), 1, "{output}");
        assert_eq!(kind_of(&world).as_deref(), Some(kind.name()));
    }
}

#[test]
fn a_named_box_that_can_not_be_built_refuses() {
    // Landlock can't keep a part of what it allows, and here git's settings lie in the tree that the agent works in.
    let world = in_box(world_of(IN_PLACE, &runs("echo x")), "landlock");

    let output = run(&world);

    assert!(matches!(output.code, Some(2 | 4 | 1)), "{output}");
    assert!(output.stderr.contains("landlock"), "{output}");
    assert_eq!((world.has("seen"), uncommitted(&world).len()), (false, 0));
}

#[test]
fn a_box_that_the_machine_has_not_is_none_where_nobody_named_it_and_says_so() {
    let mut world = in_box(world_of(IN_PLACE, &runs("echo x")), "auto");
    // No bwrap on the path, and landlock can't do it in place.
    let script = "mkdir -p ../bin && for name in git bash cat rm ls env true sed; do ln -sf \"$(command -v $name)\" ../bin/; done";
    let _ = world.run("bash", &["-c", script]).expect_code(0);
    let path = world.root().join("bin");
    world.set_variable("PATH", path);

    let output = run(&world).expect_code(0);

    assert!(output.stderr.contains("warning: agents work outside of any box, with your permissions"), "{output}");
    assert_eq!(kind_of(&world).as_deref(), Some("none"));
}

#[test]
fn an_agent_commits_in_its_box() {
    for (kind, card) in [(BoxKind::Bwrap, ISOLATED), (BoxKind::Landlock, ISOLATED), (BoxKind::Bwrap, IN_PLACE)] {
        if !is_here(kind) {
            continue;
        }
        let world = in_box(
            world_of(card, "[[default.turn]]\ndo = [{ write = { path = 'a', content = 'x' } }, { commit = { message = 'Mine' } }]"),
            kind.name(),
        );

        let _ = run(&world).expect_code(0);

        assert_eq!(world.git(&["log", "-1", "--format=%s"]), "Mine", "{kind}");
    }
}

#[test]
fn a_judge_can_write_nowhere_in_the_tree() {
    if !is_here(BoxKind::Bwrap) {
        return;
    }
    // Its engine lets it run nothing; that the box holds it too shows in what a judge's own program can do.
    let card = format!("{IN_PLACE}    validate:\n      severity: abort\n      instructions: ['It is good']\n");
    let world = in_box(world_of(&card, &format!("{PASSES}{}", runs("echo x"))), "bwrap");

    let _ = run(&world).expect_code(0);

    assert_eq!(ends(&step_of(&world))[1], (Work::Judge(1), "completed"));
    assert_eq!(uncommitted(&world), [""; 0]);
}

#[test]
fn an_agent_gets_a_list_of_variables_and_no_others() {
    for kind in ["auto", "none"] {
        let mut world = in_box(world_of(IN_PLACE, &runs("env")), kind);
        for (name, value) in [
            ("SSH_AUTH_SOCK", "/run/agent.sock"),
            ("GITHUB_TOKEN", "ghp_something"),
            ("SOME_RANDOM_VARIABLE", "x"),
            ("PROCTOR_STATE_DIR_X", "x"),
            ("PASSED_ON", "by name"),
            ("PROCTOR_PASS_ENV", "PASSED_ON"),
        ] {
            world.set_variable(name, value);
        }

        let _ = run(&world).expect_code(0);

        let seen = world.read("seen");
        let names: Vec<&str> = seen.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
        for absent in ["SSH_AUTH_SOCK", "GITHUB_TOKEN", "SOME_RANDOM_VARIABLE", "PROCTOR_STATE_DIR_X", "PROCTOR_SCRIPT", "PROCTOR_ENGINE"] {
            assert!(!names.contains(&absent), "{absent}: {seen}");
        }
        for present in ["PATH", "HOME", "LC_ALL", "TMPDIR", "PASSED_ON", "PROCTOR_RUN", "PROCTOR_STEP", "PROCTOR_SESSION", "PROCTOR_OUTPUT"]
        {
            assert!(names.contains(&present), "{present}: {seen}");
        }
        assert!(!seen.contains(&format!("TMPDIR={}/tmp\n", world.root().display())), "a temporary folder of its own");
    }
}
