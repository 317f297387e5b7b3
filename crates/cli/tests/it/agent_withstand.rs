//! What agents do that they should not, and what their programs do when they break: each ends as it should, with a
//! sentence, and nothing of others is touched or lost.

use std::fs;

use proctor_domain::procedure::CheckResult;
use proctor_domain::session::Work;
use proctor_testkit::{Output, World};

use crate::agent_scene::{ends, in_box, kind_of, made, report, step_of, with_silence, world_of, write_script};
use crate::procedures::newest_run;
use crate::scene::{uncommitted, wait_for_nothing_left};

/// One step with one agent, which writes `built` before anything else.
const ONE: &str = "steps:\n  - id: build\n    run:\n      agents:\n        - prompt: Build it\n";

/// A script whose agent writes `built` and then does this.
fn after_work(actions: &str) -> String {
    format!("[[default.turn]]\ndo = [{{ write = {{ path = 'built', content = 'x' }} }}, {actions}]\n")
}

/// The same for a text of bash.
fn after_work_runs(text: &str) -> String {
    after_work(&format!("{{ run = '''{text}''' }}"))
}

fn run(world: &World) -> Output {
    world.proctor(&["procedure", "run", "work"])
}

/// How the only agent's session ended, of a run that ended with this code.
#[track_caller]
fn end_of(world: &World, code: i32) -> &'static str {
    let output = run(world).expect_code(code);
    wait_for_nothing_left(world);
    let ends = ends(&step_of(world));
    assert_eq!(ends.len(), 1, "{output}");
    ends[0].1
}

// Programs that break.

#[test]
fn an_agent_that_hangs_after_its_result_has_completed() {
    let script = format!("[default]\nafter = ['ignore-term', 'hang']\n{}", after_work("{ say = 'Done.' }"));
    let world = with_silence(world_of(ONE, &script), "1s");

    assert_eq!(end_of(&world, 0), "completed");
    assert_eq!(made(&world), ["[procedure] build: update built"]);
}

#[test]
fn what_an_agent_leaves_behind_is_ended_and_holds_up_nothing() {
    for kind in ["auto", "none"] {
        let leaves =
            "{ leave = { command = 'trap \"\" TERM HUP; sleep 1000', hold-stdout = true } }, { leave = { command = 'sleep 1000' } }";
        let world = in_box(world_of(ONE, &after_work(leaves)), kind);

        assert_eq!(end_of(&world, 0), "completed", "{kind}");
    }
}

#[test]
fn silence_with_a_busy_child_is_life_and_heartbeats_are_not() {
    let busy = with_silence(world_of(ONE, &after_work("{ busy = { until-file = '../never', ms = 3500 } }")), "1s");
    let beats = with_silence(world_of(ONE, &after_work("{ heartbeat = { until-file = '../never' } }")), "1s");

    assert_eq!((end_of(&busy, 0), end_of(&beats, 1)), ("completed", "silent"));
}

#[test]
fn what_a_broken_program_prints_is_no_result() {
    for (actions, end) in [
        ("{ print-part = '{\"type\":\"te' }, { die = 'kill' }", "crashed"),
        ("{ say = 'ok' }, { fail = { reason = 'overloaded', exit = 0 } }", "crashed"),
        ("{ say = 'ok' }, { exit = 0 }", "crashed"),
        ("{ print = 'not JSON' }, { print = '{\"type\":\"never heard of\"}' }, { say = 'ok' }, { exit = 1 }", "crashed"),
    ] {
        let world = world_of(ONE, &after_work(actions));

        let output = run(&world).expect_code(1);
        // One that was killed goes on once.
        let expected: &[_] = if actions.contains("die") { &[(Work::Agent(1), end); 2] } else { &[(Work::Agent(1), end)] };
        assert_eq!(ends(&step_of(&world)), expected, "{output}");
        wait_for_nothing_left(&world);
        assert_eq!(uncommitted(&world), ["?? built"], "what it did stays");
        write_script(&world, &after_work("{ say = 'ok' }"));
        let _ = world.proctor(&["procedure", "resume"]).expect_code(0);
        assert_eq!(uncommitted(&world), [""; 0]);
    }
}

