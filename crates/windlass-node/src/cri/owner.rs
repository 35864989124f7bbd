//! The owner of a sandbox: the process whose cluster has the pod.
//!
//! Sandboxes outlive a killed process. The labels of a sandbox name the process, so that the next process knows which sandboxes are left over.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::RuntimeError;

/// The label of all sandboxes and containers of this crate, and its value.
const PART_OF: (&str, &str) = ("app.kubernetes.io/managed-by", "windlass");
/// The label that names the owner.
const OWNER: &str = "windlass.dev/cluster";

/// A process on this machine, written as `PID-START-NAMESPACE-RANDOM`.
///
/// The time of the start tells two processes with the same PID apart. PIDs of another namespace have no
/// meaning here. The random part distinguishes two runtimes of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner(String);

impl Owner {
    /// Returns a new owner in this process.
    pub(super) fn new() -> Result<Self, RuntimeError> {
        let failed = |error| RuntimeError::Io { doing: "read /proc/self".into(), error };
        let pid = std::process::id();
        let start = start_time(pid).ok_or_else(|| failed(std::io::ErrorKind::InvalidData.into()))?;
        let namespace = pid_namespace().map_err(failed)?;
        let random = crate::random_id().map_err(failed)?;
        Ok(Self(format!("{pid}-{start}-{namespace}-{}", &random[..8])))
    }

    /// Returns the name of the owner.
    pub(super) fn name(&self) -> &str {
        &self.0
    }

    /// Returns the labels of the owner's sandboxes and containers.
    pub(super) fn labels(&self) -> BTreeMap<String, String> {
        let mut labels = any_labels();
        labels.insert(OWNER.to_owned(), self.0.clone());
        labels
    }
}

/// Returns the labels that the sandboxes of all owners have.
pub(super) fn any_labels() -> BTreeMap<String, String> {
    BTreeMap::from([(PART_OF.0.to_owned(), PART_OF.1.to_owned())])
}

/// Returns whether a sandbox belonged to a process that has ended. A sandbox whose owner is in another PID namespace, or is unreadable, is not
/// left over.
pub(super) fn is_left_over(labels: &BTreeMap<String, String>) -> bool {
    let namespace = pid_namespace().ok();
    labels.get(OWNER).is_some_and(|owner| has_ended(owner, namespace, start_time))
}

fn has_ended(owner: &str, namespace: Option<u64>, start_time: impl Fn(u32) -> Option<u64>) -> bool {
    let mut parts = owner.split('-').map(str::parse::<u64>);
    let (Some(Ok(pid)), Some(Ok(start)), Some(Ok(of))) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let Ok(pid) = u32::try_from(pid) else { return false };
    namespace == Some(of) && start_time(pid) != Some(start)
}

/// Returns the inode of this process's PID namespace.
fn pid_namespace() -> std::io::Result<u64> {
    fs::metadata("/proc/self/ns/pid").map(|file| file.ino())
}

/// Returns when a process started, in ticks since the boot of the machine.
fn start_time(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program may contain spaces and parentheses.
    text.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sandboxes_of_this_process_are_not_left_over() {
        let owner = Owner::new().unwrap();
        assert!(!is_left_over(&owner.labels()));
        assert!(!is_left_over(&any_labels()));
        assert_ne!(owner, Owner::new().unwrap());
    }

    #[test]
    fn an_owner_has_ended_if_its_pid_is_free_or_has_another_process() {
        let running = |pid| (pid == 7).then_some(100);
        assert!(!has_ended("7-100-5-ab", Some(5), running));
        assert!(has_ended("7-99-5-ab", Some(5), running));
        assert!(has_ended("8-100-5-ab", Some(5), running));
        // The PID of another namespace has no meaning here.
        assert!(!has_ended("8-100-6-ab", Some(5), running));
        assert!(!has_ended("8-100-5-ab", None, running));
        for wrong in ["", "8", "8-100", "x-100-5-ab", "99999999999-100-5-ab"] {
            assert!(!has_ended(wrong, Some(5), running), "{wrong}");
        }
    }
}
