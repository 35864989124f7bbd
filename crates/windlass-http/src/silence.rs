//! Notices that a server has stopped to answer.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

/// A connection that has answered no request for this time, while a caller gave up waiting or got an error, gets no further request. The
/// begin of a response counts as an answer, and the rest of a response does not. A network
/// may swallow everything without an error, and the pings take longer to fail than a leader keeps its Lease.
const SILENCE: Duration = Duration::from_secs(2);

/// The answers of one HTTP/2 connection, or of the HTTP/1.1 connections of a pool.
pub(crate) struct Answers {
    last: Mutex<Instant>,
    are_missing: AtomicBool,
}

/// The wait for the answer to a request. A drop without [`answered`](Self::answered) means that the caller gave up, or that the request failed.
pub(crate) struct Unanswered<'a> {
    answers: &'a Answers,
    sent_at: Instant,
    is_answered: bool,
}

impl Answers {
    pub(crate) fn new() -> Self {
        Self { last: Mutex::new(Instant::now()), are_missing: AtomicBool::new(false) }
    }

    /// Begins the wait for the answer to a request.
    pub(crate) fn wait(&self) -> Unanswered<'_> {
        Unanswered { answers: self, sent_at: Instant::now(), is_answered: false }
    }

    /// Notes that a caller left, or that a request failed.
    pub(crate) fn gave_up(&self, sent_at: Instant) {
        if sent_at.elapsed() >= SILENCE && *self.last.lock() < sent_at {
            self.are_missing.store(true, Ordering::Relaxed);
        }
    }

    /// Returns true if the connections must get no further request.
    pub(crate) fn are_missing(&self) -> bool {
        self.are_missing.load(Ordering::Relaxed)
    }
}

impl Unanswered<'_> {
    /// Notes that the server has answered.
    pub(crate) fn answered(mut self) {
        *self.answers.last.lock() = Instant::now();
        self.is_answered = true;
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.answers.gave_up(self.sent_at);
        }
    }
}
