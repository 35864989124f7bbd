//! The streams of a command or of a container, over SPDY to the container runtime.

use std::io;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CONNECTION, HOST, UPGRADE};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::spdy::{self, HEAD, Head};
use super::status;
use crate::{Exit, RuntimeError, Session, TerminalSize};

/// The bytes of an output that wait for the client.
const BUFFER: usize = 64 << 10;
/// The bytes that are copied at once.
const CHUNK: usize = 32 << 10;
/// The longest status, in bytes. The rest of a longer status is dropped.
const STATUS: u64 = 64 << 10;
/// The longest wait for the streams.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// The header with the version of the protocol.
const VERSION: &str = "x-stream-protocol-version";
/// The version in which the end of a command is a status.
const V4: &str = "v4.channel.k8s.io";

type Connection = TokioIo<Upgraded>;

/// The streams of the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams {
    pub(super) stdin: bool,
    /// True if the program has a terminal.
    pub(super) terminal: bool,
    /// The size of the terminal, if the client knows the size.
    pub(super) size: Option<TerminalSize>,
}

/// The numbers of the streams. The number of the stream with the status is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbers {
    stdin: Option<u32>,
    stdout: u32,
    stderr: Option<u32>,
    sizes: Option<u32>,
}

/// The number of the stream with the status.
const ERROR: u32 = 1;

impl Streams {
    /// Returns the kinds of the streams in the order of their numbers, and the numbers.
    fn numbered(self) -> (Vec<&'static str>, Numbers) {
        let mut kinds = vec!["error"];
        let mut add = |kind| {
            kinds.push(kind);
            2 * kinds.len() as u32 - 1
        };
        let stdin = self.stdin.then(|| add("stdin"));
        let stdout = add("stdout");
        let stderr = (!self.terminal).then(|| add("stderr"));
        let sizes = self.terminal.then(|| add("resize"));
        (kinds, Numbers { stdin, stdout, stderr, sizes })
    }
}

/// The end of a command: its exit code, or why the command did not run.
type End = Result<i32, String>;

/// Opens the streams at a URL of the container runtime. The exit is that of the command.
pub(super) async fn open(url: &str, streams: Streams) -> Result<Session, RuntimeError> {
    let (reader, mut writer) = split(connect(url).await?);
    let (kinds, numbers) = streams.numbered();
    writer.write_all(&spdy::open(&kinds)).await.map_err(|error| failed(error.to_string()))?;
    let (stdout, far_stdout) = duplex(BUFFER);
    let (stderr, far_stderr) = duplex(BUFFER);
    let (stdin, far_stdin) = duplex(CHUNK);
    let (resize, sizes) = mpsc::channel(1);
    let (answer, answers) = mpsc::channel(1);
    let (end, ended) = oneshot::channel();
    let has_terminal = streams.terminal;
    let outputs = Outputs { numbers, stdout: far_stdout, stderr: far_stderr, status: Vec::new(), answer };
    tokio::spawn(outputs.run(reader, end));
    let inputs = Inputs { numbers, stdin: streams.stdin.then_some(far_stdin), sizes, answers };
    tokio::spawn(inputs.run(writer, streams.size));
    let started_at = SystemTime::now();
    Ok(Session {
        stdin: streams.stdin.then(|| Box::pin(stdin) as _),
        stdout: Some(Box::pin(stdout)),
        stderr: (!has_terminal).then(|| Box::pin(stderr) as _),
        resize: has_terminal.then_some(resize),
        exit: Box::pin(async move { exit(ended.await.ok(), started_at) }),
    })
}

fn failed(why: impl std::fmt::Display) -> RuntimeError {
    RuntimeError::Start(format!("open the streams of the container runtime: {why}"))
}

