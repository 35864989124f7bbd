//! The progress of a transfer, in a line of a terminal. Without a terminal, no progress is shown.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use windlass_image::{Descriptor, Digest, Progress, Step};

use super::megabytes;

/// The pause between two changes of the line.
const PAUSE: Duration = Duration::from_millis(100);

/// A line of a terminal.
pub(super) struct Bar {
    verb: &'static str,
    is_terminal: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The transferred and the whole size of each blob that is transferred.
    blobs: BTreeMap<Digest, (u64, u64)>,
    shown: Option<Instant>,
}

impl Bar {
    pub(super) fn new(verb: &'static str) -> Self {
        Self { verb, is_terminal: std::io::stderr().is_terminal(), state: Mutex::default() }
    }

    /// Returns the transferred bytes.
    pub(super) fn moved(&self) -> u64 {
        self.state.lock().blobs.values().map(|(moved, _)| moved).sum()
    }

    /// Removes the line.
    pub(super) fn clear(&self) {
        if self.state.lock().shown.is_some() {
            show("\r\x1b[K");
        }
    }
}

impl Progress for Bar {
    fn report(&self, blob: &Descriptor, step: Step) {
        let mut state = self.state.lock();
        let moved = match step {
            Step::Moved(bytes) => bytes,
            Step::Done => blob.size,
            _ => return,
        };
        state.blobs.insert(blob.digest.clone(), (moved, blob.size));
        let is_due = state.shown.is_none_or(|shown| shown.elapsed() >= PAUSE);
        if self.is_terminal && is_due {
            let (moved, size) =
                state.blobs.values().fold((0, 0), |(a, b), (moved, size)| (a + moved, b + size));
            show(&format!("\r\x1b[K{} {} of {}", self.verb, megabytes(moved), megabytes(size)));
            state.shown = Some(Instant::now());
        }
    }
}

fn show(text: &str) {
    let mut stderr = std::io::stderr().lock();
    // A closed terminal is no error of a transfer.
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
