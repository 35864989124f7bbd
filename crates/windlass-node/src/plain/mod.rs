//! Runs the programs of images as plain processes, for machines without namespaces.

mod surroundings;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::process::Command as Process;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::images::{ImageConfig, Images};
use crate::log::LogStream;
use crate::output::{Hub, Input};
use crate::{
    Command, CommandOutput, ContainerId, ContainerSpec, Credential, Exit, Image, PullError, Runtime,
    RuntimeError, SandboxId, SandboxSpec, Session, program,
};

/// Runs the programs of images as plain processes of this user, on this machine's network.
///
/// The mode proves the manifests, the token and the rights of an operator, not the image. The differences from a container:
///
/// - The program sees the files of this machine. Mounts are not visible at their paths: words of the command and values of variables that
///   begin with the path of a mount get the path of the mount's source, as do arguments of the form `--flag=PATH`. The variables
///   `WINDLASS_MOUNT_0` and following have all mounts, as `TARGET=SOURCE`.
/// - All pods share the ports of this machine: one replica for each port.
/// - [`listen`](Runtime::listen) answers on a port of 127.0.0.1. `NAME_SERVICE_HOST` and `NAME_SERVICE_PORT` name this port for the first
///   port of each Service, and `KUBECONFIG` names a kubeconfig with this port and the token of the pod.
/// - Users, limits, a read-only root and terminals have no effect.
/// - The image must contain a program for this operating system.
/// - After `kill -9` of this process, the programs go on.
pub struct Plain {
    images: Arc<dyn Images>,
    /// Has the kubeconfigs of the pods.
    directory: PathBuf,
    sandboxes: Mutex<HashMap<SandboxId, Sandbox>>,
    /// Where this machine answers for an address, such as that of a Service.
    answers: Mutex<BTreeMap<SocketAddr, SocketAddr>>,
    /// The same, for UDP.
    udp_answers: Mutex<BTreeMap<SocketAddr, SocketAddr>>,
    containers: Mutex<HashMap<ContainerId, Arc<Running>>>,
}

impl fmt::Debug for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plain").finish_non_exhaustive()
    }
}

struct Sandbox {
    host_name: String,
}

struct Running {
    sandbox: SandboxId,
    group: Option<Pid>,
    hub: Arc<Hub>,
    root: PathBuf,
    environment: Vec<(String, String)>,
    stop_signal: i32,
    exit: watch::Receiver<Option<Exit>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

impl Running {
    /// Signals all processes of the group, unless the first process has ended.
    fn signal(&self, signal: Signal) {
        if self.exit.borrow().is_none()
            && let Some(group) = self.group
        {
            let _ = kill_process_group(group, signal);
        }
    }

    fn wait(&self) -> impl Future<Output = Result<Exit, RuntimeError>> + Send + use<> {
        let mut exit = self.exit.clone();
        async move {
            let found = exit.wait_for(Option::is_some).await.ok().and_then(|exit| exit.clone());
            found.ok_or_else(|| RuntimeError::NotFound("the end of the container".into()))
        }
    }
}

impl Plain {
    /// Runs programs of `images`. `directory` has files for the programs. The directory is created if missing; the caller
    /// removes the directory.
    pub fn new(images: Arc<dyn Images>, directory: impl Into<PathBuf>) -> Self {
        Self {
            images,
            directory: directory.into(),
            sandboxes: Mutex::default(),
            answers: Mutex::default(),
            udp_answers: Mutex::default(),
            containers: Mutex::default(),
        }
    }

    /// Returns the environment of a container, as this machine offers it.
    fn environment(
        &self,
        id: &SandboxId,
        spec: &ContainerSpec,
        image: &ImageConfig,
    ) -> Result<Vec<(String, String)>, RuntimeError> {
        let mut variables = {
            let sandboxes = self.sandboxes.lock();
            let missing = || RuntimeError::NotFound(format!("sandbox {}", id.0));
            let sandbox = sandboxes.get(id).ok_or_else(missing)?;
            let mut variables = program::environment(spec, image, &sandbox.host_name);
            // Of two protocols on one address, the variables name TCP.
            let mut answers = self.udp_answers.lock().clone();
            answers.extend(self.answers.lock().iter());
            surroundings::replace_services(&mut variables, &answers);
            variables
        };
        for (_, value) in &mut variables {
            *value = surroundings::local_path(value, &spec.mounts);
        }
        surroundings::add_mounts(&mut variables, &spec.mounts);
        let file = self.kubeconfig(id);
        std::fs::create_dir_all(&self.directory)
            .and_then(|()| surroundings::add_kubeconfig(&mut variables, &spec.mounts, &file))
            .map_err(|error| RuntimeError::Io { doing: format!("write {}", file.display()), error })?;
        Ok(variables)
    }

