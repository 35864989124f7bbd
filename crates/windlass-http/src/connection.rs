//! One HTTP/2 connection.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt, task::noop_waker_ref};
use h2::client::{Builder, ResponseFuture, SendRequest};
use http::Request;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout},
};
use windlass_cork::{Cork, Hand, cork};

use crate::{dialer::Stream, error::BoxError, keep_alive::KeepAlive, silence::Answers};

/// The bytes of one response that the server may send ahead of the reader. The limit of the connection is out of reach, so that a watch with
/// a slow reader holds up no other watch.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 1 << 30;

/// The largest frame that the server may send. In smaller frames, as the default of 16 KiB, most objects of a list would be in two pieces.
const FRAME: u32 = 256 << 10;

/// The largest headers of a response, as in hyper.
const HEADER_LIST: u32 = 16 << 10;

/// The number of streams that this side may reset because of invalid frames before the connection ends, as in hyper.
const LOCAL_RESETS: usize = 1024;

/// The limit of streams before the server has told its own, which is in the first frame of the server.
const UNKNOWN_LIMIT: usize = 1_000_003;

/// The limit for the first frame of the server.
const FIRST_FRAME_WITHIN: Duration = Duration::from_secs(10);

/// The longest pause between two looks for the first frame.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

type Http2 = h2::client::Connection<Cork<TokioIo<Stream>>, Bytes>;

/// One HTTP/2 connection, and the number of streams in use.
pub(crate) struct Connection {
    sender: SendRequest<Bytes>,
    shared: Arc<Shared>,
    /// The generation of the certificates.
    generation: u64,
}

/// The state that a connection, its driver and its leases share.
pub(crate) struct Shared {
    /// `None` once the connection has ended: requests that wait in the connection fail when the connection is dropped.
    http2: Mutex<Option<Http2>>,
    hand: Hand<TokioIo<Stream>>,
    streams: AtomicUsize,
    last_used: Mutex<Instant>,
    answers: Answers,
    /// Wakes one caller that waits for a stream, for each stream that becomes free.
    freed: Arc<Notify>,
}

/// The right to send one request on a connection. The stream counts as in use until the lease is dropped.
pub(crate) struct Lease {
    sender: SendRequest<Bytes>,
    shared: Arc<Shared>,
}

impl Connection {
    /// Begins HTTP/2 on a new connection, and waits for the first frame of the server. [`Shared::poll`] and [`KeepAlive::poll_broken`] have
    /// to be polled afterwards. `freed` is notified of each stream that becomes free.
    pub(crate) async fn begin(
        stream: Stream,
        generation: u64,
        freed: Arc<Notify>,
    ) -> Result<(Self, KeepAlive), BoxError> {
        let mut builder = Builder::new();
        builder
            .enable_push(false)
            .initial_max_send_streams(UNKNOWN_LIMIT)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(FRAME)
            .max_header_list_size(HEADER_LIST)
            .max_local_error_reset_streams(Some(LOCAL_RESETS));
        let (stream, hand) = cork(TokioIo::new(stream));
        let (sender, mut http2) = builder.handshake(stream).await?;
        let pings = http2.ping_pong().ok_or("the pings of a new connection are in use")?;
        let shared = Shared {
            http2: Mutex::new(Some(http2)),
            hand,
            streams: AtomicUsize::new(0),
            last_used: Mutex::new(Instant::now()),
            answers: Answers::new(),
            freed,
        };
        timeout(FIRST_FRAME_WITHIN, shared.first_frame(&sender)).await??;
        Ok((Self { sender, shared: Arc::new(shared), generation }, KeepAlive::new(pings)))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Returns true if the connection takes further requests.
    pub(crate) fn is_current(&mut self, generation: u64) -> bool {
        self.generation == generation && !self.shared.answers.are_missing() && self.is_open()
    }

    /// Returns false once the connection has failed, or the server has announced the end of the connection.
    fn is_open(&mut self) -> bool {
        // Never waits: the sender itself has sent nothing.
        let readiness = self.sender.poll_ready(&mut Context::from_waker(noop_waker_ref()));
        !matches!(readiness, Poll::Ready(Err(_)))
    }

    /// Takes a stream, unless all streams that the server accepts are in use.
    pub(crate) fn lease(&self) -> Option<Lease> {
        // A server that accepts no stream at all for a while makes the request wait.
        let limit = self.sender.current_max_send_streams().max(1);
        let take = |streams| (streams < limit).then_some(streams + 1);
        self.shared.streams.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).ok()?;
        Some(Lease { sender: self.sender.clone(), shared: self.shared.clone() })
    }
}

impl Shared {
    /// Drives the connection. Ready when the connection has ended.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        let mut http2 = self.http2.lock();
        let Some(connection) = &mut *http2 else { return Poll::Ready(Ok(())) };
        let mut ended = connection.poll_unpin(cx);
        if ended.is_pending() && !self.hand.send(cx) {
            // The connection learns that the stream is broken.
            ended = connection.poll_unpin(cx);
        }
        let ended = ready!(ended);
        let connection = http2.take();
        drop(http2);
        drop(connection);
        Poll::Ready(ended)
    }

    /// Ends the connection, and fails all requests in progress.
    pub(crate) fn end(&self) {
        let connection = self.http2.lock().take();
        drop(connection);
    }

    /// Drives the connection until the server has told how many streams the server accepts.
    async fn first_frame(&self, sender: &SendRequest<Bytes>) -> Result<(), BoxError> {
        let mut pause = Duration::from_millis(1);
        while sender.current_max_send_streams() == UNKNOWN_LIMIT {
            // The connection wakes no task for the frame.
            tokio::select! {
                biased;
                ended = poll_fn(|cx| self.poll(cx)) => {
                    ended?;
                    return Err("the server closed the connection".into());
                }
                () = sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            }
        }
        Ok(())
    }

    pub(crate) fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Returns the time since which no stream has been in use.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        (self.streams.load(Ordering::Acquire) == 0).then(|| *self.last_used.lock())
    }
}

impl Lease {
    /// Waits until the connection takes a request.
    ///
    /// # Errors
    /// The connection has ended, so that the server does not have the request.
    pub(crate) async fn ready(&mut self) -> Result<(), h2::Error> {
        poll_fn(|cx| self.sender.poll_ready(cx)).await
    }

    /// Hands a request to the connection that is [ready](Self::ready). Dropping the returned future resets the stream.
    ///
    /// # Errors
    /// The connection does not take the request, so that the server does not have the request.
    pub(crate) fn send(&mut self, request: Request<()>, body: Bytes) -> Result<ResponseFuture, h2::Error> {
        let (response, mut stream) = self.sender.send_request(request, body.is_empty())?;
        if !body.is_empty() {
            stream.send_data(body, true)?;
        }
        Ok(response)
    }

    pub(crate) fn connection(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        *self.shared.last_used.lock() = Instant::now();
        self.shared.streams.fetch_sub(1, Ordering::AcqRel);
        // Remembered for the next caller if none waits.
        self.shared.freed.notify_one();
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lease").finish_non_exhaustive()
    }
}
