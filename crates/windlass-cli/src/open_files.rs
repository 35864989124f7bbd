//! The limit of open files of the process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit where the system has no highest limit.
const ENOUGH: u64 = 65_536;

/// Raises the limit of open files to the highest permitted limit: each connection takes a file, and many systems start programs with a
/// limit of 1,024 or less. The limit stays if the system refuses.
pub(crate) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.unwrap_or(ENOUGH);
    if current.is_none_or(|current| current >= wanted) {
        return;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }) {
        Ok(()) => tracing::debug!(wanted, "raised the limit of open files"),
        Err(error) => tracing::debug!(wanted, %error, "the limit of open files stays"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_the_highest_permitted_limit() {
        raise_limit();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert!(current.is_none() || current >= maximum.or(Some(ENOUGH)), "{current:?} of {maximum:?}");
    }
}
