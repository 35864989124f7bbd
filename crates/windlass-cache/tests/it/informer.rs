//! The informer core and subscriptions.

use std::{sync::Arc, time::Instant};

use parking_lot::Mutex;
use windlass_cache::{
    BatchApplier, ChangeBatch, Delta, IndexFn, InformerCore, InformerOptions, ObjectKey, RawObject,
    Reflector, ReflectorConfig, ReflectorId, ReflectorStore, ScanOptions, Scanner, StoreOptions,
    Subscription, SubscriptionGuard,
};

const SOURCE: ReflectorId = ReflectorId(0);

/// Records the received changes.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

impl Diary {
    fn note(&self, delta: &Delta) {
        let name = delta.object().name();
        self.0.lock().push(match delta {
            Delta::Added { initial, .. } => format!("+{name}{}", if *initial { "!" } else { "" }),
            Delta::Updated { old, new } => {
                format!("{name}:{}-{}", old.resource_version(), new.resource_version())
            }
            Delta::Deleted { final_state_unknown, .. } => {
                format!("-{name}{}", if *final_state_unknown { "?" } else { "" })
            }
        });
    }
}

fn json(name: &str, version: u64) -> String {
    format!(r#"{{"metadata":{{"name":"{name}","uid":"{name}","resourceVersion":"{version}"}}}}"#)
}

fn put(informer: &InformerCore, name: &str, version: u64) {
    let mut scanner = Scanner::new(&ScanOptions::default());
    let json = json(name, version);
    let object = scanner.scan(json.as_bytes()).expect("an object");
    informer.feed(SOURCE, |sink| {
        sink.upsert(object).expect("an object");
        sink.progress(&version.to_string());
    });
}

fn delete(informer: &InformerCore, name: &str, version: u64) {
    let mut scanner = Scanner::new(&ScanOptions::default());
    let json = json(name, version);
    let object = scanner.scan(json.as_bytes()).expect("an object");
    informer.feed(SOURCE, |sink| sink.delete(object).expect("an object"));
}

fn list(informer: &InformerCore, objects: &[(&str, u64)], version: u64) {
    informer.feed(SOURCE, |sink| sink.begin_list());
    objects.iter().for_each(|(name, version)| put(informer, name, *version));
    informer.feed(SOURCE, |sink| {
        sink.end_list();
        sink.progress(&version.to_string());
    });
}

/// Delivers all pending changes to a handler.
async fn drain(registration: &SubscriptionGuard, subscription: &mut Subscription, handler: &Diary) {
    while registration.backlog() > 0 {
        assert!(subscription.deliver(&mut |delta| handler.note(delta)).await);
    }
}

#[tokio::test]
async fn the_first_list_becomes_visible_as_a_whole() {
    let informer = InformerCore::new(InformerOptions::default());
    let diary = Diary::default();
    let (registration, mut subscription) = informer.subscribe();
    informer.feed(SOURCE, |sink| sink.begin_list());
    put(&informer, "a", 1);
    put(&informer, "b", 2);
    assert!(informer.store().is_empty(), "half of a cluster is not the cluster");
    assert_eq!(registration.backlog(), 0);
    let mut scanner = Scanner::new(&ScanOptions::default());
    informer.feed(SOURCE, |sink| {
        sink.end_list();
        // A change arrives in the same piece of the body.
        let json = json("a", 3);
        sink.upsert(scanner.scan(json.as_bytes()).expect("an object")).expect("an object");
    });
    assert_eq!(informer.store().len(), 2);
    drain(&registration, &mut subscription, &diary).await;
    assert_eq!(diary.take(), ["+a!", "+b!", "a:1-3"]);
}

#[tokio::test]
async fn a_subscription_during_the_first_list_gets_each_object_once() {
    let informer = InformerCore::new(InformerOptions::default());
    informer.feed(SOURCE, |sink| sink.begin_list());
    put(&informer, "a", 1);
    assert!(informer.add_index("name", IndexFn::new(|object| vec![object.name().to_owned()])));
    let (registration, mut subscription) = informer.subscribe();
    registration.resync();
    put(&informer, "b", 2);
    informer.feed(SOURCE, |sink| sink.end_list());
    let diary = Diary::default();
    drain(&registration, &mut subscription, &diary).await;
    assert_eq!(diary.take(), ["+a!", "+b!"]);
}

#[tokio::test]
async fn each_subscription_begins_with_its_own_initial_list() {
    let informer = InformerCore::new(InformerOptions::default());
    let (early, mut early_feed) = informer.subscribe();
    let diary = Diary::default();
    put(&informer, "a", 1);
    drain(&early, &mut early_feed, &diary).await;
    assert!(!early.has_synced() && !informer.has_synced());
    list(&informer, &[("a", 1), ("b", 2)], 7);
    assert!(informer.has_synced() && !early.has_synced());
    assert_eq!(informer.high_water_mark(), 7);
    drain(&early, &mut early_feed, &diary).await;
    early.synced().await;
    assert_eq!(diary.take(), ["+a!", "+b!"]);

    let (late, mut late_feed) = informer.subscribe();
    put(&informer, "a", 8);
    let late_diary = Diary::default();
    assert!(!late.has_synced());
    drain(&late, &mut late_feed, &late_diary).await;
    late.synced().await;
    assert_eq!(late_diary.take(), ["+a!", "+b!", "a:1-8"]);
}

#[tokio::test]
async fn a_removed_handler_gets_no_more_changes() {
    let informer = InformerCore::new(InformerOptions::default());
    let (registration, mut feed) = informer.subscribe();
    put(&informer, "a", 1);
    registration.remove();
    let diary = Diary::default();
    assert!(!feed.deliver(&mut |delta| diary.note(delta)).await);
    assert_eq!(diary.take(), Vec::<String>::new());
    assert_eq!(informer.handlers(), 0);
}

#[tokio::test]
async fn a_resync_repeats_the_objects() {
    let informer = InformerCore::new(InformerOptions::default());
    list(&informer, &[("a", 1)], 2);
    let (registration, mut feed) = informer.subscribe();
    let diary = Diary::default();
    drain(&registration, &mut feed, &diary).await;
    registration.resync();
    drain(&registration, &mut feed, &diary).await;
    assert_eq!(diary.take(), ["+a!", "a:1-1"]);
}

#[tokio::test]
async fn a_renewal_repeats_the_objects_behind_the_changes_so_far() {
    let informer = InformerCore::new(InformerOptions::default());
    list(&informer, &[("a", 1), ("b", 2)], 2);
    let (registration, mut feed) = informer.subscribe();
    let diary = Diary::default();
    drain(&registration, &mut feed, &diary).await;
    assert_eq!(diary.take(), ["+a!", "+b!"]);
    put(&informer, "c", 3);
    delete(&informer, "a", 4);
    registration.renew();
    put(&informer, "b", 5);
    registration.renew();
    put(&informer, "c", 6);
    assert!(!registration.has_synced());
    drain(&registration, &mut feed, &diary).await;
    assert!(registration.has_synced());
    assert_eq!(diary.take(), ["+c", "-a", "b:2-5", "+b!", "+c!", "c:3-6"]);
    assert_eq!(informer.metrics().backlog, 0);
}

/// The handler blocks.
#[tokio::test]
async fn many_renewals_leave_the_objects_and_the_changes_in_the_queue() {
    let informer = InformerCore::new(InformerOptions::default());
    list(&informer, &[("a", 1), ("b", 2)], 2);
    let (registration, mut feed) = informer.subscribe();
    let diary = Diary::default();
    drain(&registration, &mut feed, &diary).await;
    diary.take();
    put(&informer, "b", 3);
    for _ in 0..1000 {
        registration.renew();
    }
    // A change, two objects, the renewal, and the end of the list.
    assert!(registration.backlog() <= 5, "{}", registration.backlog());
    assert!(!registration.has_synced());
    drain(&registration, &mut feed, &diary).await;
    assert!(registration.has_synced());
    assert_eq!(diary.take(), ["b:2-3", "+a!", "+b!"]);
}

/// The handler is slow: changes of an object are coalesced.
#[tokio::test]
async fn a_deletion_after_a_renewal_cancels_no_addition_before_the_renewal() {
    let informer = InformerCore::new(InformerOptions::default());
    list(&informer, &[], 1);
    let (registration, mut feed) = informer.subscribe();
    for number in 0..1100 {
        put(&informer, &format!("object-{number}"), number + 2);
    }
    registration.renew();
    delete(&informer, "object-1099", 2000);
    let diary = Diary::default();
    drain(&registration, &mut feed, &diary).await;
    let told = diary.take();
    let of_object: Vec<_> = told.iter().filter(|line| line.contains("object-1099")).collect();
    assert_eq!(of_object, ["+object-1099", "+object-1099!", "-object-1099"]);
}

#[tokio::test]
#[cfg_attr(miri, ignore = "eighty thousand changes take too long")]
async fn a_slow_handler_gets_the_latest_state_of_each_object() {
    let informer = InformerCore::new(InformerOptions::default());
    list(&informer, &[("a", 1)], 1);
    let (registration, mut feed) = informer.subscribe();
    for version in 2..20_000 {
        put(&informer, "a", version);
        put(&informer, "b", version);
        put(&informer, "short-lived", version);
        delete(&informer, "short-lived", version);
    }
    delete(&informer, "b", 20_000);
    put(&informer, "b", 20_001);
    assert!(registration.backlog() < 1100, "{}", registration.backlog());
    assert!(informer.metrics().coalesced > 70_000);
    let diary = Diary::default();
    drain(&registration, &mut feed, &diary).await;
    let told = diary.take();
    let last_of = |name: &str| told.iter().rfind(|line| line.contains(name)).cloned().unwrap_or_default();
    assert!(last_of("a").ends_with("-19999"), "{}", last_of("a"));
    assert_eq!(last_of("b"), "+b");
    assert!(last_of("short").starts_with('-'), "{}", last_of("short"));
}

#[tokio::test]
async fn an_unreadable_object_is_not_deleted() {
    let informer = InformerCore::new(InformerOptions::default());
    list(&informer, &[("a", 1), ("b", 1), ("c", 1)], 2);
    informer.feed(SOURCE, |sink| {
        sink.begin_list();
        sink.unreadable(Some(&ObjectKey::cluster("a")));
        sink.end_list();
    });
    let names = || informer.store().list().iter().map(|object| object.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(), ["a"]);
    informer.feed(SOURCE, |sink| {
        sink.begin_list();
        sink.unreadable(None);
        sink.end_list();
    });
    assert_eq!(names(), ["a"]);
}

#[tokio::test]
async fn an_informer_has_synced_when_all_its_watches_have() {
    let informer = InformerCore::new(InformerOptions { sources: 2, ..InformerOptions::default() });
    let through = |source, version: &str| {
        informer.feed(ReflectorId(source), |sink| {
            sink.begin_list();
            sink.end_list();
            sink.progress(version);
        });
    };
    through(0, "10");
    assert!(!informer.has_synced());
    assert_eq!(informer.high_water_mark(), 0);
    through(1, "7");
    assert!(informer.has_synced());
    assert_eq!(informer.high_water_mark(), 7);
    through(1, "12");
    assert_eq!(informer.high_water_mark(), 10);
}

/// A reader of the cache may have seen the object, and acts on the deletion.
#[tokio::test]
#[cfg_attr(miri, ignore = "eleven thousand changes take too long")]
async fn a_slow_handler_gets_the_deletion_of_each_short_lived_object() {
    let informer = InformerCore::new(InformerOptions::default());
    list(&informer, &[("known", 1)], 1);
    let (registration, mut subscription) = informer.subscribe();
    let diary = Diary::default();
    drain(&registration, &mut subscription, &diary).await;
    diary.take();
    for number in 0..1024 {
        put(&informer, &format!("kept-{number}"), number + 2);
    }
    for number in 0..5000 {
        let name = format!("brief-{number}");
        put(&informer, &name, 10_000 + number);
        put(&informer, &name, 20_000 + number);
        delete(&informer, &name, 30_000 + number);
    }
    put(&informer, "known", 40_000);
    delete(&informer, "known", 40_001);
    assert_eq!(registration.backlog(), 1024 + 5000 + 1);
    drain(&registration, &mut subscription, &diary).await;
    let told = diary.take();
    let brief = (0..5000).flat_map(|number| [format!("+brief-{number}"), format!("-brief-{number}")]);
    let expected: Vec<_> = brief.chain(["known:1-40000".to_owned(), "-known".to_owned()]).collect();
    assert_eq!(told[1024..], expected);
}

/// The owner of the first and of the last object may act on the deletion. The objects in between are not delivered.
#[tokio::test]
async fn a_slow_handler_gets_few_changes_of_a_name_that_is_used_again_and_again() {
    let informer = InformerCore::new(InformerOptions::default());
    list(&informer, &[("name", 1)], 1);
    let (registration, mut subscription) = informer.subscribe();
    let diary = Diary::default();
    drain(&registration, &mut subscription, &diary).await;
    diary.take();
    for number in 0..1024 {
        put(&informer, &format!("kept-{number}"), number + 2);
    }
    for number in 1..100 {
        delete(&informer, "name", number * 10_000);
        put(&informer, "name", number * 10_000 + 1);
    }
    delete(&informer, "name", 2_000_000);
    assert_eq!(registration.backlog(), 1025);
    drain(&registration, &mut subscription, &diary).await;
    assert_eq!(diary.take()[1024..], ["-name", "+name", "-name"]);
    assert_eq!(informer.metrics().coalesced, 196);
}

/// The changes of one object that wait together are several calls.
#[tokio::test]
async fn a_handler_that_is_removed_between_two_changes_of_an_object_gets_no_more() {
    let informer = InformerCore::new(InformerOptions::default());
    list(&informer, &[("name", 1)], 1);
    let (registration, mut subscription) = informer.subscribe();
    let diary = Diary::default();
    drain(&registration, &mut subscription, &diary).await;
    diary.take();
    for number in 0..1024 {
        put(&informer, &format!("kept-{number}"), number + 2);
    }
    put(&informer, "name", 10_000);
    delete(&informer, "name", 10_001);
    put(&informer, "name", 10_002);
    let mut registration = Some(registration);
    let mut handle = |delta: &Delta| {
        diary.note(delta);
        if delta.object().name() == "name" {
            registration.take().into_iter().for_each(SubscriptionGuard::remove);
        }
    };
    while subscription.deliver(&mut handle).await {}
    assert_eq!(diary.take()[1024..], ["name:1-10000"]);
}

/// Feeds an object from a watch among several.
fn put_from(informer: &InformerCore, source: u16, name: &str, version: u64) {
    let mut scanner = Scanner::new(&ScanOptions::default());
    let json = json(name, version);
    let object = scanner.scan(json.as_bytes()).expect("an object");
    informer.feed(ReflectorId(source), |sink| sink.upsert(object).expect("an object"));
}

fn begin(informer: &InformerCore, source: u16) {
    informer.feed(ReflectorId(source), |sink| sink.begin_list());
}

fn end(informer: &InformerCore, source: u16) {
    informer.feed(ReflectorId(source), |sink| sink.end_list());
}

fn names(informer: &InformerCore) -> Vec<String> {
    informer.store().list().iter().map(|object| object.name().to_owned()).collect()
}

#[tokio::test]
async fn the_first_list_of_each_watch_becomes_visible_as_a_whole() {
    let informer = InformerCore::new(InformerOptions { sources: 3, ..InformerOptions::default() });
    let diary = Diary::default();
    let (registration, mut subscription) = informer.subscribe();
    begin(&informer, 0);
    put_from(&informer, 0, "a1", 1);
    begin(&informer, 1);
    put_from(&informer, 1, "b1", 2);
    put_from(&informer, 0, "a2", 3);
    begin(&informer, 2);
    end(&informer, 2);
    assert_eq!(names(&informer), Vec::<String>::new());
    put_from(&informer, 2, "c1", 4);
    assert_eq!(names(&informer), ["c1"], "its first list has ended");
    end(&informer, 0);
    assert_eq!(names(&informer), ["c1", "a1", "a2"]);
    put_from(&informer, 1, "b2", 5);
    drain(&registration, &mut subscription, &diary).await;
    assert_eq!(diary.take(), ["+c1", "+a1!", "+a2!"]);
    end(&informer, 1);
    drain(&registration, &mut subscription, &diary).await;
    assert_eq!(diary.take(), ["+b1!", "+b2!"]);
}

#[tokio::test]
async fn a_list_after_an_empty_first_list_hides_no_event_of_another_watch() {
    let informer = InformerCore::new(InformerOptions { sources: 2, ..InformerOptions::default() });
    let diary = Diary::default();
    let (registration, mut subscription) = informer.subscribe();
    for source in [0, 1] {
        begin(&informer, source);
        end(&informer, source);
    }
    begin(&informer, 0);
    put_from(&informer, 1, "b", 1);
    assert_eq!(names(&informer), ["b"]);
    put_from(&informer, 0, "a", 2);
    end(&informer, 0);
    assert_eq!(names(&informer), ["b", "a"]);
    drain(&registration, &mut subscription, &diary).await;
    assert_eq!(diary.take(), ["+b", "+a"]);
}

#[tokio::test]
async fn an_index_does_not_show_a_part_of_the_first_list() {
    let informer = InformerCore::new(InformerOptions::default());
    begin(&informer, 0);
    put(&informer, "a", 1);
    assert!(informer.add_index("name", IndexFn::new(|object| vec![object.name().to_owned()])));
    assert_eq!(names(&informer), Vec::<String>::new());
    assert_eq!(informer.store().index_values("name").expect("an index"), Vec::<String>::new());
    end(&informer, 0);
    assert_eq!(informer.store().index_values("name").expect("an index"), ["a"]);
}

/// Panics in the middle of a change, as a bug in the scan would.
fn panic_after(informer: &InformerCore, name: &str, version: u64, delete: bool) {
    let mut scanner = Scanner::new(&ScanOptions::default());
    let json = json(name, version);
    let object = scanner.scan(json.as_bytes()).expect("an object");
    let change = std::panic::AssertUnwindSafe(|| {
        informer.feed(SOURCE, |sink| {
            if delete { sink.delete(object) } else { sink.upsert(object) }.expect("an object");
            std::panic::resume_unwind(Box::new("in the middle of a change"));
        });
    });
    std::panic::catch_unwind(change).expect_err("it panics");
}

#[tokio::test]
async fn a_change_that_panics_leaves_the_store_as_it_was() {
    let indexes = [("name".to_owned(), IndexFn::new(|object| vec![object.name().to_owned()]))].into();
    let store = StoreOptions { indexes, ..StoreOptions::default() };
    let informer = InformerCore::new(InformerOptions { store, ..InformerOptions::default() });
    let diary = Diary::default();
    let (registration, mut subscription) = informer.subscribe();
    list(&informer, &[("a", 1), ("b", 1)], 2);
    drain(&registration, &mut subscription, &diary).await;
    diary.take();
    let bytes = informer.store().memory().objects;
    panic_after(&informer, "a", 3, true);
    panic_after(&informer, "c", 4, false);
    assert_eq!(names(&informer), ["a", "b"]);
    assert_eq!(informer.store().index_values("name").expect("an index"), ["a", "b"]);
    // The watch restarts with a list.
    list(&informer, &[("b", 1), ("c", 5)], 6);
    assert_eq!(names(&informer), ["b", "c"]);
    assert_eq!(informer.store().index_values("name").expect("an index"), ["b", "c"]);
    assert_eq!(informer.store().memory().objects, bytes);
    put(&informer, "d", 7);
    assert_eq!(names(&informer), ["d", "b", "c"]);
    drain(&registration, &mut subscription, &diary).await;
    assert_eq!(diary.take(), ["+c", "-a?", "+d"]);
}

#[tokio::test]
async fn a_first_list_that_panics_begins_again() {
    let informer = InformerCore::new(InformerOptions::default());
    let diary = Diary::default();
    let (registration, mut subscription) = informer.subscribe();
    begin(&informer, 0);
    put(&informer, "a", 1);
    panic_after(&informer, "b", 2, false);
    put(&informer, "c", 3);
    assert_eq!(names(&informer), Vec::<String>::new(), "no part of a list is shown");
    list(&informer, &[("b", 2), ("d", 4)], 5);
    assert_eq!(names(&informer), ["b", "d"]);
    drain(&registration, &mut subscription, &diary).await;
    assert_eq!(diary.take(), ["+b!", "+d!"]);
}

#[tokio::test]
async fn an_index_function_that_panics_gives_no_value_and_is_reported() {
    let fussy = |object: &RawObject| {
        if object.name() == "bad" {
            std::panic::resume_unwind(Box::new("an index function"));
        }
        vec![object.name().to_owned()]
    };
    let informer = InformerCore::new(InformerOptions::default());
    let notices = Arc::new(Mutex::new(Vec::new()));
    let told = notices.clone();
    informer.set_reflector_event_handler(Arc::new(move |_, notice| told.lock().push(format!("{notice:?}"))));
    assert!(informer.add_index("early", IndexFn::new(fussy)));
    list(&informer, &[("bad", 1), ("good", 1)], 2);
    let panicked = |index: &str| format!("IndexPanicked {{ index: {index:?}, object: bad }}");
    assert_eq!(std::mem::take(&mut *notices.lock()), [panicked("early")]);
    assert!(informer.add_index("late", IndexFn::new(fussy)));
    assert_eq!(std::mem::take(&mut *notices.lock()), [panicked("late")]);
    put(&informer, "bad", 3);
    assert_eq!(std::mem::take(&mut *notices.lock()), [panicked("early"), panicked("late")]);
    for index in ["early", "late"] {
        assert_eq!(informer.store().index_values(index).expect("an index"), ["good"]);
    }
    delete(&informer, "bad", 4);
    assert_eq!(*notices.lock(), Vec::<String>::new());
    assert_eq!(names(&informer), ["good"]);
}

/// Feeds a list of objects of a kind through a reflector.
fn list_of_kind(informer: &InformerCore, source: u16, items: &[String]) {
    let now = Instant::now();
    let config = ReflectorConfig { watch_list: false, ..ReflectorConfig::new("things") };
    let options = ScanOptions { one_kind: true, ..ScanOptions::default() };
    let mut reflector = Reflector::new(config, &options, now);
    let body = format!(r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{}]}}"#, items.join(","));
    informer.feed(ReflectorId(source), |sink| {
        reflector.poll(now, sink);
        reflector.on_response(now, 200, None, sink);
        reflector.on_bytes(now, body.into(), sink);
        reflector.on_end(now, None, sink);
    });
}