    fn kubeconfig(&self, sandbox: &SandboxId) -> PathBuf {
        self.directory.join(format!("{}.kubeconfig", sandbox.0))
    }

    fn container(&self, id: &ContainerId) -> Result<Arc<Running>, RuntimeError> {
        let found = self.containers.lock().get(id).cloned();
        found.ok_or_else(|| RuntimeError::NotFound(format!("container {}", id.0)))
    }

    /// Starts a command. Returns the session, and the process group unless the command cannot be executed.
    fn command(
        &self,
        container: &ContainerId,
        command: Command,
    ) -> Result<(Session, Option<Pid>), RuntimeError> {
        let running = self.container(container)?;
        let started_at = SystemTime::now();
        let Command { words, stdin, .. } = command;
        let mut process = program_of(&running.root, &words, &running.environment, None, stdin)?;
        let mut child = match process.spawn() {
            Ok(child) => child,
            Err(error) => {
                let code = match error.kind() {
                    ErrorKind::NotFound => 127,
                    ErrorKind::PermissionDenied => 126,
                    _ => return Err(RuntimeError::Start(not_started(&words, &error))),
                };
                return Ok((Session::not_executed(code, &not_started(&words, &error), started_at), None));
            }
        };
        let group = child.id().and_then(|id| Pid::from_raw(id as i32));
        let session = Session {
            stdin: child.stdin.take().map(|stdin| Box::pin(stdin) as Input),
            stdout: child.stdout.take().map(|stdout| Box::pin(stdout) as _),
            stderr: child.stderr.take().map(|stderr| Box::pin(stderr) as _),
            resize: None,
            exit: Box::pin(async move { Ok(exit(child.wait().await, started_at)) }),
        };
        Ok((session, group))
    }
}

/// Returns a program of an image, or of this machine if the image has no such file.
fn program_of(
    root: &Path,
    words: &[String],
    environment: &[(String, String)],
    directory: Option<&str>,
    stdin: bool,
) -> Result<Process, RuntimeError> {
    let (name, arguments) =
        words.split_first().ok_or_else(|| RuntimeError::Create("no command specified".into()))?;
    let inside = root.join(name.trim_start_matches('/')).canonicalize().ok();
    let real = root.canonicalize().ok();
    let inside = inside.filter(|path| name.contains('/') && real.is_some_and(|root| path.starts_with(root)));
    let mut process = Process::new(inside.unwrap_or_else(|| PathBuf::from(name)));
    process
        .args(arguments)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .envs(environment.iter().cloned())
        .current_dir(directory.map_or_else(|| root.to_owned(), PathBuf::from))
        .stdin(if stdin { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    Ok(process)
}

/// Names the program that the operating system did not start.
fn not_started(words: &[String], error: &std::io::Error) -> String {
    format!("exec: {:?}: {error}", words.first().map(String::as_str).unwrap_or_default())
}

fn exit(status: std::io::Result<ExitStatus>, started_at: SystemTime) -> Exit {
    let (code, signal) = match status {
        Ok(status) => (status.code(), status.signal()),
        Err(_) => (Some(255), None),
    };
    let code = code.unwrap_or_else(|| 128 + signal.unwrap_or(0));
    Exit { code, signal, out_of_memory: false, started_at, finished_at: SystemTime::now() }
}

#[async_trait]
impl Runtime for Plain {
    fn scheme(&self) -> &'static str {
        "plain"
    }

    async fn image(&self, reference: &str) -> Result<Option<Image>, RuntimeError> {
        self.images.find(reference).await
    }

    fn may_pull(&self, reference: &str) -> bool {
        self.images.may_pull(reference)
    }

    async fn pull(&self, reference: &str, credentials: &[Credential]) -> Result<Image, PullError> {
        self.images.pull(reference, credentials).await
    }

    async fn create_sandbox(&self, spec: SandboxSpec) -> Result<(), RuntimeError> {
        let sandbox = Sandbox { host_name: spec.host_name };
        self.sandboxes.lock().insert(spec.id, sandbox);
        Ok(())
    }

    async fn remove_sandbox(&self, sandbox: &SandboxId) -> Result<(), RuntimeError> {
        self.sandboxes.lock().remove(sandbox);
        let removed: Vec<_> = {
            let mut containers = self.containers.lock();
            containers.extract_if(|_, container| container.sandbox == *sandbox).collect()
        };
        for (_, container) in removed {
            container.signal(Signal::KILL);
            container.wait().await?;
        }
        let _ = std::fs::remove_file(self.kubeconfig(sandbox));
        Ok(())
    }

    async fn start(&self, sandbox: &SandboxId, spec: ContainerSpec) -> Result<ContainerId, RuntimeError> {
        let io = |error| RuntimeError::Io { doing: format!("start container {}", spec.name), error };
        let unpacked = self.images.unpack(&spec.image).await?;
        program::check_user(&spec, &unpacked.config)?;
        let environment = self.environment(sandbox, &spec, &unpacked.config)?;
        let words = program::words(&spec, &unpacked.config)?;
        let words: Vec<_> = words.iter().map(|word| surroundings::local_path(word, &spec.mounts)).collect();
        let directory = spec.working_directory.as_deref();
        let started_at = SystemTime::now();
        let mut process = program_of(&unpacked.directory, &words, &environment, directory, spec.stdin)?;
        let mut child = process.spawn().map_err(|error| {
            RuntimeError::Start(format!("unable to start process: {}", not_started(&words, &error)))
        })?;
        let stdin = child.stdin.take().map(|stdin| Box::pin(stdin) as Input);
        let hub = Hub::create(&spec.log, stdin, spec.stdin_once).await.map_err(io)?;
        let mut copies = Vec::new();
        if let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) {
            copies.push(tokio::spawn(Arc::clone(&hub).copy(LogStream::Stdout, Box::pin(stdout))));
            copies.push(tokio::spawn(Arc::clone(&hub).copy(LogStream::Stderr, Box::pin(stderr))));
        }
        let group = child.id().and_then(|id| Pid::from_raw(id as i32));
        let (sender, receiver) = watch::channel(None);
        let (ending, guard) = (Arc::clone(&hub), unpacked.guard);
        tokio::spawn(async move {
            let ended = exit(child.wait().await, started_at);
            let drained = futures::future::join_all(copies);
            let _ = timeout(Duration::from_secs(1), drained).await;
            ending.finish().await;
            let _ = sender.send(Some(ended));
            drop(guard);
        });
        let id = ContainerId(crate::random_id().map_err(io)?);
        let running = Running {
            sandbox: sandbox.clone(),
            group,
            hub,
            root: unpacked.directory,
            environment,
            stop_signal: unpacked.config.stop_signal.unwrap_or(15),
            exit: receiver,
        };
        self.containers.lock().insert(id.clone(), Arc::new(running));
        Ok(id)
    }

    async fn wait(&self, container: &ContainerId) -> Result<Exit, RuntimeError> {
        self.container(container)?.wait().await
    }

    async fn signal(&self, container: &ContainerId, signal: i32) -> Result<(), RuntimeError> {
        let signal = Signal::from_named_raw(signal)
            .ok_or_else(|| RuntimeError::Config(format!("invalid signal {signal}")))?;
        self.container(container)?.signal(signal);
        Ok(())
    }

    fn stop_signal(&self, container: &ContainerId) -> i32 {
        self.container(container).map_or(15, |container| container.stop_signal)
    }

    async fn remove(&self, container: &ContainerId) -> Result<(), RuntimeError> {
        self.containers.lock().remove(container);
        Ok(())
    }

    async fn exec(&self, container: &ContainerId, command: Command) -> Result<Session, RuntimeError> {
        self.command(container, command).map(|(session, _)| session)
    }

    async fn exec_sync(
        &self,
        container: &ContainerId,
        words: Vec<String>,
        limit: Duration,
    ) -> Result<Option<CommandOutput>, RuntimeError> {
        let (mut session, group) =
            self.command(container, Command { words, terminal: None, stdin: false })?;
        let Ok(output) = timeout(limit, session.collect()).await else {
            // The first process is not reaped while the session exists: its ID is not used again.
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
            return Ok(None);
        };
        output.map(Some)
    }

    async fn attach(&self, container: &ContainerId) -> Result<Session, RuntimeError> {
        let running = self.container(container)?;
        let (stdin, stdout, stderr) = running.hub.attach(false).await;
        Ok(Session { stdin, stdout: Some(stdout), stderr, resize: None, exit: Box::pin(running.wait()) })
    }

    async fn connect(&self, _: &SandboxId, port: u16) -> Result<TcpStream, RuntimeError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let connected = TcpStream::connect(address).await;
        connected.map_err(|error| RuntimeError::Io { doing: format!("dial tcp {address}"), error })
    }

