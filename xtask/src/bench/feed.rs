//! The server that feeds a run with a prepared stream of bytes.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::Result;

/// The data that the server serves.
#[derive(Clone, Copy)]
pub(crate) struct ServeOptions {
    pub(crate) kind: &'static str,
    pub(crate) objects: usize,
    /// The number of changes on the first watch, or on the second watch if the first watch expires.
    pub(crate) events: usize,
    /// The number of seconds after which the first watch ends with 410.
    pub(crate) expire_after: Option<u64>,
    pub(crate) tls: bool,
}

/// A running server. Dropping it stops the process.
pub(crate) struct ByteServer {
    process: Child,
    pub(crate) url: String,
    pub(crate) certificate: Option<PathBuf>,
}

impl ByteServer {
    pub(crate) fn start(program: &Path, feed: ServeOptions, seed: u64) -> Result<Self> {
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
        let out = process.stdout.take().ok_or("cannot read the output of the byte server")?;
        // The server prints an address when ready.
        let mut url = String::new();
        BufReader::new(out).read_line(&mut url)?;
        let server = Self { process, url: url.trim().to_owned(), certificate };
        if server.url.is_empty() {
            Err("the byte server did not start; run `bench serve` to see why".into())
        } else {
            Ok(server)
        }
    }
}

impl Drop for ByteServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if let Some(file) = &self.certificate {
            let _ = std::fs::remove_file(file);
        }
    }
}
