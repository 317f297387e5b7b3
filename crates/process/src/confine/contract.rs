//! What boxes are to keep a session from, and which kind keeps which of it: one table, from which the documentation is
//! made, by which `doctor` says what this machine's box leaves open, and which the tests try cell by cell.

use super::{BoxKind, ChosenBox, Net};

/// One thing that a box is to keep a session from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cell {
    /// Reading the user's files.
    ReadHome,
    /// Reading keys and passwords in the user's home folder.
    ReadKeys,
    /// Reading what Proctor keeps.
    ReadState,
    /// Reading the environment of foreign processes.
    ReadEnvironment,
    /// Writing outside of the working tree.
    WriteOutside,
    /// Writing what git would run.
    WriteGit,
    /// Writing what Proctor keeps.
    WriteState,
    /// Changing what else there is to a file.
    ChangeAttributes,
    /// Running programs of the machine.
    RunOutside,
    /// Gaining privileges by a program.
    GainPrivileges,
    /// Calling other sessions.
    ReachSessions,
    /// Calling other programs by a socket with a path.
    ReachSockets,
    /// Calling other programs by a socket without one.
    ReachAbstractSockets,
    /// TCP, where the network was taken away.
    ReachTcp,
    /// Every other protocol, where the network was taken away.
    ReachUdp,
    /// Signalling foreign processes.
    SignalProcesses,
    /// Living on after the session, also when Proctor was killed.
    OutliveSession,
}

