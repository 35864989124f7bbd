//! The connection of a runtime to its helper.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::RuntimeError;
use crate::helper::POD;
use crate::helper::channel::{Inbox, encode, send_part};
use crate::helper::protocol::{
    HelperSetup, Mapping, Message, Operation, Refusal, RefusalKind, Request, ToProcess,
};
use crate::helper::write_outer_maps;

/// How long the helper may take to start or to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a process ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub code: i32,
    pub signal: Option<i32>,
    pub at: SystemTime,
}

type Answer = Result<Option<OwnedFd>, Refusal>;

#[derive(Default)]
struct Waiting {
    answers: HashMap<u64, oneshot::Sender<Answer>>,
    ends: HashMap<String, oneshot::Sender<End>>,
    closed: bool,
}

/// A running helper.
pub(super) struct Link {
    socket: UnixStream,
    writing: tokio::sync::Mutex<()>,
    next: AtomicU64,
    waiting: Mutex<Waiting>,
    /// True if overlays work.
    pub overlay: bool,
    pub mapping: Mapping,
    pub host_network: bool,
}

impl Link {
    /// Starts a helper.
    pub(super) async fn start(
        launcher: &Path,
        directory: &Path,
        mapping: Mapping,
        host_network: bool,
    ) -> Result<Arc<Self>, Refusal> {
        let setup = HelperSetup { host_network, directory: directory.to_owned(), mapping: mapping.clone() };
        match timeout(PATIENCE, Self::handshake(launcher, &setup)).await {
            Ok(Ok((socket, inbox, overlay))) => {
                let link = Arc::new(Self {
                    socket,
                    overlay,
                    mapping,
                    host_network,
                    writing: tokio::sync::Mutex::default(),
                    next: AtomicU64::new(1),
                    waiting: Mutex::default(),
                });
                tokio::spawn(Arc::clone(&link).receive(inbox));
                Ok(link)
            }
            Ok(Err(refusal)) => Err(refusal),
            Err(_) => Err(Refusal::start("the helper of the pods did not start in time")),
        }
    }