#[test]
fn a_line_of_50_mib_and_garbage_are_survived() {
    let world =
        world_of(ONE, &after_work("{ huge-line = 50 }, { print = 'garbage' }, { print = '{\"type\":\"new\"}' }, { say = 'Done.' }"));

    assert_eq!(end_of(&world, 0), "completed");
    let step = step_of(&world);
    let agent = report(&step, Work::Agent(1)).agent.clone().expect("an agent");
    assert_eq!((agent.claim.as_deref(), agent.unknown_lines > 0), (Some("Done."), true));
    let session = world.state().join("sessions").join(step.sessions[0].id.as_str());
    assert!(fs::metadata(session.join("transcript.jsonl")).expect("it").len() < 10 << 20);
}

#[test]
fn a_wrong_result_five_times_is_no_verdict() {
    let wrong = "{ passed = 'yes' }";
    let judge = format!("[[scenario]]\ncontains = 'Judge the work'\nturn = [{{ do = [{{ results = [{}] }}] }}]\n", [wrong; 5].join(", "));
    let card = format!("{ONE}    validate:\n      severity: abort\n      instructions: ['It is good']\n");
    let world = world_of(&card, &format!("{judge}{}", after_work("{ say = 'ok' }")));

    let _ = run(&world).expect_code(3);

    let step = step_of(&world);
    assert_eq!(ends(&step)[1..], [(Work::Judge(1), "no-result"), (Work::Judge(2), "no-result")]);
    assert_eq!(step.validate, Some(CheckResult::Inconclusive));
}

// Agents that reach for what git runs.

/// Each plants something that would run with the next git.
const PLANTS: [(&str, &str); 5] = [
    ("git config core.fsmonitor \"touch $PWD/../evil; :\"", "core.fsmonitor"),
    (
        "git config core.hooksPath \"$PWD/hooks\"; mkdir -p hooks; echo \"touch $PWD/../evil\" > hooks/pre-commit; chmod +x hooks/pre-commit",
        "core.hookspath",
    ),
    ("printf '#!/bin/sh\\ntouch \"%s/../evil\"\\n' \"$PWD\" > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", "pre-commit"),
    ("git config filter.evil.clean \"touch $PWD/../evil; cat\"; echo '* filter=evil' > .gitattributes", "filter.evil.clean"),
    ("git config commit.gpgsign true; git config gpg.program \"$PWD/../evil-program\"", "gpg.program"),
];

#[test]
fn what_an_agent_plants_in_git_fails_its_step_is_put_back_and_never_runs() {
    for (text, named) in PLANTS {
        let world = in_box(world_of(ONE, &after_work_runs(text)), "none");
        let config = world.read(".git/config");

        let output = run(&world).expect_code(1);

        assert!(output.stderr.contains("its agent changed what git runs") && output.stderr.contains(named), "{text}: {output}");
        assert!(!world.has("../evil"), "{text}");
        assert_eq!(world.read(".git/config"), config, "{text}");
        assert!(!world.has(".git/hooks/pre-commit"), "{text}");
        assert_eq!(made(&world), [""; 0], "{text}");
        // The same agent again, this time well behaved: the run is not spoiled for good.
        write_script(&world, &after_work_runs("rm -rf hooks .gitattributes"));
        let _ = world.proctor(&["procedure", "resume"]).expect_code(0);
        assert_eq!((made(&world).len(), world.has("../evil")), (1, false), "{text}");
    }
}

#[test]
fn in_a_box_nothing_can_be_planted() {
    for (text, _) in PLANTS {
        let world = in_box(world_of(ONE, &after_work_runs(&format!("({text}) 2>&1; rm -rf hooks .gitattributes; true"))), "auto");
        let config = world.read(".git/config");

        let output = run(&world);

        if kind_of(&world).as_deref() == Some("none") {
            eprintln!("skipped: no box can be had here");
            return;
        }
        let output = output.expect_code(0);
        assert_eq!((world.read(".git/config"), world.has("../evil")), (config, false), "{text}: {output}");
        assert!(!world.has(".git/hooks/pre-commit"), "{text}");
    }
}

