//! Text files, read and written for an agent.
//!
//! Everything is opened without waiting and looked at before it is used: a pipe or a device that an agent names would hold up
//! the whole session.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::speech::{FAILED, NOT_FOUND};
use super::desk::{Refusal, taken};

/// The most that is read at once. More than that no model takes in.
const LARGEST: usize = 8 * 1024 * 1024;

/// The parameters of `fs/read_text_file`.
#[derive(Deserialize)]
struct Reading {
    path: PathBuf,
    /// From 1.
    line: Option<usize>,
    limit: Option<usize>,
}

/// The parameters of `fs/write_text_file`.
#[derive(Deserialize)]
struct Writing {
    path: PathBuf,
    content: String,
}

/// What a file that is not there comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    IsRefused,
    /// For agents that can't tell this refusal from others, and take none of them for leave to write a new file.
    IsEmpty,
}

pub(super) fn read(params: &str, missing: Missing) -> Result<Value, Refusal> {
    let Reading { path, line, limit } = taken(params)?;
    let refused = |error| refusal("read", &path, &error);
    let file = match open(&path, OFlags::RDONLY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && missing == Missing::IsEmpty => return Ok(json!({ "content": "" })),
        opened => opened.map_err(refused)?,
    };
    let bytes = part(BufReader::new(file), line.unwrap_or(1), limit).map_err(refused)?;
    if bytes.len() > LARGEST {
        let message = format!("failed to read {}: it is over {LARGEST} bytes; ask for a part of it by `line` and `limit`", path.display());
        return Err(Refusal::failed(message));
    }
    let content =
        String::from_utf8(bytes).map_err(|_| Refusal::failed(format!("failed to read {}: it is no UTF-8 text", path.display())))?;
    Ok(json!({ "content": content }))
}

/// So many lines from this one on, as they are; one byte more than the most where there is more.
fn part(mut file: impl BufRead, line: usize, limit: Option<usize>) -> io::Result<Vec<u8>> {
    for _ in 1..line {
        if file.skip_until(b'\n')? == 0 {
            break;
        }
    }
    let mut bytes = Vec::new();
    let mut rest = file.take(LARGEST as u64 + 1);
    match limit {
        None => _ = rest.read_to_end(&mut bytes)?,
        Some(limit) => {
            for _ in 0..limit {
                if rest.read_until(b'\n', &mut bytes)? == 0 {
                    break;
                }
            }
        }
    }
    Ok(bytes)
}

/// Writes the file in its place: it may be one that can be written in its box and not replaced.
pub(super) fn write(params: &str) -> Result<Value, Refusal> {
    let Writing { path, content } = taken(params)?;
    let refused = |error| refusal("write", &path, &error);
    let new = OFlags::WRONLY | OFlags::CREATE;
    let opened = match open(&path, new) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Agents expect what editors do, which make the folders too.
            std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).map_err(refused)?;
            open(&path, new)
        }
        opened => opened,
    };
    let mut file = opened.map_err(refused)?;
    file.set_len(0).and_then(|()| file.write_all(content.as_bytes())).map_err(refused)?;
    Ok(json!({}))
}

fn open(path: &Path, how: OFlags) -> io::Result<File> {
    if !path.is_absolute() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "its path is not absolute"));
    }
    let plain = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, how | plain, Mode::from_raw_mode(0o666))?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no regular file")) }
}

fn refusal(what: &str, path: &Path, error: &io::Error) -> Refusal {
    let is = |kinds: &[io::ErrorKind]| kinds.contains(&error.kind());
    let no_right = is(&[io::ErrorKind::ReadOnlyFilesystem, io::ErrorKind::PermissionDenied]);
    let why = if no_right { "; this session has no right to do that" } else { "" };
    let message = format!("failed to {what} {}: {error}{why}", path.display());
    if is(&[io::ErrorKind::InvalidInput]) {
        return Refusal::wrong(message);
    }
    Refusal { code: if is(&[io::ErrorKind::NotFound]) { NOT_FOUND } else { FAILED }, message }
}
