//! A connection after its handshake: reading, writing and the work between the two, and the time limits of all three.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::status::End;

/// How long nothing may be sent and received; the default of the real kubelet's `--streaming-connection-idle-timeout`.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4 * 60 * 60);
/// How long the client may take to close the connection after the server has.
const LINGER: Duration = Duration::from_secs(3);

/// The time limits of a connection. A clone has the same limits.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    stop: CancellationToken,
    since: Instant,
    /// The last time that something was sent or received, in milliseconds.
    active: Arc<AtomicU64>,
}

impl Limits {
    /// Begins a connection that ends when `stop` is cancelled.
    pub(super) fn new(stop: CancellationToken) -> Self {
        Self { stop, since: Instant::now(), active: Arc::default() }
    }

    /// Notes that something was sent or received.
    pub(super) fn touch(&self) {
        let now = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.active.store(now, Ordering::Relaxed);
    }

    /// Waits until the connection has to end: the server stops, or the connection is idle.
    pub(super) async fn exceeded(&self) -> End {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => End::Stopped,
            () = self.idle() => End::Idle,
        }
    }

    async fn idle(&self) {
        loop {
            let end = self.since + Duration::from_millis(self.active.load(Ordering::Relaxed)) + IDLE_TIMEOUT;
            if end <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }
}

/// Runs a connection until its end.
///
/// `read` ends when the client has left, which also ends `work`. `write` ends when `work` has dropped all outlets and everything was
/// sent. The server reads on for a moment after its last byte, because a connection that is closed with unread bytes is reset, and a
/// reset may overtake the last bytes.
pub(super) async fn converse(
    read: impl Future<Output = ()>,
    write: impl Future<Output = ()>,
    work: impl Future<Output = ()>,
    limits: &Limits,
) {
    let talk = async {
        let (mut read, mut write) = (pin!(read), pin!(write));
        tokio::select! {
            biased;
            () = work => {}
            () = &mut read => return,
            () = &mut write => return,
        }
        let mut has_left = false;
        loop {
            tokio::select! {
                biased;
                () = &mut read, if !has_left => has_left = true,
                () = &mut write => break,
            }
        }
        if !has_left {
            let _ = timeout(LINGER, read).await;
        }
    };
    let too_late = async {
        limits.exceeded().await;
        sleep(LINGER).await;
    };
    tokio::select! {
        biased;
        () = talk => {}
        () = too_late => {}
    }
}
