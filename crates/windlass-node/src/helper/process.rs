//! A process on its way to become the program of a container, or a command in a container.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sched::{CloneFlags, setns, unshare};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{DumpableBehavior, Gid, Uid, chdir, set_dumpable_behavior, setsid};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use rustix::thread::{
    CapabilitySet, remove_capability_from_bounding_set, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

use super::channel::Channel;
use super::protocol::{
    ContainerSetup, Doing, FromProcess, Identity, Mapping, ProgramSetup, Refusal, RefusalKind, ToProcess,
};
use super::{identity, mounts, sandbox};

/// The `PATH` of a container whose image sets no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The capabilities that a container of root may have, as with other container runtimes.
const CAPABILITIES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SETFCAP)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SYS_CHROOT);

/// Becomes the program that the helper describes.
pub(super) fn run() -> io::Result<()> {
    let mut channel = Channel::new(io::stdin().as_fd().try_clone_to_owned()?);
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let Some((message, descriptors)) = channel.receive::<ToProcess>()? else { return Ok(()) };
    let Err(refusal) = match message {
        ToProcess::Container(setup) => container(&mut channel, &setup, descriptors),
        ToProcess::Command(setup) => command(&mut channel, &setup, descriptors),
        ToProcess::Mapped => return Ok(()),
    };
    channel.send(&FromProcess::Failed(refusal), &[])
}

/// A result without a success: a success is another program.
type Never = Result<std::convert::Infallible, Refusal>;

fn container(channel: &mut Channel, setup: &ContainerSetup, mut descriptors: Vec<OwnedFd>) -> Never {
    let program = &setup.program;
    let shared = descriptors.split_off(descriptors.len().saturating_sub(3));
    enter_sandbox(&shared, program.host_network)?;
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWCGROUP).doing("create a mount namespace")?;
    mounts::enter(setup)?;
    let identity = identity::resolve(&program.user)?;
    let terminal = program.terminal.map(terminal).transpose()?;
    unshare(CloneFlags::CLONE_NEWUSER).doing("create the user namespace of the container")?;
    execute(channel, program, &identity, descriptors, terminal)
}

fn command(channel: &mut Channel, program: &ProgramSetup, mut descriptors: Vec<OwnedFd>) -> Never {
    let shared = descriptors.split_off(descriptors.len().saturating_sub(3));
    let own = descriptors.split_off(descriptors.len().saturating_sub(2));
    let [mount, user] = own.as_slice() else { return Err(Refusal::start("namespaces are missing")) };
    enter_sandbox(&shared, program.host_network)?;
    setns(mount, CloneFlags::CLONE_NEWNS).doing("enter the mount namespace of the container")?;
    let identity = identity::resolve(&program.user)?;
    let terminal = program.terminal.map(terminal).transpose()?;
    setns(user, CloneFlags::CLONE_NEWUSER).doing("enter the user namespace of the container")?;
    execute(channel, program, &identity, descriptors, terminal)
}

fn enter_sandbox(shared: &[OwnedFd], host_network: bool) -> Result<(), Refusal> {
    let [net, ipc, uts] = shared else { return Err(Refusal::start("namespaces are missing")) };
    sandbox::enter([net, ipc, uts], host_network)
}

/// A new terminal: the master, and the side of the program.
struct Terminal {
    master: OwnedFd,
    program: OwnedFd,
}

/// Opens a terminal of the container's own `/dev/pts`.
fn terminal((width, height): (u16, u16)) -> Result<Terminal, Refusal> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let master = open("/dev/pts/ptmx", flags, Mode::empty()).doing("open a terminal")?;
    unlockpt(&master).doing("unlock the terminal")?;
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let program = ioctl_tiocgptpeer(&master, flags).doing("open the terminal's other side")?;
    let size = Winsize { ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&master, size).doing("set the size of the terminal")?;
    Ok(Terminal { master, program })
}

