//! The helper: the first process of the PID namespace in which all containers live. Serves the requests of a runtime.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sched::{CloneFlags, setns, unshare};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};

use super::CONTAINER;
use super::channel::Channel;
use super::network::NodeNetwork;
use super::protocol::{
    Doing, FromProcess, HelperSetup, Identity, Mapping, Message, Operation, ProgramSetup, Refusal,
    RefusalKind, Request, ToProcess, UserSetup,
};
use super::sandbox::{self, Namespaces};
use crate::cgroup::remove_cgroups;

/// Serves requests until the runtime has ended.
pub(super) fn run(setup: Option<OsString>) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let text = setup.and_then(|setup| setup.into_string().ok()).unwrap_or_default();
    let setup: HelperSetup = serde_json::from_str(&text)?;
    let channel = Channel::new(io::stdin().as_fd().try_clone_to_owned()?);
    rustix::stdio::dup2_stdin(fs::File::open("/dev/null")?)?;
    match Server::new(setup, channel) {
        Ok(mut server) => {
            let result = server.serve();
            server.end();
            if result.is_ok()
                && let Some(state) = server.setup.directory.parent()
            {
                // A runtime that was killed has left the groups of all containers.
                remove_cgroups(state);
            }
            result
        }
        Err((refusal, channel)) => channel.send(&Message::Failed(refusal), &[]),
    }
}

/// The role of a process.
enum Kind {
    /// The first process of a container.
    Container,
    /// A command in a container.
    Command,
}

/// A process that has been started, and has not ended.
struct Process {
    kind: Kind,
    sandbox: String,
    child: Child,
    pidfd: OwnedFd,
    /// The socket, until the program is executed.
    channel: Option<Channel>,
    /// The request that is answered when the program is executed.
    request: u64,
    mapping: Mapping,
    /// The terminal's master, for the answer.
    terminal: Option<OwnedFd>,
    /// For commands that follow.
    namespaces: Option<Entered>,
    cgroups: Vec<PathBuf>,
}

/// The namespaces of a container, and the identity of its program.
struct Entered {
    mount: OwnedFd,
    user: OwnedFd,
    pid: OwnedFd,
    identity: Identity,
}

struct Server {
    setup: HelperSetup,
    channel: Channel,
    launcher: PathBuf,
    base: Namespaces,
    /// The network of the pods, unless the pods use the network of the machine.
    network: Option<NodeNetwork>,
    own_pid: OwnedFd,
    sandboxes: HashMap<String, Namespaces>,
    processes: HashMap<String, Process>,
}

impl Server {
    fn new(setup: HelperSetup, channel: Channel) -> Result<Self, (Refusal, Channel)> {
        let prepared = super::mounts::mount_proc("/proc")
            .and_then(|()| super::mounts::read_only_launcher(&setup.directory))
            .and_then(|launcher| {
                let network = (!setup.host_network).then(NodeNetwork::new).transpose()?;
                Ok((launcher, Namespaces::current()?, network, sandbox::open("/proc/self/ns/pid")?))
            });
        let (launcher, base, network, own_pid) = match prepared {
            Ok(prepared) => prepared,
            Err(mut refusal) => {
                refusal.kind = RefusalKind::Unsupported;
                return Err((refusal, channel));
            }
        };
        let overlay = super::mounts::overlay_works(&setup.directory);
        let _ = channel.send(&Message::Ready { overlay }, &[]);
        let (sandboxes, processes) = (HashMap::new(), HashMap::new());
        Ok(Self { setup, channel, launcher, base, network, own_pid, sandboxes, processes })
    }

    fn serve(&mut self) -> io::Result<()> {
        loop {
            while let Some((request, descriptors)) = self.channel.ready::<Request>()? {
                self.request(request, descriptors)?;
            }
            let (control, ended, answered) = self.wait()?;
            for key in answered {
                self.answered(&key)?;
            }
            for key in ended {
                self.ended(&key)?;
            }
            if control && !self.channel.fill()? {
                return Ok(());
            }
        }
    }

