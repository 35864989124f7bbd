//! Operators that outlived a killed command.
//!
//! An operator ends with the command that runs the operator: see [`Operator::start`](super::Operator::start). An operator that was built
//! with an earlier version of Windlass, or that hangs, is ended by the next `windlass run` or `windlass dev` in the project.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use crate::error::Result;
use crate::output::Output;

/// The folder of the records, in the folder of the project.
const FOLDER: &str = ".windlass/operators";

/// The extension of a record that is not complete.
const DRAFT: &str = "new";

/// The time that an operator has to shut down before SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

/// The record of an operator that runs: a file named after the process id, with the start time of the process. The command holds a lock on
/// the file as long as the command lives. Dropping a record removes the file.
pub(super) struct Record {
    path: PathBuf,
    locked: File,
}

impl Record {
    /// Writes the record of a process. Returns `None` if the process has ended already, or if the file system of the project has no locks.
    pub(super) fn write(root: &Path, pid: u32) -> io::Result<Option<Self>> {
        let Some(started) = start_time(pid) else { return Ok(None) };
        let folder = root.join(FOLDER);
        fs::create_dir_all(&folder)?;
        let path = folder.join(pid.to_string());
        // Another command must not see the record before the lock.
        let draft = path.with_extension(DRAFT);
        let mut file = File::create(&draft)?;
        match file.lock() {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                fs::remove_file(&draft)?;
                return Ok(None);
            }
            locked => locked?,
        }
        file.write_all(started.as_bytes())?;
        fs::rename(&draft, &path)?;
        Ok(Some(Self { path, locked: file }))
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        // A record that stays names a process that has ended: the next command removes the record.
        let _ = fs::remove_file(&self.path);
        let _ = self.locked.unlock();
    }
}

/// Ends operators of the project that outlived a command.
pub(super) async fn end_all(root: &Path, out: &mut Output) -> Result<()> {
    let entries = match fs::read_dir(root.join(FOLDER)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        let Some(pid) = path.file_name().and_then(|name| name.to_str()?.parse().ok()) else { continue };
        if let Some(started) = abandoned(&path)? {
            end(pid, &started, out).await;
            remove(&path)?;
        }
    }
    Ok(())
}

/// Removes a record. Another command may have removed the record meanwhile.
fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", path.display()).into())
        }
        _ => Ok(()),
    }
}

/// Returns the start time in a record, if the command that wrote the record has ended.
fn abandoned(path: &Path) -> Result<Option<String>> {
    let mut file = match File::open(path) {
        // The other command has ended meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    if file.try_lock().is_err() {
        return Ok(None);
    }
    let mut started = String::new();
    file.read_to_string(&mut started)?;
    Ok(Some(started))
}

/// Ends a process, unless the process id now belongs to another process.
async fn end(pid: u32, started: &str, out: &mut Output) {
    let runs = || start_time(pid).is_some_and(|now| now == started);
    let Some(id) = i32::try_from(pid).ok().and_then(Pid::from_raw).filter(|_| runs()) else { return };
    out.line(format_args!("ending the operator that a killed command left behind (process {pid})"));
    let _ = kill_process(id, Signal::TERM);
    let limit = Instant::now() + GRACE;
    while runs() {
        if Instant::now() > limit {
            let _ = kill_process(id, Signal::KILL);
            return;
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// Returns the start time of a process, in a form of the operating system. Returns `None` if the process does
/// not run.
fn start_time(pid: u32) -> Option<String> {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => start_time_of_stat(&stat),
        Err(_) if Path::new("/proc/self/stat").exists() => None,
        Err(_) => start_time_of_ps(pid),
    }
}

/// Reads the start time, field 22, of a line of `/proc`. The name of the program, field 2, may have spaces and parentheses.
fn start_time_of_stat(stat: &str) -> Option<String> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then(|| fields.nth(18).map(str::to_owned))?
}

fn start_time_of_ps(pid: u32) -> Option<String> {
    let mut command = Command::new("ps");
    command.args(["-o", "stat=,lstart=", "-p", &pid.to_string()]).env("LC_ALL", "C").env("TZ", "UTC");
    let printed = String::from_utf8(command.output().ok()?.stdout).ok()?;
    let (state, started) = printed.trim().split_once(char::is_whitespace)?;
    (!state.starts_with('Z')).then(|| started.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn a_start_time_is_read_behind_any_name() {
        let fields: Vec<String> = (4..=30).map(|field| field.to_string()).collect();
        let stat = |state: &str| format!("7 (a b) c) {state} {}", fields.join(" "));
        assert_eq!(start_time_of_stat(&stat("S")).as_deref(), Some("22"));
        assert_eq!(start_time_of_stat(&stat("Z")), None);
    }

    #[tokio::test]
    async fn only_an_operator_whose_command_has_ended_is_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut sleeping =
            Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().expect("sleep runs");
        let record = Record::write(folder.path(), sleeping.id()).expect("written").expect("the process runs");
        let path = record.path.clone();
        end_all(folder.path(), &mut Output::stderr()).await.expect("ended");
        assert!(sleeping.try_wait().expect("a state").is_none() && path.exists(), "the command lives");

        // A killed command runs no destructors, and the operating system unlocks the files of the command.
        record.locked.unlock().expect("unlocked");
        std::mem::forget(record);
        let text = fs::read_to_string(&path).expect("a record");
        fs::write(&path, "another time").expect("written");
        end_all(folder.path(), &mut Output::stderr()).await.expect("ended");
        assert!(sleeping.try_wait().expect("a state").is_none() && !path.exists(), "another process");

        fs::write(&path, text).expect("written");
        end_all(folder.path(), &mut Output::stderr()).await.expect("ended");
        assert!(!sleeping.wait().expect("a status").success() && !path.exists());
    }
}
