//! Lists with unseen writes: indexes, and changes during the list.

use std::{sync::mpsc, thread, time::Duration};

use windlass_patience::stretched;

use super::*;

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

/// Runs in a thread, because a lock that is held twice is never released.
fn soon(run: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        run();
        let _ = done.send(());
    });
    ended.recv_timeout(stretched(Duration::from_secs(10))).expect("no deadlock, and no panic");
}

#[test]
fn the_function_of_an_index_may_read_the_cache() {
    let (client, cache) = Client::new();
    let (unseen, seen) = (Arc::downgrade(&client.unseen), Arc::<Mutex<Vec<usize>>>::default());
    let lists = seen.clone();
    cache.0.lock().while_indexing = Some(Arc::new(move || {
        let unseen = unseen.upgrade().expect("the cache is followed");
        lists.lock().push(list(&unseen, Vec::new()).len());
    }));
    soon(move || {
        client.create(&labelled("a", "u1", 10, "x"));
        let indexed = |client: &Client| {
            let query = Query::new().index("app", "x");
            let listed =
                client.unseen.list::<()>(&query, || Ok(Vec::new())).expect("the cache has the index");
            listed.len()
        };
        assert_eq!(indexed(&client), 1, "the index is learned");
        client.create(&labelled("b", "u2", 11, "x"));
        assert_eq!(indexed(&client), 2, "the write is indexed");
        cache.sees(&labelled("a", "u1", 10, "x"));
        cache.sees(&labelled("b", "u2", 11, "x"));
        assert_eq!(client.unseen.sweep(), 0, "the writes are forgotten");
    });
    assert!(!seen.lock().is_empty());
}

/// While a task computes the values of an index for the unseen writes, another task lists by the index.
#[test]
fn a_list_by_an_index_that_is_being_learned_has_all_writes() {
    let (client, cache) = Client::new();
    client.create(&labelled("a", "u1", 10, "x"));
    let unseen = client.unseen.clone();
    let (other, written) = (Arc::new(client), Arc::<Mutex<Vec<usize>>>::default());
    let (writer, lists) = (Arc::downgrade(&other), written.clone());
    cache.0.lock().while_indexing = Some(Arc::new({
        let cache = cache.clone();
        move || {
            // Once: the list calls the function too.
            cache.0.lock().while_indexing = None;
            let Some(client) = writer.upgrade() else { return };
            client.create(&labelled("b", "u2", 11, "x"));
            let listed = client.unseen.list::<()>(&Query::new().index("app", "x"), || Ok(Vec::new()));
            lists.lock().push(listed.expect("the cache has the index").len());
        }
    }));
    soon(move || {
        let listed = unseen.list::<()>(&Query::new().index("app", "x"), || Ok(Vec::new()));
        assert_eq!(listed.expect("the cache has the index").len(), 2);
    });
    assert_eq!(*written.lock(), [2]);
}
