//! Sockets outside at which a container's processes are heard.
//!
//! Who listens there lets in descendants of its child, which the keeper is and a container's processes are not. So what
//! they say comes to a socket of the keeper's, which lets in descendants of the first process of its container by the same
//! rule, and hands it on.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustix::net::sockopt::socket_peercred;

use crate::{descriptors, family};

/// A socket at `name` in `folder`, which may lie too deep for an address.
pub(super) fn bind(folder: &Path, name: &str) -> io::Result<UnixListener> {
    let open = File::open(folder)?;
    UnixListener::bind(descriptors::short_path(open.as_fd(), Path::new(name)))
}

/// The process that connected, as it is called outside, where it is of this user.
pub(super) fn caller(stream: &UnixStream) -> Option<u32> {
    let peer = socket_peercred(stream).ok().filter(|peer| peer.uid == rustix::process::geteuid())?;
    Some(peer.pid.as_raw_nonzero().get().unsigned_abs())
}

/// Hands on what comes to `listener`, for as long as this process lives.
pub(super) fn hand_on(listener: UnixListener, door: PathBuf, first: Arc<OnceLock<u32>>) {
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let is_ours = caller(&stream).is_some_and(|pid| first.get().is_some_and(|first| family::descends_from(pid, *first)));
            if is_ours {
                // A door that is closed is one that hangs up.
                let _ = connect(stream, &door);
            }
        }
    });
}

fn connect(inside: UnixStream, door: &Path) -> io::Result<()> {
    let folder = File::open(door.parent().unwrap_or(Path::new("/")))?;
    let outside = UnixStream::connect(descriptors::short_path(folder.as_fd(), Path::new(door.file_name().unwrap_or_default())))?;
    for (mut from, mut to) in [(inside.try_clone()?, outside.try_clone()?), (outside, inside)] {
        std::thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(std::net::Shutdown::Write);
        });
    }
    Ok(())
}
