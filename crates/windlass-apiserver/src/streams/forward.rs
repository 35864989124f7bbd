//! `port-forward`: the connections of a client and the ports of a pod.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::channel::Version;
use super::conversation::{Limits, converse};
use super::handshake::Forward;
use super::outlet::{Outlet, Piece, queue};
use super::{socket, spdy, tunnel};
use crate::nodes::{Connection, Nodes, Pod};

/// The time for which a connection may have only one stream of the two.
const PAIRED_WITHIN: Duration = Duration::from_secs(30);
/// The time for which the client may be silent after the pod has closed the pod's direction.
const AFTER_POD: Duration = Duration::from_secs(1);

/// The ports of a pod.
#[derive(Clone)]
pub(crate) struct Ports {
    pub(crate) nodes: Arc<dyn Nodes>,
    pub(crate) pod: Pod,
}

/// Copies bytes between connections and the ports of a pod until the client leaves. `ports` are the ports of
/// a WebSocket's channels.
pub(crate) async fn run(
    connection: Connection,
    protocol: Forward,
    pod: Ports,
    ports: Vec<u16>,
    stop: CancellationToken,
) {
    let limits = Limits::new(stop);
    match protocol {
        Forward::Channels(version) => over_channels(connection, version, &pod, &ports, &limits).await,
        Forward::Spdy => {
            let (reader, writer) = tokio::io::split(connection);
            over_spdy(spdy::open(reader, writer, &limits), &pod, &limits).await;
        }
        Forward::Tunnel => {
            let (reader, writer) = tunnel::tunnel(socket::open(connection).await);
            over_spdy(spdy::open(reader, writer, &limits), &pod, &limits).await;
        }
    }
}

/// One direction of a client's connection, and the way back.
struct Ends {
    from_client: mpsc::Receiver<Piece>,
    to_client: Outlet,
    error: Outlet,
    /// Cancelled when the client gives up.
    reset: Arc<CancellationToken>,
}

impl Ports {
    /// Connects a client with a port until both directions have ended.
    async fn forward(&self, port: u16, ends: Ends) {
        let Ends { from_client, to_client, error, reset } = ends;
        match self.nodes.port_forward(&self.pod, port).await {
            Ok(pod) => {
                tokio::select! {
                    biased;
                    () = reset.cancelled() => {}
                    () = copy(pod, from_client, &to_client) => {}
                }
            }
            Err(why) => {
                let uid = &self.pod.uid;
                let text = format!("error forwarding port {port} to pod {uid}, uid : {why}");
                let _ = error.send(text.as_bytes()).await;
            }
        }
        let _ = to_client.finish().await;
        let _ = error.finish().await;
    }
}

/// Copies bytes in both directions. Each direction ends separately: a client that has sent all bytes still
/// gets the reply.
async fn copy(pod: Connection, from_client: mpsc::Receiver<Piece>, to_client: &Outlet) {
    let (mut reader, writer) = tokio::io::split(pod);
    let sent = AtomicU64::new(0);
    let mut to_pod = pin!(send(writer, from_client, &sent));
    let mut is_sent = false;
    loop {
        let filled = tokio::select! {
            biased;
            () = &mut to_pod, if !is_sent => {
                is_sent = true;
                continue;
            }
            filled = Outlet::fill(&mut reader) => filled,
        };
        let Ok(Some(buffer)) = filled else { break };
        // A pod that waits for input gets input, even while the client does not accept output.
        let mut deliver = pin!(to_client.send_buffer(buffer));
        let delivered = loop {
            tokio::select! {
                biased;
                () = &mut to_pod, if !is_sent => is_sent = true,
                delivered = &mut deliver => break delivered,
            }
        };
        if delivered.is_err() {
            return;
        }
    }
    if to_client.finish().await.is_err() {
        return;
    }
    while !is_sent {
        let before = sent.load(Ordering::Relaxed);
        is_sent = timeout(AFTER_POD, &mut to_pod).await.is_ok();
        if sent.load(Ordering::Relaxed) == before {
            return;
        }
    }
}

/// Copies the client's bytes to the pod, and then ends this direction.
async fn send(mut pod: impl AsyncWrite + Unpin, mut pieces: mpsc::Receiver<Piece>, sent: &AtomicU64) {
    while let Some(piece) = pieces.recv().await {
        sent.fetch_add(piece.bytes.len() as u64, Ordering::Relaxed);
        if pod.write_all(&piece.bytes).await.is_err() || pod.flush().await.is_err() {
            return;
        }
    }
    let _ = pod.shutdown().await;
}

