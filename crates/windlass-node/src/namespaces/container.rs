//! A container of a [`Namespaces`](super::Namespaces) runtime.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::net::unix::pipe;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::files;
use super::link::{End, Link};
use super::terminal::Terminal;
use crate::cgroup::{self, Cgroups};
use crate::helper::protocol::{ContainerSetup, Operation, ProgramSetup, Refusal, RefusalKind, UserSetup};
use crate::images::Images;
use crate::log::LogStream;
use crate::output::{Hub, Input, Output};
use crate::{
    Command, CommandOutput, ContainerSpec, Exit, RuntimeError, SandboxId, SandboxSpec, Session, program,
    random_id,
};

/// How long the output may take to end after the container.
const DRAIN: Duration = Duration::from_secs(5);

/// The signal that ends a command.
const KILL: i32 = 9;

/// The size of a terminal until a client changes the size.
const TERMINAL: (u16, u16) = (80, 24);

/// The input of a container's start.
pub(super) struct Start<'a> {
    pub id: &'a str,
    pub sandbox: &'a SandboxSpec,
    pub link: &'a Arc<Link>,
    pub images: &'a dyn Images,
    pub cgroups: Option<&'a Cgroups>,
    pub directory: &'a Path,
    /// The directory of the sandbox.
    pub shared: PathBuf,
    pub spec: ContainerSpec,
}

/// A container that has been started.
pub(super) struct Container {
    id: String,
    sandbox: SandboxId,
    link: Arc<Link>,
    directory: PathBuf,
    cgroups: Vec<PathBuf>,
    hub: Arc<Hub>,
    terminal: Option<Terminal>,
    /// For commands.
    program: ProgramSetup,
    stop_signal: i32,
    exit: watch::Receiver<Option<Exit>>,
}

/// The ends of the runtime, and the ends of the program.
struct Streams {
    stdin: Option<Input>,
    outputs: Vec<(LogStream, Output)>,
    program: Vec<OwnedFd>,
}

impl Streams {
    /// Makes pipes.
    fn pipes(stdin: bool) -> io::Result<Self> {
        let (input, near_input) = if stdin {
            let (reader, writer) = io::pipe()?;
            let near = pipe::Sender::from_owned_fd(nonblocking(writer.into())?)?;
            (OwnedFd::from(reader), Some(Box::pin(near) as Input))
        } else {
            (std::fs::File::open("/dev/null")?.into(), None)
        };
        let mut program = vec![input];
        let mut outputs = Vec::new();
        for stream in [LogStream::Stdout, LogStream::Stderr] {
            let (reader, writer) = io::pipe()?;
            let near = pipe::Receiver::from_owned_fd(nonblocking(reader.into())?)?;
            outputs.push((stream, Box::pin(near) as Output));
            program.push(writer.into());
        }
        Ok(Self { stdin: near_input, outputs, program })
    }

    fn for_terminal() -> Self {
        Self { stdin: None, outputs: Vec::new(), program: Vec::new() }
    }
}

fn nonblocking(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    rustix::io::ioctl_fionbio(&descriptor, true)?;
    Ok(descriptor)
}

