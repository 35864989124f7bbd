//! A connection after the handshake: reading, writing and the work in between, with the time limits.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::status::End;

/// The time limit without any transfer; the default of the real kubelet's
/// `--streaming-connection-idle-timeout`.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4 * 60 * 60);
/// How long the client may take to close the connection after the server has.
const LINGER: Duration = Duration::from_secs(3);

/// The time limits of a connection. A clone has the same limits.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    stop: CancellationToken,
    since: Instant,
    /// The time of the last transfer, in milliseconds.
    active: Arc<AtomicU64>,
}

impl Limits {
    /// Begins a connection that ends when `stop` is cancelled.
    pub(super) fn new(stop: CancellationToken) -> Self {
        Self { stop, since: Instant::now(), active: Arc::default() }
    }

    /// Records a transfer.
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

/// Runs a connection to the end.
///
/// `read` ends when the client has left, which also ends `work`. `write` ends when `work` has dropped all
/// outlets and all bytes were sent. The server reads on for a moment after the last byte, because a
/// connection that is closed with unread bytes is reset, and a reset may overtake the last bytes.
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
