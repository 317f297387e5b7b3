//! Every cell of what boxes hold, tried by an agent that tries to break out, in each kind of box that this machine has and in
//! none: what gets through is what the table says is open, no more and no less.

use std::collections::BTreeSet;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use proctor_process::confine::{BoxKind, CONTRACT, Cell, Hold, Net};
use proctor_process::{Program, Stdin};
use proctor_testkit::{World, wait_for};
use serde_json::json;

use crate::agent_scene::{in_box, run_of, with_container, without_network, world_of, write_script};
use crate::box_scene::is_here;
use crate::procedures::{LIMIT, newest_run};
use crate::scene::{Innocent, kill, living_host, wait_for_nothing_left};

/// A linked worktree is what every kind of box can express.
const ISOLATED: &str = "isolation: worktree\nsteps:\n  - id: build\n    run:\n      agents:\n        - prompt: Build it\n";
/// In the environment of a foreign process, and nowhere else.
const FOREIGN: &str = "only-in-a-foreign-environment";

/// Connects to a socket, whose path may be longer than an address.
const CONNECT: &str = r#"connects() {
  perl -MSocket -e 'socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die; my ($folder, $name) = @ARGV; if ($folder) { chdir $folder or die }
    else { $name = "\0$name" } connect($s, pack_sockaddr_un($name)) or die' "$1" "$2"
}
"#;

/// What an agent tries for a cell, as a shell's condition. `None` where only the outside can tell.
fn attempt(cell: Cell) -> Option<&'static str> {
    Some(match cell {
        Cell::ReadHome => "grep -q private $HOME/diary",
        Cell::ReadKeys => "grep -q key $HOME/.ssh/id_ed25519 || grep -q key $HOME/.netrc",
        Cell::ReadState => "head -c 6 $STATE/journal.db | grep -q SQLite",
        Cell::ReadEnvironment => "cat /proc/[0-9]*/environ | grep -qa $FOREIGN",
        Cell::WriteOutside => "echo planted > $ROOT/planted; echo planted > $HOME/planted; echo planted >> $ROOT/outside; false",
        Cell::WriteGit => {
            "[ -s $ROOT/repository/.git/config ] && : >> $ROOT/repository/.git/config && : > $ROOT/repository/.git/hooks/new && rm \
             $ROOT/repository/.git/hooks/new"
        }
        Cell::WriteState => "[ -s $STATE/journal.db ] && : >> $STATE/journal.db",
        Cell::ChangeAttributes => "chmod 600 $ROOT/outside; false",
        Cell::RunOutside => "$ROOT/tool",
        Cell::GainPrivileges => "grep -q 'NoNewPrivs:[[:space:]]*0' /proc/self/status",
        Cell::ReachSessions => {
            "for socket in $STATE/sessions/*/control.sock; do if connects ${socket%/*} control.sock; then echo reached; break; fi; done | \
             grep -q reached"
        }
        Cell::ReachSockets => "connects $ROOT outside.sock",
        Cell::ReachAbstractSockets => "connects '' $ABSTRACT",
        Cell::ReachTcp => "echo x > /dev/tcp/127.0.0.1/$TCP",
        Cell::ReachUdp => "echo x > /dev/udp/127.0.0.1/$UDP; false",
        Cell::SignalProcesses => "kill -KILL $INNOCENT; false",
        Cell::OutliveSession => return None,
    })
}

/// What lies and listens outside.
struct Outside {
    world: World,
    innocent: Innocent,
    speaker: proctor_process::Child,
    udp: UdpSocket,
    _listeners: (TcpListener, UnixListener, UnixListener),
}

