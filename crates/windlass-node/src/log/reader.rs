//! Reads a log, also while the container writes the log.

use std::fs::File;
use std::future::Future;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::stream::{self, Stream};
use tokio::sync::mpsc;

use super::files::{MOST_FILES, numbered};
use super::line::LogLine;
use super::tail;

/// How often a log is looked at when all of the log has been read.
const PAUSE: Duration = Duration::from_millis(100);

/// The size of a read, in bytes.
const CHUNK: usize = 64 << 10;

/// The longest line of a log file that is read, in bytes. A longer line is no line of a container's log.
const LONGEST: usize = 1 << 20;

/// The part of a log to read.
#[derive(Clone, Debug, Default)]
pub struct LogOptions {
    /// True if to wait for more until the container has ended.
    pub follow: bool,
    /// Only the last lines.
    pub tail: Option<usize>,
    /// Only lines that were written at this time or later.
    pub since: Option<SystemTime>,
    /// True if each line begins with its time.
    pub timestamps: bool,
    /// The most bytes that are returned.
    pub limit_bytes: Option<u64>,
    /// Only lines of this stream.
    pub stream: Option<super::LogStream>,
}

/// Reads the log at `path`, all rotated files included. The text is that of the program.
///
/// With [`LogOptions::follow`], the stream ends when `ended` is ready and the rest of the log has been read. A slow consumer does not slow the
/// container down; the consumer may miss files that have been rotated away.
pub fn read(
    path: PathBuf,
    options: LogOptions,
    ended: impl Future<Output = ()> + Send + 'static,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(async move {
        if let Err(error) = send(path, options, ended, &sender).await {
            let _ = sender.send(Err(error)).await;
        }
    });
    stream::unfold(receiver, async |mut receiver| receiver.recv().await.map(|item| (item, receiver)))
}

async fn send(
    path: PathBuf,
    options: LogOptions,
    ended: impl Future<Output = ()> + Send,
    sender: &mpsc::Sender<io::Result<Bytes>>,
) -> io::Result<()> {
    let follow = options.follow;
    let mut cursor = blocking(move || Cursor::open(path, options)).await?;
    let mut ended = Box::pin(ended);
    let mut last = !follow;
    loop {
        let (returned, text) = blocking(move || {
            let text = cursor.read()?;
            Ok((cursor, text))
        })
        .await?;
        cursor = returned;
        match text {
            Some(text) if text.is_empty() => {}
            Some(text) => {
                if sender.send(Ok(Bytes::from(text))).await.is_err() || cursor.is_full() {
                    return Ok(());
                }
            }
            None if last => return Ok(()),
            None => {
                tokio::select! {
                    biased;
                    () = sender.closed() => return Ok(()),
                    () = &mut ended => last = true,
                    () = tokio::time::sleep(PAUSE) => {}
                }
            }
        }
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

/// A position in the files of a log.
struct Cursor {
    path: PathBuf,
    options: LogOptions,
    file: Option<File>,
    /// The begin of a line whose end has not been read.
    rest: Vec<u8>,
    left: u64,
}

impl Cursor {
    fn open(path: PathBuf, options: LogOptions) -> io::Result<Self> {
        let lines = options.tail.unwrap_or(usize::MAX);
        let (number, offset) = tail::start(&path, lines)?;
        let file = match File::open(numbered(&path, number)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            file => {
                let mut file = file?;
                file.seek(SeekFrom::Start(offset))?;
                Some(file)
            }
        };
        let left = options.limit_bytes.unwrap_or(u64::MAX);
        Ok(Self { path, options, file, rest: Vec::new(), left })
    }

    /// Returns whether as many bytes have been returned as the options allow.
    fn is_full(&self) -> bool {
        self.left == 0
    }

    /// Reads more. Returns `None` if there is no more at present.
    fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        if self.is_full() {
            return Ok(None);
        }
        let Some(file) = &mut self.file else {
            self.file = oldest(&self.path)?;
            return Ok(self.file.is_some().then(Vec::new));
        };
        // Looked up before the read: what is written later is in the next file.
        let next = next(&self.path, file)?;
        let mut chunk = vec![0; CHUNK];
        let length = file.read(&mut chunk)?;
        if length > 0 {
            return Ok(Some(self.lines(&chunk[..length])));
        }
        let found = next.is_some();
        if found {
            self.file = next;
            self.rest.clear();
        }
        Ok(found.then(Vec::new))
    }

    /// Returns the text of the lines that are complete.
    fn lines(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut text = Vec::with_capacity(chunk.len());
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            if self.rest.len() + piece.len() > LONGEST {
                self.rest.clear();
                continue;
            }
            self.rest.extend_from_slice(piece);
            if let Some((b'\n', line)) = self.rest.split_last() {
                if let Some(line) = LogLine::parse(line) {
                    append(&self.options, &line, &mut text);
                }
                self.rest.clear();
            }
        }
        text.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= text.len() as u64;
        text
    }
}

