//! The server that feeds a run with a prepared stream of bytes.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::Result;

/// The origin of the objects of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Corpus {
    /// A few structures.
    Uniform,
    /// Pods of many charts.
    Diverse,
}

impl Corpus {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Diverse => "diverse",
        }
    }
}

impl fmt::Display for Corpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The data that the server serves.
#[derive(Clone, Copy)]
pub(crate) struct ServeOptions {
    pub(crate) kind: &'static str,
    pub(crate) corpus: Corpus,
    pub(crate) objects: usize,
    /// The number of changes on the first watch, or on the second watch if the first watch expires.
    pub(crate) events: usize,
    /// The number of seconds after which the first watch ends with 410.
    pub(crate) expire_after: Option<u64>,
    pub(crate) tls: bool,
    /// The number of custom resources besides, in 29 further caches. Two further caches have a fiftieth of the objects of the kind.
    pub(crate) others: usize,
    /// The number of changes a second; zero for as many as the client takes.
    pub(crate) pace: u64,
}

/// A running server. Dropping it stops the process.
pub(crate) struct ByteServer {
    process: Child,
    pub(crate) url: String,
    pub(crate) objects: usize,
    pub(crate) events: usize,
    pub(crate) certificate: Option<PathBuf>,
}

impl ByteServer {
    /// Starts the server. `file` replaces generated objects.
    pub(crate) fn start(program: &Path, feed: ServeOptions, seed: u64, file: Option<&Path>) -> Result<Self> {
        let certificate =
            feed.tls.then(|| std::env::temp_dir().join(format!("windlass-bench-{}.pem", std::process::id())));
        let mut command = Command::new(program);
        command.args(["serve", "--kind", feed.kind, "--objects", &feed.objects.to_string()]);
        command.args(["--events", &feed.events.to_string(), "--seed", &seed.to_string()]);
        command.args(["--others", &feed.others.to_string(), "--pace", &feed.pace.to_string()]);
        command.arg("--corpus").arg(file.unwrap_or(Path::new(feed.corpus.name())));
        if let Some(after) = feed.expire_after {
            command.args(["--expire-after", &after.to_string()]);
        }
        if let Some(file) = &certificate {
            command.arg("--tls").arg(file);
        }
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let out = process.stdout.take().ok_or("cannot read the output of the byte server")?;
        // The ready server prints an address and the numbers of objects and changes.
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        let mut words = line.split_whitespace();
        let url = words.next().unwrap_or_default().to_owned();
        let mut number = || words.next().and_then(|word| word.parse().ok()).unwrap_or_default();
        let server = Self { process, url, objects: number(), events: number(), certificate };
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
