//! What the tests of running procedures share: steps that wait for the test, and looks at what became of a run.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use proctor_process::{ProcessIdentity, Signal};
use proctor_testkit::{Background, World, wait_for};
use serde_json::Value;

use crate::procedures::{LIMIT, newest_run};

/// Makes a shell stand still until the test opens the gate.
pub(crate) const HOLD: &str = "touch ../at-work; read -r _ < ../gate";

/// A card from the YAML of its steps, indented as YAML wants it.
pub(crate) fn steps(steps: &[String]) -> String {
    format!("description: Made for a test\nsteps:\n{}", steps.concat())
}

/// One step with one shell text under `run`; `keys` are further lines of the step.
pub(crate) fn step(id: &str, keys: &[&str], shell: &str) -> String {
    let keys: String = keys.iter().map(|key| format!("    {key}\n")).collect();
    format!("  - id: {id}\n{keys}    run:\n      shells:\n{}", shell_item(shell, 8))
}

/// A shell text as an item of a list.
pub(crate) fn shell_item(shell: &str, indent: usize) -> String {
    let pad = " ".repeat(indent);
    let lines: String = shell.lines().map(|line| format!("{pad}  {line}\n")).collect();
    format!("{pad}- |-\n{lines}")
}

/// A world with one procedure, `work`, and a gate for its steps to wait at.
pub(crate) fn world_with(keys: &str) -> World {
    let world = crate::world().with_card("work", keys);
    let _ = world.run("mkfifo", &["../gate"]).expect_code(0);
    world
}

/// Starts a command and waits until a step of it stands at the gate.
pub(crate) fn start_and_hold(world: &World, arguments: &[&str]) -> Background {
    let driver = world.start(arguments);
    wait_for("a step is at work", LIMIT, || world.has("../at-work"));
    let _ = fs::remove_file(world.root().join("at-work"));
    driver
}

/// Lets the step at the gate go on.
pub(crate) fn open_gate(world: &World) {
    world.write("../gate", "\n");
}

/// `procedure status --json` of the newest run.
pub(crate) fn status(world: &World) -> Value {
    world.proctor(&["procedure", "status", "--json"]).expect_code(0).json()
}

/// `show --json` of the newest run.
pub(crate) fn record(world: &World) -> Value {
    world.proctor(&["show", &newest_run(world), "--json"]).expect_code(0).json()
}

/// What is uncommitted, as git says it in short.
pub(crate) fn uncommitted(world: &World) -> Vec<String> {
    world.git(&["status", "--porcelain", "-uall"]).lines().map(str::to_owned).collect()
}

/// The process that a step has written to this file, which may be about to be written.
pub(crate) fn process_in(world: &World, file: &str) -> ProcessIdentity {
    let path = world.repository().join(file);
    let mut found = None;
    wait_for("a pid is written", LIMIT, || {
        found = fs::read_to_string(&path).ok().and_then(|text| ProcessIdentity::of(text.trim().parse().ok()?));
        found.is_some()
    });
    found.expect("a process")
}

/// The host of the session that is at work.
pub(crate) fn living_host(world: &World) -> ProcessIdentity {
    let folders = fs::read_dir(world.state().join("sessions")).expect("sessions");
    let hosts = folders.flatten().filter_map(|entry| recorded_host(&entry.path()));
    hosts.into_iter().find(ProcessIdentity::is_alive).expect("a living host")
}

fn recorded_host(folder: &Path) -> Option<ProcessIdentity> {
    let text = fs::read_to_string(folder.join("host.json")).ok()?;
    let host: Value = serde_json::from_str(&text).ok()?;
    host["identity"].as_str()?.parse().ok()
}

/// Kills a process and waits until it is gone.
pub(crate) fn kill(process: &ProcessIdentity) {
    let _ = process.signal(Signal::Kill).expect("a signal");
    wait_for("it is gone", LIMIT, || !process.is_alive());
}

/// Waits until all that was started in the world is gone.
pub(crate) fn wait_for_nothing_left(world: &World) {
    wait_for("nothing is left", LIMIT, || world.leftovers().is_empty());
}

/// Waits until what happens is too late to be taken for the doing of processes that died before the call.
pub(crate) fn wait_past_the_slack(world: &World) {
    let now = || {
        world.write("../now", "");
        fs::metadata(world.root().join("now")).and_then(|metadata| metadata.modified()).expect("a time")
    };
    let since = now();
    let is_past = |time: SystemTime| time.duration_since(since).is_ok_and(|passed| passed.as_millis() > 1_600);
    wait_for("the slack is over", LIMIT, || is_past(now()));
}

/// A process that has nothing to do with Proctor, and is ended with the test.
pub(crate) struct Innocent(pub(crate) ProcessIdentity);

impl Innocent {
    pub(crate) fn new(world: &World) -> Self {
        // Without an environment it does not count as left over.
        let _ = world.run("bash", &["-c", "env -i sleep 1000 >../innocent.out 2>&1 & echo $! > ../innocent"]).expect_code(0);
        Self(process_in(world, "../innocent"))
    }
}

impl Drop for Innocent {
    fn drop(&mut self) {
        let _ = self.0.signal(Signal::Kill);
    }
}
