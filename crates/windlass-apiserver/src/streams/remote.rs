//! `exec` and `attach`: the streams of a client and of a program.

use std::time::Duration;

use futures::future::{join, pending};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::channel::{self, Version};
use super::conversation::{Limits, converse};
use super::handshake::{Remote, SpdyVersion};
use super::outlet::{Gone, Outlet, Packet, Piece, queue};
use super::resize::Resizes;
use super::status::{self, End};
use super::{socket, spdy};
use crate::nodes::{Attach, Connection, NodeError, Reader, Session, TerminalSize, Writer};

/// The time limit for a client to open all streams.
const STREAMS_WITHIN: Duration = Duration::from_secs(30);
/// The time for which output may be quiet after the command has ended: child processes may hold the output
/// open for ever.
const QUIET: Duration = Duration::from_secs(2);
/// The messages that wait for a program.
const WAITING: usize = 1;

/// The program in the container.
pub(crate) struct Program {
    /// The streams of the program, or why there is none.
    pub(crate) session: Result<Session, NodeError>,
    /// The streams that the client asks for.
    pub(crate) streams: Attach,
    /// The command; `None` for a container that is attached to.
    pub(crate) command: Option<Vec<String>>,
}

/// The streams of a client.
struct Client {
    stdin: Option<mpsc::Receiver<Piece>>,
    resize: Option<mpsc::Receiver<Piece>>,
    stdout: Option<Outlet>,
    stderr: Option<Outlet>,
    error: Outlet,
    /// True if the error stream has a `Status`, not only a text.
    has_status: bool,
}

/// Connects a client with a program until the client or the program ends. `stop` is cancelled when the server
/// stops.
pub(crate) async fn run(connection: Connection, protocol: Remote, program: Program, stop: CancellationToken) {
    let limits = Limits::new(stop);
    match protocol {
        Remote::WebSocket(version) => over_websocket(connection, version, program, &limits).await,
        Remote::Spdy(version) => over_spdy(connection, version, program, &limits).await,
    }
}

async fn over_websocket(connection: Connection, version: Version, program: Program, limits: &Limits) {
    let (sender, receiver) = socket::open(connection).await;
    let (packets, waiting) = queue();
    let streams = program.streams;
    let outlet = |number: u8| Outlet::new(version.address(number), packets.clone());
    let (to_stdin, stdin) = mpsc::channel(WAITING);
    let (to_resize, resize) = mpsc::channel(WAITING);
    let mut inlets = vec![None; usize::from(channel::RESIZE) + 1];
    inlets[usize::from(channel::STDIN)] = Some(to_stdin).filter(|_| streams.stdin);
    inlets[usize::from(channel::RESIZE)] = Some(to_resize).filter(|_| streams.terminal);
    let client = Client {
        stdin: Some(stdin).filter(|_| streams.stdin),
        resize: Some(resize).filter(|_| streams.terminal),
        stdout: streams.stdout.then(|| outlet(channel::STDOUT)),
        stderr: streams.stderr.then(|| outlet(channel::STDERR)),
        error: outlet(channel::ERROR),
        has_status: version.has_status,
    };
    drop(packets);
    let work = async {
        // An empty message tells the client that the connection is there.
        let first = client.stdout.as_ref().or(client.stderr.as_ref()).unwrap_or(&client.error);
        if first.send(&[]).await.is_ok() {
            let _ = serve(client, program, limits).await;
        }
    };
    let read = socket::read(receiver, version, inlets, limits.clone());
    converse(read, socket::write(sender, waiting, limits.clone()), work, limits).await;
}

async fn over_spdy(connection: Connection, version: SpdyVersion, program: Program, limits: &Limits) {
    let (reader, writer) = tokio::io::split(connection);
    let spdy::Opened { read, write, streams, held } = spdy::open(reader, writer, limits);
    let work = async {
        // Dropped at the end of the work, because streams keep the connection open.
        let (mut streams, held) = (streams, held);
        match timeout(STREAMS_WITHIN, accept(&mut streams, version, program.streams)).await {
            Ok(Some(client)) => {
                tokio::select! {
                    biased;
                    () = refuse(&mut streams, &held) => {}
                    _ = serve(client, program, limits) => {}
                }
            }
            Ok(None) => {}
            Err(_) => tracing::debug!("timed out waiting for client to create streams"),
        }
    };
    converse(read, write, work, limits).await;
}

