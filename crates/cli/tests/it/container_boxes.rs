//! What is different about a container: it is started by a program that is not ours, among programs that are not this
//! machine's, and would live on without us.

use std::ffi::OsStr;
use std::fs;

use proctor_process::confine::{BoxKind, Confine, ContainerSetup, Net, choose, probe};
use proctor_process::{Program, Signal};
use proctor_testkit::{Output, wait_for};

use crate::acp_agents::AGENT;
use crate::agent_scene::{ends, in_box, kind_of, made, run_of, step_of, with_container, world_of};
use crate::box_image;
use crate::box_scene::{Scene, bash, expect, is_here};
use crate::procedures::LIMIT;
use crate::scene::uncommitted;

const KIND: BoxKind = BoxKind::Container;
const IN_PLACE: &str = "steps:\n  - id: build\n    run:\n      agents:\n        - prompt: Build it\n";
const ISOLATED: &str = "isolation: worktree\nsteps:\n  - id: build\n    run:\n      agents:\n        - prompt: Build it\n";
const COMMITS: &str = "[[default.turn]]\ndo = [{ write = { path = 'a', content = 'x' } }, { commit = { message = 'Mine' } }]";

fn run(card: &str, script: &str) -> (proctor_testkit::World, Output) {
    let world = in_box(with_container(world_of(card, script)), KIND.name());
    let output = world.proctor(&["procedure", "run", "work"]);
    (world, output)
}

#[test]
fn input_output_directory_and_exit_code_come_through_a_container() {
    if !is_here(KIND) {
        return;
    }
    let scene = Scene::new(KIND);
    let program = scene.program(bash("cat; pwd; echo \"$TMPDIR\"; echo said >&2; exit 75", OsStr::new("")));

    let finished = program.stdin(proctor_process::Stdin::Bytes(b"a prompt\n".to_vec())).run(Some(LIMIT)).unwrap();

    let expected = format!("a prompt\n{}\n{}\n", scene.tree.display(), scene.path("session").display());
    assert_eq!(expect(&finished, 75, "a script"), expected);
    assert_eq!(finished.stderr, b"said\n");
}

#[test]
fn a_program_that_is_not_in_the_image_is_not_found_although_it_is_on_this_machine() {
    if !is_here(KIND) {
        return;
    }
    let scene = Scene::new(KIND);

    let finished = scene.run(vec!["cargo".into()]);

    expect(&finished, 127, "no such program");
    let stderr = String::from_utf8_lossy(&finished.stderr).into_owned();
    assert!(stderr.contains("failed to start cargo in its box"), "{stderr}");
}

#[test]
fn a_request_to_end_reaches_the_program_in_a_container() {
    if !is_here(KIND) {
        return;
    }
    let scene = Scene::new(KIND);
    let script = "trap 'touch cleaned; exit 7' TERM; touch ready; while :; do sleep 0.01; done";
    let mut child = scene.program(bash(script, OsStr::new(""))).spawn().unwrap();
    wait_for("it is ready", LIMIT, || scene.tree.join("ready").exists());

    let _ = child.signal_group(Signal::Terminate).unwrap();

    let mut status = None;
    wait_for("it ends", LIMIT, || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().shell_code(), 7);
    assert!(scene.tree.join("cleaned").exists());
}

#[test]
fn the_first_process_of_a_container_can_neither_be_ended_nor_stopped_from_inside() {
    if !is_here(KIND) {
        return;
    }
    let scene = Scene::new(KIND);
    let script = "for signal in KILL STOP TERM INT; do kill -$signal 1; done; cat /proc/1/environ; readlink /proc/1/exe; echo still here";

    assert_eq!(expect(&scene.bash(script, ""), 0, "signals"), "still here\n");
}

/// Names of containers that the container program knows and whose command line has this in it.
fn containers(scene: &Scene) -> Vec<String> {
    let program = box_image::setup().as_ref().unwrap().program.clone().unwrap();
    let format = "{{.Names}} {{.Mounts}}";
    let arguments = ["ps", "--all", "--no-trunc", "--filter", "name=proctor-", "--format", format];
    let listed = Program::new(program).args(arguments).env(std::env::vars_os()).run(Some(LIMIT)).unwrap();
    let tree = scene.tree.display().to_string();
    String::from_utf8(listed.stdout).unwrap().lines().filter(|line| line.contains(&tree)).map(ToOwned::to_owned).collect()
}

#[test]
fn a_container_ends_when_nobody_is_left_who_could_end_it() {
    if !is_here(KIND) {
        return;
    }
    let scene = Scene::new(KIND);
    let script = "setsid --fork env -i sleep 1000; touch ready; while :; do touch beat; sleep 0.01; done";
    let mut child = scene.program(bash(script, OsStr::new(""))).spawn().unwrap();
    wait_for("it is ready", LIMIT, || scene.tree.join("ready").exists());
    assert_eq!(containers(&scene).len(), 1);

    let _ = child.signal(Signal::Kill).unwrap();
    let _ = child.wait().unwrap();

    wait_for("no container is left", LIMIT, || containers(&scene).is_empty());
    let _ = fs::remove_file(scene.tree.join("beat"));
    assert!(!scene.tree.join("beat").exists());
}