/// Ways around a box that holds git's settings and hooks, each with what is said of it.
const WAYS_AROUND: [(&str, &str); 5] = [
    (
        "cp -r .git other; mkdir -p other/hooks; printf '#!/bin/sh\\ntouch \"%s/evil\"\\n' \"$PWD\" > other/hooks/pre-commit; \
         chmod +x other/hooks/pre-commit; echo \"$PWD/other\" > .git/commondir",
        "commondir was added",
    ),
    ("touch evil2; rm -f .git/COMMIT_EDITMSG; ln -s \"$PWD/evil\" .git/COMMIT_EDITMSG", "COMMIT_EDITMSG leads elsewhere"),
    ("rm -f .git/logs/HEAD; mkdir -p .git/logs; ln -s \"$PWD/evil\" .git/logs/HEAD", "logs/HEAD leads elsewhere"),
    ("mkdir .git/rebase-merge; echo 'exec touch evil' > .git/rebase-merge/git-rebase-todo", "a rebase was left in progress"),
    ("echo '*' > .gitignore", ".gitignore hides work, and ignores itself"),
];

#[test]
fn what_leads_git_out_of_its_folder_or_hides_work_fails_the_step_in_every_box() {
    for (kind, (text, named)) in ["none", "auto"].into_iter().flat_map(|kind| WAYS_AROUND.map(|way| (kind, way))) {
        let world = in_box(world_of(ONE, &after_work_runs(text)), kind);

        let output = run(&world).expect_code(1);

        assert!(output.stderr.contains(named), "{kind}: {text}: {output}");
        assert!(!world.has("evil") && !world.has(".git/rebase-merge") && !world.has(".git/commondir"), "{kind}: {text}");
        assert_eq!(made(&world), [""; 0], "{kind}: {text}");
        write_script(&world, &after_work_runs("rm -rf other evil2"));
        let _ = world.proctor(&["procedure", "resume"]).expect_code(0);
        assert_eq!((made(&world).len(), world.has("evil")), (1, false), "{kind}: {text}");
    }
}

#[test]
fn an_edit_that_git_was_told_not_to_see_is_committed() {
    for mark in ["assume-unchanged", "skip-worktree"] {
        let first = "steps:\n  - id: begin\n    run:\n      shells: [echo 1 > file]\n";
        let card = format!("{first}{}", ONE.trim_start_matches("steps:\n"));
        let world = world_of(&card, &after_work_runs(&format!("echo 2 > file; git update-index --{mark} file")));

        let _ = run(&world).expect_code(0);

        assert_eq!(world.git(&["show", "HEAD:file"]), "2", "{mark}");
        assert_eq!(uncommitted(&world), [""; 0], "{mark}");
    }
}

#[test]
fn a_repository_that_an_agent_commits_as_a_pointer_fails_the_step_by_name() {
    let text = "git init -q n; cd n; echo x > f; git add f; git commit -qm Inner; cd ..; git add n 2>/dev/null; git commit -qm Outer; true";
    let world = in_box(world_of(ONE, &after_work_runs(text)), "none");

    let output = run(&world).expect_code(1);

    assert!(output.stderr.contains("its agent committed n, a git repository of its own"), "{output}");
    assert_eq!(world.read("n/f"), "x\n");
}

// Agents that leave their branch or its history.

#[test]
fn an_agent_on_another_branch_halts_the_run_and_nothing_is_lost() {
    let world = in_box(world_of(ONE, &after_work_runs("git switch -qc other; git add built; git commit -qm Elsewhere")), "none");

    let output = run(&world).expect_code(4);

    assert!(output.stderr.contains("main") && output.stderr.contains("other"), "{output}");
    assert_eq!(world.git(&["log", "-1", "--format=%s", "other"]), "Elsewhere");
    assert_eq!(world.git(&["log", "-1", "--format=%s", "main"]), "Add procedure work");
    // A person brings the work to where it belongs, and the run takes it as the agent's.
    world.git(&["switch", "-q", "main"]);
    world.git(&["merge", "-q", "--ff-only", "other"]);
    let _ = world.proctor(&["procedure", "resume"]).expect_code(0);
    assert_eq!((made(&world), step_of(&world).commits.len()), (vec!["Elsewhere".to_owned()], 1));
}

