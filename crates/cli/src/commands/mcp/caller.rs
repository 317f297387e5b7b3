//! Where a server works, and who calls it.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use proctor_domain::RecordId;

use super::answer::Refusal;
use super::field::{Field, Given, Need, Shape};
use crate::Invocation;
use crate::args::memory::PlaceArgs;
use crate::commands::memory::add::session;
use crate::environment::Environment;
use crate::memory::Places;
use crate::printer::{Printed, Printer};

/// The most that one answer says.
const LONGEST_ANSWER: usize = 48 * 1024;

/// Which of the two folders of memory.
pub(super) static PLACE: Field = Field::new(
    "place",
    Shape::Word(|| vec!["project", "user"]),
    "Only the repository's memory, or only the user's, which is for all repositories; by default both are read, and the repository's is \
     written where there is one",
);

/// Where a server works, as long as it does.
#[derive(Debug, Clone)]
pub(super) struct Seat {
    directory: PathBuf,
    environment: Environment,
    /// What was proposed through this server, and so may be taken back through it.
    proposed: Arc<Mutex<HashSet<RecordId>>>,
}

impl Seat {
    pub(super) fn new(invocation: &Invocation) -> Self {
        let (directory, environment) = (invocation.directory.clone(), invocation.environment.clone());
        Self { directory, environment, proposed: Arc::default() }
    }

    /// What a command gets, with a printer that nobody sees but the one who asks for what was printed.
    fn invocation(&self) -> (Invocation, Printed) {
        let (printer, printed) = Printer::into_memory(LONGEST_ANSWER);
        (Invocation { directory: self.directory.clone(), environment: self.environment.clone(), printer }, printed)
    }
}

/// One call of a tool.
pub(super) struct Call<'call> {
    seat: &'call Seat,
    pub(super) invocation: Invocation,
    printed: Printed,
    pub(super) given: &'call Given,
    /// The program that calls, as it calls itself.
    pub(super) agent: Option<&'call str>,
}

impl<'call> Call<'call> {
    pub(super) fn new(seat: &'call Seat, given: &'call Given, agent: Option<&'call str>) -> Self {
        let (invocation, printed) = seat.invocation();
        Self { seat, invocation, printed, given, agent }
    }

    pub(super) fn text(&self, field: &Field) -> Option<&str> {
        self.given.text(field)
    }

    /// The folders of memory that the call is about.
    pub(super) fn places(&self) -> Result<Places, Refusal> {
        let place = self.text(&PLACE);
        Ok(Places::find(&self.invocation, PlaceArgs { project: place == Some("project"), user: place == Some("user") })?)
    }

    /// What was printed in this call, and how many bytes at its beginning are left off.
    pub(super) fn printed(&self) -> (String, usize) {
        self.printed.text()
    }

    pub(super) fn note_proposed(&self, id: &RecordId) {
        self.seat.proposed.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
    }

    /// Whether a record was proposed through this server, or in the session of Proctor that this server is of.
    pub(super) fn may_take_back(&self, id: &RecordId, in_session: Option<&str>) -> bool {
        let is_own_session = in_session.is_some() && in_session == session(&self.invocation);
        is_own_session || self.seat.proposed.lock().unwrap_or_else(PoisonError::into_inner).contains(id)
    }
}

/// `place`, where a tool takes it.
pub(super) const PLACE_MAY: (&Field, Need) = (&PLACE, Need::May);
