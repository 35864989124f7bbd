//! The process that makes the namespaces of a helper, and starts the helper in the namespaces.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};

use nix::sched::{CloneFlags, unshare};
use rustix::mount::{MountPropagationFlags, mount_change};

use super::POD_INIT;
use super::channel::Channel;
use super::protocol::{Doing, HelperSetup, Message, Refusal, RefusalKind, ToProcess};

/// Makes the namespaces, starts the helper, and waits for the helper.
pub(super) fn run() -> io::Result<()> {
    let control = io::stdin().as_fd().try_clone_to_owned()?;
    let mut channel = Channel::new(control);
    let Some((setup, _)) = channel.receive::<HelperSetup>()? else { return Ok(()) };
    match start(&mut channel, &setup) {
        Ok(mut child) => {
            drop(channel);
            let null: OwnedFd = std::fs::File::open("/dev/null")?.into();
            rustix::stdio::dup2_stdin(null)?;
            child.wait().map(|_| ())
        }
        Err(refusal) => channel.send(&Message::Failed(refusal), &[]),
    }
}

fn start(channel: &mut Channel, setup: &HelperSetup) -> Result<std::process::Child, Refusal> {
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| unsupported("create a user namespace", error))?;
    channel.send(&Message::Unshared, &[]).doing("answer")?;
    let mapped: Option<(ToProcess, _)> =
        channel.receive().doing("wait for the maps of the user namespace")?;
    if mapped.is_none() {
        return Err(Refusal::start("the maps of the user namespace were not written"));
    }
    let mut flags = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWUTS;
    if !setup.host_network {
        flags |= CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWIPC;
    }
    unshare(flags).map_err(|error| unsupported("create namespaces in a user namespace", error))?;
    let propagation = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", propagation).doing("separate the mounts from those of the machine")?;
    let text = serde_json::to_string(setup).map_err(io::Error::from).doing("encode the setup")?;
    Command::new("/proc/self/exe")
        .args([POD_INIT, &text])
        .stdin(Stdio::inherit())
        .stdout(Stdio::null())
        .spawn()
        .doing("start the helper")
}

fn unsupported(doing: &str, error: nix::errno::Errno) -> Refusal {
    Refusal { kind: RefusalKind::Unsupported, text: format!("{doing}: {}", io::Error::from(error)) }
}
