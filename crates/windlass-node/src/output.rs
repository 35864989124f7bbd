//! The output of a container, on the way to the log and to the clients that are attached.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::timeout;

use crate::log::{LogStream, LogWriter};

/// The bytes that an attached client may be behind, for each stream.
const BEHIND: usize = 256 << 10;

/// How long the container waits for a client that is behind. Slower clients are detached.
const SLOWEST: Duration = Duration::from_secs(5);

/// The size of a read, in bytes.
const CHUNK: usize = 32 << 10;

/// A standard input, or the input of a terminal.
pub(crate) type Input = Pin<Box<dyn AsyncWrite + Send>>;

/// An output of a program.
pub(crate) type Output = Pin<Box<dyn AsyncRead + Send>>;

struct Client {
    stdout: DuplexStream,
    stderr: Option<DuplexStream>,
}

/// The streams of the first process of a container.
pub(crate) struct Hub {
    log: Arc<Mutex<LogWriter>>,
    clients: tokio::sync::Mutex<Vec<Client>>,
    stdin: tokio::sync::Mutex<Option<Input>>,
    stdin_once: bool,
    ended: std::sync::atomic::AtomicBool,
}

impl Hub {
    /// Creates the log.
    pub(crate) async fn create(
        log: &Path,
        stdin: Option<Input>,
        stdin_once: bool,
    ) -> std::io::Result<Arc<Self>> {
        let path = log.to_owned();
        let log = tokio::task::spawn_blocking(move || LogWriter::create(&path))
            .await
            .map_err(std::io::Error::other)??;
        Ok(Arc::new(Self {
            log: Arc::new(Mutex::new(log)),
            clients: tokio::sync::Mutex::default(),
            stdin: tokio::sync::Mutex::new(stdin),
            stdin_once,
            ended: false.into(),
        }))
    }

    /// Sets the input.
    pub(crate) async fn set_stdin(&self, stdin: Input) {
        *self.stdin.lock().await = Some(stdin);
    }

    /// Copies an output to the log and to all clients, until the output ends.
    pub(crate) async fn copy(self: Arc<Self>, stream: LogStream, mut output: Output) {
        let mut chunk = vec![0; CHUNK];
        let mut failed = false;
        loop {
            let length = match output.read(&mut chunk).await {
                Ok(0) | Err(_) => return,
                Ok(length) => length,
            };
            let (log, bytes) = (Arc::clone(&self.log), chunk[..length].to_vec());
            let written =
                tokio::task::spawn_blocking(move || log.lock().write(stream, &bytes, SystemTime::now()))
                    .await;
            if let Ok(Err(error)) = written
                && !failed
            {
                failed = true;
                tracing::warn!(%error, "the log of a container cannot be written; its output is lost");
            }
            self.send(stream, &chunk[..length]).await;
        }
    }

    async fn send(&self, stream: LogStream, bytes: &[u8]) {
        let mut clients = self.clients.lock().await;
        let mut index = 0;
        while let Some(client) = clients.get_mut(index) {
            let sink = match (&stream, &mut client.stderr) {
                (LogStream::Stderr, Some(stderr)) => stderr,
                _ => &mut client.stdout,
            };
            match timeout(SLOWEST, sink.write_all(bytes)).await {
                Ok(Ok(())) => index += 1,
                _ => drop(clients.remove(index)),
            }
        }
    }

    /// Ends the log, and the streams of the clients.
    pub(crate) async fn finish(&self) {
        let log = Arc::clone(&self.log);
        let _ = tokio::task::spawn_blocking(move || log.lock().finish(SystemTime::now())).await;
        let mut clients = self.clients.lock().await;
        self.ended.store(true, std::sync::atomic::Ordering::Release);
        clients.clear();
        *self.stdin.lock().await = None;
    }

    /// Adds a client: its input, output and error output.
    pub(crate) async fn attach(self: &Arc<Self>, terminal: bool) -> (Option<Input>, Output, Option<Output>) {
        let (near, stdout) = duplex(BEHIND);
        let (error_near, stderr) = duplex(BEHIND);
        let mut clients = self.clients.lock().await;
        if !self.ended.load(std::sync::atomic::Ordering::Acquire) {
            clients.push(Client { stdout: near, stderr: (!terminal).then_some(error_near) });
        }
        drop(clients);
        let stdin = if self.stdin.lock().await.is_some() { Some(self.input()) } else { None };
        (stdin, Box::pin(stdout), (!terminal).then(|| Box::pin(stderr) as Output))
    }

    /// Makes an input of a client.
    fn input(self: &Arc<Self>) -> Input {
        let (near, mut far) = duplex(CHUNK);
        let hub = Arc::clone(self);
        tokio::spawn(async move {
            let mut chunk = vec![0; CHUNK];
            while let Ok(length @ 1..) = far.read(&mut chunk).await {
                let mut stdin = hub.stdin.lock().await;
                let Some(open) = stdin.as_mut() else { return };
                if open.write_all(&chunk[..length]).await.is_err() {
                    *stdin = None;
                    return;
                }
            }
            if hub.stdin_once {
                *hub.stdin.lock().await = None;
            }
        });
        Box::pin(near)
    }
}
