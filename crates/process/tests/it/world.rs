//! What the tests share: bash children, waiting with a limit, and this binary in another role.

use std::path::Path;
use std::time::{Duration, Instant};

use proctor_process::{Child, Finished, Program, Sink};

/// How long anything may take before a test gives up. Generous: machines that run tests are slow.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// Waits until `condition` holds; false at the limit.
pub(crate) fn until(mut condition: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < LIMIT {
        if condition() {
            return true;
        }
        proctor_process::family::wait_for_end(&[], Duration::from_millis(2));
    }
    false
}

pub(crate) fn bash(script: &str) -> Program {
    Program::new("bash").arg("-c").arg(script).env([("PATH", env_path())])
}

fn env_path() -> String {
    std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned())
}

/// Runs bash in `folder`, where it leaves what it wants to tell.
pub(crate) fn bash_in(folder: &Path, script: &str) -> Child {
    bash(script).dir(folder).stdout(Sink::Null).stderr(Sink::Null).own_group().spawn().unwrap()
}

/// The pid that a script wrote into a file, once it is there.
pub(crate) fn pid_in(path: &Path) -> u32 {
    let read = || std::fs::read_to_string(path).ok().filter(|text| text.ends_with('\n')).and_then(|text| text.trim().parse::<u32>().ok());
    assert!(until(|| read().is_some()), "no pid in {}", path.display());
    read().unwrap()
}

/// Runs one of the roles of [`crate::scene`] in a process of its own.
pub(crate) fn scene(role: &str, folder: &Path, variables: &[(&str, &str)]) -> Program {
    Program::new(std::env::current_exe().unwrap())
        .args(["--exact", "scene::role", "--nocapture", "--test-threads=1"])
        .env([("PATH", env_path()), ("SCENE", role.to_owned())])
        .env([("SCENE_FOLDER", folder.as_os_str())])
        .env(variables.iter().copied())
}

pub(crate) fn run_scene(role: &str, folder: &Path, variables: &[(&str, &str)]) -> Finished {
    scene(role, folder, variables).run(Some(LIMIT)).unwrap()
}
