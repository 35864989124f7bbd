//! A full disk. The tests run once more in a namespace with a small disk of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use tar::EntryType;
use windlass_image::unpack::{self, Limits};
use windlass_image::{Error, NoProgress, Platform, Reference, Store};

use crate::faults::{all_blobs_are_whole, count};
use crate::front::{Act, Front};
use crate::registry::client;
use crate::sample::{Layer, Sandbox};

/// The folder with the small disk. Set in the second run.
const DISK: &str = "WINDLASS_TEST_SMALL_DISK";

/// Returns the folder of a disk with 2 MiB in the second run. In the first run, starts the second run and returns `None`.
fn small_disk(test: &str) -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(DISK) {
        return Some(folder.into());
    }
    let folder = tempfile::tempdir().unwrap();
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
        command.env(DISK, folder.path());
        command
    };
    let mount = format!("mount -t tmpfs -o size=2m small \"${DISK}\"");
    if !unshare(&mount).status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: this machine allows no user namespaces, so there is no small disk");
        return None;
    }
    let mut again = unshare(&format!("{mount} && exec \"$@\""));
    again.arg("sh").arg(std::env::current_exe().unwrap());
    let output = again.args(["--exact", &format!("disk::{test}"), "--nocapture"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    None
}

fn says_full(error: &Error, folder: &Path) -> bool {
    let text = error.to_string();
    matches!(error, Error::Storage { .. })
        && text.contains("No space left on device")
        && text.contains(&folder.display().to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_to_a_full_disk_says_so_and_leaves_no_part() {
    let Some(disk) = small_disk("a_pull_to_a_full_disk_says_so_and_leaves_no_part") else { return };
    let sandbox = Sandbox::new();
    let layer = Layer::new().entry(EntryType::Regular, "large", "", 0o644, &vec![7; 4 << 20]);
    let built = sandbox.image_of("web", &[(windlass_image::media_type::LAYER, layer.tar(), layer.digest())]);
    let front = Front::plain(&sandbox, |_| Act::Pass).await;
    let target: Reference = format!("{}/web", front.address).parse().unwrap();
    client().push(&sandbox.store, &"web".parse().unwrap(), &target, &NoProgress).await.unwrap();
    let store = Store::open(disk.join("store")).unwrap();
    let error = client().pull(&store, &target, &Platform::host(), &NoProgress).await.unwrap_err();
    assert!(says_full(&error, &disk), "{error}");
    assert!(store.list().unwrap().is_empty() && !store.has(&built.layers()[0].digest));
    assert_eq!(count(&store, "uploads"), 0);
    all_blobs_are_whole(&store);
}

#[test]
fn an_image_that_does_not_fit_is_not_unpacked_in_part() {
    let Some(disk) = small_disk("an_image_that_does_not_fit_is_not_unpacked_in_part") else { return };
    let sandbox = Sandbox::new();
    let layer =
        Layer::new().file("small", "1").entry(EntryType::Regular, "large", "", 0o644, &vec![7; 4 << 20]);
    sandbox.image("web", &[layer]);
    let (name, store) = ("web".parse().unwrap(), Store::open(disk.join("store")).unwrap());
    windlass_image::build::copy(&sandbox.store, &name, &store).unwrap();
    let image = store.find(&name).unwrap().unwrap();
    let error = unpack::root(&store, &image, &Limits::default()).unwrap_err();
    assert!(says_full(&error, Path::new("large")), "{error}");
    let left: Vec<_> =
        std::fs::read_dir(store.folder().join("roots")).unwrap().map(|it| it.unwrap().path()).collect();
    assert!(left.iter().all(|path| path.extension().is_some_and(|it| it == "lock")), "{left:?}");
}
