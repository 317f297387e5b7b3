//! What a keeper is told: everything about a container but the program that runs in it.
//!
//! It comes as arguments of the hidden command, one `key=value` each, because it is made in another process, with other
//! variables, than the one that starts the container.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::super::mounts::{self, Mount, Mounts, governing};
use super::super::{BoxRules, ConfineError, Net, real};
use super::{Container, User};

/// Made new for each container.
const TEMPORARY: &str = "/tmp";
/// Options of folders in memory. What is made there may be run: builds do that.
const IN_MEMORY: &str = "rw,exec,nosuid,nodev,mode=1777";

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) program: PathBuf,
    pub(super) user: User,
    pub(super) image: String,
    pub(super) net: Net,
    pub(super) place: Option<PathBuf>,
    pub(super) named: Option<PathBuf>,
    pub(super) doors: Vec<PathBuf>,
    pub(super) mounts: Mounts,
    /// Variables of the container program itself.
    pub(super) variables: Vec<(OsString, OsString)>,
}

impl Order {
    pub(super) fn new(container: &Container, rules: &BoxRules, own_program: &Path, variables: Vec<(OsString, OsString)>) -> Self {
        let mut planned = mounts::of_rules(rules);
        mounts::pin(&mut planned);
        // What is not there needs no hiding.
        let seen = planned.clone();
        planned.retain(|path, mount| {
            let above = path.parent().and_then(|parent| governing(&seen, parent));
            *mount != Mount::Hidden || matches!(above, Some(Mount::Writable | Mount::ReadOnly))
        });
        planned.insert(real(own_program), Mount::ReadOnly);
        Self {
            program: container.program.clone(),
            user: container.user,
            image: container.image.clone(),
            net: rules.net,
            place: rules.place.clone(),
            named: rules.program.clone(),
            doors: rules.doors.clone(),
            mounts: planned,
            variables,
        }
    }

    pub(super) fn into_arguments(self) -> Vec<OsString> {
        let pair = |key: &str, value: &OsStr| {
            let mut argument = OsString::from(key);
            argument.push("=");
            argument.push(value);
            argument
        };
        let mut arguments = vec![
            pair("program", self.program.as_os_str()),
            pair("user", self.user.name().as_ref()),
            pair("image", self.image.as_ref()),
            pair("net", self.net.name().as_ref()),
        ];
        arguments.extend(self.place.iter().map(|place| pair("place", place.as_os_str())));
        arguments.extend(self.named.iter().map(|named| pair("named", named.as_os_str())));
        arguments.extend(self.doors.iter().map(|door| pair("door", door.as_os_str())));
        arguments.extend(self.mounts.iter().map(|(path, mount)| pair(key_of(*mount), path.as_os_str())));
        arguments.extend(self.variables.iter().map(|(name, value)| pair("variable", &pair(&name.to_string_lossy(), value))));
        arguments
    }

    pub(super) fn parse(arguments: Vec<OsString>) -> Result<Self, ConfineError> {
        let (mut program, mut user, mut image, mut net) = (None, None, None, None);
        let (mut place, mut named, mut doors) = (None, None, Vec::new());
        let (mut mounts, mut variables) = (Mounts::new(), Vec::new());
        for argument in &arguments {
            let Some((key, value)) = split(argument) else { continue };
            let path = || PathBuf::from(&value);
            match key.to_str() {
                Some("program") => program = Some(path()),
                Some("user") => user = User::ALL.into_iter().find(|user| value == user.name()),
                Some("image") => image = value.to_str().map(ToOwned::to_owned),
                Some("net") => net = value.to_str().and_then(|net| net.parse().ok()),
                Some("place") => place = Some(path()),
                Some("named") => named = Some(path()),
                Some("door") => doors.push(path()),
                Some("variable") => variables.extend(split(&value)),
                Some(key) => mounts.extend(MOUNTS.iter().find(|(name, _)| *name == key).map(|(_, mount)| (path(), *mount))),
                None => {}
            }
        }
        let missing = |missing| ConfineError::Arguments { missing };
        Ok(Self {
            program: program.ok_or(missing("program"))?,
            user: user.ok_or(missing("user"))?,
            image: image.ok_or(missing("image"))?,
            net: net.ok_or(missing("net"))?,
            place,
            named,
            doors,
            mounts,
            variables,
        })
    }

