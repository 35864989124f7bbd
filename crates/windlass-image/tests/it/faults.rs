//! Pushes and pulls through a front that cuts, refuses and corrupts.

use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tar::EntryType;
use windlass_image::{Error, Image, NoProgress, Platform, Reference, Store, media_type};

use crate::front::{Act, Front};
use crate::registry::client;
use crate::sample::{Layer, Sandbox};

/// The name of the image in the store of the client.
const LOCAL: &str = "web:v1";

fn local() -> Reference {
    LOCAL.parse().unwrap()
}

fn target(front: &Front) -> Reference {
    format!("{}/team/web:v1", front.address).parse().unwrap()
}

/// Bytes that no compression makes smaller.
fn noise(size: u32) -> Vec<u8> {
    (0..size).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Stores an image with one layer that is not compressed, of `size` bytes of noise.
fn large(sandbox: &Sandbox, size: u32) -> Image {
    let layer = Layer::new().entry(EntryType::Regular, "noise", "", 0o644, &noise(size));
    sandbox.image_of(LOCAL, &[(media_type::LAYER, layer.tar(), layer.digest())])
}

async fn push(sandbox: &Sandbox, front: &Front) -> Result<windlass_image::Pushed, Error> {
    client().push(&sandbox.store, &local(), &target(front), &NoProgress).await
}

async fn pull(sandbox: &Sandbox, front: &Front) -> (Store, Result<Image, Error>) {
    let store = Store::open(sandbox.folder.path().join("pulled")).unwrap();
    let pulled = client().pull(&store, &target(front), &Platform::host(), &NoProgress).await;
    (store, pulled)
}

/// Returns the number of files in a folder of a store.
pub(crate) fn count(store: &Store, folder: &str) -> usize {
    fs::read_dir(store.folder().join(folder)).unwrap().count()
}

/// Checks that all blobs of a store have the digests that their names promise.
#[track_caller]
pub(crate) fn all_blobs_are_whole(store: &Store) {
    for entry in fs::read_dir(store.folder().join("blobs/sha256")).unwrap() {
        let path = entry.unwrap().path();
        let found = windlass_image::Digest::of(&fs::read(&path).unwrap());
        assert_eq!(path.file_name().unwrap().to_str(), Some(found.hex()), "a blob is cut or corrupt");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_fails_each_request_twice_gets_and_gives_the_image() {
    let sandbox = Sandbox::new();
    let built = sandbox.image(LOCAL, &[Layer::new().file("a", "1"), Layer::new().file("b", "2")]);
    let failed: Mutex<HashMap<String, u32>> = Mutex::default();
    let front = Front::plain(&sandbox, move |head| {
        let mut failed = failed.lock().unwrap();
        let times = failed.entry(format!("{}?{}", head.line, head.query)).or_default();
        *times += 1;
        if *times <= 2 { Act::Answer(500, vec![], "the disk is slow".into()) } else { Act::Pass }
    })
    .await;
    let pushed = push(&sandbox, &front).await.unwrap();
    assert_eq!((&pushed.digest, pushed.transferred), (built.digest(), 3));
    let (store, pulled) = pull(&sandbox, &front).await;
    assert_eq!(pulled.unwrap().digest(), built.digest());
    all_blobs_are_whole(&store);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_always_fails_is_given_up_with_its_words() {
    let sandbox = Sandbox::new();
    sandbox.image(LOCAL, &[Layer::new().file("a", "1")]);
    let front = Front::plain(&sandbox, |head| {
        if head.line == "GET /v2/" { Act::Pass } else { Act::Answer(503, vec![], "the disk is full".into()) }
    })
    .await;
    let Err(Error::Unavailable(message)) = push(&sandbox, &front).await else { panic!("pushed") };
    assert!(message.contains("503 Service Unavailable") && message.contains("the disk is full"), "{message}");
    let (store, pulled) = pull(&sandbox, &front).await;
    let Err(Error::Unavailable(message)) = pulled else { panic!("{pulled:?}") };
    assert!(message.contains("the disk is full"), "{message}");
    assert!(store.list().unwrap().is_empty() && count(&store, "blobs/sha256") == 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_requests_is_respected_as_long_as_the_registry_asks_for() {
    let sandbox = Sandbox::new();
    sandbox.image(LOCAL, &[Layer::new().file("a", "1")]);
    let asked = AtomicUsize::new(0);
    let front = Front::plain(&sandbox, move |head| {
        let is_first = head.line.starts_with("POST ") && asked.fetch_add(1, Ordering::SeqCst) == 0;
        let wait = vec![("retry-after", "1".to_owned())];
        if is_first { Act::Answer(429, wait, "slow down".into()) } else { Act::Pass }
    })
    .await;
    let began = Instant::now();
    push(&sandbox, &front).await.unwrap();
    // The back-off of the client is a millisecond.
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
}

/// Pushes through a front that cuts the first `cuts` requests with a body of more than 1000 bytes.
async fn push_with_cuts(sandbox: &Sandbox, cuts: usize) -> (Front, Result<windlass_image::Pushed, Error>) {
    let seen = AtomicUsize::new(0);
    let front = Front::plain(sandbox, move |head| {
        let is_cut = head.size > 1000
            && head.line.contains("/blobs/uploads/")
            && seen.fetch_add(1, Ordering::SeqCst) < cuts;
        if is_cut { Act::CutRequest(head.size / 2) } else { Act::Pass }
    })
    .await;
    let pushed = push(sandbox, &front).await;
    (front, pushed)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_is_cut_is_begun_again() {
    let sandbox = Sandbox::new();
    let built = large(&sandbox, 200_000);
    let (front, pushed) = push_with_cuts(&sandbox, 2).await;
    assert_eq!(&pushed.unwrap().digest, built.digest());
    all_blobs_are_whole(&front.store);
    let (_, pulled) = pull(&sandbox, &front).await;
    assert_eq!(pulled.unwrap().id(), built.id());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_in_parts_that_is_cut_is_begun_again() {
    let sandbox = Sandbox::new();
    let built = large(&sandbox, 17 << 20);
    let (front, pushed) = push_with_cuts(&sandbox, 1).await;
    assert_eq!(&pushed.unwrap().digest, built.digest());
    all_blobs_are_whole(&front.store);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_without_uploads_in_parts_gets_the_blob_by_one_request() {
    for status in [404, 405] {
        let sandbox = Sandbox::new();
        let built = large(&sandbox, 33 << 20);
        let refused = Arc::new(AtomicUsize::new(0));
        let seen = refused.clone();
        let front = Front::plain(&sandbox, move |head| {
            if !head.line.starts_with("PATCH ") {
                return Act::Pass;
            }
            seen.fetch_add(1, Ordering::SeqCst);
            Act::Answer(status, vec![], "no uploads in parts".into())
        })
        .await;
        assert_eq!(push(&sandbox, &front).await.unwrap().digest, *built.digest());
        all_blobs_are_whole(&front.store);
        // The connection may end before the client has read a refusal; the client then repeats the part.
        assert!(refused.load(Ordering::SeqCst) > 0);
        let (_, pulled) = pull(&sandbox, &front).await;
        assert_eq!(pulled.unwrap().id(), built.id());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_loses_an_upload_gets_the_blob_in_parts_again() {
    // The part that does not find the session any more.
    for part in [1, 2] {
        let sandbox = Sandbox::new();
        let built = large(&sandbox, 17 << 20);
        let (parts, lost) = (AtomicUsize::new(0), Mutex::new(String::new()));
        let front = Front::plain(&sandbox, move |head| {
            let is_part = head.line.starts_with("PATCH ");
            if is_part && parts.fetch_add(1, Ordering::SeqCst) + 1 == part {
                lost.lock().unwrap().clone_from(&head.line);
            }
            if head.line == *lost.lock().unwrap() {
                return Act::Answer(404, vec![], "no such upload".into());
            }
            // A proxy with a limit of bodies.
            if head.size > 16 << 20 { Act::Answer(413, vec![], String::new()) } else { Act::Pass }
        })
        .await;
        assert_eq!(push(&sandbox, &front).await.unwrap().digest, *built.digest());
        all_blobs_are_whole(&front.store);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_is_always_cut_fails_and_leaves_no_image() {
    let sandbox = Sandbox::new();
    large(&sandbox, 200_000);
    let (front, pushed) = push_with_cuts(&sandbox, usize::MAX).await;
    assert!(matches!(pushed, Err(Error::Unavailable(_))), "{pushed:?}");
    assert!(front.store.list().unwrap().is_empty());
    all_blobs_are_whole(&front.store);
}

/// Pushes an image, and pulls the image through a front that does `act` with the first `times` replies with the layer.
async fn pull_with(
    sandbox: &Sandbox,
    times: usize,
    act: impl Fn() -> Act + Send + Sync + 'static,
) -> (Image, Store, Result<Image, Error>) {
    let built = large(sandbox, 200_000);
    let layer = built.layers()[0].digest.to_string();
    let seen = AtomicUsize::new(0);
    let front = Front::plain(sandbox, move |head| {
        let is_layer = head.gets_blob() && head.line.ends_with(&layer);
        if is_layer && seen.fetch_add(1, Ordering::SeqCst) < times { act() } else { Act::Pass }
    })
    .await;
    push(sandbox, &front).await.unwrap();
    let (store, pulled) = pull(sandbox, &front).await;
    (built, store, pulled)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_that_is_cut_is_begun_again() {
    for act in [|| Act::CutReply(100_000), || Act::ShortReply(100_000)] {
        let sandbox = Sandbox::new();
        let (built, store, pulled) = pull_with(&sandbox, 2, act).await;
        assert_eq!(pulled.unwrap().digest(), built.digest());
        all_blobs_are_whole(&store);
        assert_eq!(count(&store, "uploads"), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_that_is_always_cut_fails_and_stores_no_part() {
    let sandbox = Sandbox::new();
    let (built, store, pulled) = pull_with(&sandbox, usize::MAX, || Act::CutReply(100_000)).await;
    let Err(Error::Unavailable(message)) = pulled else { panic!("{pulled:?}") };
    assert!(message.contains(&built.layers()[0].digest.to_string()), "{message}");
    assert!(store.list().unwrap().is_empty() && !store.has(&built.layers()[0].digest));
    assert_eq!(count(&store, "uploads"), 0);
    all_blobs_are_whole(&store);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corrupt_download_is_refused_and_not_stored() {
    let sandbox = Sandbox::new();
    let (built, store, pulled) = pull_with(&sandbox, usize::MAX, || Act::Corrupt).await;
    assert!(matches!(pulled, Err(Error::WrongDigest { .. })), "{pulled:?}");
    assert!(store.list().unwrap().is_empty() && !store.has(&built.layers()[0].digest));
    assert_eq!(count(&store, "uploads"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_replaces_a_blob_that_a_crash_has_cut() {
    let sandbox = Sandbox::new();
    let built = large(&sandbox, 200_000);
    let front = Front::plain(&sandbox, |_| Act::Pass).await;
    push(&sandbox, &front).await.unwrap();
    let (store, pulled) = pull(&sandbox, &front).await;
    assert!(pulled.is_ok());
    fs::write(store.blob_path(&built.layers()[0].digest), "cut").unwrap();
    assert!(store.find(&target(&front)).unwrap().is_none());
    let (store, pulled) = pull(&sandbox, &front).await;
    assert_eq!(pulled.unwrap().digest(), built.digest());
    all_blobs_are_whole(&store);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_can_be_a_task() {
    let sandbox = Sandbox::new();
    let built = sandbox.image(LOCAL, &[Layer::new().file("a", "1")]);
    let front = Front::plain(&sandbox, |_| Act::Pass).await;
    push(&sandbox, &front).await.unwrap();
    let (store, reference) = (Store::open(sandbox.folder.path().join("pulled")).unwrap(), target(&front));
    let task = tokio::spawn(async move {
        client()
            .pull(&store, &reference, &Platform::host(), &NoProgress)
            .await
            .map(|image| image.id().clone())
    });
    assert_eq!(&task.await.unwrap().unwrap(), built.id());
}
