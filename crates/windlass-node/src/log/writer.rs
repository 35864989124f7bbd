//! Writes the output of a container to a log.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::files::rotate;
use super::line::{LogLine, LogStream, timestamp};

/// The longest content of a line in the file, in bytes, as in containerd. Longer lines of a program become several lines.
const LONGEST: usize = 16 << 10;

/// The longest file, in bytes.
pub(crate) const LARGEST: u64 = 10_000_000;

/// Writes the output of a container to a log. At most 32 KiB of unfinished lines are in memory.
#[derive(Debug)]
pub struct LogWriter {
    path: PathBuf,
    file: Option<File>,
    size: u64,
    largest: u64,
    unfinished: [Vec<u8>; 2],
}

impl LogWriter {
    /// Creates the log at `path`, and the directories above. An existing log is continued.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::with_limit(path, LARGEST)
    }

    fn with_limit(path: &Path, largest: u64) -> io::Result<Self> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut writer = Self {
            path: path.to_owned(),
            file: None,
            size: 0,
            largest,
            unfinished: [Vec::new(), Vec::new()],
        };
        writer.open()?;
        Ok(writer)
    }

    fn open(&mut self) -> io::Result<()> {
        let file = OpenOptions::new().append(true).create(true).open(&self.path)?;
        self.size = file.metadata()?.len();
        self.file = Some(file);
        Ok(())
    }

    /// Appends output of a program. The last line stays in memory until the line is complete.
    ///
    /// # Errors
    /// The file cannot be written: the disk is full, for example. The output is lost, and later output is tried again.
    pub fn write(&mut self, stream: LogStream, output: &[u8], now: SystemTime) -> io::Result<()> {
        let time = timestamp(now);
        let mut text = Vec::with_capacity(output.len() + output.len() / 2 + 64);
        let unfinished = &mut self.unfinished[stream as usize];
        for piece in output.split_inclusive(|byte| *byte == b'\n') {
            let (mut content, complete) = match piece.split_last() {
                Some((b'\n', content)) => (content, true),
                _ => (piece, false),
            };
            while unfinished.len() + content.len() > LONGEST {
                let (first, rest) = content.split_at(LONGEST - unfinished.len());
                unfinished.extend_from_slice(first);
                LogLine { time: &time, stream, partial: true, content: unfinished }.append_to(&mut text);
                unfinished.clear();
                content = rest;
            }
            if complete && unfinished.is_empty() {
                LogLine { time: &time, stream, partial: false, content }.append_to(&mut text);
                continue;
            }
            unfinished.extend_from_slice(content);
            if complete {
                LogLine { time: &time, stream, partial: false, content: unfinished }.append_to(&mut text);
                unfinished.clear();
            }
        }
        self.append(&text)
    }

    /// Writes the last line of each stream, if the line has no line feed. Called at the end of the container.
    pub fn finish(&mut self, now: SystemTime) -> io::Result<()> {
        let time = timestamp(now);
        let mut text = Vec::new();
        for stream in [LogStream::Stdout, LogStream::Stderr] {
            let content = std::mem::take(&mut self.unfinished[stream as usize]);
            if !content.is_empty() {
                LogLine { time: &time, stream, partial: true, content: &content }.append_to(&mut text);
            }
        }
        self.append(&text)
    }

    fn append(&mut self, text: &[u8]) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        if self.size > 0 && self.size + text.len() as u64 > self.largest {
            self.file = None;
            rotate(&self.path)?;
        }
        if self.file.is_none() {
            self.open()?;
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let result = file.write_all(text);
        match &result {
            Ok(()) => self.size += text.len() as u64,
            // A part may have been written. The file ends with a whole line, so that the next line can be read.
            Err(_) => file.set_len(self.size)?,
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1)
    }

    fn contents(path: &Path) -> Vec<(bool, usize)> {
        let text = fs::read(path).unwrap();
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines
            .map(|line| LogLine::parse(line).unwrap())
            .map(|line| (line.partial, line.content.len()))
            .collect()
    }

    #[test]
    fn lines_that_arrive_in_pieces_are_whole_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/0.log");
        let mut writer = LogWriter::create(&path).unwrap();
        writer.write(LogStream::Stdout, b"he", now()).unwrap();
        writer.write(LogStream::Stderr, b"no\n", now()).unwrap();
        writer.write(LogStream::Stdout, b"llo\n\nlast", now()).unwrap();
        writer.finish(now()).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let time = "1970-01-01T00:00:01.000000000Z";
        let expected =
            format!("{time} stderr F no\n{time} stdout F hello\n{time} stdout F \n{time} stdout P last\n");
        assert_eq!(text, expected);
    }

    #[test]
    fn a_long_line_is_cut_into_parts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.log");
        let mut writer = LogWriter::create(&path).unwrap();
        writer.write(LogStream::Stdout, &vec![b'x'; 40_000], now()).unwrap();
        writer.write(LogStream::Stdout, b"\n", now()).unwrap();
        assert_eq!(contents(&path), [(true, LONGEST), (true, LONGEST), (false, 40_000 - 2 * LONGEST)]);
    }

    #[test]
    fn five_files_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.log");
        let mut writer = LogWriter::with_limit(&path, 100).unwrap();
        for number in 0..50 {
            writer.write(LogStream::Stdout, format!("line {number}\n").as_bytes(), now()).unwrap();
        }
        let count = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(count, 5);
        assert!(fs::read_to_string(&path).unwrap().contains("line 49"));
        remove_all(&path);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    fn remove_all(path: &Path) {
        super::super::remove(path).unwrap();
    }
}
