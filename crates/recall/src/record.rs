//! One record, of either polarity.

use std::fmt;

use proctor_domain::{RecordId, Timestamp};

/// Whether a record says what works or what does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Polarity {
    /// A procedure: a route, and the trap beside it.
    Works,
    /// A dead end: a route, and what was seen at its end.
    Fails,
}

/// A value from a closed list, as records write it: exact, in lower case.
pub trait Word: Copy + Sized + 'static {
    /// Every value with its word, in the order of the documentation.
    const WORDS: &'static [(&'static str, Self)];
}

/// What a record says where a value from a closed list belongs.
///
/// A word that is not on the list is kept and reported: it may come from a newer version or from a slip of the pen, and
/// in both cases dropping it would change what somebody wrote.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Said<T> {
    /// One of the list.
    Known(T),
    /// Something else, as it was written.
    Unknown(String),
}

impl<T: Word> Said<T> {
    /// What `text` says.
    pub fn of(text: &str) -> Self {
        let found = T::WORDS.iter().find(|(word, _)| *word == text);
        found.map_or_else(|| Self::Unknown(text.to_owned()), |(_, value)| Self::Known(*value))
    }
}

impl<T: Word + PartialEq> Said<T> {
    /// The word, as it was or would be written.
    pub fn word(&self) -> &str {
        match self {
            Self::Known(value) => T::WORDS.iter().find(|(_, other)| other == value).map_or("", |(word, _)| word),
            Self::Unknown(text) => text,
        }
    }

    /// The value, if it is on the list.
    pub fn known(&self) -> Option<T> {
        match self {
            Self::Known(value) => Some(*value),
            Self::Unknown(_) => None,
        }
    }
}

impl<T: Word + PartialEq> fmt::Display for Said<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $value:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$value_doc])* $value,)+
        }

        impl Word for $name {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$value),)+];
        }
    };
}

words! {
    /// What the experience is about, and so whether it carries over to another place.
    Layer {
        /// How it was written.
        Implementation = "implementation",
        /// How it was thought out.
        Design = "design",
        /// The machine, the network, the tools.
        Environment = "environment",
        /// Something that is used.
        Dependency = "dependency",
        /// What was asked for.
        Requirement = "requirement",
        /// Nobody said: free prose.
        Unclassified = "unclassified",
    }
}

words! {
    /// How far the experience travels.
    Scope {
        /// This place only.
        Local = "local",
        /// As long as the versions are what they were.
        VersionBound = "version-bound",
        /// Everywhere.
        General = "general",
    }
}

words! {
    /// How sure it is that a procedure works.
    Evidence {
        /// The author ran `verify` and saw it work.
        Verified = "verified",
        /// It worked once.
        Once = "once",
        /// Somebody said so.
        Reported = "reported",
    }
}

words! {
    /// How sure it is that a route fails.
    Degree {
        /// It was shown not to work.
        Contradicted = "contradicted",
        /// Parts of it work.
        Partial = "partial",
        /// It could not be told.
        Inconclusive = "inconclusive",
        /// It works at times.
        Unstable = "unstable",
    }
}

words! {
    /// What to do about a dead end.
    Action {
        /// Try again.
        Retry = "retry",
        /// Do it in another way.
        ChangeMethod = "change-method",
        /// Do less.
        NarrowScope = "narrow-scope",
        /// Leave it.
        Abandon = "abandon",
    }
}

words! {
    /// Whether a record may be shown to those who try something.
    Approval {
        /// Not before a person approved it.
        Proposed = "proposed",
        /// Yes.
        Active = "active",
        /// No, and the same is not to be proposed again.
        Rejected = "rejected",
    }
}

impl Word for Polarity {
    const WORDS: &'static [(&'static str, Self)] = &[("works", Self::Works), ("fails", Self::Fails)];
}

impl Polarity {
    /// `works` or `fails`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Fails => "fails",
        }
    }
}

impl Approval {
    /// `proposed`, `active` or `rejected`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Active => "active",
            Self::Rejected => "rejected",
        }
    }
}

/// A package that the experience was made with.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Dependency {
    /// Its name.
    pub name: String,
    /// The version, or a range of versions, if it is known.
    pub version: Option<String>,
}

impl Dependency {
    /// Reads `name` or `name@version`. Names of scoped packages begin with an `@`.
    pub fn parse(text: &str) -> Self {
        match text.rsplit_once('@') {
            Some((name, version)) if !name.is_empty() && !version.is_empty() => {
                Self { name: name.to_owned(), version: Some(version.to_owned()) }
            }
            Some(_) | None => Self { name: text.to_owned(), version: None },
        }
    }
}

impl fmt::Display for Dependency {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            Some(version) => write!(formatter, "{}@{version}", self.name),
            None => formatter.write_str(&self.name),
        }
    }
}

