//! The server of ready-made bytes that feeds a run.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::Result;

/// What it serves.
#[derive(Clone, Copy)]
pub(crate) struct Feed {
    pub(crate) kind: &'static str,
    pub(crate) objects: usize,
    /// Changes sent on the first watch, or on the second one when the first expires.
    pub(crate) events: usize,
    /// Ends the first watch with 410 after so many seconds.
    pub(crate) expire_after: Option<u64>,
    pub(crate) tls: bool,
}

/// A server that runs, until it is dropped.
pub(crate) struct Server {
    process: Child,
    pub(crate) url: String,
    pub(crate) certificate: Option<PathBuf>,
}

impl Server {
    pub(crate) fn start(program: &Path, feed: Feed, seed: u64) -> Result<Self> {
        let certificate =
            feed.tls.then(|| std::env::temp_dir().join(format!("windlass-bench-{}.pem", std::process::id())));
        let mut command = Command::new(program);
        command.args(["serve", "--kind", feed.kind, "--objects", &feed.objects.to_string()]);
        command.args(["--events", &feed.events.to_string(), "--seed", &seed.to_string()]);
        if let Some(after) = feed.expire_after {
            command.args(["--expire-after", &after.to_string()]);
        }
        if let Some(file) = &certificate {
            command.arg("--tls").arg(file);
        }
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let out = process.stdout.take().ok_or("the byte server has no output")?;
        // The address is printed when it serves.
        let mut url = String::new();
        BufReader::new(out).read_line(&mut url)?;
        let server = Self { process, url: url.trim().to_owned(), certificate };
        if server.url.is_empty() { Err("the byte server did not start".into()) } else { Ok(server) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if let Some(file) = &self.certificate {
            let _ = std::fs::remove_file(file);
        }
    }
}
