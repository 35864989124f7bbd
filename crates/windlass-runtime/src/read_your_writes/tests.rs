use futures::FutureExt;
use http::Request;
use kube_client::client::Body;
use serde_json::{Value, json};
use windlass_cache::{ObjectKey, Query, RawObject};

use std::sync::Arc;

use parking_lot::Mutex;

use super::Admission;
use super::{CacheView, Session, UnseenWrites, WriteJournal, WriteRef, is_write};
use crate::resource_path::GroupResource;

/// A cache that the test fills.
#[derive(Clone)]
struct Cache(Arc<Mutex<Contents>>);

struct Contents {
    objects: Vec<RawObject>,
    mark: u64,
    /// The number of objects that were looked up.
    looks: usize,
}

impl CacheView for Cache {
    fn object(&self, key: &ObjectKey) -> Option<(String, u64)> {
        let mut contents = self.0.lock();
        contents.looks += 1;
        let object = contents.objects.iter().find(|object| object.key() == *key)?;
        Some((object.uid().to_owned(), object.revision()))
    }

    fn high_water_mark(&self, _: Option<&str>) -> u64 {
        self.0.lock().mark
    }

    fn has_shape(&self, api_version: &str, kind: &str) -> bool {
        (api_version, kind) == ("v1", "Pod")
    }

    fn admits(&self, object: &RawObject) -> Admission {
        match object.label("app") {
            Some("other") => Admission::NotHeld,
            Some("unknown") => Admission::Unknown,
            _ => Admission::Held,
        }
    }

    fn has_index(&self, index: &str) -> bool {
        index == "app"
    }

    fn index_values(&self, _: &str, object: &RawObject) -> Vec<String> {
        object.label("app").map(str::to_owned).into_iter().collect()
    }
}

impl Cache {
    /// Shows an object, like a watch event.
    fn sees(&self, object: &Value) {
        let object = raw(object);
        let mut contents = self.0.lock();
        contents.mark = object.revision();
        contents.objects.retain(|known| known.key() != object.key());
        contents.objects.push(object);
    }

    /// Removes an object, like a watch event.
    fn loses(&self, name: &str, revision: u64) {
        let mut contents = self.0.lock();
        contents.objects.retain(|known| known.name() != name);
        contents.mark = revision;
    }

    fn looks(&self) -> usize {
        self.0.lock().looks
    }

    /// Advances the high-water mark, as a bookmark would.
    fn bookmark(&self, revision: u64) {
        self.0.lock().mark = revision;
    }
}

fn pod(name: &str, uid: &str, revision: u64) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": {
        "name": name, "namespace": "default", "uid": uid, "resourceVersion": revision.to_string() } })
}

fn raw(object: &Value) -> RawObject {
    RawObject::from_json(object.to_string().as_bytes()).unwrap()
}

/// A client with writes that a cache of pods follows, at revision 5 to begin with.
struct Client {
    log: WriteJournal,
    unseen: Arc<UnseenWrites>,
    cache: Cache,
    session: Session,
}

impl Client {
    fn new() -> (Self, Cache) {
        let log = WriteJournal::new();
        let cache = Cache(Arc::new(Mutex::new(Contents { objects: Vec::new(), mark: 5, looks: 0 })));
        let unseen = log.follow(pods(), cache.clone());
        (Self { log, unseen, cache: cache.clone(), session: Session::default() }, cache)
    }

    fn write(&self, method: &str, path: &str, answer: &Value) {
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        let writes = is_write(&request).now_or_never().expect("nothing waits");
        let written = if writes { self.log.begin(request.method(), request.uri().path()) } else { None };
        let session = self.session.clone();
        let noted = session.run(async {
            if let Some(written) = written {
                written.finish(answer.to_string().as_bytes());
            }
        });
        noted.now_or_never().expect("nothing here waits");
    }

    fn begin(&self, method: &str, path: &str) -> super::Written {
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        self.log.begin(request.method(), request.uri().path()).expect("recorded")
    }

    fn in_session(&self, act: impl FnOnce()) {
        self.session.run(async { act() }).now_or_never().expect("nothing waits");
    }

