//! The number of files that the process may open.

/// Raises the number of files that this process and the programs of pods may open, from the usual 1,024 to the most that the user may have.
///
/// Each connection of a pod to a Service needs two file descriptors, and each pod needs several.
#[cfg(unix)]
pub(super) fn raise() {
    use rustix::process::{Resource, getrlimit, setrlimit};

    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // macOS refuses an unlimited number.
    let _ = setrlimit(Resource::Nofile, limit);
}

#[cfg(not(unix))]
pub(super) fn raise() {}
