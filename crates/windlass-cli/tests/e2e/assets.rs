//! The programs of `windlass assets`, started like test frameworks start the programs.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::process::{patience, windlass};

/// A process that is killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// fabric8's kube-api-test writes flags with a single dash, and deletes both folders at the end.
#[test]
fn etcd_takes_flags_with_one_dash_and_creates_its_folders() {
    let directory = tempfile::tempdir().unwrap();
    let written = windlass(&["assets", "bin"]).current_dir(directory.path()).output().unwrap();
    assert!(written.status.success(), "{written:?}");
    let mut etcd = Command::new(directory.path().join("bin/etcd"));
    etcd.args(["-data-dir", "data", "-wal-dir", "wal", "--listen-client-urls", "http://127.0.0.1:0"])
        .args(["--advertise-client-urls", "http://127.0.0.1:0"]);
    let started = etcd.current_dir(directory.path()).stderr(Stdio::null()).spawn().unwrap();
    let mut running = Running(started);
    let end = Instant::now() + patience();
    while !["data", "wal"].iter().all(|folder| directory.path().join(folder).is_dir()) {
        assert_eq!(running.0.try_wait().unwrap(), None, "etcd has ended");
        assert!(Instant::now() < end, "the folders are missing");
        std::thread::sleep(Duration::from_millis(5));
    }
}
