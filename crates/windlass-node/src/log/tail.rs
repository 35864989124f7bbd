//! The end of a log.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::files::{MOST_FILES, numbered};
use super::line::LogLine;

/// The size of a step backwards, in bytes.
const STEP: u64 = 64 << 10;

/// Returns where the last `lines` lines begin: the number of the file, and the offset.
pub(super) fn start(path: &Path, lines: usize) -> io::Result<(usize, u64)> {
    let mut missing = lines;
    let mut oldest = 0;
    for number in 0..MOST_FILES {
        let mut file = match File::open(numbered(path, number)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            file => file?,
        };
        oldest = number;
        if let Some(offset) = backwards(&mut file, &mut missing)? {
            return Ok((number, offset));
        }
    }
    Ok((oldest, 0))
}

/// Searches the line that has `missing` lines from its begin to the end of the file. Counts the lines of the file otherwise.
fn backwards(file: &mut File, missing: &mut usize) -> io::Result<Option<u64>> {
    let length = file.metadata()?.len();
    let mut end = length;
    let mut chunk = Vec::new();
    if *missing == 0 {
        return Ok(Some(length));
    }
    while end > 0 {
        let begin = end.saturating_sub(STEP);
        file.seek(SeekFrom::Start(begin))?;
        chunk.clear();
        Read::by_ref(file).take(end - begin).read_to_end(&mut chunk)?;
        for (index, _) in chunk.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            let next = begin + index as u64 + 1;
            if next == length {
                continue;
            }
            *missing -= 1;
            if *missing == 0 {
                return Ok(Some(next));
            }
        }
        end = begin;
    }
    if length > 0 {
        *missing -= 1;
    }
    Ok((*missing == 0).then_some(0))
}

/// Returns the end of a log as a termination message has it: at most `lines` lines, and at most the last `bytes` bytes.
///
/// Kubernetes takes 80 lines and 2048 bytes for `terminationMessagePolicy: FallbackToLogsOnError`.
pub fn last_lines(path: &Path, lines: usize, bytes: usize) -> io::Result<String> {
    let (number, offset) = start(path, lines)?;
    let mut text = Vec::new();
    for number in (0..=number).rev() {
        let mut file = match File::open(numbered(path, number)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        let length = file.metadata()?.len();
        let begin = if text.is_empty() { offset.min(length) } else { 0 };
        // Every line of the file is longer than its content.
        let begin = begin.max(length.saturating_sub((lines as u64 + 1) * (17 << 10)));
        file.seek(SeekFrom::Start(begin))?;
        file.take(length - begin).read_to_end(&mut text)?;
    }
    let mut message = Vec::new();
    for line in text.split(|byte| *byte == b'\n').filter_map(LogLine::parse) {
        message.extend_from_slice(line.content);
        if !line.partial {
            message.push(b'\n');
        }
    }
    let begin = message.len().saturating_sub(bytes);
    Ok(String::from_utf8_lossy(&message[begin..]).into_owned())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::log::{LogStream, LogWriter};

    #[test]
    fn the_last_lines_and_bytes_are_returned() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.log");
        let mut writer = LogWriter::create(&path).unwrap();
        for number in 0..10_000 {
            writer
                .write(LogStream::Stdout, format!("line {number}\n").as_bytes(), SystemTime::now())
                .unwrap();
        }
        assert_eq!(last_lines(&path, 2, 2048).unwrap(), "line 9998\nline 9999\n");
        assert_eq!(last_lines(&path, 80, 12).unwrap(), "8\nline 9999\n");
        assert_eq!(last_lines(&path, 20_000, usize::MAX).unwrap().lines().count(), 10_000);
        assert_eq!(last_lines(&path, 0, 100).unwrap(), "");
        assert_eq!(last_lines(&folder.path().join("none"), 5, 100).unwrap(), "");
    }
}