    /// Waits for requests, ends and answers of processes.
    fn wait(&self) -> io::Result<(bool, Vec<String>, Vec<String>)> {
        let mut polled = vec![PollFd::new(&self.channel, PollFlags::IN)];
        let mut keys = Vec::new();
        for (key, process) in &self.processes {
            polled.push(PollFd::new(&process.pidfd, PollFlags::IN));
            keys.push((key, false));
            if let Some(channel) = &process.channel {
                polled.push(PollFd::new(channel, PollFlags::IN));
                keys.push((key, true));
            }
        }
        match poll(&mut polled, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let (mut ended, mut answered) = (Vec::new(), Vec::new());
        for (fd, (key, channel)) in polled.iter().skip(1).zip(keys) {
            if !fd.revents().is_empty() {
                if channel { &mut answered } else { &mut ended }.push(key.clone());
            }
        }
        Ok((!polled[0].revents().is_empty(), ended, answered))
    }

    fn request(&mut self, Request { id, operation }: Request, descriptors: Vec<OwnedFd>) -> io::Result<()> {
        let result = match operation {
            Operation::CreateSandbox(setup) => {
                self.base.create(&setup, self.network.as_mut()).map(|namespaces| {
                    self.sandboxes.insert(setup.sandbox, namespaces);
                    None
                })
            }
            Operation::RemoveSandbox { sandbox } => self.remove_sandbox(&sandbox).map(|()| None),
            Operation::Socket { sandbox, kind, version_6 } => {
                let found = sandbox.map_or(Ok(&self.base), |sandbox| self.sandbox(&sandbox));
                found.and_then(|found| found.socket(kind, version_6, self.setup.host_network)).map(Some)
            }
            Operation::Signal { key, signal } => self.signal(&key, signal).map(|()| None),
            Operation::Start { key, sandbox, cgroups, setup } => {
                match self.start_container(id, &key, sandbox, cgroups, setup, &descriptors) {
                    Ok(()) => return Ok(()),
                    Err(refusal) => Err(refusal),
                }
            }
            Operation::Exec { key, container, cgroups, setup } => {
                match self.start_command(id, &key, &container, cgroups, *setup, &descriptors) {
                    Ok(()) => return Ok(()),
                    Err(refusal) => Err(refusal),
                }
            }
        };
        let (result, descriptor) = match result {
            Ok(descriptor) => (Ok(()), descriptor),
            Err(refusal) => (Err(refusal), None),
        };
        self.reply(id, result, descriptor.as_ref())
    }

    fn reply(&self, id: u64, result: Result<(), Refusal>, descriptor: Option<&OwnedFd>) -> io::Result<()> {
        let descriptors: Vec<BorrowedFd<'_>> = descriptor.iter().map(AsFd::as_fd).collect();
        self.channel.send(&Message::Reply { id, result }, &descriptors)
    }

    fn sandbox(&self, name: &str) -> Result<&Namespaces, Refusal> {
        self.sandboxes.get(name).ok_or_else(|| not_found(format!("sandbox {name}")))
    }

    fn remove_sandbox(&mut self, name: &str) -> Result<(), Refusal> {
        for process in self.processes.values().filter(|process| process.sandbox == name) {
            let _ = kill(&process.child, Signal::KILL);
        }
        let attachment = self.sandboxes.remove(name).and_then(|sandbox| sandbox.attachment());
        if let (Some(network), Some(attachment)) = (&self.network, attachment) {
            network.detach(attachment);
        }
        self.base.enter(self.setup.host_network)
    }

    fn signal(&self, key: &str, signal: i32) -> Result<(), Refusal> {
        let Some(process) = self.processes.get(key) else { return Ok(()) };
        let signal = Signal::from_named_raw(signal)
            .ok_or_else(|| Refusal::config(format!("invalid signal {signal}")))?;
        // A command that has been executed leads a process group of its own.
        if matches!(process.kind, Kind::Command) && process.channel.is_none() && signal == Signal::KILL {
            return end_group(&process.child).doing("kill a command");
        }
        kill(&process.child, signal).doing("send a signal")
    }

    fn start_container(
        &mut self,
        request: u64,
        key: &str,
        sandbox: String,
        cgroups: Vec<PathBuf>,
        setup: Box<super::protocol::ContainerSetup>,
        descriptors: &[OwnedFd],
    ) -> Result<(), Refusal> {
        let mapping = setup.program.mapping.clone();
        let namespaces = self.sandbox(&sandbox)?;
        let all: Vec<BorrowedFd<'_>> =
            descriptors.iter().map(AsFd::as_fd).chain(namespaces.all().map(AsFd::as_fd)).collect();
        unshare(CloneFlags::CLONE_NEWPID).doing("create a PID namespace")?;
        let spawned = self.spawn(&ToProcess::Container(setup), &all, &cgroups);
        setns(&self.own_pid, CloneFlags::CLONE_NEWPID).doing("return to the PID namespace")?;
        let (child, pidfd, channel) = spawned?;
        let (channel, terminal) = (Some(channel), None);
        let process = Process {
            kind: Kind::Container,
            sandbox,
            child,
            pidfd,
            channel,
            request,
            mapping,
            terminal,
            namespaces: None,
            cgroups,
        };
        self.processes.insert(key.to_owned(), process);
        Ok(())
    }

    fn start_command(
        &mut self,
        request: u64,
        key: &str,
        container: &str,
        cgroups: Vec<PathBuf>,
        mut setup: ProgramSetup,
        descriptors: &[OwnedFd],
    ) -> Result<(), Refusal> {
        let found = self.processes.get(container);
        let Some((sandbox, entered)) =
            found.and_then(|process| Some((process.sandbox.clone(), process.namespaces.as_ref()?)))
        else {
            return Err(not_found(format!("container {container}")));
        };
        setup.user = UserSetup::Known(entered.identity.clone());
        let mapping = setup.mapping.clone();
        let shared = self.sandbox(&sandbox)?.all();
        let all: Vec<BorrowedFd<'_>> = descriptors
            .iter()
            .chain([&entered.mount, &entered.user])
            .map(AsFd::as_fd)
            .chain(shared.map(AsFd::as_fd))
            .collect();
        setns(&entered.pid, CloneFlags::CLONE_NEWPID).doing("enter the PID namespace of the container")?;
        let spawned = self.spawn(&ToProcess::Command(Box::new(setup)), &all, &cgroups);
        setns(&self.own_pid, CloneFlags::CLONE_NEWPID).doing("return to the PID namespace")?;
        let (child, pidfd, channel) = spawned?;
        let (channel, terminal, cgroups) = (Some(channel), None, Vec::new());
        let process = Process {
            kind: Kind::Command,
            sandbox,
            child,
            pidfd,
            channel,
            request,
            mapping,
            terminal,
            namespaces: None,
            cgroups,
        };
        self.processes.insert(key.to_owned(), process);
        Ok(())
    }

    /// Starts a process that waits for `message`, puts the process into its control groups, and sends the message.
    fn spawn(
        &self,
        message: &ToProcess,
        descriptors: &[BorrowedFd<'_>],
        cgroups: &[PathBuf],
    ) -> Result<(Child, OwnedFd, Channel), Refusal> {
        let (near, far) = UnixStream::pair().doing("create a socket pair")?;
        let mut child = Command::new(&self.launcher)
            .arg(CONTAINER)
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(far)))
            .stdout(Stdio::null())
            .spawn()
            .doing("start a process")?;
        let channel = Channel::new(near.into());
        let prepared = join(&child, cgroups).and_then(|()| {
            let pidfd = pidfd_open(pid(&child), PidfdFlags::empty()).doing("open the process")?;
            channel.send(message, descriptors).doing("send the specification to the process")?;
            Ok(pidfd)
        });
        match prepared {
            Ok(pidfd) => Ok((child, pidfd, channel)),
            Err(refusal) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(refusal)
            }
        }
    }

    /// Handles a message of a process that has not executed its program yet.
    fn answered(&mut self, key: &str) -> io::Result<()> {
        let Some(process) = self.processes.get_mut(key) else { return Ok(()) };
        let Some(channel) = &mut process.channel else { return Ok(()) };
        let open = channel.fill().unwrap_or(false);
        let mut refusal = None;
        while let Ok(Some((message, descriptors))) = channel.ready::<FromProcess>() {
            match message {
                FromProcess::Failed(failed) => refusal = Some(failed),
                FromProcess::Entered { identity } => {
                    process.terminal = descriptors.into_iter().next();
                    let entered = entered(&process.child, &process.kind, &process.mapping, identity);
                    match entered {
                        Ok(namespaces) => {
                            process.namespaces = namespaces;
                            let _ = channel.send(&ToProcess::Mapped, &[]);
                        }
                        Err(failed) => refusal = Some(failed),
                    }
                }
            }
        }
        if open && refusal.is_none() {
            return Ok(());
        }
        process.channel = None;
        let id = process.request;
        let terminal = process.terminal.take();
        match refusal {
            None => self.reply(id, Ok(()), terminal.as_ref()),
            Some(refusal) => {
                self.abandon(key);
                self.reply(id, Err(refusal), None)
            }
        }
    }

    /// Ends a process that could not execute its program.
    fn abandon(&mut self, key: &str) {
        if let Some(mut process) = self.processes.remove(key) {
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }

    /// Handles the end of a process.
    fn ended(&mut self, key: &str) -> io::Result<()> {
        let mut pending = true;
        while pending {
            // The process may have sent a message before its end.
            self.answered(key)?;
            pending = self.processes.get(key).is_some_and(|process| process.channel.is_some());
        }
        let Some(process) = self.processes.get_mut(key) else { return Ok(()) };
        let Some(status) = process.child.try_wait()? else { return Ok(()) };
        self.processes.remove(key);
        let signal = status.signal();
        let code = status.code().unwrap_or_else(|| 128 + signal.unwrap_or(0));
        self.channel.send(&Message::Exited { key: key.to_owned(), code, signal }, &[])
    }

    /// Ends all processes and removes their control groups.
    fn end(&mut self) {
        for process in self.processes.values_mut() {
            let _ = process.child.kill();
        }
        for (_, mut process) in self.processes.drain() {
            let _ = process.child.wait();
            process.cgroups.iter().for_each(|cgroup| drop(fs::remove_dir(cgroup)));
        }
    }
}

