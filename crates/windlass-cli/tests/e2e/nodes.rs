//! The node of `windlass cluster`.

use std::process::Command;

use crate::process::{Windlass, windlass};

#[test]
fn a_cluster_takes_its_images_from_the_store_of_the_image_commands() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = windlass(&["cluster"]);
    command.current_dir(folder.path()).env("WINDLASS_IMAGES", "images").env("HOME", folder.path());
    let mut cluster = Windlass::of(command);
    cluster.until("kubeconfig: ");
    assert!(folder.path().join("images/oci-layout").is_file());
    assert!(!folder.path().join(".cache/windlass/images").exists());
}

/// The limit of a process for open files: the soft and the hard limit.
#[cfg(target_os = "linux")]
fn open_files(process: u32) -> (u64, u64) {
    let limits = std::fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let mut numbers = line.split_whitespace().map(|number| number.parse().unwrap_or(u64::MAX));
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// 1,024 file descriptors, the usual soft limit, are too few for 200 pods, or for 512 connections to one Service.
#[test]
#[cfg(target_os = "linux")]
fn a_cluster_opens_as_many_files_as_the_user_may() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -Sn 256 && exec \"$0\" cluster", env!("CARGO_BIN_EXE_windlass")]);
    shell.current_dir(folder.path()).env("HOME", folder.path()).env_remove("KUBECONFIG");
    let mut cluster = Windlass::of(shell);
    cluster.until("kubeconfig: ");
    let (soft, hard) = open_files(cluster.id());
    assert!(hard == 256 || soft > 256, "{soft} of {hard}");
}