#[test]
fn an_image_that_is_not_here_is_not_fetched_and_the_command_that_does_is_told() {
    let Ok(setup) = box_image::setup() else { return };
    let image = "registry.invalid/nothing:1";
    let setup = ContainerSetup { image: Some(image.to_owned()), ..setup.clone() };

    let available = probe(std::path::Path::new(env!("CARGO_BIN_EXE_proctor")), Net::All, &setup);

    let refused = choose(Confine::Named(KIND), &available, &Default::default()).unwrap_err().to_string();
    assert!(refused.starts_with("make a container box: the image registry.invalid/nothing:1 is not here"), "{refused}");
    assert!(refused.ends_with(" pull registry.invalid/nothing:1` gets it"), "{refused}");
}

#[test]
fn a_container_without_an_image_or_a_program_is_refused_before_anything_runs() {
    for (settings, reason) in [
        ("", "make a container box: no image is named: `box.image` names one"),
        ("[box]\nimage = 'x'\nprogram = '/nowhere/docker'\n", "make a container box: there is no program `/nowhere/docker`"),
    ] {
        let world = in_box(world_of(IN_PLACE, COMMITS), KIND.name());
        world.write(world.user_settings(), settings);

        let output = world.proctor(&["procedure", "run", "work"]);

        assert!(output.stderr.contains(reason), "{output}");
        assert_eq!((output.code == Some(0), made(&world).len(), uncommitted(&world).len()), (false, 0, 0), "{output}");
    }
}

#[test]
fn an_agent_works_and_commits_in_a_container_in_place_and_isolated() {
    if !is_here(KIND) {
        return;
    }
    for card in [IN_PLACE, ISOLATED] {
        let (world, output) = run(card, COMMITS);

        let _ = output.expect_code(0);
        assert_eq!(world.git(&["log", "-1", "--format=%s by %an"]), "Mine by Ann Author", "{card}");
        assert_eq!(kind_of(&world).as_deref(), Some("container"));
        let session = &step_of(&world).sessions[0];
        let report = session.report.as_ref().unwrap();
        assert_eq!((ends(&step_of(&world))[0].1, report.ended_orphans), ("completed", 0));
        assert_eq!(run_of(&world).confined.unwrap().open, ["reach-abstract-sockets"]);
    }
}

#[test]
fn a_judge_in_a_container_looks_at_the_tree_and_writes_nothing() {
    if !is_here(KIND) {
        return;
    }
    let card = format!("{IN_PLACE}    validate:\n      severity: abort\n      instructions: ['It is good']\n");
    let (world, output) = run(&card, &format!("{}{COMMITS}", crate::agent_scene::PASSES));

    let _ = output.expect_code(0);
    assert_eq!(ends(&step_of(&world)).iter().map(|(_, end)| *end).collect::<Vec<_>>(), ["completed", "completed"]);
}

#[test]
fn nothing_that_a_container_printed_is_kept_by_the_container_program() {
    if !is_here(KIND) {
        return;
    }
    let scene = Scene::new(KIND);
    let mut child = scene
        .program(bash("echo a secret; touch ready; cat", OsStr::new("")))
        .stdin(proctor_process::Stdin::Bytes(Vec::new()))
        .spawn()
        .unwrap();
    wait_for("it is ready", LIMIT, || scene.tree.join("ready").exists());
    let program = box_image::setup().as_ref().unwrap().program.clone().unwrap();
    let name = containers(&scene)[0].split(' ').next().unwrap().to_owned();

    let logs = Program::new(program).args(["logs", &name]).env(std::env::vars_os()).run(Some(LIMIT)).unwrap();

    assert!(!String::from_utf8_lossy(&logs.stdout).contains("a secret"));
    let _ = child.signal_group(Signal::Terminate).unwrap();
    let _ = child.wait().unwrap();
}

#[test]
fn an_agent_of_the_protocol_works_in_a_container_by_a_program_of_this_machine() {
    if !is_here(KIND) {
        return;
    }
    let world = in_box(with_container(world_of(IN_PLACE, "")), KIND.name());
    let work = "ask fs/write_text_file \"\\\"path\\\":\\\"$PWD/made\\\",\\\"content\\\":\\\"made\\\\n\\\"\"";
    world.write("agent.sh", AGENT.replace("WORK", work));
    world.commit_all("An agent");
    let script = world.repository().join("agent.sh");
    let settings = world.read(world.user_settings());
    let engine = format!("[engines.asker]\nacp = ['bash', '{}']\npermission = 'bypass'\n{settings}", script.display());
    world.write(world.user_settings(), engine);
    let world = world.with_variable("PROCTOR_ENGINE", "asker");

    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);

    assert_eq!((world.read("made").as_str(), kind_of(&world).as_deref()), ("made\n", Some("container")));
}