impl Outside {
    fn new(kind: BoxKind, net: Net) -> Self {
        let world = in_box(with_container(world_of(ISOLATED, "[[default.turn]]\ndo = []\n")), kind.name());
        let world = if net == Net::None { without_network(world) } else { world };
        // So that there is a state folder with a session.
        let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);
        for (path, text) in
            [("home/diary", "private\n"), ("home/.ssh/id_ed25519", "key\n"), ("home/.netrc", "key\n"), ("outside", "theirs\n")]
        {
            world.write(format!("../{path}"), text);
        }
        world.write("../tool", "#!/bin/sh\nexit 0\n");
        let mode = |name: &str, mode| std::fs::set_permissions(world.root().join(name), PermissionsExt::from_mode(mode)).unwrap();
        mode("tool", 0o755);
        mode("outside", 0o644);
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.set_nonblocking(true).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let with_path = UnixListener::bind(world.root().join("outside.sock")).unwrap();
        let without = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name_of(&world)).unwrap()).unwrap();
        let speaker = Program::new("/bin/cat").env([("SPOKEN", FOREIGN)]).stdin(Stdin::Bytes(Vec::new())).spawn().unwrap();
        Self { innocent: Innocent::new(&world), world, speaker, udp, _listeners: (tcp, with_path, without) }
    }

    /// The words of the cells that an agent got through.
    fn got_through(&self) -> BTreeSet<&'static str> {
        let (state, root) = (self.world.state(), self.world.root());
        let given = format!(
            "STATE={} ROOT={} ABSTRACT={} TCP={} UDP={} INNOCENT={} FOREIGN={FOREIGN}\n",
            state.display(),
            root.display(),
            name_of(&self.world),
            self._listeners.0.local_addr().unwrap().port(),
            self.udp.local_addr().unwrap().port(),
            self.innocent.0.pid
        );
        let attempts = CONTRACT.iter().filter_map(|facts| Some((facts.name, attempt(facts.cell)?)));
        let lines: String =
            attempts.map(|(name, attempt)| format!("if ( {attempt} ) 2>/dev/null; then echo {name} >> seen; fi\n")).collect();
        write_script(&self.world, &format!("[[default.turn]]\ndo = [{{ run = '''\n: > seen\n{given}{CONNECT}{lines}''' }}]\n"));

        let _ = self.world.proctor(&["procedure", "run", "work"]).expect_code(0);

        let seen = self.world.read("seen");
        let told = CONTRACT.iter().map(|facts| facts.name).filter(|name| seen.lines().any(|line| line == *name));
        told.chain(self.changed()).collect()
    }

    /// What shows outside alone: in a box there can be something else in the place of what is meant.
    fn changed(&self) -> impl Iterator<Item = &'static str> {
        let world = &self.world;
        let is_planted = world.has("../planted") || world.has("../home/planted") || world.read("../outside") != "theirs\n";
        let mode = world.root().join("outside").metadata().unwrap().permissions().mode() & 0o777;
        let heard = self.udp.recv(&mut [0; 8]).is_ok();
        let found = [
            (Cell::WriteOutside, is_planted),
            (Cell::ChangeAttributes, mode != 0o644),
            (Cell::ReachUdp, heard),
            (Cell::SignalProcesses, !self.innocent.0.is_alive()),
        ];
        let through: Vec<Cell> = found.into_iter().filter(|(_, got_through)| *got_through).map(|(cell, _)| cell).collect();
        CONTRACT.iter().filter(move |facts| through.contains(&facts.cell)).map(|facts| facts.name)
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.speaker.stdin = None;
    }
}

/// A name for an abstract socket that no other test has.
fn name_of(world: &World) -> String {
    world.root().file_name().unwrap().to_string_lossy().into_owned()
}

/// What the run recorded as open and an agent can show; and what is open because nobody asked for it to be held.
fn expected(world: &World, net: Net) -> BTreeSet<&'static str> {
    let recorded = run_of(world).confined.expect("a box").open;
    let is_open = |cell: Cell, name: &str| match cell {
        // Shown by a test of its own.
        Cell::OutliveSession => false,
        Cell::ReachTcp | Cell::ReachUdp if net == Net::All => true,
        Cell::ReadHome
        | Cell::ReadKeys
        | Cell::ReadState
        | Cell::ReadEnvironment
        | Cell::WriteOutside
        | Cell::WriteGit
        | Cell::WriteState
        | Cell::ChangeAttributes
        | Cell::RunOutside
        | Cell::GainPrivileges
        | Cell::ReachSessions
        | Cell::ReachSockets
        | Cell::ReachAbstractSockets
        | Cell::ReachTcp
        | Cell::ReachUdp
        | Cell::SignalProcesses => recorded.iter().any(|open| open == name),
    };
    CONTRACT.iter().filter(|facts| is_open(facts.cell, facts.name)).map(|facts| facts.name).collect()
}

fn try_every_cell(kind: BoxKind, net: Net) {
    if kind == BoxKind::None || is_here(kind) {
        let outside = Outside::new(kind, net);

        let got_through = outside.got_through();

        assert_eq!(got_through, expected(&outside.world, net), "{kind}, net = {}", net.name());
    }
}

#[test]
fn without_a_box_every_attempt_gets_through_so_that_none_fails_for_another_reason() {
    try_every_cell(BoxKind::None, Net::All);
}

#[test]
fn bwrap_holds_what_its_table_says_and_nothing_else() {
    try_every_cell(BoxKind::Bwrap, Net::All);
}

#[test]
fn bwrap_holds_what_its_table_says_without_the_network() {
    try_every_cell(BoxKind::Bwrap, Net::None);
}

#[test]
fn landlock_holds_what_its_table_says_and_nothing_else() {
    try_every_cell(BoxKind::Landlock, Net::All);
}

