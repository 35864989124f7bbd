//! Informers with a scripted server. Time is paused: time passes when all tasks wait.

mod server;

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube_core::ApiResource;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use tokio::time::Instant;
use windlass_cache::{
    Delta, FieldPath, IndexFn, ObjectEncoding, ObjectKey, Query, ReflectorConfig, Transform,
};

use self::server::{Asked, PANIC, Server, server};
use super::{CacheOptions, HandlerOptions, InformerError, SharedInformerFactory};
use crate::{
    client::path::GroupResource,
    env::Env,
    error::BoxError,
    events::Broadcaster,
    kind_cache::KindCache,
    read_your_writes::{WriteJournal, WriteRef},
    supervisor::Supervisor,
    undecodable::UndecodableReporter,
};

const SOON: Duration = Duration::from_secs(5);

#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, line: String) {
        self.0.lock().push(line);
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

impl Diary {
    fn note_change(&self, delta: &Delta) {
        let name = delta.object().name();
        self.note(match delta {
            Delta::Added { initial, .. } => format!("+{name}{}", if *initial { "!" } else { "" }),
            Delta::Updated { old, new } => {
                format!("{name}:{}-{}", old.resource_version(), new.resource_version())
            }
            Delta::Deleted { .. } => format!("-{name}"),
        });
    }

    fn handler(&self) -> impl Fn(&Delta) + Send + Sync + 'static {
        let this = self.clone();
        move |delta| this.note_change(delta)
    }
}

fn pods() -> ApiResource {
    ApiResource::erase::<Pod>(&())
}

fn factory() -> (SharedInformerFactory, Server) {
    let (client, server) = server();
    (SharedInformerFactory::builder(client).seed(1).build(), server)
}

async fn until(mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), wait).await.expect("it comes to hold");
}

