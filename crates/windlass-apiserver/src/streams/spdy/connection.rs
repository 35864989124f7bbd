//! A connection of SPDY: the shell around the frames.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::frame::{self, Frame, FrameReader, PROTOCOL_ERROR};
use super::headers::{Headers, NoHeaders};
use crate::streams::conversation::Limits;
use crate::streams::outlet::{Address, Outlet, Packet, Piece, queue};

/// The most streams that are open at the same time.
const MAX_STREAMS: usize = 256;
/// The number of waiting pieces of a stream.
pub(super) const STREAM_PIECES: usize = 4;
/// The bytes of all streams that wait to be taken.
const MAX_WAITING: usize = 1 << 20;
/// The bytes that are read at once.
const READ: usize = 64 << 10;

/// A stream that a client has opened.
#[derive(Debug)]
pub(in crate::streams) struct Stream {
    /// The number of the stream.
    pub(in crate::streams) id: u32,
    /// The headers of the stream.
    pub(in crate::streams) headers: Headers,
    /// The bytes of the client. Ends when the client closes or resets the stream.
    pub(in crate::streams) data: mpsc::Receiver<Piece>,
    /// Cancelled when the client has reset the stream.
    pub(in crate::streams) reset: Arc<CancellationToken>,
    /// The other direction.
    pub(in crate::streams) outlet: Outlet,
    /// A slot of the streams that may be open at the same time.
    pub(in crate::streams) slot: OwnedSemaphorePermit,
}

/// The parts of a connection of SPDY.
pub(in crate::streams) struct Opened<R, W> {
    /// Reads frames until the client leaves.
    pub(in crate::streams) read: R,
    /// Writes frames until all outlets and `held` are dropped.
    pub(in crate::streams) write: W,
    /// The streams that the client opens.
    pub(in crate::streams) streams: mpsc::Receiver<Stream>,
    /// Keeps the connection open while there are no streams.
    pub(in crate::streams) held: mpsc::Sender<Packet>,
}

/// Begins to speak SPDY. The connection makes progress only while both `read` and `write` are polled.
pub(in crate::streams) fn open(
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
    limits: &Limits,
) -> Opened<impl Future<Output = ()>, impl Future<Output = ()>> {
    let (held, packets) = queue();
    let (accept, streams) = mpsc::channel(1);
    let router = Router {
        streams: HashMap::new(),
        queue: held.downgrade(),
        accept,
        slots: Arc::new(Semaphore::new(MAX_STREAMS)),
        waiting: Arc::new(Semaphore::new(MAX_WAITING)),
        last: 0,
        replies: NoHeaders::default(),
    };
    let read = read(reader, router, limits.clone());
    Opened { read, write: write(writer, packets, limits.clone()), streams, held }
}

async fn read(mut reader: impl AsyncRead + Unpin, mut router: Router, limits: Limits) {
    let (mut frames, mut buffer) = (FrameReader::default(), BytesMut::new());
    loop {
        loop {
            match frames.next(&mut buffer) {
                Ok(Some(frame)) => {
                    if router.route(frame).await.is_none() {
                        return;
                    }
                }
                Ok(None) => break,
                Err(error) => return tracing::debug!(%error, "a SPDY connection ended early"),
            }
        }
        buffer.reserve(READ);
        match reader.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => limits.touch(),
        }
    }
}

async fn write(mut writer: impl AsyncWrite + Unpin, mut packets: mpsc::Receiver<Packet>, limits: Limits) {
    while let Some(packet) = packets.recv().await {
        let Packet::Binary(bytes) = packet else { continue };
        if writer.write_all(&bytes).await.is_err() {
            return;
        }
        if packets.is_empty() && writer.flush().await.is_err() {
            return;
        }
        limits.touch();
    }
    if writer.write_all(&frame::go_away(0)).await.is_ok() {
        let _ = writer.shutdown().await;
    }
}

/// Hands the frames of a client to the streams.
struct Router {
    streams: HashMap<u32, Inlet>,
    queue: mpsc::WeakSender<Packet>,
    accept: mpsc::Sender<Stream>,
    slots: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    /// The highest number of a stream.
    last: u32,
    replies: NoHeaders,
}

/// The receiving end of a stream.
struct Inlet {
    /// `None` when the client has closed its direction.
    data: Option<mpsc::Sender<Piece>>,
    reset: Weak<CancellationToken>,
}

impl Inlet {
    fn is_used(&self) -> bool {
        self.reset.strong_count() > 0 || self.data.as_ref().is_some_and(|data| !data.is_closed())
    }
}

impl Router {
    /// Hands on a frame; `None` if the connection has ended.
    async fn route(&mut self, frame: Frame) -> Option<()> {
        match frame {
            Frame::SynStream { id, fin, headers } => self.begin(id, fin, headers).await?,
            Frame::Data { id, fin, bytes } => {
                let Some(inlet) = self.streams.get_mut(&id) else { return Some(()) };
                if let Some(data) = inlet.data.as_ref().filter(|_| !bytes.is_empty()) {
                    let size = u32::try_from(bytes.len()).ok()?;
                    let permit = Arc::clone(&self.waiting).acquire_many_owned(size).await.ok();
                    // The stream may take no more bytes.
                    let _ = data.send(Piece { bytes, permit }).await;
                }
                if fin {
                    inlet.data = None;
                }
            }
            Frame::RstStream { id } => {
                if let Some(reset) = self.streams.remove(&id).and_then(|inlet| inlet.reset.upgrade()) {
                    reset.cancel();
                }
            }
            Frame::Ping(number) => self.send(frame::ping(number)).await?,
            Frame::GoAway => {}
        }
        Some(())
    }

    /// Accepts or refuses a new stream.
    async fn begin(&mut self, id: u32, fin: bool, headers: Headers) -> Option<()> {
        if id.is_multiple_of(2) || id <= self.last {
            return self.send(frame::reset(id, PROTOCOL_ERROR)).await;
        }
        self.last = id;
        let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else {
            return self.send(frame::refusal(id)).await;
        };
        self.streams.retain(|_, inlet| inlet.is_used());
        let (sender, data) = mpsc::channel(STREAM_PIECES);
        let reset = Arc::new(CancellationToken::new());
        let inlet = Inlet { data: Some(sender).filter(|_| !fin), reset: Arc::downgrade(&reset) };
        self.streams.insert(id, inlet);
        let reply = frame::syn_reply(id, self.replies.next());
        self.send(reply).await?;
        let outlet = Outlet::new(Address::Spdy(id), self.queue.upgrade()?);
        self.accept.send(Stream { id, headers, data, reset, outlet, slot }).await.ok()
    }

    async fn send(&self, bytes: bytes::Bytes) -> Option<()> {
        self.queue.upgrade()?.send(Packet::Binary(bytes)).await.ok()
    }
}
