//! The parts that the tests share: a cache that a test fills, and a client that writes.

mod barrier;
mod lists;
mod overlay;

use std::sync::Arc;

use futures::FutureExt;
use http::Request;
use kube_client::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use windlass_cache::{ObjectKey, Query, RawObject};

use super::{Admission, CacheView, Session, UnseenWrites, WriteJournal, WriteRef, is_write};
use crate::resource_path::GroupResource;

/// A cache that the test fills.
#[derive(Clone)]
struct Cache(Arc<Mutex<Contents>>);

struct Contents {
    objects: Vec<RawObject>,
    mark: u64,
    /// The number of objects that were looked up.
    looks: usize,
    /// Called by the function of the index.
    while_indexing: Option<WhileIndexing>,
}

type WhileIndexing = Arc<dyn Fn() + Send + Sync>;

impl CacheView for Cache {
    fn object(&self, key: &ObjectKey) -> Option<RawObject> {
        let mut contents = self.0.lock();
        contents.looks += 1;
        contents.objects.iter().find(|object| object.key() == *key).cloned()
    }

    fn high_water_mark(&self, _: Option<&str>) -> u64 {
        self.0.lock().mark
    }

    fn has_shape(&self, api_version: &str, kind: &str) -> bool {
        (api_version, kind) == ("v1", "Pod")
    }

    fn kind_of_metadata(&self) -> Option<(&str, &str)> {
        None
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
        let while_indexing = self.0.lock().while_indexing.clone();
        while_indexing.inspect(|call| call());
        object.label("app").map(str::to_owned).into_iter().collect()
    }
}

impl Cache {
    /// A cache without objects, at revision 5.
    fn new() -> Self {
        let contents = Contents { objects: Vec::new(), mark: 5, looks: 0, while_indexing: None };
        Self(Arc::new(Mutex::new(contents)))
    }

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
        let cache = Cache::new();
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

/// The objects of a list that wants all, with `cached` in the cache.
fn list(unseen: &UnseenWrites, cached: Vec<RawObject>) -> Vec<RawObject> {
    let read = || Ok::<_, std::convert::Infallible>(cached.clone());
    unseen.list(&Query::new(), read).unwrap_or_default()
}

fn labelled(name: &str, uid: &str, revision: u64, app: &str) -> Value {
    let mut pod = pod(name, uid, revision);
    pod["metadata"]["labels"] = json!({ "app": app });
    pod
}

fn pod_list(pods: &[Value]) -> String {
    json!({ "apiVersion": "v1", "kind": "PodList", "items": pods }).to_string()
}
