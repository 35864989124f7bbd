//! The wait for the writes of a reconcile.

use super::*;

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
