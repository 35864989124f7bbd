//! Reads with unseen writes.

use super::*;

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
    let second = Cache::new();
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

/// The response to a write of an object arrives after the object was deleted and created anew.
#[test]
fn a_late_response_hides_no_successor() {
    let (client, cache) = Client::new();
    client.create(&pod("a", "u1", 10));
    client.delete("a", &deleted("u1"));
    client.create(&pod("a", "u2", 20));
    client.write("PATCH", "/api/v1/namespaces/default/pods/a/status", &pod("a", "u1", 12));
    assert_eq!(client.names(), ["a@20"]);
    cache.sees(&pod("a", "u2", 20));
    assert_eq!(client.names(), ["a@20"]);
    client.write("PATCH", "/api/v1/namespaces/default/pods/a/status", &pod("a", "u1", 12));
    assert_eq!(client.names(), ["a@20"], "the cache knows the successor");
}
