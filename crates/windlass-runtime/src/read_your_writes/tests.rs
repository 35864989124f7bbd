use futures::FutureExt;
use http::Request;
use kube_client::client::Body;
use serde_json::{Value, json};
use windlass_cache::{ObjectKey, RawObject};

use super::{CacheView, Overlay, Seen, Session, WriteLog};
use crate::client::path::GroupResource;

/// A cache that the test fills.
#[derive(Default)]
struct Cache {
    objects: Vec<RawObject>,
    mark: u64,
}

impl CacheView for Cache {
    fn object(&self, key: &ObjectKey) -> Option<(String, u64)> {
        let object = self.objects.iter().find(|object| object.key() == *key)?;
        Some((object.uid().to_owned(), object.revision()))
    }

    fn high_water_mark(&self) -> u64 {
        self.mark
    }
}

impl Cache {
    /// The watch tells of an object.
    fn sees(&mut self, object: &Value) {
        let object = raw(object);
        self.mark = object.revision();
        self.objects.retain(|known| known.key() != object.key());
        self.objects.push(object);
    }

    /// The watch tells of a deletion.
    fn loses(&mut self, name: &str, revision: u64) {
        self.objects.retain(|known| known.name() != name);
        self.mark = revision;
    }
}

fn pod(name: &str, uid: &str, revision: u64) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": {
        "name": name, "namespace": "default", "uid": uid, "resourceVersion": revision.to_string() } })
}