/// Shows a list with an unreadable object, a list that lacks objects, and changes to a sink.
fn show_everything(sink: &mut impl ReflectorStore, part: usize) {
    let now = Instant::now();
    let options = ScanOptions::default();
    let config = || ReflectorConfig { watch_list: false, ..ReflectorConfig::new("things") };
    let list = |items: &[String], version: u64, sink: &mut _| {
        let mut reflector = Reflector::new(config(), &options, now);
        let body =
            format!(r#"{{"metadata":{{"resourceVersion":"{version}"}},"items":[{}]}}"#, items.join(","));
        reflector.poll(now, sink);
        reflector.on_response(now, 200, None, sink);
        reflector.on_bytes(now, body.into(), sink);
        reflector.on_end(now, None, sink);
        reflector
    };
    let changed = |json: &str, exists: bool, sink: &mut _| {
        let mut scanner = Scanner::new(&options);
        let object = scanner.scan(json.as_bytes()).expect("an object");
        let shown =
            if exists { ReflectorStore::upsert(sink, object) } else { ReflectorStore::delete(sink, object) };
        shown.map_err(|error| error.to_string())
    };
    match part {
        0 => drop(list(&[json("a", 1), json("b", 2), json("c", 3)], 4, sink)),
        1 => drop(list(
            &[json("a", 1), r#"{"metadata":{"name":"b","uid":7}}"#.to_owned(), json("d", 5)],
            6,
            sink,
        )),
        2 => {
            changed(&json("a", 7), true, sink).expect("a name");
            changed(&json("d", 8), false, sink).expect("a name");
            changed(&json("unknown", 9), false, sink).expect("a name");
            let nameless = changed(r#"{"metadata":{}}"#, true, sink).expect_err("no name");
            assert!(nameless.contains("metadata.name"), "{nameless}");
            sink.progress("9");
        }
        _ => drop(list(&[r#"{"metadata":{"uid":"nameless"}}"#.to_owned()], 10, sink)),
    }
}

#[tokio::test]
async fn a_batch_does_what_a_feed_does() {
    let said = async |apply: &dyn Fn(&InformerCore, usize)| {
        let informer = InformerCore::new(InformerOptions::default());
        let (diary, notices) = (Diary::default(), Arc::<Mutex<Vec<String>>>::default());
        let told = notices.clone();
        informer
            .set_reflector_event_handler(Arc::new(move |_, notice| told.lock().push(format!("{notice:?}"))));
        let (registration, mut subscription) = informer.subscribe();
        for part in 0..4 {
            apply(&informer, part);
            drain(&registration, &mut subscription, &diary).await;
            diary.0.lock().push(format!("{part}: {:?} {}", names(&informer), informer.high_water_mark()));
        }
        (diary.take(), std::mem::take(&mut *notices.lock()), format!("{:?}", informer.metrics()))
    };
    let fed = said(&|informer, part| informer.feed(SOURCE, |sink| show_everything(sink, part))).await;
    let applied = said(&|informer, part| {
        let mut applier = BatchApplier::new(informer.clone(), SOURCE, &ScanOptions::default());
        let mut batch = ChangeBatch::default();
        show_everything(&mut batch, part);
        assert!(!batch.is_empty());
        applier.apply(&mut batch);
        assert!(batch.is_empty() && batch.bytes() == 0);
    })
    .await;
    assert_eq!(fed, applied);
    assert!(fed.0.contains(&"a:1-7".to_owned()), "{:?}", fed.0);
}

#[tokio::test]
#[cfg_attr(miri, ignore = "ten megabytes of JSON take too long")]
async fn the_memory_of_shared_text_is_counted_for_each_watch() {
    let informer = InformerCore::new(InformerOptions { sources: 2, ..InformerOptions::default() });
    let text = "x".repeat(40_000);
    let items = |namespace: &str| {
        let item = |number| {
            format!(
                r#"{{"metadata":{{"name":"{number}","namespace":"{namespace}","uid":"{number}","resourceVersion":"{number}"}},"text":"{text}"}}"#
            )
        };
        (0..100).map(item).collect::<Vec<_>>()
    };
    list_of_kind(&informer, 0, &items("n0"));
    let one = informer.metrics().shared_bytes;
    assert!(one > 40_000, "{one}");
    let memory = informer.store().memory();
    assert!(memory.objects < 200_000, "the text is shared: {memory:?}");
    list_of_kind(&informer, 1, &items("n1"));
    assert_eq!(informer.metrics().shared_bytes, 2 * one);
    assert!(informer.store().memory().total() > 2 * one);
}

#[tokio::test]
async fn the_memory_of_decoded_objects_is_counted_and_bounded() {
    let store = StoreOptions { memo_bytes: 10_000, ..StoreOptions::default() };
    let informer = InformerCore::new(InformerOptions { store, ..InformerOptions::default() });
    for number in 0..100 {
        put(&informer, &format!("object-{number}"), number + 1);
    }
    assert_eq!(informer.metrics().decoded_bytes, 0);
    let decoder = informer.store().decoder::<serde_json::Value>();
    let object = informer.store().get(&ObjectKey::cluster("object-7")).expect("is there");
    decoder.decode(&object).expect("decodes");
    let one = informer.metrics().decoded_bytes;
    assert!((100..2_000).contains(&one), "{one}");
    for object in informer.store().list() {
        decoder.decode(&object).expect("decodes");
    }
    let all = informer.metrics().decoded_bytes;
    assert!((5_000..=10_000).contains(&all), "{all}");
}

#[tokio::test]
async fn old_states_that_only_a_backlog_keeps_are_counted() {
    let informer = InformerCore::new(InformerOptions::default());
    let (registration, mut subscription) = informer.subscribe();
    list(&informer, &[("a", 1)], 1);
    drain(&registration, &mut subscription, &Diary::default()).await;
    let before = informer.metrics().backlog_bytes;
    delete(&informer, "a", 2);
    let after = informer.metrics().backlog_bytes;
    assert!(after > before + json("a", 2).len(), "{before} {after}");
}

#[tokio::test]
async fn an_index_function_that_calls_its_informer_panics_instead_of_waiting_for_ever() {
    let informer = InformerCore::new(InformerOptions::default());
    let notices = Arc::new(Mutex::new(0));
    let count = notices.clone();
    informer.set_reflector_event_handler(Arc::new(move |_, _| *count.lock() += 1));
    let inner = informer.clone();
    let other = InformerCore::new(InformerOptions::default());
    let function = move |object: &RawObject| match object.name() {
        "bad" => vec![inner.handlers().to_string()],
        _ => vec![inner.store().len().to_string(), other.handlers().to_string()],
    };
    assert!(informer.add_index("handlers", IndexFn::new(function)));
    list(&informer, &[("bad", 1), ("good", 1)], 2);
    assert_eq!(*notices.lock(), 1);
    assert_eq!(informer.store().index_values("handlers").expect("an index"), ["0"]);
    assert_eq!(informer.handlers(), 0);
}