/// A query that looked at all objects until the next event would be slow for as long as nothing changes.
#[tokio::test(start_paused = true)]
async fn a_query_gets_an_index_while_the_watch_is_quiet() {
    let (factory, mut server) = factory();
    let informer = factory.share(&pods(), CacheOptions::default()).expect("an informer");
    factory.start();
    let names: Vec<String> = (0..100).map(|number| format!("p{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let _watch = server.asked_for("/api/v1/pods?watch=true").await.answer_with(&names);
    factory.wait_for_cache_sync(SOON).await.expect("synced");
    let store = informer.store();
    let before = store.memory().index;
    let all = || store.query(&Query::new().namespace("n")).expect("a query").len();
    assert_eq!(all(), 100);
    until(|| store.memory().index > before).await;
    assert_eq!(all(), 100);
}

#[tokio::test(start_paused = true)]
async fn users_of_one_watch_share_it_and_the_last_ends_it() {
    let (factory, mut server) = factory();
    let first = factory.share(&pods(), CacheOptions::default()).expect("an informer");
    let second = factory.share(&pods(), CacheOptions::default()).expect("the same informer");
    let diary = Diary::default();
    let registration = second.subscribe(diary.handler(), HandlerOptions::default());
    assert!(!first.has_synced());
    factory.start();
    let watch = server.asked_for("/api/v1/pods?watch=true").await.answer_with(&["a", "b"]);
    factory.wait_for_cache_sync(SOON).await.expect("synced");
    registration.synced().await;
    assert_eq!(diary.lines(), ["+a!", "+b!"]);
    assert_eq!(first.last_sync_resource_version(), 100);
    watch.event("MODIFIED", "a", 101);
    first.seen(101).await;
    assert_eq!(second.store().namespace("n")[0].resource_version(), "101");
    until(|| diary.lines().len() == 3).await;

    let lister = first.read_as::<Pod>().lister();
    drop((first, second));
    drop(registration);
    assert!(server.is_idle().await);
    assert_eq!(lister.all().expect("pods").len(), 2, "a lister keeps the watch alive");
    drop(lister);
    watch.dropped().await;
    assert!(factory.informers().is_empty());
    factory.shutdown().await;
}

/// The server sends no event for a stored object that is served with new content.
#[tokio::test(start_paused = true)]
async fn a_kind_is_listed_again_while_an_object_does_not_decode() {
    let (factory, mut server) = factory();
    let maps = ApiResource::erase::<ConfigMap>(&());
    let informer = factory.share(&maps, CacheOptions::default()).expect("an informer");
    let diary = Diary::default();
    let _registration = informer.subscribe(diary.handler(), HandlerOptions::default());
    factory.start();
    let path = "/api/v1/configmaps?watch=true&allowWatchBookmarks=true&sendInitialEvents=true";
    let show = |asked: Asked, data: &str| {
        let metadata = r#""metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"1"}"#;
        let sending = asked.answer(200);
        sending.send(&format!("{{\"type\":\"ADDED\",\"object\":{{{metadata},\"data\":{data}}}}}\n"));
        sending.bookmark();
        sending
    };
    let mut watch = show(server.asked_for(path).await, "5");
    factory.wait_for_cache_sync(SOON).await.expect("synced");
    let lister = informer.read_as::<ConfigMap>().lister();
    let read = || lister.get(&ObjectKey::namespaced("n", "a"));
    assert!(read().expect_err("an integer is no map").is_decode());
    for delay in [5..6, 10..12, 20..23] {
        let before = Instant::now();
        let asked = server.asked_for(path).await;
        watch.dropped().await;
        watch = show(asked, "5");
        assert!(delay.contains(&before.elapsed().as_secs()), "{:?}, not {delay:?}", before.elapsed());
    }
    let healed = show(server.asked_for(path).await, r#"{"k":"v"}"#);
    until(|| read().is_ok()).await;
    until(|| diary.lines() == ["+a!", "a:1-1"]).await;
    tokio::time::sleep(Duration::from_secs(45)).await;
    assert!(server.is_idle().await, "the object decodes");
    drop(healed);
    factory.shutdown().await;
}

/// A failing watch shows no write; the watch of another namespace does.
#[tokio::test(start_paused = true)]
async fn writes_wait_for_a_watch_that_works_beside_a_failing_watch() {
    let (factory, mut server) = factory();
    let options = CacheOptions::new().namespaces(["failing", "n"]);
    let informer = factory.share(&pods(), options).expect("an informer");
    let journal = WriteJournal::new();
    let unseen = journal.follow(GroupResource::of(&pods()), informer.clone());
    let events = Broadcaster::supervised(Env::system(), Supervisor::default());
    let reporter = UndecodableReporter::new(events.recorder("test"), Counter::default());
    let cache = KindCache::new(informer.clone(), unseen.clone(), Arc::new(reporter));
    let write = |namespace: &str| WriteRef {
        log: journal.id(),
        resource: Arc::new(GroupResource::of(&pods())),
        key: ObjectKey::namespaced(namespace, "a"),
        uid: "u".into(),
        revision: 200,
        gone: false,
        shown_by: vec![Arc::downgrade(&unseen)],
    };
    factory.start();
    let failing = "/api/v1/namespaces/failing/pods?watch=true";
    drop(server.asked_for(failing).await.answer_with(&[]));
    let watch = server.asked_for("/api/v1/namespaces/n/pods?watch=true").await.answer_with(&[]);
    informer.synced().await;
    let patience = Duration::from_secs(60);
    while informer.failing().is_none_or(|failing| failing.duration() < patience) {
        drop(server.asked_for(failing).await.answer(500));
    }
    assert!(cache.has_seen(&write("failing"), patience), "the watch keeps failing");
    assert!(!cache.has_seen(&write("n"), patience), "the watch works");
    watch.event("ADDED", "b", 201);
    until(|| cache.has_seen(&write("n"), patience)).await;
    factory.shutdown().await;
}

/// The run after a panic does not know the failures of the run before.
#[tokio::test(start_paused = true)]
async fn a_watch_that_works_after_a_panic_counts_as_working() {
    let (client, mut server) = server();
    let supervisor = Supervisor::default();
    let factory = SharedInformerFactory::supervised(client.into(), 1, supervisor.clone());
    let informer = factory.share(&pods(), CacheOptions::default()).expect("an informer");
    factory.start();
    drop(server.asked().await.answer(500));
    until(|| informer.last_failure().is_some()).await;
    let watch = server.asked().await.answer(200);
    watch.send(PANIC);
    until(|| supervisor.down() == ["watch of pods"]).await;
    let _watch = server.asked().await.answer_with(&["a"]);
    informer.synced().await;
    until(|| supervisor.down().is_empty()).await;
    assert_eq!(informer.last_failure(), None);
    factory.shutdown().await;
}

/// Readiness must not be green while the cache lacks a batch.
#[tokio::test(start_paused = true)]
async fn a_panic_in_a_large_batch_is_noticed_without_another_change() {
    let (client, mut server) = server();
    let supervisor = Supervisor::default();
    let factory = SharedInformerFactory::supervised(client.into(), 1, supervisor.clone());
    let informer = factory.share(&pods(), CacheOptions::default()).expect("an informer");
    factory.start();
    let watch = server.asked().await.answer_with(&["a"]);
    informer.synced().await;
    informer.watch.core.set_reflector_event_handler(Arc::new(|_, _| panic!("on purpose")));
    let large = "x".repeat(64 << 10);
    let metadata = r#"{"name":"b","namespace":"n","resourceVersion":"101"}"#;
    let unreadable = r#"{"type":"ADDED","object":{"metadata":5}}"#;
    watch.send(&format!(
        "{{\"type\":\"ADDED\",\"object\":{{\"metadata\":{metadata},\"text\":\"{large}\"}}}}\n{unreadable}\n"
    ));
    until(|| supervisor.down() == ["watch of pods"]).await;
    informer.watch.core.set_reflector_event_handler(Arc::new(|_, _| {}));
    let _watch = server.asked().await.answer_with(&["a", "b"]);
    until(|| informer.store().len() == 2).await;
    factory.shutdown().await;
}

/// The options of a watch do not change. A later user without an option takes the options as they are.
#[tokio::test(start_paused = true)]
async fn a_later_user_cannot_set_an_option_that_the_watch_does_not_have() {
    let wishes = [
        ("encoding", CacheOptions::new().encoding(ObjectEncoding::Compressed)),
        ("memory_limit", CacheOptions::new().memory_limit(1)),
        ("decoded_bytes", CacheOptions::new().decoded_bytes(1)),
        (
            "reflector",
            CacheOptions::new().reflector(ReflectorConfig { page_size: 1, ..ReflectorConfig::new("") }),
        ),
    ];
    for (wish, options) in wishes {
        let (factory, _server) = factory();
        let plain = factory.share(&pods(), CacheOptions::default()).expect("an informer");
        let error = factory.share(&pods(), options.clone()).expect_err("the watch has no such option");
        assert!(matches!(error, InformerError::Conflict { option, .. } if option == wish), "{error}");
        drop(plain);
        let _first = factory.share(&pods(), options).expect("another watch");
        factory.share(&pods(), CacheOptions::default()).expect("agrees with any value");
    }
}

#[tokio::test(start_paused = true)]
async fn users_who_do_not_agree_are_told_when_they_ask() {
    let (factory, _server) = factory();
    let path: FieldPath = "spec.containers[*].env".parse().expect("a path");
    let slim =
        CacheOptions { transform: Some(Transform::drop_fields([path]).expect("fine")), ..Default::default() };
    let _slim = factory.share(&pods(), slim.clone()).expect("an informer");
    let error = factory.share(&pods(), CacheOptions::default()).expect_err("another transform");
    assert!(matches!(error, InformerError::Conflict { option: "transform", .. }), "{error}");
    let index = ("node".to_owned(), IndexFn::field("spec.nodeName".parse().expect("a path")));
    let same = factory.share(&pods(), CacheOptions { indexes: vec![index], ..slim }).expect("agrees");
    assert!(same.store().by_index("node", "x").expect("an index").is_empty());
    let elsewhere = CacheOptions { namespaces: vec!["n".to_owned()], ..Default::default() };
    factory.share(&pods(), elsewhere).expect("another watch");
}

#[tokio::test(start_paused = true)]
async fn each_namespace_has_its_watch_and_wishes_are_in_the_request() {
    let (factory, mut server) = factory();
    let options = CacheOptions {
        namespaces: ["y", "x", "y"].map(str::to_owned).to_vec(),
        label_selector: "app in (a,b)".parse().expect("a selector"),
        field_selector: Some("status.phase=Running".to_owned()),
        metadata_only: true,
        ..Default::default()
    };
    let informer = factory.share(&pods(), options).expect("an informer");
    factory.start();
    let mut watches = Vec::new();
    for namespace in ["x", "y"] {
        assert!(!informer.has_synced());
        let asked = server.asked_for(&format!("/api/v1/namespaces/{namespace}/pods?watch=true")).await;
        let uri = asked.request.uri().to_string();
        assert!(
            uri.ends_with("&labelSelector=app+in+%28a%2Cb%29&fieldSelector=status.phase%3DRunning"),
            "{uri}"
        );
        let accept = asked.request.headers()["accept"].to_str().expect("text");
        assert!(
            accept.starts_with("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
            "{accept}"
        );
        watches.push(asked.answer_with(&[namespace]));
    }
    informer.synced().await;
    assert_eq!(informer.store().len(), 2);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_forbidden_slows_no_other() {
    let (factory, mut server) = factory();
    let secrets = factory.share(&ApiResource::erase::<Secret>(&()), CacheOptions::default()).expect("one");
    let maps = factory.share(&ApiResource::erase::<ConfigMap>(&()), CacheOptions::default()).expect("one");
    let failures = Diary::default();
    secrets.on_reflector_event({
        let failures = failures.clone();
        move |notice| failures.note(format!("{notice:?}"))
    });
    factory.start();
    let (mut refused, mut watch) = (0, None);
    while refused < 4 {
        let asked = server.asked().await;
        if asked.request.uri().path().ends_with("secrets") {
            asked.answer(403).send(r#"{"code":403,"message":"secrets is forbidden"}"#);
            refused += 1;
        } else {
            assert!(watch.is_none(), "the other kind is asked for once");
            watch = Some(asked.answer_with(&["a"]));
        }
    }
    assert!(maps.has_synced());
    assert!(failures.lines()[0].contains("403"), "{:?}", failures.lines());
    let error = factory.wait_for_cache_sync(SOON).await.expect_err("secrets cannot be listed");
    assert_eq!(
        error.to_string(),
        "not synced within 5s: secrets (secrets: forbidden (403): secrets is forbidden; grant the verbs list and watch on this resource)"
    );
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_appears_later_is_watched_then() {
    let (factory, mut server) = factory();
    factory.start();
    let informer =
        factory.share(&pods(), CacheOptions::default()).expect("an informer, which starts at once");
    for _ in 0..3 {
        drop(server.asked().await.answer(404));
    }
    let _watch = server.asked().await.answer_with(&["a"]);
    informer.synced().await;
    assert_eq!(informer.metrics().failures, 3);
    factory.shutdown().await;
    assert!(matches!(factory.share(&pods(), CacheOptions::default()), Err(InformerError::ShutDown)));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_breaks_goes_on_and_one_that_expired_begins_anew() {
    let (factory, mut server) = factory();
    let informer = factory.share(&pods(), CacheOptions::default()).expect("an informer");
    let diary = Diary::default();
    let _registration = informer.subscribe(diary.handler(), HandlerOptions::default());
    factory.start();
    let watch = server.asked().await.answer_with(&["a", "b"]);
    watch.event("MODIFIED", "a", 107);
    informer.seen(107).await;
    drop(watch);
    let again = server.asked().await;
    assert!(again.request.uri().query().expect("a query").contains("resourceVersion=107"));
    again.answer(410).send(r#"{"code":410,"reason":"Expired"}"#);
    let anew = server.asked().await;
    assert!(anew.request.uri().query().expect("a query").contains("sendInitialEvents=true"));
    let _watch = anew.answer_with(&["b", "c"]);
    until(|| diary.lines().len() == 6).await;
    let mut told = diary.lines();
    told[2..].sort();
    assert_eq!(told, ["+a!", "+b!", "+c", "-a", "a:1-107", "b:2-1"]);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn each_handler_has_its_own_resync() {
    let (factory, mut server) = factory();
    let informer = factory.share(&pods(), CacheOptions::default()).expect("an informer");
    factory.start();
    let _watch = server.asked().await.answer_with(&["a"]);
    informer.synced().await;
    let (still, often) = (Diary::default(), Diary::default());
    let _still = informer.subscribe(still.handler(), HandlerOptions::default());
    let _often =
        informer.subscribe(often.handler(), HandlerOptions::default().resync(Duration::from_secs(30)));
    tokio::time::sleep(Duration::from_secs(65)).await;
    assert_eq!(still.lines(), ["+a!"]);
    assert_eq!(often.lines(), ["+a!", "a:1-1", "a:1-1"]);
    factory.shutdown().await;
}

/// A handler that panics or fails is called again with the change, other changes go on, and readiness fails meanwhile.
#[tokio::test(start_paused = true)]
async fn a_change_that_a_handler_fails_on_is_delivered_again() {
    let (client, mut server) = server();
    let supervisor = Supervisor::default();
    let factory = SharedInformerFactory::supervised(client.into(), 1, supervisor.clone());
    let informer = factory.share(&pods(), CacheOptions::default()).expect("an informer");
    let diary = Diary::default();
    let attempts = Arc::new(Mutex::new(0));
    let handler = {
        let (diary, attempts) = (diary.clone(), attempts.clone());
        move |delta: &Delta| -> Result<(), BoxError> {
            if delta.object().name() == "explosive" {
                let mut attempts = attempts.lock();
                *attempts += 1;
                assert!(*attempts > 1, "the first attempt panics");
                if *attempts == 2 {
                    return Err("the second attempt fails".into());
                }
            }
            diary.note_change(delta);
            Ok(())
        }
    };
    let _registration = informer.subscribe(handler, HandlerOptions::default());
    factory.start();
    let watch = server.asked().await.answer_with(&["explosive", "a"]);
    until(|| diary.lines() == ["+a!"]).await;
    assert_eq!(supervisor.down(), ["handler of pods"]);
    watch.event("MODIFIED", "a", 101);
    until(|| diary.lines().len() == 3).await;
    assert_eq!(diary.lines(), ["+a!", "a:2-101", "+explosive!"]);
    assert!(supervisor.down().is_empty());
    factory.shutdown().await;
}

/// A listener may panic, and may call back into the informer.
#[tokio::test(start_paused = true)]
async fn a_listener_may_panic_and_call_back() {
    let (factory, mut server) = factory();
    let informer = factory.share(&pods(), CacheOptions::default()).expect("an informer");
    informer.on_reflector_event({
        let informer = informer.clone();
        move |_| {
            informer.on_reflector_event(|_| {});
            panic!("a listener panics");
        }
    });
    factory.start();
    drop(server.asked().await.answer(403));
    let watch = server.asked().await.answer_with(&["a"]);
    informer.synced().await;
    watch.event("MODIFIED", "a", 101);
    informer.seen(101).await;
    factory.shutdown().await;
}

/// A change that always makes a handler panic is given up when the object is gone: otherwise, the retries
/// would never end, and readiness would fail until the process ends.
#[tokio::test(start_paused = true)]
async fn a_change_of_an_object_that_is_gone_is_given_up_in_the_end() {
    let (client, mut server) = server();
    let supervisor = Supervisor::default();
    let factory = SharedInformerFactory::supervised(client.into(), 1, supervisor.clone());
    let informer = factory.share(&pods(), CacheOptions::default()).expect("an informer");
    let attempts = Arc::new(Mutex::new(0));
    let handler = {
        let attempts = attempts.clone();
        move |_: &Delta| -> Result<(), BoxError> {
            *attempts.lock() += 1;
            panic!("on purpose");
        }
    };
    let _registration = informer.subscribe(handler, HandlerOptions::default());
    factory.start();
    let watch = server.asked().await.answer_with(&["explosive"]);
    until(|| *attempts.lock() > 3).await;
    watch.event("DELETED", "explosive", 101);
    informer.seen(101).await;
    assert_eq!(supervisor.down(), ["handler of pods"], "it is tried again for some minutes");
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert!(supervisor.down().is_empty());
    let so_far = *attempts.lock();
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(*attempts.lock(), so_far);
    factory.shutdown().await;
}

/// An object is deleted and made again several times while the handler fails: the handler gets the deletion
/// of the state that the handler knows, and the last objects, regardless of the changes that are left out.
#[tokio::test(start_paused = true)]
async fn a_handler_that_recovers_learns_that_what_it_knew_is_gone() {
    let (factory, mut server) = factory();
    let informer = factory.share(&pods(), CacheOptions::default()).expect("an informer");
    let (diary, broken) = (Diary::default(), Arc::new(Mutex::new(false)));
    let handler = {
        let (diary, broken) = (diary.clone(), broken.clone());
        move |delta: &Delta| -> Result<(), BoxError> {
            if *broken.lock() {
                return Err("broken".into());
            }
            diary.note(format!("{} {}", delta.object().resource_version(), delta.states().count()));
            diary.note_change(delta);
            Ok(())
        }
    };
    let _registration = informer.subscribe(handler, HandlerOptions::default());
    factory.start();
    let watch = server.asked().await.answer_with(&["a"]);
    until(|| diary.lines().len() == 2).await;
    *broken.lock() = true;
    let mut version = 100;
    for _ in 0..3 {
        for event in ["DELETED", "ADDED"] {
            version += 1;
            watch.event(event, "a", version);
            informer.seen(version).await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    *broken.lock() = false;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let told = diary.lines();
    let expected = ["101 1", "-a", "104 1", "+a", "105 1", "-a", "106 1", "+a"];
    assert_eq!(told[2..], expected);
    factory.shutdown().await;
}

/// An error with a text that panics is a handler's error like any other.
#[tokio::test(start_paused = true)]
async fn an_error_that_panics_when_it_is_printed_ends_no_handler() {
    struct Unprintable;
    impl std::fmt::Debug for Unprintable {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("on purpose")
        }
    }
    impl std::fmt::Display for Unprintable {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("on purpose")
        }
    }
    impl std::error::Error for Unprintable {}
    let (factory, mut server) = factory();
    let informer = factory.share(&pods(), CacheOptions::default()).expect("an informer");
    let diary = Diary::default();
    let handler = {
        let diary = diary.clone();
        move |delta: &Delta| -> Result<(), BoxError> {
            if delta.object().name() == "a" && diary.lines().is_empty() {
                diary.note("fails".to_owned());
                return Err(Box::new(Unprintable));
            }
            diary.note_change(delta);
            Ok(())
        }
    };
    let _registration = informer.subscribe(handler, HandlerOptions::default());
    factory.start();
    let _watch = server.asked().await.answer_with(&["a", "b"]);
    until(|| diary.lines() == ["fails", "+b!", "+a!"]).await;
    factory.shutdown().await;
}

/// A listener may add an index, even an index that has just panicked.
#[test]
fn a_listener_may_add_an_index() {
    let (finished, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (factory, mut server) = factory();
            let informer = factory.share(&pods(), CacheOptions::default()).expect("an informer");
            informer.on_reflector_event({
                let informer = informer.clone();
                move |_| {
                    informer.add_index("other", IndexFn::new(|_| Vec::new()));
                }
            });
            factory.start();
            let _watch = server.asked().await.answer_with(&["a"]);
            informer.synced().await;
            assert!(informer.add_index("explosive", IndexFn::new(|_| panic!("on purpose"))));
            assert!(informer.store().by_index("other", "x").is_ok());
            factory.shutdown().await;
        });
        let _ = finished.send(());
    });
    let limit = windlass_patience::stretched(Duration::from_secs(20));
    wait.recv_timeout(limit).expect("nothing is locked for ever");
}