    async fn handshake(launcher: &Path, setup: &HelperSetup) -> Result<(UnixStream, Inbox, bool), Refusal> {
        let failed = |text: &str, error: io::Error| Refusal::start(format!("{text}: {error}"));
        let (near, far) = StdStream::pair().map_err(|error| failed("create a socket pair", error))?;
        let mut child = Command::new(launcher)
            .arg(POD)
            .stdin(Stdio::from(OwnedFd::from(far)))
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|error| failed(&format!("start {}", launcher.display()), error))?;
        let pid = child.id();
        // A thread that waits for the end: the process must not stay as a zombie.
        std::thread::Builder::new()
            .name("windlass-node".into())
            .stack_size(64 << 10)
            .spawn(move || child.wait())
            .map_err(|error| failed("start a thread", error))?;
        near.set_nonblocking(true).map_err(|error| failed("set up a socket", error))?;
        let socket = UnixStream::from_std(near).map_err(|error| failed("set up a socket", error))?;
        let mut inbox = Inbox::default();
        write(&socket, setup, &[]).await.map_err(|error| failed("talk to the helper", error))?;
        loop {
            let message =
                next(&socket, &mut inbox).await.map_err(|error| failed("talk to the helper", error))?;
            match message {
                Some((Message::Unshared, _)) => {
                    write_outer_maps(pid, &setup.mapping)
                        .map_err(|error| failed("write the maps of the user namespace", error))?;
                    write(&socket, &ToProcess::Mapped, &[])
                        .await
                        .map_err(|error| failed("talk to the helper", error))?;
                }
                Some((Message::Ready { overlay }, _)) => return Ok((socket, inbox, overlay)),
                Some((Message::Failed(refusal), _)) => return Err(refusal),
                Some(_) => {}
                None => {
                    let text = format!(
                        "{} ended before it was ready; its main must call windlass_node::launch first",
                        launcher.display()
                    );
                    return Err(Refusal::start(text));
                }
            }
        }
    }

    async fn receive(self: Arc<Self>, mut inbox: Inbox) {
        while let Ok(Some((message, descriptors))) = next(&self.socket, &mut inbox).await {
            match message {
                Message::Reply { id, result } => {
                    let waiting = self.waiting.lock().answers.remove(&id);
                    if let Some(waiting) = waiting {
                        let _ = waiting.send(result.map(|()| descriptors.into_iter().next()));
                    }
                }
                Message::Exited { key, code, signal } => {
                    if let Some(waiting) = self.waiting.lock().ends.remove(&key) {
                        let _ = waiting.send(End { code, signal, at: SystemTime::now() });
                    }
                }
                _ => {}
            }
        }
        let mut waiting = self.waiting.lock();
        waiting.closed = true;
        waiting.answers.clear();
        waiting.ends.clear();
    }

    /// Returns whether the helper has ended, and all containers with the helper.
    pub(super) fn is_closed(&self) -> bool {
        self.waiting.lock().closed
    }

    /// Announces a process, before the request that starts the process. The receiver fails if the helper ends.
    pub(super) fn watch(&self, key: &str) -> oneshot::Receiver<End> {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        if !waiting.closed {
            waiting.ends.insert(key.to_owned(), sender);
        }
        receiver
    }

    /// Forgets a process that did not start.
    pub(super) fn forget(&self, key: &str) {
        self.waiting.lock().ends.remove(key);
    }

    /// Sends a request and waits for the answer. A caller that goes away does not tear the request.
    pub(super) async fn ask(self: &Arc<Self>, operation: Operation, descriptors: Vec<OwnedFd>) -> Answer {
        let link = Arc::clone(self);
        let asked = tokio::spawn(async move { link.exchange(operation, descriptors).await });
        asked.await.unwrap_or_else(|_| Err(gone()))
    }

    async fn exchange(&self, operation: Operation, descriptors: Vec<OwnedFd>) -> Answer {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        {
            let mut waiting = self.waiting.lock();
            if waiting.closed {
                return Err(gone());
            }
            waiting.answers.insert(id, sender);
        }
        {
            let _alone = self.writing.lock().await;
            let borrowed: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
            write(&self.socket, &Request { id, operation }, &borrowed).await.map_err(|_| gone())?;
        }
        drop(descriptors);
        if let Ok(answer) = timeout(PATIENCE, receiver).await {
            return answer.unwrap_or_else(|_| Err(gone()));
        }
        self.waiting.lock().answers.remove(&id);
        Err(Refusal::start("the helper of the pods did not answer in time"))
    }
}

fn gone() -> Refusal {
    Refusal { kind: RefusalKind::NotFound, text: "the helper of the pods has ended: the container".into() }
}

impl From<Refusal> for RuntimeError {
    fn from(refusal: Refusal) -> Self {
        match refusal.kind {
            RefusalKind::Config => Self::Config(refusal.text),
            RefusalKind::Create => Self::Create(refusal.text),
            RefusalKind::NotFound => Self::NotFound(refusal.text),
            RefusalKind::Unsupported => Self::Unsupported(refusal.text),
            RefusalKind::Start | RefusalKind::ProgramNotFound | RefusalKind::NotExecutable => {
                Self::Start(refusal.text)
            }
        }
    }
}

async fn write<T: serde::Serialize>(
    socket: &UnixStream,
    message: &T,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let frame = encode(message, descriptors.len())?;
    let mut sent = 0;
    while sent < frame.len() {
        let with = if sent == 0 { descriptors } else { &[] };
        sent +=
            socket.async_io(Interest::WRITABLE, || send_part(socket.as_fd(), &frame[sent..], with)).await?;
    }
    Ok(())
}

async fn next(socket: &UnixStream, inbox: &mut Inbox) -> io::Result<Option<(Message, Vec<OwnedFd>)>> {
    loop {
        if let Some(message) = inbox.next()? {
            return Ok(Some(message));
        }
        if !socket.async_io(Interest::READABLE, || inbox.fill(socket.as_fd())).await? {
            return Ok(None);
        }
    }
}