/// Connects to a URL, and upgrades the connection to SPDY.
async fn connect(url: &str) -> Result<Connection, RuntimeError> {
    let uri: Uri = url.parse().map_err(|_| failed(format!("{url:?} is no URL")))?;
    let (Some("http"), Some(host), Some(port)) = (uri.scheme_str(), uri.host(), uri.port_u16()) else {
        return Err(RuntimeError::Unsupported(format!(
            "the container runtime streams at {:?}, and windlass reads streams by plain HTTP with a port only",
            uri.authority().map_or("", |authority| authority.as_str())
        )));
    };
    let request = Request::builder()
        .method(Method::POST)
        .uri(uri.path())
        .header(HOST, format!("{host}:{port}"))
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "SPDY/3.1")
        .header(VERSION, V4)
        .body(Empty::<Bytes>::new())
        .map_err(failed)?;
    let upgrade = async {
        let stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await.map_err(failed)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
        tokio::spawn(connection.with_upgrades());
        let reply = sender.send_request(request).await.map_err(failed)?;
        let version = reply.headers().get(VERSION).and_then(|version| version.to_str().ok());
        if reply.status() != StatusCode::SWITCHING_PROTOCOLS || version != Some(V4) {
            return Err(failed(format!("the answer is {}, not an upgrade to {V4}", reply.status())));
        }
        hyper::upgrade::on(reply).await.map(TokioIo::new).map_err(failed)
    };
    let late = |_| Err(failed(format!("no answer within {HANDSHAKE:?}")));
    timeout(HANDSHAKE, upgrade).await.unwrap_or_else(late)
}

/// The way from the program to the client.
struct Outputs {
    numbers: Numbers,
    stdout: DuplexStream,
    stderr: DuplexStream,
    status: Vec<u8>,
    /// Takes frames for the container runtime. Dropped at the end, which ends the connection.
    answer: mpsc::Sender<Vec<u8>>,
}

impl Outputs {
    /// Copies the outputs until the program or the connection ends, or the session is dropped.
    async fn run(mut self, mut reader: ReadHalf<Connection>, mut end: oneshot::Sender<End>) {
        let ended = tokio::select! {
            biased;
            () = end.closed() => return,
            ended = self.copy(&mut reader) => ended,
        };
        let Ok(ended) = ended else { return };
        if let Some(text) = ended.as_ref().err().filter(|text| status::code_of_shell(text).is_some()) {
            let output = if self.numbers.stderr.is_some() { &mut self.stderr } else { &mut self.stdout };
            let _ = output.write_all(format!("{text}\n").as_bytes()).await;
        }
        let _ = end.send(ended);
    }

    async fn copy(&mut self, reader: &mut ReadHalf<Connection>) -> io::Result<End> {
        loop {
            let mut head = [0; HEAD];
            reader.read_exact(&mut head).await?;
            match spdy::head(head) {
                Head::Data { stream, is_last, length } => {
                    self.copy_data(reader, stream, length as u64).await?;
                    // The container runtime resets the stream behind the status, or closes the connection.
                    if stream == ERROR && (is_last || status::is_complete(&self.status)) {
                        return Ok(status::end(&self.status));
                    }
                }
                Head::Ping { length: 4 } => {
                    let mut body = [0; 4];
                    reader.read_exact(&mut body).await?;
                    let _ = self.answer.send(spdy::pong(body)).await;
                }
                Head::Ping { length } | Head::Reset { length } | Head::Other { length } => {
                    tokio::io::copy(&mut reader.take(length as u64), &mut tokio::io::sink()).await?;
                }
            }
        }
    }

    /// Copies the bytes of a frame. A client that reads no more still gets the exit code.
    async fn copy_data(
        &mut self,
        reader: &mut ReadHalf<Connection>,
        stream: u32,
        length: u64,
    ) -> io::Result<()> {
        let mut chunk = [0; 4096];
        let mut left = length;
        while left > 0 {
            let most = chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let read = reader.read(&mut chunk[..most]).await?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            left -= read as u64;
            let bytes = &chunk[..read];
            if stream == self.numbers.stdout {
                let _ = self.stdout.write_all(bytes).await;
            } else if Some(stream) == self.numbers.stderr {
                let _ = self.stderr.write_all(bytes).await;
            } else if stream == ERROR && (self.status.len() + read) as u64 <= STATUS {
                self.status.extend_from_slice(bytes);
            }
        }
        Ok(())
    }
}

