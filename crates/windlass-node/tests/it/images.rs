//! Images of registries that fail, and images of strangers.

use std::fs;
use std::path::Path;
use std::process::Command;

use tar::EntryType;
use windlass_image::unpack::Limits;
use windlass_image::{Index, Platform, Store, media_type};
use windlass_node::{Images as _, PullError};

use crate::stub::{Fault, Parts, Stub, images, layer};

const FILE: (EntryType, &str, &str, &[u8]) = (EntryType::Regular, "program", "", b"#!/bin/sh\n");

/// Counts the files below a folder, locks left out.
fn files(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let count = |path: std::path::PathBuf| match path.extension() {
        _ if path.is_dir() => files(&path),
        Some(extension) if extension == "lock" => 0,
        _ => 1,
    };
    entries.map(count).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_has_the_words_of_the_registry_and_succeeds_when_the_registry_is_back() {
    const DENIED: &str = r#"{"errors": [{"code": "DENIED", "message": "requested access is denied"}]}"#;
    const MISSING: &str = r#"{"errors": [{"code": "NAME_UNKNOWN", "message": "repository name not known"}]}"#;
    const BASIC: &str = "www-authenticate: Basic realm=\"r\"\r\n";
    type Kind = fn(&PullError) -> bool;
    let unauthorized: Kind = |error| matches!(error, PullError::Unauthorized(_));
    let not_found: Kind = |error| matches!(error, PullError::NotFound(_));
    let unavailable: Kind = |error| matches!(error, PullError::Unavailable(_));
    let invalid: Kind = |error| matches!(error, PullError::Invalid(_));
    let cases = [
        (Fault::All("401 Unauthorized", BASIC, DENIED), unauthorized, "denied: requested access is denied"),
        (Fault::All("403 Forbidden", "", DENIED), unauthorized, "denied: requested access is denied"),
        (Fault::All("404 Not Found", "", MISSING), not_found, "unknown"),
        (Fault::All("429 Too Many Requests", "retry-after: 0\r\n", "slow down"), unavailable, "slow down"),
        (
            Fault::All("500 Internal Server Error", "", "a bug"),
            unavailable,
            "500 Internal Server Error: a bug",
        ),
        (Fault::OtherBytes, invalid, "instead of sha256:"),
        (Fault::Cut, unavailable, "ended early"),
    ];
    let stub = Stub::start(Parts::of(&[layer(&[FILE])])).await;
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("store")).unwrap();
    let images = images(&store);
    for (fault, kind, words) in cases {
        stub.set(fault);
        let error = images.pull(&stub.reference, &[]).await.unwrap_err();
        assert!(kind(&error) && error.to_string().contains(words), "{words:?}: {error:?}");
        assert!(images.find(&stub.reference).await.unwrap().is_none(), "{words}");
        assert_eq!(files(&store.folder().join("uploads")), 0, "{words}");
    }
    stub.set(Fault::None);
    let pulled = images.pull(&stub.reference, &[]).await.unwrap();
    assert_eq!(images.find(&stub.reference).await.unwrap(), Some(pulled));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_is_down_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let images = images(&Store::open(folder.path()).unwrap());
    let error = images.pull("127.0.0.1:1/app:v1", &[]).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, PullError::Unavailable(_)) && text.contains("127.0.0.1:1"), "{text}");
    assert!(text.to_lowercase().contains("connection refused"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn manifests_for_other_platforms_and_of_other_kinds_are_refused() {
    let host = Platform::host();
    let mut parts = Parts::of(&[layer(&[FILE])]);
    let mut other = windlass_image::Descriptor::of(media_type::MANIFEST, &parts.manifest);
    other.platform = Some(Platform { architecture: "sparc".to_owned(), ..host.clone() });
    let index = serde_json::to_vec(&Index::new(vec![other])).unwrap();
    (parts.manifest, parts.media_type) = (index, media_type::INDEX.to_owned());
    let stub = Stub::start(parts).await;
    let folder = tempfile::tempdir().unwrap();
    let images = images(&Store::open(folder.path()).unwrap());
    let error = images.pull(&stub.reference, &[]).await.unwrap_err().to_string();
    assert!(error.contains(&format!("no matching manifest for {host}")), "{error}");
    // Docker's first format of manifests.
    {
        let mut state = stub.state.lock().unwrap();
        state.0.media_type = "application/vnd.docker.distribution.manifest.v1+prettyjws".to_owned();
        state.0.manifest = br#"{"schemaVersion": 1, "name": "app", "fsLayers": []}"#.to_vec();
    }
    let error = images.pull(&stub.reference, &[]).await.unwrap_err();
    assert!(
        matches!(&error, PullError::Invalid(text) if text.contains("v1+prettyjws\", which is not supported")),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_cannot_be_unpacked_is_no_image_of_this_machine() {
    let zeros = vec![0; 3 << 20];
    let many: Vec<String> = (0..200).map(|number| format!("f{number}")).collect();
    let many: Vec<_> = many.iter().map(|name| (EntryType::Regular, name.as_str(), "", &b""[..])).collect();
    let cases = [
        (layer(&[(EntryType::Regular, "../../out", "", b"x")]), "\"../../out\" leaves the root"),
        (layer(&[(EntryType::Link, "out", "../../../etc/passwd", b"")]), "leaves the root"),
        (layer(&[(EntryType::Link, "out", "etc/passwd", b"")]), "has no target"),
        (layer(&[(EntryType::Regular, ".wh...", "", b"")]), "removes no file"),
        (layer(&[(EntryType::Regular, "big", "", &zeros)]), "the image is larger than 2097152 bytes"),
        (layer(&many), "the image has more than 100 entries"),
    ];
    let limits = Limits { bytes: 2 << 20, entries: 100, ..Limits::default() };
    for (hostile, words) in cases {
        let stub = Stub::start(Parts::of(&[hostile])).await;
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("store")).unwrap();
        let images = images(&store).with_limits(limits);
        let error = images.pull(&stub.reference, &[]).await.unwrap_err();
        assert!(matches!(error, PullError::Invalid(_)) && error.to_string().contains(words), "{error}");
        assert!(images.find(&stub.reference).await.unwrap().is_none(), "{words}");
        assert_eq!(files(&store.folder().join("roots")), 0, "{words}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{words}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_cannot_be_unpacked_does_not_replace_the_image_of_before() {
    let stub = Stub::start(Parts::of(&[layer(&[FILE])])).await;
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let images = images(&store);
    let before = images.pull(&stub.reference, &[]).await.unwrap();
    stub.state.lock().unwrap().0 = Parts::of(&[layer(&[(EntryType::Regular, "../x", "", b"x")])]);
    images.pull(&stub.reference, &[]).await.unwrap_err();
    assert_eq!(images.find(&stub.reference).await.unwrap(), Some(before));
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_and_the_bits_for_setuid_are_left_out() {
    use std::os::unix::fs::PermissionsExt;
    let entries: &[_] = &[
        FILE,
        (EntryType::Char, "null", "", b""),
        (EntryType::Block, "disk", "", b""),
        (EntryType::Fifo, "pipe", "", b""),
        (EntryType::Symlink, "link", "/etc/passwd", b""),
        (EntryType::Regular, "link/inside", "", b"x"),
    ];
    let stub = Stub::start(Parts::of(&[layer(&entries[..5])])).await;
    let folder = tempfile::tempdir().unwrap();
    let images = images(&Store::open(folder.path()).unwrap());
    let pulled = images.pull(&stub.reference, &[]).await.unwrap();
    let unpacked = images.unpack(&pulled.id).await.unwrap();
    let mut names: Vec<_> =
        fs::read_dir(&unpacked.directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["link", "program"]);
    let mode = fs::metadata(unpacked.directory.join("program")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
    // A path through a link stays inside of the root, where the link leads to no folder.
    stub.state.lock().unwrap().0 = Parts::of(&[layer(entries)]);
    images.pull(&stub.reference, &[]).await.unwrap_or_else(|error| panic!("{error}"));
    assert!(!Path::new("/etc/passwd/inside").exists());
}

/// A file system with 3 MiB, if this user may mount file systems.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=3m", "none"]).arg(folder.path()).output();
        match mount {
            Ok(output) if output.status.success() => Some(Self(folder)),
            other => {
                println!("skipped: this user cannot mount a file system: {other:?}");
                None
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_named_and_the_image_is_there_when_space_is_back() {
    let Some(disk) = SmallDisk::mount() else { return };
    let large = vec![7; 1 << 20];
    let stub = Stub::start(Parts::of(&[layer(&[(EntryType::Regular, "large", "", &large)])])).await;
    // The layer does not fit; then the layer fits, but not the file of the layer.
    for size in [2_500_000, 1_500_000] {
        let store = Store::open(disk.0.path().join(format!("store-{size}"))).unwrap();
        let images = images(&store);
        let fill = disk.0.path().join("fill");
        fs::write(&fill, vec![0; size]).unwrap();
        let error = images.pull(&stub.reference, &[]).await.unwrap_err();
        let is_full = matches!(&error, PullError::Storage(text) if text.contains("No space left on device"));
        assert!(is_full, "{size}: {error:?}");
        assert!(images.find(&stub.reference).await.unwrap().is_none());
        assert_eq!(files(&store.folder().join("uploads")) + files(&store.folder().join("roots")), 0);
        fs::remove_file(&fill).unwrap();
        let pulled = images.pull(&stub.reference, &[]).await.unwrap();
        assert!(images.unpack(&pulled.id).await.is_ok());
        fs::remove_dir_all(store.folder()).unwrap();
    }
}