fn not_found(text: String) -> Refusal {
    Refusal { kind: RefusalKind::NotFound, text }
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

fn kill(child: &Child, signal: Signal) -> io::Result<()> {
    sent(kill_process(pid(child), signal))
}

/// Kills a process and all processes of its group.
fn end_group(child: &Child) -> io::Result<()> {
    sent(kill_process_group(pid(child), Signal::KILL))
}

/// Returns the result of sending a signal. A process that has ended is no error.
fn sent(result: rustix::io::Result<()>) -> io::Result<()> {
    match result {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn join(child: &Child, cgroups: &[PathBuf]) -> Result<(), Refusal> {
    for cgroup in cgroups {
        let file = cgroup.join("cgroup.procs");
        fs::write(&file, child.id().to_string()).doing(&format!("write {}", file.display()))?;
    }
    Ok(())
}

/// Writes the maps of a process that has entered its user namespace, and opens the namespaces of a container.
fn entered(
    child: &Child,
    kind: &Kind,
    mapping: &Mapping,
    identity: Identity,
) -> Result<Option<Entered>, Refusal> {
    match kind {
        Kind::Command => Ok(None),
        Kind::Container => {
            let folder = PathBuf::from(format!("/proc/{}", child.id()));
            write_maps(&folder, mapping, &identity).doing("write the maps of the user namespace")?;
            let open = |name: &str| sandbox::open(&format!("/proc/{}/ns/{name}", child.id()));
            Ok(Some(Entered { mount: open("mnt")?, user: open("user")?, pid: open("pid")?, identity }))
        }
    }
}

fn write_maps(folder: &Path, mapping: &Mapping, identity: &Identity) -> io::Result<()> {
    match mapping {
        Mapping::Single => {
            fs::write(folder.join("uid_map"), format!("{} 0 1", identity.user))?;
            fs::write(folder.join("gid_map"), format!("{} 0 1", identity.group))
        }
        Mapping::Ranges { users, groups } => {
            fs::write(folder.join("uid_map"), lines(users))?;
            fs::write(folder.join("gid_map"), lines(groups))
        }
    }
}

/// Returns the text of a map that maps each ID to itself.
pub(crate) fn lines(ranges: &[(u32, u32)]) -> String {
    let lines: Vec<_> = ranges.iter().map(|(first, count)| format!("{first} {first} {count}")).collect();
    lines.join("\n")
}
