//! The process outside, for as long as a container is there.

use std::ffi::OsString;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::super::enter::{self, Stage};
use super::super::mounts::{Mount, governing};
use super::super::{ConfineError, Net, real};
use super::first::REQUESTS;
use super::order::{Order, bind};
use super::{LIMIT, own_directory, relay};
use crate::identity::ProcessIdentity;
use crate::{Child, Program, Signals, Sink, Stdin, find_program};

/// Where the socket is in the container.
const SOCKET: &str = "/run/proctor.sock";
/// Who made a container, by which those are found whose maker is gone.
const LABEL: &str = "proctor.box";
/// Variables that say how it is outside. In the container the image decides.
const OF_THE_MACHINE: [&str; 3] = ["PATH", "SHELL", "XDG_RUNTIME_DIR"];
/// How long it takes at most to look for a signal that came in between.
const ROUND: Duration = Duration::from_secs(3600);
/// The exit code when the container program's own can't be told.
const UNKNOWN: u8 = 126;

/// Runs `argv` in the container that `own` describes, and returns its exit code.
pub(in super::super) fn keep(own: Vec<OsString>, argv: Vec<OsString>) -> Result<u8, ConfineError> {
    // With the host that started this, the session is over; whoever comes next must not meet it at work.
    let end = Some(rustix::process::Signal::KILL);
    rustix::process::set_parent_process_death_signal(end).map_err(|errno| ConfineError::Watch(errno.into()))?;
    let order = Order::parse(own)?;
    let signals = Signals::listen(&REQUESTS)?;
    let name = Name::own()?;
    remove_abandoned(&order);
    let folder = order.place.clone().unwrap_or_else(|| PathBuf::from("/tmp"));
    let place = tempfile::Builder::new().prefix("keeper-").tempdir_in(&folder).map_err(ConfineError::Watch)?;
    let socket = relay::bind(place.path(), "first").map_err(ConfineError::Watch)?;
    let first = Arc::new(OnceLock::new());
    let doors = open_doors(&order, place.path(), &first)?;
    let argv = command_line(&order, &name, place.path(), &doors, argv)?;
    let mut child = start(&order, argv)?;
    let line = Arc::new(Mutex::new(Requests::default()));
    await_first(socket, Arc::clone(&line), first);
    pass_signals(signals, line);
    let ended = child.wait().map_err(ConfineError::Watch)?;
    // The container program may have been ended before its container.
    remove(&order, &name.0);
    Ok(u8::try_from(ended.shell_code()).unwrap_or(UNKNOWN))
}

/// The name of a container, which says who keeps it.
struct Name(String);

impl Name {
    fn own() -> Result<Self, ConfineError> {
        let unknown = |error: crate::IdentityError| ConfineError::Watch(std::io::Error::other(error));
        let ProcessIdentity { pid, start_ticks, boot_id } = ProcessIdentity::current().map_err(unknown)?;
        Ok(Self(format!("proctor-{pid}-{start_ticks}-{}", boot_id.replace('-', ""))))
    }

