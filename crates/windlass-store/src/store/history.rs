//! The retained history: a budget for all resources of a server.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::Log;

/// How much history a store keeps.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Events younger than this are kept, unless `bytes` is exceeded. The watch caches of kube-apiserver keep as much.
    pub age: SignedDuration,
    /// The memory that all history together may take, by estimate.
    pub bytes: usize,
    /// Below this many bytes, older events are kept too: such events cost little, and spare clients a new
    /// list.
    pub free_bytes: usize,
}

impl Default for Retention {
    /// Keeps 75 s, at most 64 MiB; 4 MiB regardless of age.
    fn default() -> Self {
        Self { age: SignedDuration::from_secs(75), bytes: 64 << 20, free_bytes: 4 << 20 }
    }
}

/// All events in commit order; used only to expire events.
pub(super) struct History {
    retention: Retention,
    entries: VecDeque<Entry>,
    bytes: usize,
    /// The revision of the newest event that went.
    start: u64,
}

struct Entry {
    log: Arc<Log>,
    rv: u64,
    at: Timestamp,
    weight: usize,
}

impl History {
    pub(super) fn new(retention: Retention) -> Self {
        Self { retention, entries: VecDeque::new(), bytes: 0, start: 0 }
    }

    /// Records an event that was appended to `log`, and expires old events.
    pub(super) fn push(&mut self, log: &Arc<Log>, rv: u64, at: Timestamp, weight: usize) {
        self.bytes += weight;
        self.entries.push_back(Entry { log: Arc::clone(log), rv, at, weight });
        let Retention { age, bytes, free_bytes } = self.retention;
        while let Some(oldest) = self.entries.front() {
            let is_old = at.duration_since(oldest.at) > age;
            // The newest event stays, regardless of size.
            let is_over = self.bytes > bytes && self.entries.len() > 1;
            if is_over || is_old && self.bytes > free_bytes {
                self.pop();
            } else {
                break;
            }
        }
    }

    /// Expires all events that are too old, regardless of size.
    pub(super) fn expire(&mut self, now: Timestamp) {
        let age = self.retention.age;
        while self.entries.front().is_some_and(|oldest| now.duration_since(oldest.at) > age) {
            self.pop();
        }
    }

    /// Returns the revision of the newest event that went.
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        while !self.entries.is_empty() {
            self.pop();
        }
    }

    fn pop(&mut self) {
        if let Some(entry) = self.entries.pop_front() {
            self.bytes -= entry.weight;
            self.start = entry.rv;
            entry.log.forget_until(entry.rv);
        }
        if self.entries.capacity() > 1024 && self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to(self.entries.len() * 2);
        }
    }
}