    async fn connect_udp(&self, _: &SandboxId, port: u16) -> Result<UdpSocket, RuntimeError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let io = |error| RuntimeError::Io { doing: format!("dial udp {address}"), error };
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(io)?;
        socket.connect(address).await.map_err(io)?;
        Ok(socket)
    }

    fn keeps_addresses(&self) -> bool {
        false
    }

    async fn listen(&self, address: SocketAddr) -> Result<TcpListener, RuntimeError> {
        let io = |error| RuntimeError::Io { doing: format!("answer for {address} on 127.0.0.1"), error };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(io)?;
        let answer = listener.local_addr().map_err(io)?;
        self.answers.lock().insert(address, answer);
        Ok(listener)
    }

    async fn bind(&self, address: SocketAddr) -> Result<UdpSocket, RuntimeError> {
        let io = |error| RuntimeError::Io { doing: format!("answer for {address} on 127.0.0.1"), error };
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(io)?;
        let answer = socket.local_addr().map_err(io)?;
        self.udp_answers.lock().insert(address, answer);
        Ok(socket)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[cfg(target_os = "linux")]
    use windlass_patience::stretched;

    use super::*;
    use crate::{DirectoryImages, Limits, Mount, User};

    /// Waits until a process has ended. A process whose parent has not waited for the process still has a state, `Z`.
    #[cfg(target_os = "linux")]
    async fn is_gone(pid: &str) {
        let begun = std::time::Instant::now();
        let runs =
            || std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
        while runs() {
            assert!(begun.elapsed() < stretched(Duration::from_secs(10)), "process {pid} is left");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Runs a script that writes a process ID to a file and then takes too long, with a longer limit until the script has come to the file.
    /// Returns the ID.
    async fn ended_process(plain: &Plain, container: &ContainerId, script: &str, file: &Path) -> String {
        let words = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        for seconds in [1, 5, 25, 125] {
            let output =
                plain.exec_sync(container, words.clone(), Duration::from_secs(seconds)).await.unwrap();
            assert_eq!(output, None, "the command takes longer");
            match std::fs::read_to_string(file) {
                Ok(process) if process.ends_with('\n') => return process,
                _ => {}
            }
        }
        panic!("the script writes no file")
    }

    #[tokio::test]
    async fn a_program_runs_with_its_own_environment_and_ends_with_its_sandbox() {
        let folder = tempfile::tempdir().unwrap();
        let images = DirectoryImages::default().with("host", folder.path(), ImageConfig::default());
        let plain = Plain::new(Arc::new(images), folder.path().join("plain"));
        let id = SandboxId("pod".into());
        let address = "10.244.0.1".parse().unwrap();
        let sandbox = SandboxSpec {
            id: id.clone(),
            host_name: "pod".into(),
            address,
            host_network: false,
            hosts: vec![],
            ranges: vec![],
            resolver: None,
        };
        plain.create_sandbox(sandbox).await.unwrap();
        let log = folder.path().join("log");
        let volume = folder.path().join("volume");
        std::fs::create_dir(&volume).unwrap();
        std::fs::write(volume.join("file"), "of the volume\n").unwrap();
        let listener = plain.listen("10.0.0.7:80".parse().unwrap()).await.unwrap();
        let answer = listener.local_addr().unwrap();
        let spec = |text: &str| ContainerSpec {
            name: "c".into(),
            attempt: 0,
            image: "host".into(),
            command: vec!["/bin/sh".into(), "-c".into(), text.into()],
            arguments: vec!["/in/pod/file".into()],
            working_directory: None,
            environment: vec![
                ("A".into(), "1".into()),
                ("B_SERVICE_HOST".into(), "10.0.0.7".into()),
                ("B_SERVICE_PORT".into(), "80".into()),
            ],
            mounts: vec![Mount { source: volume.clone(), target: "/in/pod".into(), read_only: true }],
            user: User::default(),
            read_only_root: false,
            limits: Limits::default(),
            log: log.clone(),
            terminal: false,
            stdin: false,
            stdin_once: false,
        };
        let first = plain
            .start(&id, spec("echo $A $HOSTNAME $B_SERVICE_HOST:$B_SERVICE_PORT; cat $0; exit 3"))
            .await
            .unwrap();
        assert_eq!(plain.wait(&first).await.unwrap().code, 3);
        assert_eq!(
            crate::log::last_lines(&log, 10, 100).unwrap(),
            format!("1 pod {answer}\nof the volume\n")
        );
        let second = plain.start(&id, spec("sleep 1000; true")).await.unwrap();
        let command = Command { words: vec!["/missing".into()], terminal: None, stdin: false };
        let missing = plain.exec(&second, command).await.unwrap();
        assert_eq!(missing.exit.await.unwrap().code, 127);
        let file = folder.path().join("pid");
        let script = format!("sleep 1000 & echo $! > {}; wait", file.display());
        let process = ended_process(&plain, &second, &script, &file).await;
        #[cfg(target_os = "linux")]
        is_gone(process.trim()).await;
        #[cfg(not(target_os = "linux"))]
        drop(process);
        let waiting = plain.container(&second).unwrap().wait();
        plain.remove_sandbox(&id).await.unwrap();
        assert_eq!(waiting.await.unwrap().code, 137);
    }
}
