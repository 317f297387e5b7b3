//! Reading along while an agent works.

use proctor_domain::session::Work;
use proctor_engine::agent::{AgentEvent, Opening, Reader, engine};
use proctor_engine::{Progress, Stream};

use super::Notice;
use crate::Site;

/// Bytes of one line that are kept to be told; what is longer is told by nobody.
const LONGEST: usize = 1024 * 1024;

/// The transcript of one session, cut into lines as it comes.
pub(super) struct Transcript {
    reader: Box<dyn Reader>,
    line: Vec<u8>,
    events: Vec<AgentEvent>,
}

impl Transcript {
    pub(super) fn of(site: &Site, work: Work) -> Self {
        Self { reader: engine(site.settings.agents.driving(work).kind).reader(&Opening::default()), line: Vec::new(), events: Vec::new() }
    }

    /// Tells what these bytes mean. What the engine says on standard error is in the log.
    pub(super) fn follow(&mut self, progress: &Progress<'_>, notify: &mut dyn FnMut(Notice<'_>)) {
        if progress.stream != Stream::Out {
            return;
        }
        for piece in progress.bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() < LONGEST {
                self.line.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                self.reader.read(self.line.trim_ascii_end(), &mut self.events);
                self.line.clear();
                for event in self.events.drain(..) {
                    notify(Notice::Agent(&event));
                }
            }
        }
    }
}
