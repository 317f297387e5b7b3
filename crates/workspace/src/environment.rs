//! What git finds in its environment.

use std::ffi::OsString;

/// The variables for git: the user's, without those that would point it at another repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitEnvironment {
    variables: Vec<(OsString, OsString)>,
}

impl GitEnvironment {
    /// The environment made of the user's variables.
    pub fn from_user(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self { variables: variables.into_iter().collect() }
    }

    /// The same with one variable more, or replaced: how a caller passes an identity of its own.
    #[must_use]
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let name = name.into();
        self.variables.retain(|(known, _)| *known != name);
        self.variables.push((name, value.into()));
        self
    }
}
