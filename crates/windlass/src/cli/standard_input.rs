//! The end of standard input, which stops an operator that another command has started.

use std::{
    io,
    process::exit,
    thread::{self, sleep},
    time::Duration,
};

use rustix::process::{Signal, getpid, kill_process};

/// How long the operator may take to shut down: the 30 s of a manager, and some to end the process. Without the command, no other process
/// waits for the end.
const GRACE: Duration = Duration::from_secs(35);

/// Stops the operator when standard input ends.
///
/// `windlass run` and `windlass dev` hold the other end of the pipe. The operating system closes the pipe when the command ends, however the
/// command ends: no operator is left behind.
pub(super) fn stop_at_its_end() {
    let watch = || {
        // An error is an end, too. Input has no meaning.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        tracing::warn!(
            "standard input has ended, because the command that started the operator has ended: stopping"
        );
        let _ = kill_process(getpid(), Signal::TERM);
        sleep(GRACE);
        exit(1);
    };
    if let Err(error) = thread::Builder::new().name("standard-input".to_owned()).spawn(watch) {
        tracing::warn!(%error, "the end of standard input will not stop the operator");
    }
}