#[test]
fn landlock_holds_what_its_table_says_without_the_network() {
    try_every_cell(BoxKind::Landlock, Net::None);
}

#[test]
fn a_container_holds_what_its_table_says_and_nothing_else() {
    try_every_cell(BoxKind::Container, Net::All);
}

#[test]
fn a_container_holds_what_its_table_says_without_the_network() {
    try_every_cell(BoxKind::Container, Net::None);
}

/// Whether what a session started lives on when its host was killed, and nobody comes to look for what is left.
fn outlives(kind: BoxKind) -> bool {
    let script = "[[default.turn]]\ndo = [{ run = 'setsid --fork sleep 1001; echo > ready; sleep 1002' }]\n";
    let world = in_box(with_container(world_of(ISOLATED, script)), kind.name());
    let driver = world.start(&["procedure", "run", "work"]);
    let at_work = || world.leftovers().iter().filter(|left| left.command.starts_with("sleep 100")).count() == 2;
    wait_for("it is at work", LIMIT, at_work);
    let host = living_host(&world);
    let _ = driver.kill();

    kill(&host);

    if matches!(kind, BoxKind::Bwrap | BoxKind::Container) {
        wait_for_nothing_left(&world);
    }
    !world.leftovers().is_empty()
}

#[test]
fn what_outlives_a_session_whose_host_was_killed_is_what_the_table_says() {
    let facts = CONTRACT.iter().find(|facts| facts.cell == Cell::OutliveSession).unwrap();
    for kind in [BoxKind::None, BoxKind::Bwrap, BoxKind::Landlock, BoxKind::Container] {
        if kind == BoxKind::None || is_here(kind) {
            assert_eq!(outlives(kind), facts.held_by(kind) != Hold::Always, "{kind}");
        }
    }
}

#[test]
fn what_a_box_leaves_open_is_recorded_with_the_run_and_told_by_every_command_that_tells_of_boxes() {
    if !is_here(BoxKind::Bwrap) {
        return;
    }
    let world = without_network(in_box(world_of(ISOLATED, "[[default.turn]]\ndo = []\n"), "bwrap"));
    let open = ["read-home", "run-outside", "reach-sockets"];

    let output = world.proctor(&["procedure", "run", "work"]).expect_code(0);

    assert!(output.stderr.contains("agents are held in a bwrap box, without the network"), "{output}");
    let run = newest_run(&world);
    let shown = world.proctor(&["show", &run, "--json"]).expect_code(0).json();
    assert_eq!(shown["box"], json!({"kind": "bwrap", "net": "none", "open": open}));
    let text = format!("bwrap, without the network; it leaves open: {}\n", open.join(", "));
    assert!(world.proctor(&["show", &run]).expect_code(0).stdout.contains(&text));
    let listed = world.proctor(&["engines", "--json"]).expect_code(0).json();
    let names: Vec<&str> = listed["box"]["open"].as_array().unwrap().iter().filter_map(|cell| cell["name"].as_str()).collect();
    assert_eq!((names.as_slice(), &listed["box"]["net"]), (&open[..], &json!("none")));
    let checked = world.proctor(&["doctor"]).stdout;
    assert!(checked.contains(&format!("bwrap (confine = bwrap, PROCTOR_CONFINE); it leaves open: {}", open.join(", "))), "{checked}");
}

#[test]
fn a_network_that_can_not_be_kept_away_or_that_the_engine_needs_is_refused_before_anything_runs() {
    for (kind, engine, reason) in [
        ("none", "scripted", "failed to keep a process from the network: only a box can, and `confine` is none"),
        ("auto", "claude", "failed to keep a process from the network: the engine `claude` reaches its model by it"),
    ] {
        let mut world = without_network(in_box(world_of(ISOLATED, "[[default.turn]]\ndo = []\n"), kind));
        world.set_variable("PROCTOR_ENGINE", engine);
        // Something of this name that says a version is enough: it is not begun.
        let claude = "mkdir ../bin && printf '#!/bin/sh\necho 2.1.332\n' > ../bin/claude && chmod +x ../bin/claude";
        let _ = world.run("bash", &["-c", claude]).expect_code(0);
        let path = format!("{}:{}", world.root().join("bin").display(), std::env::var("PATH").unwrap());
        world.set_variable("PATH", path);

        let output = world.proctor(&["procedure", "run", "work"]);

        assert!(output.stderr.contains(reason), "{output}");
        assert_ne!(output.code, Some(0), "{output}");
        let checked = world.proctor(&["doctor"]).stdout;
        assert!(checked.contains(reason.trim_start_matches("failed to ")), "{checked}");
    }
}