impl Container {
    /// Starts a container.
    pub(super) async fn start(start: Start<'_>) -> Result<Arc<Self>, RuntimeError> {
        let Start { id, sandbox, link, images, directory, spec, .. } = &start;
        let io = |error| RuntimeError::Io { doing: format!("prepare container {}", spec.name), error };
        let unpacked = images.unpack(&spec.image).await?;
        program::check_user(spec, &unpacked.config)?;
        let program = program_setup(spec, sandbox, link, &unpacked.config)?;
        let mounts = files::mounts(&start.shared, spec)?;
        let (image, own, overlay) = (unpacked.directory.clone(), directory.to_path_buf(), link.overlay);
        let root = tokio::task::spawn_blocking(move || files::root(&image, &own, overlay)).await;
        let root = root.map_err(io::Error::other).flatten().map_err(io)?;
        let cgroups = start.limits().map_err(io)?;
        let mut streams =
            if spec.terminal { Streams::for_terminal() } else { Streams::pipes(spec.stdin).map_err(io)? };
        let hub = Hub::create(&spec.log, streams.stdin.take(), spec.stdin_once).await.map_err(|error| {
            remove_groups(&cgroups);
            RuntimeError::Io { doing: format!("create the log {}", spec.log.display()), error }
        })?;
        let setup = ContainerSetup { root, mounts, read_only: spec.read_only_root, program: program.clone() };
        let operation = Operation::Start {
            key: (*id).to_owned(),
            sandbox: sandbox.id.0.clone(),
            cgroups: cgroups.clone(),
            setup: Box::new(setup),
        };
        let end = link.watch(id);
        let started_at = SystemTime::now();
        let answer = link.ask(operation, std::mem::take(&mut streams.program)).await;
        let master = answer.map_err(|refusal| {
            link.forget(id);
            remove_groups(&cgroups);
            start_error(refusal)
        })?;
        let terminal = master.map(Terminal::new).transpose().map_err(io)?;
        if let Some(terminal) = &terminal {
            streams.outputs.push((LogStream::Stdout, Box::pin(terminal.clone())));
            if spec.stdin {
                hub.set_stdin(Box::pin(terminal.clone())).await;
            }
        }
        let (sender, exit) = watch::channel(None);
        let copies: Vec<_> = streams
            .outputs
            .into_iter()
            .map(|(stream, output)| tokio::spawn(Arc::clone(&hub).copy(stream, output)))
            .collect();
        let ending =
            Ending { end, copies, hub: Arc::clone(&hub), cgroups: cgroups.clone(), started_at, sender };
        let guard = unpacked.guard;
        tokio::spawn(async move {
            ending.run().await;
            drop(guard);
        });
        Ok(Arc::new(Self {
            id: (*id).to_owned(),
            sandbox: sandbox.id.clone(),
            link: Arc::clone(link),
            directory: directory.to_path_buf(),
            cgroups,
            hub,
            terminal,
            program,
            stop_signal: unpacked.config.stop_signal.unwrap_or(15),
            exit,
        }))
    }

    pub(super) fn sandbox(&self) -> &SandboxId {
        &self.sandbox
    }

    pub(super) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn stop_signal(&self) -> i32 {
        self.stop_signal
    }

    pub(super) fn has_ended(&self) -> bool {
        self.exit.borrow().is_some()
    }

    /// Waits for the end.
    pub(super) async fn wait(&self) -> Result<Exit, RuntimeError> {
        ended(self.exit.clone()).await
    }

    /// Attaches a client.
    pub(super) async fn attach(&self) -> Result<Session, RuntimeError> {
        if self.has_ended() {
            return Err(RuntimeError::NotFound(format!("running container {}", self.id)));
        }
        let (stdin, stdout, stderr) = self.hub.attach(self.terminal.is_some()).await;
        Ok(Session {
            stdin,
            stdout: Some(stdout),
            stderr,
            resize: self.terminal.as_ref().map(Terminal::resizer),
            exit: Box::pin(ended(self.exit.clone())),
        })
    }

    /// Runs a command.
    pub(super) async fn exec(&self, command: Command) -> Result<Session, RuntimeError> {
        self.command(command).await.map(|(session, _)| session)
    }

    /// Runs a command to its end. Kills the processes of the command after `limit`.
    pub(super) async fn exec_sync(
        &self,
        words: Vec<String>,
        limit: Duration,
    ) -> Result<Option<CommandOutput>, RuntimeError> {
        let end = Instant::now() + limit;
        let (mut session, key) = self.command(Command { words, terminal: None, stdin: false }).await?;
        if let Ok(output) = timeout_at(end, session.collect()).await {
            return output.map(Some);
        }
        self.link.ask(Operation::Signal { key, signal: KILL }, Vec::new()).await?;
        Ok(None)
    }

    /// Starts a command. Returns the session and the key of the command.
    async fn command(&self, command: Command) -> Result<(Session, String), RuntimeError> {
        let io = |error| RuntimeError::Io { doing: "prepare a command".into(), error };
        let key = random_id().map_err(io)?;
        let streams = match command.terminal {
            Some(_) => Streams::for_terminal(),
            None => Streams::pipes(command.stdin).map_err(io)?,
        };
        let setup = ProgramSetup {
            words: command.words,
            terminal: command.terminal.map(|size| (size.width, size.height)),
            ..self.program.clone()
        };
        let operation = Operation::Exec {
            key: key.clone(),
            container: self.id.clone(),
            cgroups: self.cgroups.clone(),
            setup: Box::new(setup),
        };
        let end = self.link.watch(&key);
        let started_at = SystemTime::now();
        let answer = self.link.ask(operation, streams.program).await;
        let master = match answer {
            Ok(master) => master,
            Err(refusal) => {
                self.link.forget(&key);
                return not_executed(refusal, started_at).map(|session| (session, key));
            }
        };
        let exit = Box::pin(async move { Ok(exit(end.await.ok(), started_at, false)) });
        if let Some(master) = master {
            let terminal = Terminal::new(master).map_err(io)?;
            let stdin = command.stdin.then(|| Box::pin(terminal.clone()) as Input);
            let (stdout, resize) = (Some(Box::pin(terminal.clone()) as Output), Some(terminal.resizer()));
            return Ok((Session { stdin, stdout, stderr: None, resize, exit }, key));
        }
        let mut outputs = streams.outputs.into_iter().map(|(_, output)| output);
        let session = Session {
            stdin: streams.stdin,
            stdout: outputs.next(),
            stderr: outputs.next(),
            resize: None,
            exit,
        };
        Ok((session, key))
    }
}

