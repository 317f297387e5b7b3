//! Whether a record names a file.

use std::path::Path;

/// A file as records name it: relative to the top of its repository, one way only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Naming(String);

impl Naming {
    /// `path` below `root`; `None` where it names nothing, or something outside.
    pub(crate) fn of(path: &str, root: Option<&Path>) -> Option<Self> {
        let path = path.trim();
        let relative = match root {
            Some(root) if path.starts_with('/') => Path::new(path).strip_prefix(root).ok()?.to_str()?,
            Some(_) | None => path,
        };
        let mut parts: Vec<&str> = Vec::new();
        for part in relative.split('/').filter(|part| !part.is_empty() && *part != ".") {
            if part == ".." {
                parts.pop()?;
            } else {
                parts.push(part);
            }
        }
        (!parts.is_empty()).then(|| Self(parts.join("/")))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The file and every folder that it is in.
    pub(crate) fn with_folders(&self) -> impl Iterator<Item = &str> {
        let folders = self.0.match_indices('/').map(|(end, _)| &self.0[..end]);
        folders.chain([self.as_str()])
    }

    /// Whether it is `other`, or in the folder of that name.
    fn is_in(&self, other: &Self) -> bool {
        let rest = self.0.strip_prefix(&other.0);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// How a record with these files names one of them or its folder, as a sentence.
pub(crate) fn named_by(wanted: &Naming, files: &[String]) -> Option<String> {
    let named = files.iter().filter_map(|file| Some((file, Naming::of(file, None)?)));
    let (file, naming) = named.filter(|(_, naming)| wanted.is_in(naming)).max_by_key(|(_, naming)| naming.0.len())?;
    Some(if naming == *wanted { format!("it names the file {file}") } else { format!("it names the folder {file}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, file: &str, expected: Option<&str>) {
        let wanted = Naming::of(path, Some(Path::new("/home/ann/shop"))).unwrap();

        assert_eq!(named_by(&wanted, &[file.to_owned()]).as_deref(), expected, "{path} {file}");
    }

    #[test]
    fn a_file_is_named_by_its_path_however_that_is_written_and_by_its_folders() {
        check("src/db/pool.rs", "src/db/pool.rs", Some("it names the file src/db/pool.rs"));
        check("/home/ann/shop/src/db/pool.rs", "./src//db/pool.rs", Some("it names the file ./src//db/pool.rs"));
        check("src/x/../db/pool.rs", "/src/db/pool.rs", Some("it names the file /src/db/pool.rs"));
        check("src/db/pool.rs", "src/db/", Some("it names the folder src/db/"));
        check("src/db/pool.rs", "src", Some("it names the folder src"));
    }

    #[test]
    fn neither_a_name_that_begins_so_nor_the_same_name_elsewhere_is_the_file() {
        check("src/db/pool.rs", "src/db/pool", None);
        check("src/db/pool.rs", "pool.rs", None);
        check("src/database/pool.rs", "src/data", None);
        check("src/db", "src/db/pool.rs", None);
        check("src/DB/pool.rs", "src/db/pool.rs", None);
    }

    #[test]
    fn what_is_outside_or_nothing_is_no_file_of_the_repository() {
        for path in ["", " ", "/", ".", "..", "../other/src/db.rs", "/etc/passwd", "/home/ann/shop"] {
            assert_eq!(Naming::of(path, Some(Path::new("/home/ann/shop"))), None, "{path}");
        }
    }

    #[test]
    fn the_nearest_name_is_said() {
        let wanted = Naming::of("src/db/pool.rs", None).unwrap();

        assert_eq!(
            named_by(&wanted, &["src/".to_owned(), "src/db/pool.rs".to_owned(), "src/db".to_owned()]).as_deref(),
            Some("it names the file src/db/pool.rs")
        );
    }
}