/// Whether a kind of box holds a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It does.
    Always,
    /// It does from this version of the kernel's Landlock on.
    FromLandlock(u32, &'static str),
    /// It does where the network was taken away.
    WithoutNetwork(&'static str),
    /// It does not, for this reason.
    Never(&'static str),
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellFacts {
    /// Which.
    pub cell: Cell,
    /// As it is recorded and printed.
    pub name: &'static str,
    /// What a session is kept from.
    pub meaning: &'static str,
    bwrap: Hold,
    landlock: Hold,
    container: Hold,
}

/// A cell that a box does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenCell {
    /// Its name.
    pub name: &'static str,
    /// Why not.
    pub reason: &'static str,
}

const NO_BOX: &str = "there is no box";
const WHOLE_TREE: &str = "the whole file system is there to be read, but for what is hidden";
const WRITES_ONLY: &str = "it limits writing and not reading";
const ATTRIBUTES: &str = "the kernel's Landlock has no right for mode, owner and times";
const READ_IS_RUN: &str = "what can be read can be run";
const SOCKETS_LANDLOCK: &str = "the kernel's Landlock does not limit sockets that have a path";
const SOCKETS_BWRAP: &str = "only those of the buses, of container engines and in `/tmp` are not there";
const ABSTRACT: &str = "they belong to the network, which is the machine's";
const SCOPES: &str = "the kernel's Landlock has scopes only from version 6 (Linux 6.12)";
const TCP: &str = "the kernel's Landlock knows of TCP only from version 4 (Linux 6.7)";
const UDP: &str = "the kernel's Landlock knows of TCP alone";
const LEFT_TO_PROCTOR: &str = "it is Proctor that looks for what is left, and after a kill only when it runs again";

/// The table.
pub static CONTRACT: [CellFacts; 17] = {
    use Cell::*;
    use Hold::{Always, FromLandlock, Never, WithoutNetwork};
    [
        row(ReadHome, "read-home", "read your home folder", [Never(WHOLE_TREE), Never(WRITES_ONLY), Always]),
        row(ReadKeys, "read-keys", "read keys and passwords in your home folder, such as `~/.ssh`", [Always, Never(WRITES_ONLY), Always]),
        row(ReadState, "read-state", "read what Proctor keeps: the journal, other sessions", [Always, Never(WRITES_ONLY), Always]),
        row(ReadEnvironment, "read-environment", "read `/proc/<pid>/environ` of a foreign process", [Always, Always, Always]),
        row(WriteOutside, "write-outside", "write outside of the working tree", [Always, Always, Always]),
        row(WriteGit, "write-git", "write git's settings and hooks", [Always, Always, Always]),
        row(WriteState, "write-state", "write what Proctor keeps", [Always, Always, Always]),
        row(ChangeAttributes, "change-attributes", "change mode, owner and times of a file outside", [Always, Never(ATTRIBUTES), Always]),
        row(
            RunOutside,
            "run-outside",
            "run the machine's programs, beyond its engine's and Proctor's own",
            [Never(READ_IS_RUN), Never(READ_IS_RUN), Always],
        ),
        row(GainPrivileges, "gain-privileges", "gain privileges by a program (`sudo`)", [Always, Always, Always]),
        row(
            ReachSessions,
            "reach-sessions",
            "call another session or its host by their sockets",
            [Always, Never(SOCKETS_LANDLOCK), Always],
        ),
        row(
            ReachSockets,
            "reach-sockets",
            "call another program by a socket that has a path",
            [Never(SOCKETS_BWRAP), Never(SOCKETS_LANDLOCK), Always],
        ),
        row(
            ReachAbstractSockets,
            "reach-abstract-sockets",
            "call another program by an abstract socket",
            [WithoutNetwork(ABSTRACT), FromLandlock(6, SCOPES), WithoutNetwork(ABSTRACT)],
        ),
        row(ReachTcp, "reach-tcp", "use TCP, with `net = \"none\"`", [Always, FromLandlock(4, TCP), Always]),
        row(ReachUdp, "reach-udp", "use UDP or another protocol, with `net = \"none\"`", [Always, Never(UDP), Always]),
        row(SignalProcesses, "signal-processes", "signal a foreign process", [Always, FromLandlock(6, SCOPES), Always]),
        row(
            OutliveSession,
            "outlive-session",
            "live on after its session, also when Proctor was killed",
            [Always, Never(LEFT_TO_PROCTOR), Always],
        ),
    ]
};

const fn row(cell: Cell, name: &'static str, meaning: &'static str, [bwrap, landlock, container]: [Hold; 3]) -> CellFacts {
    CellFacts { cell, name, meaning, bwrap, landlock, container }
}

impl CellFacts {
    /// Whether this kind of box holds it.
    pub fn held_by(&self, kind: BoxKind) -> Hold {
        match kind {
            BoxKind::None => Hold::Never(NO_BOX),
            BoxKind::Bwrap => self.bwrap,
            BoxKind::Landlock => self.landlock,
            BoxKind::Container => self.container,
        }
    }

    /// Whether the cell is asked for: nobody is to be kept from a network that is given.
    fn is_asked(&self, net: Net) -> bool {
        net == Net::None || !matches!(self.cell, Cell::ReachTcp | Cell::ReachUdp)
    }
}

impl ChosenBox {
    /// Why this box does not hold a cell; `None` where it does.
    pub fn leaves_open(&self, facts: &CellFacts, net: Net) -> Option<&'static str> {
        let version = match self {
            Self::Landlock { version } => *version,
            Self::None | Self::Bwrap | Self::Container(_) => 0,
        };
        match facts.held_by(self.kind()) {
            Hold::Always => None,
            Hold::FromLandlock(from, reason) => (version < from).then_some(reason),
            Hold::WithoutNetwork(reason) => (net == Net::All).then_some(reason),
            Hold::Never(reason) => Some(reason),
        }
    }

    /// The cells that are asked for and that this box does not hold.
    pub fn open_cells(&self, net: Net) -> Vec<OpenCell> {
        let open = |facts: &CellFacts| Some(OpenCell { name: facts.name, reason: self.leaves_open(facts, net)? });
        CONTRACT.iter().filter(|facts| facts.is_asked(net)).filter_map(open).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(chosen: &ChosenBox, net: Net) -> Vec<&'static str> {
        chosen.open_cells(net).iter().map(|cell| cell.name).collect()
    }

    #[test]
    fn what_a_box_leaves_open_depends_on_its_kind_its_kernel_and_the_network() {
        assert_eq!(names(&ChosenBox::Bwrap, Net::All), ["read-home", "run-outside", "reach-sockets", "reach-abstract-sockets"]);
        assert_eq!(names(&ChosenBox::Bwrap, Net::None), ["read-home", "run-outside", "reach-sockets"]);
        let landlock = |version| ChosenBox::Landlock { version };
        let always_open = ["read-home", "read-keys", "read-state", "change-attributes", "run-outside", "reach-sessions", "reach-sockets"];
        assert_eq!(names(&landlock(6), Net::None), [&always_open[..], &["reach-udp", "outlive-session"]].concat());
        assert_eq!(
            names(&landlock(3), Net::None),
            [&always_open[..], &["reach-abstract-sockets", "reach-tcp", "reach-udp", "signal-processes", "outlive-session"]].concat()
        );
    }

    #[test]
    fn without_a_box_everything_that_is_asked_for_is_open() {
        assert_eq!(names(&ChosenBox::None, Net::None).len(), CONTRACT.len());
        assert_eq!(names(&ChosenBox::None, Net::All).len(), CONTRACT.len() - 2);
    }

    #[test]
    fn every_cell_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<&str> = CONTRACT.iter().map(|facts| facts.name).collect();

        assert_eq!(names.len(), CONTRACT.len());
    }
}