/// Waits until the client has opened all streams in the query of the request; `None` if the client has left.
async fn accept(
    opened: &mut mpsc::Receiver<spdy::Stream>,
    version: SpdyVersion,
    wanted: Attach,
) -> Option<Client> {
    let has_resize = wanted.terminal && version.has_resize;
    let (mut stdin, mut resize, mut stdout, mut stderr, mut error) = (None, None, None, None, None);
    while error.is_none()
        || wanted.stdin && stdin.is_none()
        || wanted.stdout && stdout.is_none()
        || wanted.stderr && stderr.is_none()
        || has_resize && resize.is_none()
    {
        let stream = opened.recv().await?;
        match stream.headers.get("streamtype").unwrap_or_default() {
            "stdin" => stdin = Some(stream),
            "stdout" => stdout = Some(stream),
            "stderr" => stderr = Some(stream),
            "error" => error = Some(stream),
            "resize" => resize = Some(stream),
            other => tracing::debug!(stream = stream.id, kind = other, "a stream of an unknown type"),
        }
    }
    Some(Client {
        stdin: stdin.map(|stream| stream.data),
        resize: resize.map(|stream| stream.data),
        stdout: stdout.map(|stream| stream.outlet),
        stderr: stderr.map(|stream| stream.outlet),
        error: error?.outlet,
        has_status: version.has_status,
    })
}

/// Refuses all further streams of the client.
async fn refuse(opened: &mut mpsc::Receiver<spdy::Stream>, queue: &mpsc::Sender<Packet>) {
    while let Some(stream) = opened.recv().await {
        // Fails if the client has left.
        let _ = queue.send(Packet::Binary(spdy::refusal(stream.id))).await;
    }
    pending::<()>().await;
}

/// Passes bytes on in both directions until the program has ended, and tells the client how.
async fn serve(client: Client, program: Program, limits: &Limits) -> Result<(), Gone> {
    let Client { stdin, resize, stdout, stderr, error, has_status } = client;
    let Program { session, command, .. } = program;
    let end = match session {
        Err(error) => End::Failed(error),
        Ok(session) => {
            let ended = CancellationToken::new();
            let inputs = async {
                join(feed(stdin, session.stdin), adjust(resize, session.resize)).await;
                pending().await
            };
            let outputs = join(
                pump(session.stdout, stdout.as_ref(), &ended),
                pump(session.stderr, stderr.as_ref(), &ended),
            );
            let exit = async {
                let exit = session.exit.await;
                ended.cancel();
                exit
            };
            tokio::select! {
                biased;
                end = limits.exceeded() => end,
                (exit, _) = join(exit, outputs) => match exit {
                    Ok(code) => End::Exited(if command.is_some() { code } else { 0 }),
                    Err(error) => End::Failed(error),
                },
                end = inputs => end,
            }
        }
    };
    for outlet in [stdout, stderr].into_iter().flatten() {
        outlet.finish().await?;
    }
    let is_attach = command.is_none();
    if let Some(text) = status::write(&end, &command.unwrap_or_default(), is_attach, has_status) {
        error.send(text.as_bytes()).await?;
    }
    error.finish().await
}

/// Copies the client's input to the program, and then closes the program's input.
async fn feed(pieces: Option<mpsc::Receiver<Piece>>, program: Option<Writer>) {
    let Some(mut program) = program else { return };
    if let Some(mut pieces) = pieces {
        while let Some(piece) = pieces.recv().await {
            let written = program.write_all(&piece.bytes).await;
            drop(piece);
            if written.is_err() || (pieces.is_empty() && program.flush().await.is_err()) {
                // The program takes no more. The rest of the input is dropped.
                return;
            }
        }
    }
    let _ = program.shutdown().await;
}

/// Passes the sizes of the client's terminal on.
async fn adjust(pieces: Option<mpsc::Receiver<Piece>>, terminal: Option<mpsc::Sender<TerminalSize>>) {
    let (Some(mut pieces), Some(terminal)) = (pieces, terminal) else { return };
    let mut sizes = Resizes::default();
    while let Some(piece) = pieces.recv().await {
        if let Some(size) = sizes.push(&piece.bytes)
            && terminal.send(size).await.is_err()
        {
            return;
        }
    }
}

/// Copies output to the client. Output without a client stream is dropped, so that the program does not wait.
async fn pump(output: Option<Reader>, client: Option<&Outlet>, ended: &CancellationToken) {
    let Some(mut output) = output else { return };
    loop {
        let quiet = async {
            ended.cancelled().await;
            sleep(QUIET).await;
        };
        let filled = tokio::select! {
            biased;
            filled = Outlet::fill(&mut output) => filled,
            () = quiet => return,
        };
        let Ok(Some(buffer)) = filled else { return };
        if let Some(client) = client
            && client.send_buffer(buffer).await.is_err()
        {
            return;
        }
    }
}
