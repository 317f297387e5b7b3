//! The server: a thread that accepts, and one for each connection.
//!
//! Threads and not an event loop: a test has tens of connections, most of them asleep in a scripted delay, and code
//! that waits in place can be read from top to bottom.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::closing::{Closing, locked};
use crate::connection::{Desk, serve};
use crate::faults::Faults;
use crate::request_log::{RecordedRequest, RequestLog};
use crate::script::Script;

/// Connections at once; one more is closed unanswered.
const MOST_CONNECTIONS: usize = 512;

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The port is taken or not allowed.
    #[error("listen on 127.0.0.1, port {port}")]
    Listen {
        /// The port that was asked for; 0 is any.
        port: u16,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The system gives no more threads.
    #[error("start the thread that accepts connections")]
    Thread(#[source] io::Error),
}

/// A model that listens. Dropping it stops it.
#[must_use = "dropping it stops it"]
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    desk: Desk,
    connections: Mutex<HashMap<u64, Arc<TcpStream>>>,
}

impl Server {
    /// Listens on 127.0.0.1; port 0 takes a free one.
    ///
    /// # Errors
    /// The port can't be had, or no thread.
    pub fn start(script: Script, port: u16) -> Result<Self, ServerError> {
        let failed = |source| ServerError::Listen { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let desk = Desk { script, faults: Faults::default(), log: RequestLog::default(), ids: Ids::new(), closing: Closing::default() };
        let shared = Arc::new(Shared { desk, connections: Mutex::default() });
        let accepting = Arc::clone(&shared);
        let acceptor =
            thread::Builder::new().name("loopback".to_owned()).spawn(move || accept(&accepting, &listener)).map_err(ServerError::Thread)?;
        Ok(Self { address, shared, acceptor: Some(acceptor) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What to put into `ANTHROPIC_BASE_URL`; OpenAI's clients want `/v1` behind it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far, oldest first; of very many the latest.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.desk.log.all()
    }

    /// Closes every connection and returns when all threads have ended.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(acceptor) = self.acceptor.take() else { return };
        self.shared.desk.closing.close();
        for connection in locked(&self.shared.connections).values() {
            let _ = connection.shutdown(Shutdown::Both);
        }
        // The acceptor sleeps in `accept` until somebody comes.
        while !acceptor.is_finished() && TcpStream::connect_timeout(&self.address, Duration::from_millis(100)).is_err() {
            thread::yield_now();
        }
        let _ = acceptor.join();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    let mut workers: Vec<JoinHandle<()>> = Vec::new();
    for number in 0_u64.. {
        let accepted = listener.accept();
        if shared.desk.closing.is_closed() {
            break;
        }
        workers.retain(|worker| !worker.is_finished());
        match accepted {
            Ok((stream, _)) if workers.len() < MOST_CONNECTIONS => workers.extend(work(shared, stream, number)),
            Ok(_) => {}
            // Descriptors are short, or the client left before it was accepted.
            Err(_) => shared.desk.closing.wait(Duration::from_millis(10)),
        }
    }
    for worker in workers {
        let _ = worker.join();
    }
}

/// A thread for a connection; none when the system gives none, which the client sees as a closed connection.
fn work(shared: &Arc<Shared>, stream: TcpStream, number: u64) -> Option<JoinHandle<()>> {
    // Small events must not wait for each other.
    let _ = stream.set_nodelay(true);
    let stream = Arc::new(stream);
    let shared = Arc::clone(shared);
    let worker = move || {
        let mut connections = locked(&shared.connections);
        // Asked under the lock: `end` closes first and shuts down what is registered then, so that a connection is
        // either found by it or sees it here.
        if shared.desk.closing.is_closed() {
            return;
        }
        connections.insert(number, Arc::clone(&stream));
        drop(connections);
        serve(&shared.desk, &stream);
        locked(&shared.connections).remove(&number);
    };
    thread::Builder::new().name(format!("loopback {number}")).spawn(worker).ok()
}

/// Ids that no other server gives, as the same session may talk to several.
#[derive(Debug)]
pub(crate) struct Ids {
    seed: u64,
    given: AtomicU64,
}

impl Ids {
    fn new() -> Self {
        // The keys of a hash map are random, and that is random enough for ids.
        Self { seed: RandomState::new().build_hasher().finish(), given: AtomicU64::new(0) }
    }

    pub(crate) fn next(&self) -> String {
        format!("{:016x}{:08x}", self.seed, self.given.fetch_add(1, Ordering::Relaxed))
    }

    /// Clients tell an answer of the API from one of a proxy by it. Anthropic has the one name for it, OpenAI the other.
    pub(crate) fn request_headers(&self) -> Vec<(String, String)> {
        let id = format!("req_{}", self.next());
        ["request-id", "x-request-id"].map(|name| (name.to_owned(), id.clone())).into()
    }
}