impl Start<'_> {
    /// Creates the control groups, if there are limits.
    fn limits(&self) -> io::Result<Vec<PathBuf>> {
        let limits = self.spec.limits;
        match self.cgroups {
            Some(cgroups) if limits != crate::Limits::default() => cgroups.container(self.id, limits),
            _ => Ok(Vec::new()),
        }
    }
}

/// The wait for the end of a container.
struct Ending {
    end: oneshot::Receiver<End>,
    copies: Vec<JoinHandle<()>>,
    hub: Arc<Hub>,
    cgroups: Vec<PathBuf>,
    started_at: SystemTime,
    sender: watch::Sender<Option<Exit>>,
}

impl Ending {
    async fn run(self) {
        let end = self.end.await.ok();
        for copy in self.copies {
            let stop = copy.abort_handle();
            if tokio::time::timeout(DRAIN, copy).await.is_err() {
                stop.abort();
            }
        }
        self.hub.finish().await;
        let out_of_memory = cgroup::out_of_memory(&self.cgroups);
        remove_groups(&self.cgroups);
        let _ = self.sender.send(Some(exit(end, self.started_at, out_of_memory)));
    }
}

fn remove_groups(cgroups: &[PathBuf]) {
    cgroups.iter().for_each(|group| drop(std::fs::remove_dir(group)));
}

/// Makes an exit. A process whose helper has ended was killed by the kernel.
fn exit(end: Option<End>, started_at: SystemTime, out_of_memory: bool) -> Exit {
    let killed = || End { code: 137, signal: Some(9), at: SystemTime::now() };
    let End { code, signal, at } = end.unwrap_or_else(killed);
    Exit { code, signal, out_of_memory: out_of_memory && signal == Some(9), started_at, finished_at: at }
}

async fn ended(mut exit: watch::Receiver<Option<Exit>>) -> Result<Exit, RuntimeError> {
    let found = exit.wait_for(Option::is_some).await.ok().and_then(|exit| exit.clone());
    found.ok_or_else(|| RuntimeError::NotFound("the end of the container".into()))
}

fn program_setup(
    spec: &ContainerSpec,
    sandbox: &SandboxSpec,
    link: &Link,
    image: &crate::ImageConfig,
) -> Result<ProgramSetup, RuntimeError> {
    let directory = spec.working_directory.clone().unwrap_or_else(|| image.working_directory.clone());
    let directory = if directory.is_empty() { "/".to_owned() } else { directory };
    if !directory.starts_with('/') {
        return Err(RuntimeError::Start(format!(
            "the working directory {directory:?} is not an absolute path"
        )));
    }
    Ok(ProgramSetup {
        words: program::words(spec, image)?,
        environment: program::environment(spec, image, &sandbox.host_name),
        directory,
        user: UserSetup::LookUp {
            image: image.user.clone(),
            user: spec.user.user,
            group: spec.user.group,
            groups: spec.user.supplementary_groups.clone(),
        },
        host_network: link.host_network,
        terminal: spec.terminal.then_some(TERMINAL),
        mapping: link.mapping.clone(),
    })
}

/// Adds the words of runc to the failure of a program.
fn start_error(mut refusal: Refusal) -> RuntimeError {
    if matches!(refusal.kind, RefusalKind::ProgramNotFound | RefusalKind::NotExecutable) {
        refusal.text = format!("unable to start container process: {}", refusal.text);
    }
    refusal.into()
}

/// Makes the session of a command that cannot be executed.
fn not_executed(refusal: Refusal, started_at: SystemTime) -> Result<Session, RuntimeError> {
    match refusal.kind {
        RefusalKind::ProgramNotFound => Ok(Session::not_executed(127, &refusal.text, started_at)),
        RefusalKind::NotExecutable => Ok(Session::not_executed(126, &refusal.text, started_at)),
        _ => Err(refusal.into()),
    }
}