/// The way from the client to the program.
struct Inputs {
    numbers: Numbers,
    stdin: Option<DuplexStream>,
    sizes: mpsc::Receiver<TerminalSize>,
    answers: mpsc::Receiver<Vec<u8>>,
}

impl Inputs {
    /// Sends the standard input and the sizes of the terminal until the outputs have ended. Closes the connection at last.
    async fn run(mut self, mut writer: WriteHalf<Connection>, size: Option<TerminalSize>) {
        let mut chunk = vec![0; CHUNK];
        let mut next = size.and_then(|size| self.resized(size));
        let mut has_sizes = true;
        loop {
            if let Some(frame) = next.take()
                && writer.write_all(&frame).await.is_err()
            {
                return;
            }
            tokio::select! {
                biased;
                answer = self.answers.recv() => match answer {
                    Some(frame) => next = Some(frame),
                    None => break,
                },
                size = self.sizes.recv(), if has_sizes => match size {
                    Some(size) => next = self.resized(size),
                    None => has_sizes = false,
                },
                length = read(&mut self.stdin, &mut chunk) => {
                    let number = self.numbers.stdin.unwrap_or_default();
                    if length == 0 {
                        self.stdin = None;
                        // containerd drops the output of a terminal whose input has ended.
                        next = self.numbers.sizes.is_none().then(|| spdy::last(number));
                    } else {
                        next = Some(spdy::data(number, &chunk[..length]));
                    }
                },
            }
        }
        let _ = writer.shutdown().await;
    }

    /// Returns the frame that changes the size of the terminal, if there is a terminal.
    fn resized(&self, TerminalSize { width, height }: TerminalSize) -> Option<Vec<u8>> {
        let text = format!("{{\"Width\":{width},\"Height\":{height}}}\n");
        Some(spdy::data(self.numbers.sizes?, text.as_bytes()))
    }
}

/// Reads the standard input. 0 is its end. A program without a standard input is never ready.
async fn read(stdin: &mut Option<DuplexStream>, chunk: &mut [u8]) -> usize {
    match stdin {
        Some(stdin) => stdin.read(chunk).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

/// Makes the exit of a command.
fn exit(end: Option<End>, started_at: SystemTime) -> Result<Exit, RuntimeError> {
    let lost = || Err("the container runtime closed the connection before the command ended".to_owned());
    let code = match end.unwrap_or_else(lost) {
        Ok(code) => code,
        Err(text) => status::code_of_shell(&text).ok_or(RuntimeError::Start(text))?,
    };
    let finished_at = SystemTime::now();
    Ok(Exit { code, signal: None, out_of_memory: false, started_at, finished_at })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_have_odd_numbers_in_their_order() {
        let (kinds, numbers) = Streams { stdin: true, terminal: false, size: None }.numbered();
        assert_eq!(kinds, ["error", "stdin", "stdout", "stderr"]);
        assert_eq!(numbers, Numbers { stdin: Some(3), stdout: 5, stderr: Some(7), sizes: None });
        let (kinds, numbers) = Streams { stdin: false, terminal: true, size: None }.numbered();
        assert_eq!(kinds, ["error", "stdout", "resize"]);
        assert_eq!(numbers, Numbers { stdin: None, stdout: 3, stderr: None, sizes: Some(5) });
    }

    #[test]
    fn a_lost_connection_is_no_exit() {
        let start = SystemTime::now();
        assert!(exit(None, start).is_err());
        assert_eq!(exit(Some(Ok(3)), start).unwrap().code, 3);
        assert_eq!(exit(Some(Err("exec: no such file or directory".into())), start).unwrap().code, 127);
    }
}