    /// Whether a name is that of a container whose keeper is gone.
    fn is_abandoned(name: &str) -> bool {
        let mut parts = name.strip_prefix("proctor-").into_iter().flat_map(|rest| rest.split('-'));
        let (Some(pid), Some(start), Some(boot), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else { return false };
        let (Ok(pid), Ok(start)) = (pid.parse::<u32>(), start.parse::<u64>()) else { return false };
        let living = ProcessIdentity::of(pid);
        living.is_none_or(|living| living.start_ticks != start || living.boot_id.replace('-', "") != boot)
    }
}

/// The user, and the processes that this one can see: whose keeper is among others can't be known to be gone.
fn label() -> String {
    let processes = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let number: String = processes.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    format!("{LABEL}={}.{number}", rustix::process::getuid().as_raw())
}

/// Removes containers of this user whose keepers are gone. The first process of each has ended with its keeper; what is left
/// is what the container program remembers.
fn remove_abandoned(order: &Order) {
    let filter = format!("label={}", label());
    let arguments = ["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"].map(OsString::from);
    let Ok(listed) = of_the_program(order, arguments.into()).run(Some(LIMIT)) else { return };
    for name in String::from_utf8_lossy(&listed.stdout).lines().map(str::trim).filter(|name| Name::is_abandoned(name)) {
        remove(order, name);
    }
}

/// Removes a container that may be gone already.
fn remove(order: &Order, name: &str) {
    let _ = of_the_program(order, ["rm", "--force", name].map(OsString::from).into()).run(Some(LIMIT));
}

fn of_the_program(order: &Order, arguments: Vec<OsString>) -> Program {
    Program::new(&order.program).args(arguments).env(std::env::vars_os()).env(order.variables.iter().cloned()).own_group()
}

/// Sockets of ours in the place of those outside; each with what it stands for.
fn open_doors(order: &Order, place: &Path, first: &Arc<OnceLock<u32>>) -> Result<Vec<(PathBuf, PathBuf)>, ConfineError> {
    let mut opened = Vec::new();
    for (number, door) in order.doors.iter().filter(|door| door.exists()).enumerate() {
        let name = format!("door-{number}");
        relay::hand_on(relay::bind(place, &name).map_err(ConfineError::Watch)?, door.clone(), Arc::clone(first));
        opened.push((place.join(name), door.clone()));
    }
    Ok(opened)
}

fn command_line(
    order: &Order,
    name: &Name,
    place: &Path,
    doors: &[(PathBuf, PathBuf)],
    argv: Vec<OsString>,
) -> Result<Vec<OsString>, ConfineError> {
    let own_program = std::env::current_exe().map_err(ConfineError::Watch)?;
    let directory = own_directory().map_err(ConfineError::Watch)?;
    let home = std::env::var_os("HOME").map(PathBuf::from);
    // `log-driver`: what is printed is written once, by the session's host, which takes secrets out of it.
    let fixed = "run --rm --interactive --sig-proxy=false --pull never --log-driver none --no-healthcheck --cap-drop ALL --security-opt \
                 no-new-privileges --security-opt label=disable --read-only";
    let mut command: Vec<OsString> = fixed.split_whitespace().map(OsString::from).collect();
    let network = match order.net {
        Net::All => "host",
        Net::None => "none",
    };
    command.extend(["--network", network, "--name", &name.0, "--label", &label()].map(OsString::from));
    command.extend(order.user.arguments().into_iter().map(OsString::from));
    command.extend(["--workdir".into(), directory.into_os_string()]);
    command.extend(order.mount_arguments(home.as_deref())?);
    command.extend(bind(&place.join("first"), Path::new(SOCKET), "")?);
    for (ours, door) in doors {
        command.extend(bind(ours, door, "")?);
    }
    // By name alone: a value would be seen by everybody in the list of processes.
    let passed = std::env::vars_os().map(|(name, _)| name).filter(|name| OF_THE_MACHINE.iter().all(|other| name != other));
    command.extend(passed.flat_map(|name| ["--env".into(), name]));
    let mut entry = enter::command(&real(&own_program), Stage::First, [OsString::from(SOCKET)], in_container(order, argv)).into_iter();
    command.extend(["--entrypoint".into(), entry.next().unwrap_or_default(), order.image.clone().into()]);
    command.extend(entry);
    Ok(command)
}

/// The program that the order names is called by its path, where it was mounted and is one that an image can run without an
/// interpreter of its own. Any other name is one in the image.
fn in_container(order: &Order, mut argv: Vec<OsString>) -> Vec<OsString> {
    let search = std::env::var_os("PATH").unwrap_or_default();
    if let Some(named) = &order.named
        && let Some(name) = argv.iter_mut().find(|argument| *argument == named.as_os_str())
        && let Some(found) = find_program(Path::new(name), &search).map(|found| real(&found))
        && governing(&order.mounts, &found) == Some(Mount::ReadOnly)
        && is_binary(&found)
    {
        *name = found.into_os_string();
    }
    argv
}

fn is_binary(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut magic));
    read.is_ok() && magic == *b"\x7fELF"
}

/// In a group of its own: a request to end goes to the program in the container, and not to the one that shows it to us.
fn start(order: &Order, argv: Vec<OsString>) -> Result<Child, ConfineError> {
    let ours = |descriptor: rustix::fd::BorrowedFd<'_>| descriptor.try_clone_to_owned().map_err(ConfineError::Watch);
    let sink = |descriptor: OwnedFd| Sink::File(descriptor.into());
    let program = of_the_program(order, argv)
        .stdin(Stdin::Descriptor(ours(rustix::stdio::stdin())?))
        .stdout(sink(ours(rustix::stdio::stdout())?))
        .stderr(sink(ours(rustix::stdio::stderr())?));
    Ok(program.spawn()?)
}

/// Requests on their way to the first process; those that come before it is there wait for it.
#[derive(Default)]
struct Requests {
    first: Option<UnixStream>,
    waiting: Vec<u8>,
}

impl Requests {
    fn send(&mut self) {
        if let Some(first) = &mut self.first {
            // One that is gone needs none.
            let _ = first.write_all(&self.waiting);
            self.waiting.clear();
        }
    }
}

/// Lets the first process in, and nobody after it.
fn await_first(socket: UnixListener, line: Arc<Mutex<Requests>>, first: Arc<OnceLock<u32>>) {
    std::thread::spawn(move || {
        let Some(stream) = socket.incoming().flatten().find(|stream| relay::caller(stream).is_some()) else { return };
        first.get_or_init(|| relay::caller(&stream).unwrap_or_default());
        let mut requests = line.lock().unwrap_or_else(PoisonError::into_inner);
        requests.first = Some(stream);
        requests.send();
    });
}

fn pass_signals(signals: Signals, line: Arc<Mutex<Requests>>) {
    std::thread::spawn(move || {
        while signals.wait(ROUND).is_ok() {
            let arrived = signals.pending();
            let mut requests = line.lock().unwrap_or_else(PoisonError::into_inner);
            let places = arrived.iter().filter_map(|signal| REQUESTS.iter().position(|request| request == signal));
            requests.waiting.extend(places.filter_map(|place| u8::try_from(place).ok()));
            requests.send();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_abandoned_when_its_keeper_is_gone_and_never_when_it_is_not_ours() {
        let own = Name::own().unwrap().0;
        let another = own.replacen("proctor-", "proctor-1", 1);

        assert!(!Name::is_abandoned(&own));
        assert!(Name::is_abandoned(&format!("{own}0")) && Name::is_abandoned("proctor-1-0-0"), "{another}");
        for foreign in ["proctor", "proctor-1-2", "proctor-x-2-3", "proctor-1-2-3-4", "web-1-2-3", ""] {
            assert!(!Name::is_abandoned(foreign), "{foreign}");
        }
    }
}