#[test]
fn an_agent_that_rewrites_history_halts_the_run_and_the_commits_are_named() {
    for text in ["git reset -q --hard HEAD~1", "git commit -q --amend -m Amended", "git reset -q --soft HEAD~1"] {
        let world = in_box(world_of(ONE, &after_work_runs(text)), "none");
        let before = world.git(&["rev-parse", "HEAD"]);

        let output = run(&world).expect_code(4);

        assert!(output.stderr.contains(&before[..7]), "{text}: {output}");
        world.git(&["reset", "-q", "--hard", &before]);
    }
}

#[test]
fn an_agent_that_stashes_or_throws_away_what_is_the_users_fails_and_a_copy_is_kept() {
    for text in ["git stash -q -u", "git checkout -q -- . && git clean -fdxq", "rm -f mine README.md"] {
        let world = in_box(world_of(ONE, &after_work_runs(text)), "none");
        world.write("README.md", "edited by the user\n");
        world.write("mine", "the user's\n");

        let output = world.proctor(&["procedure", "run", "work", "--allow-dirty"]).expect_code(1);

        assert!(output.stderr.contains("it changed files that were not the run's"), "{text}: {output}");
        assert_eq!(made(&world), [""; 0]);
        let saved = format!("refs/proctor/salvage/{}/foreign", newest_run(&world));
        assert_eq!(world.git(&["show", &format!("{saved}:README.md")]), "edited by the user");
        assert_eq!(world.git(&["show", &format!("{saved}:mine")]), "the user's");
    }
}

#[test]
fn an_agent_that_leaves_a_merge_open_fails_its_step_and_the_merge_is_put_away() {
    let text = "git switch -qc side; echo a > README.md; git commit -qam a; git switch -q main; echo b > README.md; git commit -qam b; git \
                merge side || true";
    let world = in_box(world_of(ONE, &after_work_runs(text)), "none");

    let output = run(&world).expect_code(1);

    assert!(output.stderr.contains("a merge was left in progress"), "{output}");
    write_script(&world, &after_work_runs("git diff --quiet HEAD"));
    let output = world.proctor(&["procedure", "resume"]).expect_code(0);
    assert_eq!((world.has(".git/MERGE_HEAD"), uncommitted(&world)), (false, Vec::new()), "{output}");
}

#[test]
fn nobody_is_told_to_go_on_with_what_an_agent_left_of_a_rebase() {
    let text = "git add built; git commit -qm one; GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -qi HEAD~1; \
                echo 'exec touch evil' >> .git/rebase-merge/git-rebase-todo";
    let world = in_box(world_of(ONE, &after_work_runs(text)), "none");

    let output = run(&world).expect_code(4);

    assert!(!output.stderr.contains("--continue") && !world.has(".git/rebase-merge"), "{output}");
}

#[test]
fn an_agent_can_not_speak_for_a_person() {
    for kind in ["auto", "none"] {
        let commands = ["stop \"$PROCTOR_RUN\"", "procedure resume \"$PROCTOR_RUN\"", "answer \"$PROCTOR_RUN\" approve"];
        let program = env!("CARGO_BIN_EXE_proctor");
        let tries = commands.map(|command| format!("(\"{program}\" {command} 2>&1; echo \"code $?\") >> said; ")).concat();
        let world = in_box(world_of(ONE, &after_work_runs(&tries)), kind);

        let _ = run(&world).expect_code(0);

        let said = world.read("said");
        assert_eq!(said.matches("this command speaks for a person").count(), 3, "{said}");
        assert_eq!(said.matches("code 4").count(), 3, "{said}");
    }
}