fn raw(object: &Value) -> RawObject {
    RawObject::from_json(object.to_string().as_bytes()).unwrap()
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

/// A log that follows pods, and what a client does with it.
struct Client {
    log: WriteLog,
    session: Session,
}

impl Client {
    fn new() -> Self {
        let log = WriteLog::new();
        log.track(pods());
        Self { log, session: Session::default() }
    }

    fn write(&self, method: &str, path: &str, answer: &Value) {
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        let written = self.log.begin(&request);
        let session = self.session.clone();
        let noted = session.run(async {
            if let Some(written) = written {
                written.finish(answer.to_string().as_bytes());
            }
        });
        noted.now_or_never().expect("nothing here waits");
    }

    fn create(&self, answer: &Value) {
        self.write("POST", "/api/v1/namespaces/default/pods", answer);
    }

    fn delete(&self, name: &str, answer: &Value) {
        self.write("DELETE", &format!("/api/v1/namespaces/default/pods/{name}"), answer);
    }

    fn names(&self, cache: &Cache) -> Vec<String> {
        let kind = self.log.track(pods());
        let listed = Overlay::new(&kind, cache).list(|_| true, || cache.objects.clone());
        let mut names: Vec<_> =
            listed.iter().map(|object| format!("{}@{}", object.name(), object.revision())).collect();
        names.sort();
        names
    }

    fn all_seen(&self, cache: &Cache) -> bool {
        self.session.take().iter().all(|write| Seen::of_ref(write, cache))
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
    let (client, mut cache) = (Client::new(), Cache { mark: 5, ..Cache::default() });
    client.create(&pod("a", "u1", 10));
    assert_eq!(client.names(&cache), ["a@10"]);
    cache.sees(&pod("a", "u1", 10));
    assert_eq!(client.names(&cache), ["a@10"], "and once, when the watch has told of it");
    cache.sees(&pod("a", "u1", 12));
    assert_eq!(client.names(&cache), ["a@12"], "what came later counts");
}

#[test]
fn what_was_changed_is_new_at_once() {
    let (client, mut cache) = (Client::new(), Cache::default());
    cache.sees(&pod("a", "u1", 10));
    client.write("PUT", "/api/v1/namespaces/default/pods/a", &pod("a", "u1", 11));
    assert_eq!(client.names(&cache), ["a@11"]);
    cache.sees(&pod("a", "u1", 15));
    assert_eq!(client.names(&cache), ["a@15"]);
}

#[test]
fn what_was_deleted_is_gone_at_once_and_its_successor_is_not() {
    let (client, mut cache) = (Client::new(), Cache::default());
    cache.sees(&pod("a", "u1", 10));
    client.delete("a", &deleted("u1"));
    assert!(client.names(&cache).is_empty());
    cache.sees(&pod("a", "u2", 20));
    assert_eq!(client.names(&cache), ["a@20"]);
}

#[test]
fn created_and_deleted_before_the_watch_told_of_either() {
    let (client, mut cache) = (Client::new(), Cache { mark: 5, ..Cache::default() });
    client.create(&pod("a", "u1", 10));
    client.delete("a", &deleted("u1"));
    assert!(client.names(&cache).is_empty());
    cache.sees(&pod("a", "u1", 10));
    assert!(client.names(&cache).is_empty(), "the create that comes late does not bring it back");
    cache.loses("a", 11);
    assert!(client.names(&cache).is_empty());
}

#[test]
fn a_graceful_deletion_is_a_change() {
    let (client, mut cache) = (Client::new(), Cache::default());
    cache.sees(&pod("a", "u1", 10));
    let mut going = pod("a", "u1", 11);
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    going["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    client.delete("a", &going);
    assert_eq!(client.names(&cache), ["a@11"], "there, with its deletionTimestamp");
    cache.loses("a", 12);
    assert!(client.names(&cache).is_empty());
}

#[test]
fn removing_the_last_finalizer_of_a_deleted_object_ends_it() {
    let (client, mut cache) = (Client::new(), Cache::default());
    let mut going = pod("a", "u1", 11);
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    going["metadata"]["finalizers"] = json!(["example.com/x"]);
    cache.sees(&going);
    going["metadata"]["finalizers"] = json!([]);
    going["metadata"]["resourceVersion"] = json!("12");
    client.write("PATCH", "/api/v1/namespaces/default/pods/a", &going);
    assert!(client.names(&cache).is_empty());
}

#[test]
fn the_gate_opens_when_the_watch_has_come_as_far() {
    let (client, mut cache) = (Client::new(), Cache { mark: 5, ..Cache::default() });
    client.create(&pod("a", "u1", 10));
    let writes = client.session.take();
    let open = |cache: &Cache| writes.iter().all(|write| Seen::of_ref(write, cache));
    assert!(!open(&cache));
    cache.mark = 9;
    assert!(!open(&cache), "a bookmark before the write");
    cache.mark = 10;
    assert!(open(&cache), "a filtered cache never sees the object, but has come past it");
}

#[test]
fn the_gate_of_a_deletion_waits_for_absence() {
    let (client, mut cache) = (Client::new(), Cache::default());
    cache.sees(&pod("a", "u1", 10));
    client.delete("a", &deleted("u1"));
    let writes = client.session.take();
    assert!(!writes.iter().all(|write| Seen::of_ref(write, &cache)));
    cache.mark = 99;
    assert!(!writes.iter().all(|write| Seen::of_ref(write, &cache)), "it is still there");
    cache.loses("a", 100);
    assert!(writes.iter().all(|write| Seen::of_ref(write, &cache)));
}

#[test]
fn the_gate_of_a_deletion_does_not_take_not_yet_for_gone() {
    let (client, mut cache) = (Client::new(), Cache { mark: 5, ..Cache::default() });
    client.create(&pod("a", "u1", 10));
    client.delete("a", &deleted("u1"));
    assert!(!client.all_seen(&cache), "the watch has not even told of the creation");
    client.create(&pod("b", "u2", 12));
    cache.sees(&pod("b", "u2", 12));
    assert!(client.all_seen(&cache));
}

#[test]
fn of_two_answers_the_newer_counts_in_whatever_order_they_come() {
    let (client, cache) = (Client::new(), Cache { mark: 5, ..Cache::default() });
    client.create(&pod("a", "u1", 12));
    client.write("PATCH", "/api/v1/namespaces/default/pods/a/status", &pod("a", "u1", 11));
    assert_eq!(client.names(&cache), ["a@12"]);
}

#[test]
fn what_is_not_remembered() {
    let (client, cache) = (Client::new(), Cache { mark: 5, ..Cache::default() });
    client.write("POST", "/api/v1/namespaces/default/pods?dryRun=All", &pod("a", "u1", 10));
    client.write("GET", "/api/v1/namespaces/default/pods/a", &pod("a", "u1", 10));
    client.write("POST", "/api/v1/namespaces/default/pods/a/binding", &json!({ "kind": "Status" }));
    client.write("POST", "/api/v1/namespaces/default/configmaps", &pod("a", "u1", 10));
    client.write("DELETE", "/api/v1/namespaces/default/pods", &json!({ "kind": "PodList", "items": [] }));
    client.create(&json!({ "kind": "Pod" }));
    client.create(&pod("not-comparable", "u1", 0).as_object().cloned().map_or(Value::Null, |mut pod| {
        pod["metadata"]["resourceVersion"] = json!("opaque");
        Value::Object(pod)
    }));
    assert!(client.names(&cache).is_empty());
    assert!(client.session.take().is_empty());
}