    /// How the container program is told what of this machine is in the container. `home` is the user's folder, which is
    /// empty there.
    pub(super) fn mount_arguments(&self, home: Option<&Path>) -> Result<Vec<OsString>, ConfineError> {
        let mut arguments = in_memory(Path::new(TEMPORARY))?;
        if let Some(home) = home.filter(|home| home.is_absolute() && home.parent().is_some() && governing(&self.mounts, home).is_none()) {
            arguments.extend(in_memory(home)?);
        }
        for (path, mount) in &self.mounts {
            arguments.extend(match mount {
                Mount::Writable => bind(path, path, "")?,
                Mount::ReadOnly => bind(path, path, ",readonly")?,
                Mount::Hidden if path.is_dir() => in_memory(path)?,
                Mount::Hidden => bind(Path::new("/dev/null"), path, ",readonly")?,
            });
        }
        Ok(arguments)
    }
}

const MOUNTS: [(&str, Mount); 3] = [("writable", Mount::Writable), ("read-only", Mount::ReadOnly), ("hidden", Mount::Hidden)];

fn key_of(mount: Mount) -> &'static str {
    MOUNTS.iter().find(|(_, other)| *other == mount).map_or("", |(name, _)| name)
}

fn split(pair: &OsStr) -> Option<(OsString, OsString)> {
    let bytes = pair.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=')?;
    Some((OsString::from_vec(bytes[..at].to_vec()), OsString::from_vec(bytes[at + 1..].to_vec())))
}

fn in_memory(path: &Path) -> Result<Vec<OsString>, ConfineError> {
    // A colon would begin the options.
    let text = path.to_str().filter(|text| !text.contains(':')).ok_or_else(|| ConfineError::OddPath { path: path.to_owned() })?;
    Ok(vec!["--tmpfs".into(), format!("{text}:{IN_MEMORY}").into()])
}

/// A mount of what is at `from`. The options are one line of comma-separated values, in which quotes make a value of
/// anything.
pub(super) fn bind(from: &Path, to: &Path, more: &str) -> Result<Vec<OsString>, ConfineError> {
    let quoted = |key: &str, path: &Path| {
        let text = path.to_str().ok_or_else(|| ConfineError::OddPath { path: path.to_owned() })?;
        Ok::<String, ConfineError>(format!("\"{key}={}\"", text.replace('"', "\"\"")))
    };
    Ok(vec!["--mount".into(), format!("type=bind,{},{}{more}", quoted("source", from)?, quoted("target", to)?).into()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(rules: &BoxRules) -> Order {
        let container = Container { program: "/usr/bin/podman".into(), user: User::Kept, image: "debian:13".into() };
        Order::new(&container, rules, Path::new("/nowhere/proctor"), vec![("DOCKER_HOST".into(), "unix:///a=b".into())])
    }

    #[test]
    fn a_keeper_is_told_everything() {
        let rules = BoxRules {
            writable: vec!["/nowhere/with=sign".into()],
            net: Net::None,
            doors: vec!["/nowhere/door".into()],
            place: Some("/nowhere/place".into()),
            program: Some("agent".into()),
            ..BoxRules::default()
        };
        let told = order(&rules).into_arguments();

        assert_eq!(Order::parse(told).unwrap(), order(&rules));
    }

    #[test]
    fn a_keeper_that_was_told_too_little_says_what_is_missing() {
        let error = Order::parse(vec!["program=/usr/bin/docker".into(), "user=same".into()]).unwrap_err();

        assert_eq!(error.to_string(), "enter a box: this command is for Proctor itself, which gave no `image`");
    }

    #[test]
    fn what_is_hidden_is_covered_only_where_it_would_be_seen() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["state/tree", "tree/secret"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        let rules = BoxRules {
            writable: vec![root.join("state/tree"), root.join("tree")],
            hidden: vec![root.join("state"), root.join("tree/secret")],
            ..BoxRules::default()
        };

        let planned = order(&rules).mounts;

        let inside = planned.iter().filter_map(|(path, mount)| Some((path.strip_prefix(&root).ok()?.to_str()?, *mount)));
        assert_eq!(
            inside.collect::<Vec<_>>(),
            [("state/tree", Mount::Writable), ("tree", Mount::Writable), ("tree/secret", Mount::Hidden)]
        );
    }

    #[test]
    fn a_path_is_one_value_whatever_is_in_it() {
        let told = bind(Path::new("/a,b\"c"), Path::new("/d"), ",readonly").unwrap();

        assert_eq!(told, ["--mount", "type=bind,\"source=/a,b\"\"c\",\"target=/d\",readonly"]);
        assert!(bind(Path::new(OsStr::from_bytes(b"/\xff")), Path::new("/d"), "").is_err());
        assert!(in_memory(Path::new("/a:b")).is_err());
    }
}
