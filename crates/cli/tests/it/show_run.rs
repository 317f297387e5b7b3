use insta::assert_snapshot;

use crate::procedures::{COMPLETES, FAILS, newest_run, plain, sessions_of, snapshot};
use crate::world;

#[test]
fn an_id_that_nothing_has_is_named() {
    let world = world().with_card("completes", COMPLETES);

    assert_snapshot!(world.proctor(&["show", "run_abc"]).snapshot(), @"
    exit 2
    --- stderr
    error: there is no run or session whose id begins with `run_abc`

    hint: `proctor runs --all` lists every run
    ");
    let _ = world.proctor(&["procedure", "run", "completes"]).expect_code(0);
    for (id, message) in [
        ("run_zzzzzzzzzzz", "failed to find `run_zzzzzzzzzzz`: no run has an id that begins like that"),
        ("ses_zzzzzzzzzzz", "failed to find `ses_zzzzzzzzzzz`: no session has an id that begins like that"),
        ("zzzzzzzzzzz", "there is no run or session whose id begins with `zzzzzzzzzzz`"),
    ] {
        let output = world.proctor(&["show", id, "--json"]).expect_code(2).json();

        assert_eq!(output["error"]["message"], message, "{id}");
    }
}

#[test]
fn a_run_is_shown_with_everything_that_is_recorded() {
    let world = world().with_card("completes", COMPLETES);
    let _ = world.proctor(&["procedure", "run", "completes", "--directive", "quick"]).expect_code(0);
    let run = newest_run(&world);

    assert_snapshot!(snapshot(&world.proctor(&["show", &run])), @"
    exit 0
    --- stdout
    ✓ completes: completed  [run 1]
      started      [time]
      ended        [time], after [duration]
      exit code    0
      kept until   [time]
      card         proctor/procedures/completes.procedure.card
      definition   [commit 1]
      records      state
      work tree    [root]/repository
      branch       main
      began at     [commit 2]
      is at        [commit 3]
      directive    quick
      commits      [commit 3]

    ✓ write completed
        began        [time]
        took         [duration]
        attempts     1
        outputs      answer = 42
        changed      one.txt
        commits      [commit 3]
        [session 1] run, attempt 1: completed, exit 0, exit 0 in [duration]

    ○ skipped skipped (precheck)
        began        [time]
        took         [duration]
        attempts     1
        precheck     skip
        [session 2] precheck, attempt 1: completed, exit 75 in [duration]

    ✓ look completed
        began        [time]
        took         [duration]
        attempts     1
        validate     pass
        [session 3] validate, attempt 1: completed, exit 0 in [duration]
    ");
}

#[test]
fn a_failed_run_is_shown_with_what_it_left() {
    let world = world().with_card("fails", FAILS);
    let _ = world.proctor(&["procedure", "run", "fails"]).expect_code(1);
    let run = newest_run(&world);

    assert_snapshot!(snapshot(&world.proctor(&["show", &run])), @"
    exit 0
    --- stdout
    ✗ fails: failed  [run 1]
      started      [time]
      ended        [time], after [duration]
      exit code    1
      kept until   [time]
      card         proctor/procedures/fails.procedure.card
      definition   [commit 1]
      records      state
      work tree    [root]/repository
      branch       main
      began at     [commit 2]
      is at        [commit 3]
      left         two.txt
      commits      [commit 3]

    ✓ write completed
        began        [time]
        took         [duration]
        attempts     1
        changed      one.txt
        commits      [commit 3]
        [session 1] run, attempt 1: completed, exit 0 in [duration]

    ✗ check failed: validate shell 2: exit 7
        began        [time]
        took         [duration]
        attempts     1
        validate     fail
        changed      two.txt
        [session 2] run, attempt 1: completed, exit 0 in [duration]
        [session 3] validate, attempt 1: completed, exit 0, exit 7 in [duration]

    · last pending
    ");
}

#[test]
fn attempts_and_their_failures_are_kept() {
    let card =
        "description: Tries again\nsteps:\n  - id: try\n    retry: {max: 2}\n    run:\n      shells: ['test $PROCTOR_ATTEMPT = 3']\n";
    let world = world().with_card("tries", card);
    let _ = world.proctor(&["procedure", "run", "tries"]).expect_code(0);
    let run = newest_run(&world);

    let step = &world.proctor(&["show", &run, "--json"]).expect_code(0).json()["steps"][0];

    assert_eq!((&step["attempts"], &step["state"]), (&3.into(), &"completed".into()));
    assert_eq!(step["earlier_failures"], serde_json::json!(["run shell 1: exit 1", "run shell 1: exit 1"]));
    let codes: Vec<_> = step["sessions"].as_array().expect("sessions").iter().map(|session| session["exit_code"].clone()).collect();
    assert_eq!(codes, [1, 1, 0]);
}

#[test]
fn a_session_is_shown_with_its_texts_and_what_it_printed() {
    let world = world().with_card("fails", FAILS);
    let _ = world.proctor(&["procedure", "run", "fails"]).expect_code(1);
    let sessions = sessions_of(&world, &newest_run(&world));

    assert_snapshot!(snapshot(&world.proctor(&["show", &sessions[2]])), @"
    exit 0
    --- stdout
    session: completed  [session 1]
      run          [run 1] of fails
      step         check, validate, attempt 1
      took         [duration]
      shell 1      exit 0 in [duration]
      shell 2      exit 7 in [duration]
      files        [root]/home/.local/state/proctor/repos/repository-[id]/sessions/[session 1]

      shell 1:
      | echo looking

      shell 2:
      | echo checking the result
      | test -e fixed && exit
      | echo 'the result is wrong' >&2
      | exit 7

      stdout:
      | looking
      | checking the result

      stderr:
      | the result is wrong
    ");
    assert_snapshot!(plain(&world, &world.proctor(&["show", &sessions[2][..9], "--json"]).stdout), @r#"{"version":1,"run":"[run 1]","procedure":"fails","step":"check","session":{"id":"[session 1]","kind":"shell","work":"validate","phase":"validate","attempt":1,"end":"completed","detail":null,"exit_code":7,"shells":[{"exit_code":0,"duration_ms":[ms]},{"exit_code":7,"duration_ms":[ms]}],"duration_ms":[ms],"outputs":{},"output_error":null,"ended_orphans":0,"lingering":[],"verdict":null,"log_note":null,"stdout":{"head":"looking\nchecking the result\n","tail":"","omitted":0},"stderr":{"head":"the result is wrong\n","tail":"","omitted":0},"folder":"[root]/home/.local/state/proctor/repos/repository-[id]/sessions/[session 1]","known":[],"claims":null,"facts":null},"scripts":["echo looking","echo checking the result\ntest -e fixed && exit\necho 'the result is wrong' >&2\nexit 7\n"]}"#);
}

#[test]
fn json_of_a_run_is_one_complete_object() {
    let world = world().with_card("completes", COMPLETES);
    let _ = world.proctor(&["procedure", "run", "completes"]).expect_code(0);

    assert_snapshot!(plain(&world, &world.proctor(&["show", &newest_run(&world), "--json"]).stdout), @r#"{"version":1,"run":"[run 1]","procedure":"completes","outcome":"completed","with_warnings":false,"exit_code":0,"standing":{"state":"ended","waits_for":null,"reason":null,"until":null,"go_on":[]},"halted":null,"started_at":"[time]","ended_at":"[time]","duration_ms":[ms],"expires":"[time]","card":"proctor/procedures/completes.procedure.card","definition":"[commit 1]","records":"state","folder":null,"worktree":"[root]/repository","card_root":"","branch":"main","isolated":null,"confined":null,"box":null,"cost":{"sessions":0,"turns":0,"tokens":{"input":0,"output":0,"cache_read":0,"cache_write":0,"complete":true},"cost_usd":0.0,"cost_complete":true,"unknown_cost_sessions":0},"head_at_start":"[commit 2]","head":"[commit 3]","directive":null,"inputs":{},"only":null,"foreign":[],"foreign_tree":null,"left":null,"events":16,"commits":["[commit 3]"],"memory":{"proposals":[],"obstacle":null},"steps":[{"id":"write","state":"completed","reason":null,"error":null,"warning":null,"phases":["run"],"attempts":1,"started_at":"[time]","ended_at":"[time]","duration_ms":[ms],"baseline":"[commit 2]","precheck":null,"validate":null,"outputs":{"answer":"42"},"changed":["one.txt"],"commits":["[commit 3]"],"earlier_failures":[],"salvaged":[],"approval":null,"answers":[],"claims":[],"facts":{"changed":["one.txt"],"commits":["[commit 3]"],"checks":null,"judge":null,"planted":[]},"sessions":[{"id":"[session 1]","kind":"shell","work":"run","phase":"run","attempt":1,"end":"completed","detail":null,"exit_code":0,"shells":[{"exit_code":0,"duration_ms":[ms]},{"exit_code":0,"duration_ms":[ms]}],"duration_ms":[ms],"outputs":{"answer":"42"},"output_error":null,"ended_orphans":0,"lingering":[],"verdict":null,"log_note":null,"stdout":{"head":"","tail":"","omitted":0},"stderr":{"head":"","tail":"","omitted":0},"folder":"[root]/home/.local/state/proctor/repos/repository-[id]/sessions/[session 1]","known":[],"claims":null,"facts":null}]},{"id":"skipped","state":"skipped","reason":"precheck","error":null,"warning":null,"phases":["precheck","run"],"attempts":1,"started_at":"[time]","ended_at":"[time]","duration_ms":[ms],"baseline":"[commit 3]","precheck":"skip","validate":null,"outputs":{},"changed":[],"commits":[],"earlier_failures":[],"salvaged":[],"approval":null,"answers":[],"claims":[],"facts":{"changed":[],"commits":[],"checks":null,"judge":null,"planted":[]},"sessions":[{"id":"[session 2]","kind":"shell","work":"precheck","phase":"precheck","attempt":1,"end":"completed","detail":null,"exit_code":75,"shells":[{"exit_code":75,"duration_ms":[ms]}],"duration_ms":[ms],"outputs":{},"output_error":null,"ended_orphans":0,"lingering":[],"verdict":null,"log_note":null,"stdout":{"head":"","tail":"","omitted":0},"stderr":{"head":"","tail":"","omitted":0},"folder":"[root]/home/.local/state/proctor/repos/repository-[id]/sessions/[session 2]","known":[],"claims":null,"facts":null}]},{"id":"look","state":"completed","reason":null,"error":null,"warning":null,"phases":["validate"],"attempts":1,"started_at":"[time]","ended_at":"[time]","duration_ms":[ms],"baseline":"[commit 3]","precheck":null,"validate":"pass","outputs":{},"changed":[],"commits":[],"earlier_failures":[],"salvaged":[],"approval":null,"answers":[],"claims":[],"facts":{"changed":[],"commits":[],"checks":"pass","judge":null,"planted":[]},"sessions":[{"id":"[session 3]","kind":"shell","work":"validate","phase":"validate","attempt":1,"end":"completed","detail":null,"exit_code":0,"shells":[{"exit_code":0,"duration_ms":[ms]}],"duration_ms":[ms],"outputs":{},"output_error":null,"ended_orphans":0,"lingering":[],"verdict":null,"log_note":null,"stdout":{"head":"","tail":"","omitted":0},"stderr":{"head":"","tail":"","omitted":0},"folder":"[root]/home/.local/state/proctor/repos/repository-[id]/sessions/[session 3]","known":[],"claims":null,"facts":null}]}]}"#);
}