    fn create(&self, answer: &Value) {
        self.write("POST", "/api/v1/namespaces/default/pods", answer);
    }

    fn delete(&self, name: &str, answer: &Value) {
        self.write("DELETE", &format!("/api/v1/namespaces/default/pods/{name}"), answer);
    }

    fn names(&self) -> Vec<String> {
        let cached = self.cache.0.lock().objects.clone();
        let listed = list(&self.unseen, cached);
        let mut names: Vec<_> =
            listed.iter().map(|object| format!("{}@{}", object.name(), object.revision())).collect();
        names.sort();
        names
    }

    fn all_seen(&self, writes: &[WriteRef]) -> bool {
        writes.iter().all(|write| self.unseen.has_seen(write))
    }
}

fn pods() -> GroupResource {
    GroupResource { group: String::new(), resource: "pods".to_owned() }
}

fn deleted(uid: &str) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Success", "details": { "name": "a", "kind": "pods", "uid": uid } })
}

#[test]
fn what_was_created_is_there_at_once() {
    let (client, cache) = Client::new();
    client.create(&pod("a", "u1", 10));
    assert_eq!(client.names(), ["a@10"]);
    cache.sees(&pod("a", "u1", 10));
    assert_eq!(client.names(), ["a@10"], "and once, when the watch has told of it");
    cache.sees(&pod("a", "u1", 12));
    assert_eq!(client.names(), ["a@12"], "what came later counts");
}

#[test]
fn what_was_changed_is_new_at_once() {
    let (client, cache) = Client::new();
    cache.sees(&pod("a", "u1", 10));
    client.write("PUT", "/api/v1/namespaces/default/pods/a", &pod("a", "u1", 11));
    assert_eq!(client.names(), ["a@11"]);
    cache.sees(&pod("a", "u1", 15));
    assert_eq!(client.names(), ["a@15"]);
}

#[test]
fn what_was_deleted_is_gone_at_once_and_its_successor_is_not() {
    let (client, cache) = Client::new();
    cache.sees(&pod("a", "u1", 10));
    client.delete("a", &deleted("u1"));
    assert!(client.names().is_empty());
    cache.sees(&pod("a", "u2", 20));
    assert_eq!(client.names(), ["a@20"]);
}

#[test]
fn created_and_deleted_before_the_watch_told_of_either() {
    let (client, cache) = Client::new();
    client.create(&pod("a", "u1", 10));
    client.delete("a", &deleted("u1"));
    assert!(client.names().is_empty());
    cache.sees(&pod("a", "u1", 10));
    assert!(client.names().is_empty(), "the create that comes late does not bring it back");
    cache.loses("a", 11);
    assert!(client.names().is_empty());
}