fn execute(
    channel: &mut Channel,
    program: &ProgramSetup,
    identity: &Identity,
    streams: Vec<OwnedFd>,
    terminal: Option<Terminal>,
) -> Never {
    let master: Vec<BorrowedFd<'_>> = terminal.iter().map(|terminal| terminal.master.as_fd()).collect();
    channel.send(&FromProcess::Entered { identity: identity.clone() }, &master).doing("answer")?;
    if channel.receive::<ToProcess>().doing("wait for the maps")?.is_none() {
        return Err(Refusal::start("the maps of the user namespace were not written"));
    }
    if let Some(terminal) = &terminal {
        let (user, group) = (Uid::from_raw(identity.user), Gid::from_raw(identity.group));
        let _ = rustix::fs::fchown(&terminal.program, Some(user), Some(group));
    }
    setsid().doing("create a session")?;
    let [stdin, stdout, stderr] = match terminal {
        None => {
            <[OwnedFd; 3]>::try_from(streams).map_err(|_| Refusal::start("standard streams are missing"))?
        }
        Some(Terminal { program, .. }) => {
            rustix::process::ioctl_tiocsctty(&program).doing("take the terminal")?;
            let copy = || program.try_clone().doing("copy the terminal");
            [copy()?, copy()?, program]
        }
    };
    become_user(identity, &program.mapping)?;
    chdir(&program.directory).map_err(|error| {
        Refusal::start(format!("chdir to cwd (\"{}\") failed: {}", program.directory, io::Error::from(error)))
    })?;
    let environment = environment(program, identity);
    let (name, arguments) =
        program.words.split_first().ok_or_else(|| Refusal::create("no command specified"))?;
    let path = find(name, environment.get("PATH").map_or("", String::as_str))?;
    let error = Command::new(&path)
        .arg0(name)
        .args(arguments)
        .env_clear()
        .envs(&environment)
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .stderr(Stdio::from(stderr))
        .exec();
    Err(not_executable(format!("exec {}: {}", path.display(), go_words(&error))))
}

fn become_user(identity: &Identity, mapping: &Mapping) -> Result<(), Refusal> {
    rustix::process::umask(Mode::from_raw_mode(0o022));
    for capability in CapabilitySet::all().difference(CAPABILITIES).iter() {
        // Capabilities that the kernel does not know are refused.
        let _ = remove_capability_from_bounding_set(capability);
    }
    let (user, group) = (Uid::from_raw(identity.user), Gid::from_raw(identity.group));
    if matches!(mapping, Mapping::Ranges { .. }) {
        let groups: Vec<Gid> = identity.groups.iter().map(|group| Gid::from_raw(*group)).collect();
        set_thread_groups(&groups).doing("set the groups")?;
    }
    set_thread_res_gid(group, group, group).doing(&format!("become group {}", identity.group))?;
    set_thread_res_uid(user, user, user).doing(&format!("become user {}", identity.user))?;
    set_no_new_privs(true).doing("forbid new privileges")
}

/// Returns the environment of the program, with the variables that all programs have.
fn environment(program: &ProgramSetup, identity: &Identity) -> HashMap<String, String> {
    let mut environment: HashMap<String, String> = program.environment.iter().cloned().collect();
    environment.entry("PATH".to_owned()).or_insert_with(|| DEFAULT_PATH.to_owned());
    environment.entry("HOME".to_owned()).or_insert_with(|| identity.home.clone());
    if program.terminal.is_some() {
        environment.entry("TERM".to_owned()).or_insert_with(|| "xterm".to_owned());
    }
    environment
}

fn not_executable(text: String) -> Refusal {
    Refusal { kind: RefusalKind::NotExecutable, text }
}

/// Finds a program, in the words of runc.
fn find(name: &str, path: &str) -> Result<PathBuf, Refusal> {
    let not_found = |text| Refusal { kind: RefusalKind::ProgramNotFound, text };
    if name.contains('/') {
        return match fs::metadata(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(not_found(format!("exec: {name:?}: stat {name}: no such file or directory")))
            }
            Err(error) => Err(not_executable(format!("exec: {name:?}: stat {name}: {}", go_words(&error)))),
            Ok(metadata) if metadata.is_dir() => {
                Err(not_executable(format!("exec: {name:?}: is a directory")))
            }
            Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 => {
                Err(not_executable(format!("exec: {name:?}: permission denied")))
            }
            Ok(_) => Ok(PathBuf::from(name)),
        };
    }
    let candidates =
        path.split(':').map(|folder| Path::new(if folder.is_empty() { "." } else { folder }).join(name));
    let executable = |path: &PathBuf| {
        fs::metadata(path)
            .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    candidates
        .into_iter()
        .find(executable)
        .ok_or_else(|| not_found(format!("exec: {name:?}: executable file not found in $PATH")))
}

/// Returns the text of an error as Go prints the error.
fn go_words(error: &io::Error) -> String {
    match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
        Some(rustix::io::Errno::NOEXEC) => "exec format error".to_owned(),
        Some(rustix::io::Errno::NOENT) => "no such file or directory".to_owned(),
        Some(rustix::io::Errno::ACCESS) => "permission denied".to_owned(),
        Some(rustix::io::Errno::TOOBIG) => "argument list too long".to_owned(),
        _ => error.to_string(),
    }
}
