//! Reading what shells wrote to `$PROCTOR_OUTPUT`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use proctor_process::durable::{self, Durability};
use rustix::fs::OFlags;

use super::streams::Hidden;

/// Bytes that the whole file may have.
const FILE_LIMIT: u64 = 1024 * 1024;
/// Bytes that one value may have: half of what the system takes as one variable of a later shell's environment.
const VALUE_LIMIT: usize = 64 * 1024;

/// The outputs, or one sentence about why there are none. A file that is gone or empty holds none.
pub(super) fn read(path: &Path) -> Result<BTreeMap<String, String>, String> {
    parse(&read_bytes(path)?)
}

/// As [`read`], when nobody needs the file any more: secrets are taken out of it and of the outputs.
pub(super) fn read_for_report(path: &Path, secrets: &Hidden) -> Result<BTreeMap<String, String>, String> {
    let bytes = read_bytes(path)?;
    if bytes.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut clean = Vec::new();
    let mut redactor = secrets.redactor();
    redactor.push(&bytes, &mut |part| clean.extend_from_slice(part));
    redactor.finish(&mut |part| clean.extend_from_slice(part));
    if clean != bytes {
        // Replaced and not written over: it could be a link by now.
        durable::write(path, &clean, Durability::Renamed).map_err(|error| format!("$PROCTOR_OUTPUT holds a secret: failed to {error}"))?;
    }
    parse(&clean)
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, String> {
    // The shells may have put anything there. A pipe must not be waited on, and a link may lead to a file
    // that they could not read.
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOFOLLOW).bits()).unwrap_or(0);
    let file = match File::options().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("$PROCTOR_OUTPUT can't be read: {error}")),
    };
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err("$PROCTOR_OUTPUT is no longer a file".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(FILE_LIMIT + 1).read_to_end(&mut bytes).map_err(|error| format!("$PROCTOR_OUTPUT can't be read: {error}"))?;
    if bytes.len() as u64 > FILE_LIMIT {
        return Err(format!("$PROCTOR_OUTPUT has more than {FILE_LIMIT} bytes"));
    }
    Ok(bytes)
}

fn parse(bytes: &[u8]) -> Result<BTreeMap<String, String>, String> {
    let mut outputs = BTreeMap::new();
    for (line, number) in bytes.split(|&byte| byte == b'\n').zip(1..) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let (name, value) = parse_line(line).map_err(|reason| format!("line {number} of $PROCTOR_OUTPUT {reason}"))?;
        outputs.insert(name, value);
    }
    Ok(outputs)
}

fn parse_line(line: &[u8]) -> Result<(String, String), String> {
    let text = std::str::from_utf8(line).map_err(|_| "is not UTF-8".to_owned())?;
    let (name, value) = text.split_once('=').ok_or_else(|| "has no `=`: write name=value".to_owned())?;
    let mut characters = name.chars();
    let starts_well = characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    if !starts_well || !characters.all(|character| character.is_ascii_alphanumeric() || matches!(character, '_' | '-')) {
        let shown: String = name.chars().take(40).collect();
        return Err(format!("has the name `{}`: a letter or `_`, then letters, digits, `_` and `-`", shown.escape_debug()));
    }
    if value.len() > VALUE_LIMIT {
        return Err(format!("has a value of {} bytes; {VALUE_LIMIT} are the limit", value.len()));
    }
    if value.contains('\0') {
        return Err("has a NUL byte".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_not_be_used_is_named_by_its_line() {
        let long = format!("a={}", "x".repeat(VALUE_LIMIT + 1));
        for (text, said) in [
            (&b"a=1\nnonsense\n"[..], "line 2 of $PROCTOR_OUTPUT has no `=`: write name=value"),
            (b"\n\n\xff=1", "line 3 of $PROCTOR_OUTPUT is not UTF-8"),
            (b"1a=x", "line 1 of $PROCTOR_OUTPUT has the name `1a`: a letter or `_`, then letters, digits, `_` and `-`"),
            (b"=x", "line 1 of $PROCTOR_OUTPUT has the name ``: a letter or `_`, then letters, digits, `_` and `-`"),
            (b"a b=x", "line 1 of $PROCTOR_OUTPUT has the name `a b`: a letter or `_`, then letters, digits, `_` and `-`"),
            (b"a=\0", "line 1 of $PROCTOR_OUTPUT has a NUL byte"),
            (long.as_bytes(), "line 1 of $PROCTOR_OUTPUT has a value of 65537 bytes; 65536 are the limit"),
        ] {
            assert_eq!(parse(text), Err(said.to_owned()));
        }
    }

    #[test]
    fn the_last_of_several_values_counts_and_values_stay_as_they_are() {
        let outputs = parse("a=1\r\n\n  \nB_c-2= x = y \na=é\n_=".as_bytes());

        let expected = [("a", "é"), ("B_c-2", " x = y "), ("_", "")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(outputs, Ok(BTreeMap::from(expected)));
    }

    #[test]
    fn whatever_lies_in_the_files_place_is_not_waited_on() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("folder")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", at("link")).unwrap();
        File::create(at("big")).unwrap().set_len(FILE_LIMIT + 1).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();

        assert_eq!(read(&at("nothing")), Ok(BTreeMap::new()));
        for name in ["folder", "link", "big", "pipe"] {
            assert!(read(&at(name)).unwrap_err().contains("$PROCTOR_OUTPUT"), "{name}");
        }
    }
}