#[test]
fn a_graceful_deletion_is_a_change() {
    let (client, cache) = Client::new();
    cache.sees(&pod("a", "u1", 10));
    let mut going = pod("a", "u1", 11);
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    going["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    client.delete("a", &going);
    assert_eq!(client.names(), ["a@11"], "there, with its deletionTimestamp");
    cache.loses("a", 12);
    assert!(client.names().is_empty());
}

#[test]
fn removing_the_last_finalizer_of_a_deleted_object_ends_it() {
    let (client, cache) = Client::new();
    let mut going = pod("a", "u1", 11);
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    going["metadata"]["finalizers"] = json!(["example.com/x"]);
    cache.sees(&going);
    going["metadata"]["finalizers"] = json!([]);
    going["metadata"]["resourceVersion"] = json!("12");
    client.write("PATCH", "/api/v1/namespaces/default/pods/a", &going);
    assert!(client.names().is_empty());
}

#[test]
fn a_namespace_is_held_up_by_its_spec() {
    let (client, _) = Client::new();
    let mut namespace = pod("a", "u1", 11);
    namespace["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    namespace["spec"] = json!({ "finalizers": ["kubernetes"] });
    client.write("PATCH", "/api/v1/namespaces/default/pods/a/status", &namespace);
    assert_eq!(client.names(), ["a@11"]);
    namespace["metadata"]["resourceVersion"] = json!("12");
    namespace["spec"] = json!({ "finalizers": [] });
    client.write("PUT", "/api/v1/namespaces/default/pods/a/finalize", &namespace);
    assert!(client.names().is_empty());
}

#[test]
fn the_gate_opens_when_the_watch_has_come_as_far() {
    let (client, cache) = Client::new();
    client.create(&pod("a", "u1", 10));
    let writes = client.session.take();
    assert!(!client.all_seen(&writes));
    cache.bookmark(9);
    assert!(!client.all_seen(&writes), "a bookmark before the write");
    cache.bookmark(10);
    assert!(client.all_seen(&writes), "the object may have been deleted by then");
}

#[test]
fn the_gate_of_a_deletion_waits_for_absence() {
    let (client, cache) = Client::new();
    cache.sees(&pod("a", "u1", 10));
    client.delete("a", &deleted("u1"));
    let writes = client.session.take();
    assert!(!client.all_seen(&writes));
    cache.bookmark(99);
    assert!(!client.all_seen(&writes), "it is still there");
    cache.loses("a", 100);
    assert!(client.all_seen(&writes));
}

#[test]
fn the_gate_of_a_deletion_does_not_take_not_yet_for_gone() {
    let (client, cache) = Client::new();
    client.create(&pod("a", "u1", 10));
    client.delete("a", &deleted("u1"));
    let writes = client.session.take();
    assert!(!client.all_seen(&writes), "the watch has not even told of the creation");
    client.create(&pod("b", "u2", 12));
    cache.sees(&pod("b", "u2", 12));
    assert!(client.all_seen(&writes));
}

#[test]
fn of_two_answers_the_newer_counts_in_whatever_order_they_come() {
    let (client, _) = Client::new();
    client.create(&pod("a", "u1", 12));
    client.write("PATCH", "/api/v1/namespaces/default/pods/a/status", &pod("a", "u1", 11));
    assert_eq!(client.names(), ["a@12"]);
}

#[test]
fn what_is_not_remembered() {
    let (client, _) = Client::new();
    client.write("POST", "/api/v1/namespaces/default/pods?dryRun=All", &pod("a", "u1", 10));
    client.write("GET", "/api/v1/namespaces/default/pods/a", &pod("a", "u1", 10));
    client.write("POST", "/api/v1/namespaces/default/configmaps", &pod("a", "u1", 10));
    client.write("DELETE", "/api/v1/namespaces/default/pods", &json!({ "kind": "PodList", "items": [] }));
    client.create(&json!({ "kind": "Pod" }));
    client.create(&pod("not-comparable", "u1", 0).as_object().cloned().map_or(Value::Null, |mut pod| {
        pod["metadata"]["resourceVersion"] = json!("opaque");
        Value::Object(pod)
    }));
    assert!(client.names().is_empty());
    assert!(client.session.take().is_empty());
}

#[test]
fn two_caches_of_a_kind_need_not_have_come_equally_far() {
    let (client, first) = Client::new();
    let second = Cache(Arc::new(Mutex::new(Contents { objects: Vec::new(), mark: 5, looks: 0 })));
    let behind = client.log.follow(pods(), second.clone());
    client.create(&pod("a", "u1", 10));
    first.sees(&pod("a", "u1", 10));
    assert_eq!(client.names(), ["a@10"]);
    assert_eq!(list(&behind, Vec::new()).len(), 1, "the second has not told of it");
    second.bookmark(10);
    assert!(list(&behind, Vec::new()).is_empty(), "and filters it out");
}

#[test]
fn writes_that_nobody_reads_do_not_pile_up() {
    let (client, cache) = Client::new();
    for n in 0..10_000 {
        client.create(&pod(&format!("p{n}"), &format!("u{n}"), 10 + n));
        // The watch lags 100 writes behind.
        cache.bookmark((10 + n).saturating_sub(100));
        assert!(client.unseen.len() <= 256, "{} after {n}", client.unseen.len());
    }
}

#[test]
fn a_cache_that_is_gone_is_not_followed() {
    let (client, _) = Client::new();
    let Client { log, unseen, .. } = client;
    drop(unseen);
    let request = Request::post("/api/v1/namespaces/default/pods").body(Body::empty()).unwrap();
    assert!(log.begin(request.method(), request.uri().path()).is_none());
}

/// The objects of a list that wants all, with `cached` in the cache.
fn list(unseen: &UnseenWrites, cached: Vec<RawObject>) -> Vec<RawObject> {
    let read = || Ok::<_, std::convert::Infallible>(cached.clone());
    unseen.list(&Query::new(), read).unwrap_or_default()
}

/// A response with only the metadata of an object never replaces an object in a cache of whole objects. The
/// barrier nevertheless waits for the write.
#[test]
fn an_answer_of_another_shape_is_not_laid_over_a_cache() {
    let (client, cache) = Client::new();
    cache.sees(&pod("a", "u", 5));
    let mut answer = pod("a", "u", 6);
    answer["apiVersion"] = json!("meta.k8s.io/v1");
    answer["kind"] = json!("PartialObjectMetadata");
    client.write("PATCH", "/api/v1/namespaces/default/pods/a", &answer);
    assert_eq!(client.names(), ["a@5"], "the object of the cache is read");
    let writes = client.session.take();
    assert_eq!(writes.len(), 1);
    assert!(!client.unseen.has_seen(&writes[0]));
    cache.sees(&pod("a", "u", 6));
    assert!(client.unseen.has_seen(&writes[0]));
}

/// A server that was restored from a backup has lower resource versions and does not know the last writes.
#[test]
fn writes_to_a_server_that_was_restored_are_forgotten() {
    let (client, cache) = Client::new();
    cache.sees(&pod("a", "u1", 90));
    cache.bookmark(100);
    client.create(&pod("b", "u2", 101));
    client.write("PUT", "/api/v1/namespaces/default/pods/a", &pod("a", "u1", 102));
    assert_eq!(client.names(), ["a@102", "b@101"]);
    cache.bookmark(95);
    assert_eq!(client.names(), ["a@90"]);
    assert_eq!(client.unseen.len(), 0);
}

/// The last writes of a reconcile are found in time, even among very many writes.
#[test]
fn a_reconcile_may_write_very_many_objects() {
    let (client, _) = Client::new();
    for n in 0..20_000 {
        client.create(&pod(&format!("p{n}"), "u", 10));
    }
    let began = std::time::Instant::now();
    assert_eq!(client.session.take().len(), 20_000);
    let took = began.elapsed();
    assert!(took.as_secs() < 2, "{took:?}");
}

fn labelled(name: &str, uid: &str, revision: u64, app: &str) -> Value {
    let mut pod = pod(name, uid, revision);
    pod["metadata"]["labels"] = json!({ "app": app });
    pod
}

/// A watch with a selector shows no write to an object that the selector has never matched.
#[test]
fn a_write_outside_of_the_selector_is_not_waited_for() {
    for app in ["other", "unknown"] {
        let (client, cache) = Client::new();
        client.create(&labelled("a", "u1", 10, app));
        assert!(client.all_seen(&client.session.take()), "created: {app}");
        assert_eq!(client.unseen.len(), 0, "no read returns the object");
        client.write("PUT", "/api/v1/namespaces/default/pods/a", &labelled("a", "u1", 11, app));
        assert!(client.all_seen(&client.session.take()), "changed: {app}");
        client.delete("a", &deleted("u1"));
        assert!(client.all_seen(&client.session.take()), "deleted: {app}");
        cache.bookmark(12);
        assert!(client.names().is_empty());
    }
}

/// An object that leaves the selector is deleted from the cache.
#[test]
fn an_object_that_leaves_the_selector_is_waited_for() {
    for app in ["other", "unknown"] {
        let (client, cache) = Client::new();
        cache.sees(&pod("a", "u1", 10));
        client.write("PUT", "/api/v1/namespaces/default/pods/a", &labelled("a", "u1", 11, app));
        let writes = client.session.take();
        assert!(!client.all_seen(&writes), "{app}");
        cache.loses("a", 11);
        assert!(client.all_seen(&writes), "{app}");
        assert!(client.names().is_empty());
    }
}

#[test]
fn the_scale_of_an_object_is_waited_for_and_the_object_is_read_again() {
    let (client, cache) = Client::new();
    cache.sees(&pod("a", "u1", 10));
    let path = "/api/v1/namespaces/default/pods/a/scale";
    let mut scale = pod("a", "u1", 11);
    scale["kind"] = json!("Scale");
    assert_eq!(
        client.begin("PATCH", path).reads_again(path).as_deref(),
        Some("/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Da")
    );
    client.write("PATCH", path, &scale);
    assert_eq!(client.names(), ["a@10"], "the object could not be read");
    let writes = client.session.take();
    assert!(!client.all_seen(&writes));
    cache.sees(&pod("a", "u1", 11));
    assert!(client.all_seen(&writes));

    let list = |items: &[Value]| json!({ "apiVersion": "v1", "kind": "PodList", "items": items }).to_string();
    let read = list(&[pod("a", "u1", 12)]);
    client.in_session(|| client.begin("PATCH", path).finish_read(read.as_bytes()));
    assert_eq!(client.names(), ["a@12"]);
    assert!(!client.all_seen(&client.session.take()));
    let eviction = client.begin("POST", "/api/v1/namespaces/default/pods/a/eviction");
    client.in_session(|| eviction.finish_read(list(&[]).as_bytes()));
    assert!(client.names().is_empty(), "the evicted pod is gone");
}

#[test]
fn a_deleted_collection_is_waited_for() {
    let (client, cache) = Client::new();
    cache.sees(&pod("a", "u1", 10));
    cache.sees(&pod("b", "u2", 11));
    let mut terminating = pod("c", "u3", 12);
    terminating["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    cache.sees(&terminating);
    let list = json!({ "kind": "PodList", "items": [pod("a", "u1", 10), pod("b", "u2", 11), terminating, pod("d", "u4", 9)] });
    client.write("DELETE", "/api/v1/namespaces/default/pods", &list);
    let writes = client.session.take();
    assert!(!client.all_seen(&writes));
    cache.loses("a", 13);
    assert!(!client.all_seen(&writes));
    cache.sees(&pod("b", "u2", 14));
    assert!(
        client.all_seen(&writes),
        "neither the pod that was terminating, nor the pod that no cache holds"
    );
}

/// A list looks only at the unseen writes that may be in the list.
#[test]
fn a_list_takes_no_time_for_writes_of_other_owners() {
    let (client, _) = Client::new();
    for n in 0..1000_u64 {
        let mut owned = labelled(&format!("p{n}"), &format!("u{n}"), 10 + n, &format!("app{}", n % 100));
        owned["metadata"]["ownerReferences"] =
            json!([{ "apiVersion": "v1", "kind": "Foo", "name": "foo", "uid": format!("owner{}", n % 100) }]);
        client.create(&owned);
    }
    let names = |query: Query<'_>| {
        let listed = client.unseen.list(&query, || Ok::<_, std::convert::Infallible>(Vec::new()));
        let mut names: Vec<_> =
            listed.unwrap_or_default().iter().map(|object| object.name().to_owned()).collect();
        names.sort();
        names
    };
    let expected: Vec<_> =
        (0..10).map(|n| if n == 0 { "p7".to_owned() } else { format!("p{n}07") }).collect();
    let looks = |query: Query<'_>| {
        let before = client.cache.looks();
        assert_eq!(names(query), {
            let mut sorted = expected.clone();
            sorted.sort();
            sorted
        });
        client.cache.looks() - before
    };
    assert_eq!(looks(Query::new().owner("owner7")), 10);
    assert_eq!(looks(Query::new().index("app", "app7").namespace("default")), 10);
}

/// Lists while other tasks read, write and watch: `meanwhile` runs after the cache was read.
fn listed_while(client: &Client, meanwhile: impl Fn()) -> Vec<String> {
    let read = || {
        let cached = client.cache.0.lock().objects.clone();
        meanwhile();
        Ok::<_, std::convert::Infallible>(cached)
    };
    let listed = client.unseen.list(&Query::new(), read).unwrap_or_default();
    listed.iter().map(|object| format!("{}@{}", object.name(), object.revision())).collect()
}

fn read_pod(client: &Client, name: &str) {
    let key = ObjectKey::new(Some("default"), name);
    let cached = client.cache.0.lock().objects.iter().find(|object| object.key() == key).cloned();
    client.unseen.get(&key, || cached);
}

#[test]
fn an_object_that_is_written_during_a_list_stays_in_the_list() {
    let (client, cache) = Client::new();
    cache.sees(&pod("a", "u1", 10));
    let write = || client.write("PUT", "/api/v1/namespaces/default/pods/a", &pod("a", "u1", 11));
    assert_eq!(listed_while(&client, write), ["a@11"]);
}

#[test]
fn a_write_that_the_watch_shows_during_a_list_is_listed_once() {
    let (client, cache) = Client::new();
    client.create(&pod("a", "u1", 10));
    let read = || {
        cache.sees(&pod("a", "u1", 10));
        // Another task reads the pod, and the write is forgotten.
        read_pod(&client, "a");
        Ok::<_, std::convert::Infallible>(cache.0.lock().objects.clone())
    };
    let listed = client.unseen.list(&Query::new(), read).unwrap_or_default();
    assert_eq!(listed.len(), 1);
}

#[test]
fn a_write_that_the_watch_shows_after_the_cache_was_read_is_listed() {
    let (client, cache) = Client::new();
    cache.sees(&pod("a", "u1", 8));
    client.write("PUT", "/api/v1/namespaces/default/pods/a", &pod("a", "u1", 10));
    let shown = || {
        cache.sees(&pod("a", "u1", 10));
        read_pod(&client, "a");
    };
    assert_eq!(listed_while(&client, shown), ["a@10"]);
}

#[test]
fn a_deletion_that_the_watch_shows_after_the_cache_was_read_is_not_listed() {
    let (client, cache) = Client::new();
    cache.sees(&pod("a", "u1", 10));
    client.delete("a", &deleted("u1"));
    let shown = || {
        cache.loses("a", 11);
        read_pod(&client, "a");
    };
    assert!(listed_while(&client, shown).is_empty());
}

fn pod_list(pods: &[Value]) -> String {
    json!({ "apiVersion": "v1", "kind": "PodList", "items": pods }).to_string()
}

/// A StatefulSet makes the evicted pod anew before the answer is read.
#[test]
fn the_successor_of_an_evicted_pod_is_read() {
    let (client, cache) = Client::new();
    cache.sees(&pod("a", "u1", 10));
    let eviction = client.begin("POST", "/api/v1/namespaces/default/pods/a/eviction");
    cache.sees(&pod("a", "u2", 12));
    client.in_session(|| eviction.finish_read(pod_list(&[]).as_bytes()));
    assert_eq!(client.names(), ["a@12"]);
    assert!(client.all_seen(&client.session.take()));
}

#[test]
fn a_list_of_a_server_that_ignores_field_selectors_has_the_written_object() {
    let (client, cache) = Client::new();
    cache.sees(&pod("a", "u1", 10));
    cache.sees(&pod("b", "u2", 11));
    let scale = client.begin("PATCH", "/api/v1/namespaces/default/pods/b/scale");
    client.in_session(|| scale.finish_read(pod_list(&[pod("a", "u1", 10), pod("b", "u2", 12)]).as_bytes()));
    assert_eq!(client.names(), ["a@10", "b@12"]);
}

/// The index of a query may be younger than the write.
#[test]
fn an_index_that_is_added_later_has_the_unseen_writes() {
    let (client, _) = Client::new();
    client.create(&pod("a", "u1", 10));
    let by_app = |client: &Client| {
        let query = Query::new().index("late", "x");
        client.unseen.list::<()>(&query, || Ok(Vec::new())).expect("the cache has the index").len()
    };
    assert_eq!(by_app(&client), 0);
    let mut labelled = pod("b", "u2", 11);
    labelled["metadata"]["labels"] = json!({ "app": "x" });
    client.create(&labelled);
    assert_eq!(by_app(&client), 1, "the cache itself has the index before `has_index` says so");
}