/// What somebody learnt: what works, or what fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its id, never used again.
    pub id: RecordId,
    /// Works or fails.
    pub polarity: Polarity,
    /// What was, or is to be, done. A record of free prose has nothing else.
    pub route: String,
    /// What goes wrong for who does it otherwise.
    pub trap: Option<String>,
    /// What was seen when it failed.
    pub observation: Option<String>,
    /// What to try instead.
    pub alternative: Option<String>,
    /// A command that shows that it works. It is data: nobody runs it because it stands here.
    pub verify: Option<String>,
    /// What it is about.
    pub layer: Option<Said<Layer>>,
    /// How far it travels.
    pub scope: Option<Said<Scope>>,
    /// How sure it is that it works.
    pub evidence: Option<Said<Evidence>>,
    /// How sure it is that it fails.
    pub degree: Option<Said<Degree>>,
    /// What to do about it.
    pub action: Option<Said<Action>>,
    /// The files that it is about, relative to the top of their repository.
    pub files: Vec<String>,
    /// The packages that it was seen with.
    pub dependencies: Vec<Dependency>,
    /// The repository that it comes from; `None` where it belongs to none.
    pub project: Option<String>,
    /// The working tree that it comes from.
    pub worktree: Option<String>,
    /// Who wrote it.
    pub agent: Option<String>,
    /// The session that it was written in.
    pub session: Option<String>,
    /// The commit at which it was seen.
    pub commit: Option<String>,
    /// Where it was imported from.
    pub from: Option<String>,
    /// When it was written; `None` for a line that somebody wrote by hand.
    pub created: Option<Timestamp>,
    /// Whether it may be shown.
    pub approval: Approval,
    /// The record that it replaces.
    pub supersedes: Option<RecordId>,
    /// Metadata that this version knows nothing of, or that only the place it came from needs: name and value.
    pub other: Vec<(String, String)>,
}

/// Why something is no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Incomplete {
    /// Nothing is said.
    #[error("a record needs a route: what was, or is to be, done")]
    Route,
    /// What works, without what goes wrong otherwise.
    #[error(
        "a route without a trap is documentation: write it where conventions are kept, or say what goes wrong for who does it otherwise"
    )]
    Trap,
    /// What fails, without what was seen.
    #[error("a dead end needs an observation: what was seen when it failed")]
    Observation,
}

impl Record {
    /// A record with nothing but what it is about.
    pub fn new(id: RecordId, polarity: Polarity, route: impl Into<String>) -> Self {
        Self {
            id,
            polarity,
            route: route.into(),
            trap: None,
            observation: None,
            alternative: None,
            verify: None,
            layer: None,
            scope: None,
            evidence: None,
            degree: None,
            action: None,
            files: Vec::new(),
            dependencies: Vec::new(),
            project: None,
            worktree: None,
            agent: None,
            session: None,
            commit: None,
            from: None,
            created: None,
            approval: Approval::Active,
            supersedes: None,
            other: Vec::new(),
        }
    }

    /// A record that has no id yet.
    pub fn draft(polarity: Polarity, route: impl Into<String>) -> Self {
        Self::new(RecordId::from_bits(0), polarity, route)
    }

    /// Whether it has an id.
    pub fn has_id(&self) -> bool {
        self.id != RecordId::from_bits(0)
    }

    /// Whether it is free prose, which somebody wrote without saying what is route and what observation.
    pub fn is_prose(&self) -> bool {
        self.layer == Some(Said::Known(Layer::Unclassified))
    }

    /// Whether it says all that a record of its polarity has to say.
    ///
    /// # Errors
    /// What is missing.
    pub fn check(&self) -> Result<(), Incomplete> {
        let is_blank = |field: &Option<String>| field.as_deref().is_none_or(|text| text.trim().is_empty());
        if self.route.trim().is_empty() {
            return Err(Incomplete::Route);
        }
        match self.polarity {
            Polarity::Works if is_blank(&self.trap) => Err(Incomplete::Trap),
            // What was written down elsewhere followed the rules of that place.
            Polarity::Fails if is_blank(&self.observation) && !self.is_prose() && self.from.is_none() => Err(Incomplete::Observation),
            Polarity::Works | Polarity::Fails => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(polarity: Polarity) -> Record {
        Record::new(RecordId::from_bits(1), polarity, "rebase before the release")
    }

    #[test]
    fn a_route_without_a_trap_is_refused_with_that_sentence() {
        let missing = record(Polarity::Works).check().unwrap_err();

        assert!(missing.to_string().starts_with("a route without a trap is documentation"), "{missing}");
        assert_eq!(Record { trap: Some(" \t".to_owned()), ..record(Polarity::Works) }.check(), Err(Incomplete::Trap));
        assert_eq!(Record { trap: Some("the tag is lost".to_owned()), ..record(Polarity::Works) }.check(), Ok(()));
    }

    #[test]
    fn a_dead_end_needs_an_observation_unless_it_is_prose() {
        let prose = Some(Said::Known(Layer::Unclassified));

        assert_eq!(record(Polarity::Fails).check(), Err(Incomplete::Observation));
        assert_eq!(Record { layer: prose.clone(), ..record(Polarity::Fails) }.check(), Ok(()));
        assert_eq!(Record { from: Some("logos".to_owned()), ..record(Polarity::Fails) }.check(), Ok(()));
        assert_eq!(Record { route: "\u{a0}".to_owned(), layer: prose, ..record(Polarity::Fails) }.check(), Err(Incomplete::Route));
    }

    #[test]
    fn a_word_that_is_not_on_the_list_is_kept_as_it_was_written() {
        assert_eq!(Said::<Layer>::of("design"), Said::Known(Layer::Design));
        let unknown = Said::<Layer>::of("Design");

        assert_eq!((unknown.known(), unknown.word()), (None, "Design"));
        assert_eq!(Said::<Scope>::of("version-bound").to_string(), "version-bound");
    }

    #[test]
    fn the_version_of_a_dependency_follows_the_last_at_sign() {
        for (text, name, version) in [
            ("serde", "serde", None),
            ("serde@1.0.2", "serde", Some("1.0.2")),
            ("@scope/pkg", "@scope/pkg", None),
            ("@scope/pkg@^2", "@scope/pkg", Some("^2")),
            ("odd@", "odd@", None),
        ] {
            let dependency = Dependency::parse(text);

            assert_eq!((dependency.name.as_str(), dependency.version.as_deref()), (name, version));
            assert_eq!(dependency.to_string(), text);
        }
    }
}
