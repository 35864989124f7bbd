//! The processes that make sandboxes and containers.
//!
//! A process with several threads cannot enter a user namespace, and starting a process with `fork` is unsafe in Rust. The program is
//! therefore run again, with one thread:
//!
//! ```text
//! windlass ── __pod ── __pod-init (first process of a PID namespace) ─┬─ __container, becomes the program of a container
//!                                                                     └─ __container, becomes a command of `exec`
//! ```
//!
//! The end of `windlass` closes the socket of `__pod-init`, which then ends; the kernel ends all other processes of the PID namespace.

pub(crate) mod channel;
mod identity;
mod mounts;
pub(crate) mod netlink;
pub(crate) mod network;
mod process;
pub(crate) mod protocol;
pub(crate) mod sandbox;
mod server;
mod stage;

use std::ffi::OsString;
use std::process::ExitCode;

/// The argument of the process that makes the namespaces.
pub(crate) const POD: &str = "__pod";

/// The argument of the process that serves requests.
const POD_INIT: &str = "__pod-init";

/// The argument of a process that becomes a program.
const CONTAINER: &str = "__container";

/// Runs this process as a part of a runtime, if the arguments say so. Returns `None` for all other arguments.
///
/// The `main` function of a [launcher](crate::NamespacesConfig::launcher) calls `launch` before anything else, while the process has
/// one thread.
pub fn launch(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    let verb = arguments.next()?;
    let result = match verb.to_str()? {
        POD => stage::run(),
        POD_INIT => server::run(arguments.next()),
        CONTAINER => process::run(),
        _ => return None,
    };
    Some(result.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS))
}

/// Writes the maps of the user namespace that all sandboxes share.
pub(crate) fn write_outer_maps(pid: u32, mapping: &protocol::Mapping) -> std::io::Result<()> {
    let folder = std::path::PathBuf::from(format!("/proc/{pid}"));
    let (users, groups) = match mapping {
        protocol::Mapping::Single => {
            let user = rustix::process::geteuid().as_raw();
            let group = rustix::process::getegid().as_raw();
            std::fs::write(folder.join("setgroups"), "deny")?;
            (format!("0 {user} 1"), format!("0 {group} 1"))
        }
        protocol::Mapping::Ranges { users, groups } => (server::lines(users), server::lines(groups)),
    };
    std::fs::write(folder.join("uid_map"), users)?;
    std::fs::write(folder.join("gid_map"), groups)
}