async fn over_channels(
    connection: Connection,
    version: Version,
    pod: &Ports,
    ports: &[u16],
    limits: &Limits,
) {
    let (sender, receiver) = socket::open(connection).await;
    let (packets, waiting) = queue();
    let mut inlets = Vec::new();
    let mut forwards = FuturesUnordered::new();
    for (index, port) in ports.iter().enumerate() {
        let Ok(number) = u8::try_from(index * 2 + 1) else { break };
        let outlet = |number| Outlet::new(version.address(number), packets.clone());
        let (inlet, from_client) = mpsc::channel(1);
        inlets.extend([Some(inlet), None]);
        let (to_client, error, reset) = (outlet(number - 1), outlet(number), Arc::default());
        let ends = Ends { from_client, to_client, error, reset };
        forwards.push(async move {
            // Each channel begins with the port.
            let name = port.to_le_bytes();
            if ends.to_client.send(&name).await.is_ok() && ends.error.send(&name).await.is_ok() {
                pod.forward(*port, ends).await;
            }
        });
    }
    drop(packets);
    let work = async {
        tokio::select! {
            biased;
            _ = limits.exceeded() => {}
            () = async { while forwards.next().await.is_some() {} } => {}
        }
        drop(forwards);
    };
    let read = socket::read(receiver, version, inlets, limits.clone());
    converse(read, socket::write(sender, waiting, limits.clone()), work, limits).await;
}

async fn over_spdy(
    opened: spdy::Opened<impl Future<Output = ()>, impl Future<Output = ()>>,
    pod: &Ports,
    limits: &Limits,
) {
    let spdy::Opened { read, write, mut streams, held } = opened;
    let work = async {
        let _held = held;
        let (mut pairs, mut forwards) = (Pairs::default(), FuturesUnordered::new());
        let mut exceeded = pin!(limits.exceeded());
        loop {
            let stream = tokio::select! {
                biased;
                _ = &mut exceeded => return,
                Some(()) = forwards.next() => continue,
                stream = streams.recv() => stream,
            };
            let Some(stream) = stream else { return };
            if let Some((data, error)) = pairs.add(stream, Instant::now()) {
                forwards.push(pair(pod, data, error));
            }
        }
    };
    converse(read, write, work, limits).await;
}

/// Forwards the connection of two streams.
async fn pair(pod: &Ports, data: spdy::Stream, error: spdy::Stream) {
    let port = data.headers.get("port").unwrap_or_default();
    match port.parse::<u16>() {
        Ok(port) if port > 0 => {
            let spdy::Stream { data: from_client, outlet: to_client, reset, slot: _slot, .. } = data;
            pod.forward(port, Ends { from_client, to_client, error: error.outlet, reset }).await;
        }
        _ => {
            let text = format!("unable to parse {} as a port", windlass_schema::go_quote(port));
            let _ = error.outlet.send(text.as_bytes()).await;
            let _ = data.outlet.finish().await;
            let _ = error.outlet.finish().await;
        }
    }
}

/// The streams without a partner stream from the client.
#[derive(Default)]
struct Pairs(HashMap<String, (spdy::Stream, Instant)>);

impl Pairs {
    /// Adds a stream. Returns the data and the error stream of a connection that has both.
    fn add(&mut self, stream: spdy::Stream, now: Instant) -> Option<(spdy::Stream, spdy::Stream)> {
        self.0.retain(|_, (_, since)| now.duration_since(*since) < PAIRED_WITHIN);
        let is_error = is_error(&stream);
        // The first clients named no connection: the data stream is the next stream after the error stream.
        let id = match stream.headers.get("requestid") {
            Some(id) => id.to_owned(),
            None => (stream.id - if is_error { 0 } else { 2.min(stream.id) }).to_string(),
        };
        match self.0.remove(&id) {
            Some((other, _)) if self::is_error(&other) != is_error => {
                Some(if is_error { (other, stream) } else { (stream, other) })
            }
            _ => {
                self.0.insert(id, (stream, now));
                None
            }
        }
    }
}

fn is_error(stream: &spdy::Stream) -> bool {
    stream.headers.get("streamtype") == Some("error")
}
