//! The other end of a session's socket: asks its host what is offered, and passes calls on.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_process::descriptors;
use serde_json::Value;

use super::message::{OfferedTool, Reply, Request, ToolAnswer, VERSION};

/// How long a host may take for an answer. It takes milliseconds, unless somebody has stopped it.
const PATIENCE: Duration = Duration::from_secs(60);
/// A longer line is no answer.
const LONGEST_REPLY: u64 = 1024 * 1024;

/// Why the session's host could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// There is no such socket, or nobody listens at it.
    #[error("connect to the session's host by {}", socket.display())]
    Connect {
        /// The socket.
        socket: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It went away in the middle.
    #[error("ask the session's host")]
    Ask(#[source] io::Error),
    /// It hung up. It does so with everybody who is not of its session.
    #[error("ask the session's host: it hung up, as it does with whoever is not of its session")]
    Refused,
    /// It answered something else.
    #[error("read what the session's host answered: {0}")]
    Answer(String),
}

/// A connection to the host of the session that this process is of.
#[derive(Debug)]
pub struct Bridge {
    stream: BufReader<UnixStream>,
    asked: u64,
}

impl Bridge {
    /// Connects to a session's socket.
    ///
    /// # Errors
    /// It is not there, or nobody listens.
    pub fn connect(socket: &Path) -> Result<Self, BridgeError> {
        let refused = |source| BridgeError::Connect { socket: socket.to_owned(), source };
        let (folder, name) = (socket.parent().unwrap_or(Path::new("/")), socket.file_name().unwrap_or_default());
        // Its path may be longer than an address.
        let open = File::open(folder).map_err(refused)?;
        let stream = UnixStream::connect(descriptors::short_path(open.as_fd(), Path::new(name))).map_err(refused)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(refused)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(refused)?;
        Ok(Self { stream: BufReader::new(stream), asked: 0 })
    }

    /// What the host offers to this session.
    ///
    /// # Errors
    /// The host lets nobody in who is not of its session, is gone, or answers something else.
    pub fn offer(&mut self) -> Result<Vec<OfferedTool>, BridgeError> {
        let reply = self.ask(Request { offer: true, ..Request::default() })?;
        let said = || reply.text.unwrap_or_else(|| "it does not say what it offers".to_owned());
        reply.offer.ok_or_else(|| BridgeError::Answer(said()))
    }

    /// Calls a tool. That it fails is an answer too.
    ///
    /// # Errors
    /// The host is gone, or answers something else.
    pub fn call(&mut self, tool: &str, input: Value) -> Result<ToolAnswer, BridgeError> {
        let reply = self.ask(Request { call: Some(tool.to_owned()), input, ..Request::default() })?;
        Ok(ToolAnswer { failed: reply.failed, text: reply.text.unwrap_or_default() })
    }

    fn ask(&mut self, request: Request) -> Result<Reply, BridgeError> {
        self.asked += 1;
        let request = Request { version: VERSION, id: self.asked, ..request };
        let mut line = serde_json::to_vec(&request).map_err(|error| BridgeError::Answer(error.to_string()))?;
        line.push(b'\n');
        self.stream.get_mut().write_all(&line).map_err(hung_up)?;
        loop {
            let reply = self.reply()?;
            // One that came too late is for nobody any more.
            if reply.id == self.asked {
                return Ok(reply);
            }
        }
    }

    fn reply(&mut self) -> Result<Reply, BridgeError> {
        let mut line = Vec::new();
        (&mut self.stream).take(LONGEST_REPLY).read_until(b'\n', &mut line).map_err(hung_up)?;
        if line.is_empty() {
            return Err(BridgeError::Refused);
        }
        let reply: Reply = serde_json::from_slice(&line).map_err(|error| BridgeError::Answer(error.to_string()))?;
        if reply.version == VERSION { Ok(reply) } else { Err(BridgeError::Answer(format!("it speaks version {}", reply.version))) }
    }
}

fn hung_up(error: io::Error) -> BridgeError {
    let is_gone = matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset);
    if is_gone { BridgeError::Refused } else { BridgeError::Ask(error) }
}
