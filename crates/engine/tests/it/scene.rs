//! A driver in a process of its own, so that it can be killed.
//!
//! The tests start this binary again with `SCENE` set; in an ordinary test run the one test here does nothing.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use proctor_domain::SessionId;
use proctor_engine::{SessionSpec, SessionWork, Waited, start};
use proctor_process::Program;

use crate::world::{LIMIT, World, agent, host_program, path_variable, wait};

#[test]
fn role() {
    if std::env::var_os("SCENE").is_none() {
        return;
    }
    let variable = |name: &str| std::env::var_os(name).unwrap();
    let session: SessionId = variable("SCENE_SESSION").into_string().unwrap().parse().unwrap();
    let work = match std::env::var("SCENE_AGENT") {
        Ok(text) => agent(&text).spec.work,
        Err(_) => SessionWork::Shells(variable("SCENE_SHELLS").into_string().unwrap().split('\u{1}').map(str::to_owned).collect()),
    };
    let spec = SessionSpec {
        folder: PathBuf::from(variable("SCENE_FOLDER")),
        lock: PathBuf::from(variable("SCENE_LOCK")),
        work,
        directory: PathBuf::from(variable("SCENE_DIRECTORY")),
        environment: vec![("PATH".into(), path_variable()), ("PROCTOR_SESSION".into(), session.as_str().into())],
        secrets: Vec::new(),
        wall_limit: LIMIT,
        linger: Vec::new(),
        session,
    };

    let mut attached = start(&spec, &host_program()).unwrap();
    match wait(&mut attached) {
        Waited::Ended(_) => println!("waited=ended"),
        Waited::Lost => println!("waited=lost"),
        Waited::Woken => println!("waited=woken"),
    }
}

/// A driver that starts the session of this world and waits for its end.
pub(crate) fn driver(world: &World, variables: &[(&str, &str)]) -> Program {
    let spec = &world.spec;
    let (name, text) = match &spec.work {
        SessionWork::Shells(texts) => ("SCENE_SHELLS", OsString::from_vec(texts.join("\u{1}").into_bytes())),
        SessionWork::Agent(run) => ("SCENE_AGENT", run.argv[2].clone()),
    };
    Program::new(std::env::current_exe().unwrap())
        .args(["--exact", "scene::role", "--nocapture", "--test-threads=1"])
        .env([("PATH", path_variable()), ("SCENE", "driver".into()), (name, text)])
        .env([
            ("SCENE_SESSION", std::ffi::OsStr::from_bytes(spec.session.as_str().as_bytes())),
            ("SCENE_FOLDER", spec.folder.as_os_str()),
            ("SCENE_LOCK", spec.lock.as_os_str()),
            ("SCENE_DIRECTORY", spec.directory.as_os_str()),
        ])
        .env(variables.iter().copied())
}