fn append(options: &LogOptions, line: &LogLine<'_>, text: &mut Vec<u8>) {
    if options.since.is_some_and(|since| !line.is_since(since))
        || options.stream.is_some_and(|stream| stream != line.stream)
    {
        return;
    }
    if options.timestamps {
        text.extend_from_slice(line.time.as_bytes());
        text.push(b' ');
    }
    text.extend_from_slice(line.content);
    if !line.partial {
        text.push(b'\n');
    }
}

/// Opens the oldest file of a log.
fn oldest(path: &Path) -> io::Result<Option<File>> {
    for number in (0..MOST_FILES).rev() {
        match File::open(numbered(path, number)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            file => return file.map(Some),
        }
    }
    Ok(None)
}

/// Opens the file after `file`, if `file` has been rotated.
fn next(path: &Path, file: &File) -> io::Result<Option<File>> {
    let own = file.metadata()?;
    let mut newer = None;
    for number in 0..MOST_FILES {
        let candidate = match File::open(numbered(path, number)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            candidate => candidate?,
        };
        let metadata = candidate.metadata()?;
        if (metadata.dev(), metadata.ino()) == (own.dev(), own.ino()) {
            return Ok(newer);
        }
        newer = Some(candidate);
    }
    // The file has been removed: the oldest that is left follows.
    Ok(newer)
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use tokio::sync::oneshot;

    use std::fmt::Write as _;

    use super::*;
    use crate::log::{LogStream, LogWriter};

    fn write(writer: &mut LogWriter, text: &str, second: u64) {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
        writer.write(LogStream::Stdout, text.as_bytes(), time).unwrap();
    }

    async fn all(path: &Path, options: LogOptions) -> String {
        let parts: Vec<_> = read(path.to_owned(), options, std::future::ready(())).collect().await;
        String::from_utf8(parts.into_iter().flat_map(|part| part.unwrap().to_vec()).collect()).unwrap()
    }

    #[tokio::test]
    async fn options_choose_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.log");
        let mut writer = LogWriter::create(&path).unwrap();
        write(&mut writer, "one\n", 1);
        write(&mut writer, "two\n", 2);
        writer.write(LogStream::Stderr, b"three\n", SystemTime::UNIX_EPOCH + Duration::from_secs(3)).unwrap();
        let default = LogOptions::default;
        assert_eq!(all(&path, default()).await, "one\ntwo\nthree\n");
        assert_eq!(all(&path, LogOptions { tail: Some(2), ..default() }).await, "two\nthree\n");
        assert_eq!(all(&path, LogOptions { tail: Some(0), ..default() }).await, "");
        let since = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(2));
        assert_eq!(all(&path, LogOptions { since, ..default() }).await, "two\nthree\n");
        assert_eq!(all(&path, LogOptions { limit_bytes: Some(5), ..default() }).await, "one\nt");
        assert_eq!(all(&path, LogOptions { stream: Some(LogStream::Stderr), ..default() }).await, "three\n");
        let stamped = all(&path, LogOptions { timestamps: true, tail: Some(1), ..default() }).await;
        assert_eq!(stamped, "1970-01-01T00:00:03.000000000Z three\n");
        assert_eq!(all(&folder.path().join("none"), default()).await, "");
    }

    #[tokio::test]
    async fn a_follower_sees_every_line_across_rotations_and_ends_with_the_container() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.log");
        let mut writer = LogWriter::create(&path).unwrap();
        let (end, ended) = oneshot::channel::<()>();
        let ended = async {
            let _ = ended.await;
        };
        let options = LogOptions { follow: true, ..LogOptions::default() };
        let mut stream = Box::pin(read(path.clone(), options, ended));
        let mut expected = Vec::new();
        let mut seen = Vec::new();
        let line = "x".repeat(1000);
        for round in 0..30 {
            let mut text = String::new();
            for number in 0..1000 {
                writeln!(text, "{round} {number} {line}").unwrap();
            }
            write(&mut writer, &text, 1);
            expected.extend_from_slice(text.as_bytes());
            while seen.len() < expected.len() {
                seen.extend_from_slice(&stream.next().await.unwrap().unwrap());
            }
        }
        assert!(numbered(&path, 1).exists(), "the log was not rotated");
        end.send(()).unwrap();
        assert!(stream.next().await.is_none());
        assert!(seen == expected);
    }
}
