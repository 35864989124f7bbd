//! The store, as processes share it.

use std::io::Write;
use std::time::Duration;

use windlass_image::{Digest, Error, Reference, Store};

use crate::sample::{Layer, Sandbox};

#[test]
fn an_image_is_found_by_name_by_digest_and_by_id() {
    let sandbox = Sandbox::new();
    let image = sandbox.image("web", &[Layer::new().file("a", "1")]);
    // Another process opens the same folder.
    let store = Store::open(sandbox.store.folder()).unwrap();
    let find = |name: &str| store.find(&name.parse().unwrap()).unwrap();
    assert_eq!(find("docker.io/library/web:latest").unwrap().id(), image.id());
    assert_eq!(find(&format!("other@{}", image.digest())).unwrap().id(), image.id());
    assert_eq!(store.find_by_id(image.id()).unwrap().unwrap().digest(), image.digest());
    assert!(find("web:2").is_none());
    assert_eq!(image.config().user, "65532:65532");
}

#[test]
fn an_image_without_all_of_its_layers_is_not_found() {
    let sandbox = Sandbox::new();
    let image = sandbox.image("web", &[Layer::new().file("a", "1")]);
    let path = sandbox.store.blob_path(&image.layers()[0].digest);
    std::fs::write(&path, "cut off").unwrap();
    let reference: Reference = "web".parse().unwrap();
    assert!(sandbox.store.find(&reference).unwrap().is_none());
    std::fs::remove_file(path).unwrap();
    assert!(sandbox.store.find(&reference).unwrap().is_none());
}

#[test]
fn a_document_that_was_changed_on_disk_is_refused() {
    let sandbox = Sandbox::new();
    let image = sandbox.image("web", &[Layer::new()]);
    let path = sandbox.store.blob_path(image.digest());
    let text = std::fs::read_to_string(&path).unwrap().replace("schemaVersion\":2", "schemaVersion\":3");
    std::fs::write(path, text).unwrap();
    let found = sandbox.store.find(&"web".parse().unwrap());
    assert!(matches!(found, Err(Error::WrongDigest { .. })), "{found:?}");
}

#[test]
fn a_blob_is_there_as_a_whole_or_not_at_all() {
    let sandbox = Sandbox::new();
    let mut writer = sandbox.store.writer().unwrap();
    writer.write_all(b"half").unwrap();
    let digest = writer.digest();
    assert!(!sandbox.store.has(&digest));
    let other = Digest::of(b"whole");
    assert!(matches!(writer.commit(Some(&other)), Err(Error::WrongDigest { .. })));
    assert!(!sandbox.store.has(&digest) && !sandbox.store.has(&other));
    drop(sandbox.store.writer().unwrap());
    assert_eq!(std::fs::read_dir(sandbox.store.folder().join("uploads")).unwrap().count(), 0);
}

#[test]
fn writers_at_the_same_time_lose_no_name() {
    let sandbox = Sandbox::new();
    let image = sandbox.image("first", &[Layer::new()]);
    let descriptor = sandbox.store.resolve(&"first".parse().unwrap()).unwrap().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (store, descriptor) = (&sandbox.store, &descriptor);
            scope.spawn(move || {
                for number in 0..10 {
                    let name = format!("web:{thread}-{number}");
                    store.tag(&name.parse().unwrap(), descriptor).unwrap();
                }
            });
        }
    });
    assert_eq!(sandbox.store.list().unwrap().len(), 41);
    assert_eq!(sandbox.store.find_by_id(image.id()).unwrap().unwrap().id(), image.id());
}

#[test]
fn garbage_is_collected_and_images_stay() {
    let sandbox = Sandbox::new();
    let kept = sandbox.image("kept", &[Layer::new().file("a", "1")]);
    let removed = sandbox.image("removed", &[Layer::new().file("b", "2")]);
    let limits = windlass_image::unpack::Limits::default();
    let unpack = |image| windlass_image::unpack::root(&sandbox.store, image, &limits).unwrap();
    drop(unpack(&kept));
    let in_use = unpack(&removed);
    assert!(sandbox.store.remove(&"removed".parse().unwrap()).unwrap());
    assert!(!sandbox.store.remove(&"removed".parse().unwrap()).unwrap());

    let hour = Duration::from_secs(3600);
    assert_eq!(sandbox.store.collect_garbage(hour).unwrap().blobs, 0, "another process may need new blobs");
    let collected = sandbox.store.collect_garbage(Duration::ZERO).unwrap();
    assert_eq!((collected.blobs, collected.roots), (3, 0), "a container uses the files");
    assert!(in_use.path().join("b").exists());
    drop(in_use);
    assert_eq!(sandbox.store.collect_garbage(Duration::ZERO).unwrap().roots, 1);
    assert!(sandbox.store.find(&"kept".parse().unwrap()).unwrap().is_some());
    assert!(unpack(&kept).path().join("a").exists());
}
