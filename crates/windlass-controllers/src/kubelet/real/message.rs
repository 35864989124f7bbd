//! The termination message of a container.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// The longest message of a file, in bytes.
const MAX_MESSAGE: u64 = 4096;
/// The longest message of a log, in bytes and lines.
const MAX_LOG: usize = 2048;
const MAX_LINES: usize = 80;

/// Returns the message that a container has written to `file`. Without a message, `log` is the log whose end is the message.
pub(crate) fn termination_message(file: &Path, log: Option<&Path>) -> Option<String> {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(file) {
        let _ = file.take(MAX_MESSAGE).read_to_end(&mut bytes);
    }
    if !bytes.is_empty() {
        return Some(String::from_utf8_lossy(&bytes).into_owned());
    }
    log.and_then(end_of_log).filter(|text| !text.is_empty())
}

fn end_of_log(log: &Path) -> Option<String> {
    let mut file = File::open(log).ok()?;
    let length = file.metadata().ok()?.len();
    // Each line has a time, a stream and a tag before the text.
    let wanted = (MAX_LOG + MAX_LINES * 64) as u64;
    file.seek(SeekFrom::Start(length.saturating_sub(wanted))).ok()?;
    let mut bytes = Vec::new();
    file.take(wanted).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let cut = if length > wanted { text.find('\n').map_or(text.len(), |at| at + 1) } else { 0 };
    let lines: Vec<String> = text[cut..].lines().filter_map(line).collect();
    let last = lines[lines.len().saturating_sub(MAX_LINES)..].concat();
    let mut start = last.len().saturating_sub(MAX_LOG);
    while !last.is_char_boundary(start) {
        start += 1;
    }
    Some(last[start..].to_owned())
}

/// Returns the text of a line `TIME STREAM TAG TEXT`. A line with the tag `P` goes on in the next.
fn line(line: &str) -> Option<String> {
    let mut parts = line.splitn(4, ' ');
    let (_, _, tag, text) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    Some(if tag.starts_with('P') { text.to_owned() } else { format!("{text}\n") })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn the_end_of_the_log_replaces_a_message_that_is_missing() {
        let directory = std::env::temp_dir().join(format!("windlass-message-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (file, log) = (directory.join("message"), directory.join("log"));
        std::fs::write(&file, "").unwrap();
        let mut lines = String::new();
        for number in 0..1000 {
            let _ = writeln!(lines, "2026-01-01T00:00:00Z stderr F line {number}");
        }
        lines += "2026-01-01T00:00:00Z stderr P pan\n2026-01-01T00:00:00Z stderr F ic\n";
        std::fs::write(&log, lines).unwrap();
        let message = termination_message(&file, Some(&log)).unwrap();
        assert!(message.ends_with("line 999\npanic\n") && message.lines().count() <= 80, "{message}");
        assert_eq!(termination_message(&file, None), None);
        std::fs::write(&file, "why").unwrap();
        assert_eq!(termination_message(&file, Some(&log)).as_deref(), Some("why"));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
