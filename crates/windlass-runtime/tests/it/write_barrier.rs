//! The writes of a reconcile that the next reconcile of the key waits for.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::Method;
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{ConfigMap, Container, Namespace, PodSpec, PodTemplateSpec, Secret},
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube_client::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use kube_core::ObjectMeta;
use serde_json::json;
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use windlass_runtime::{
    Action, Context, Controller, Error, Manager, ObjectKey, ObjectKeyExt, Permission, Predicate, Result,
    Verb, Watch, informer::CacheOptions, kind, owner::Owned,
};
use windlass_test::{TestCluster, eventually, stretched};

use crate::{
    fault::Faults,
    fixture::{
        SOON, config_map, config_maps, create_config_map, expect_eq, metric, run_restricted, secret, secrets,
    },
};

/// Longer than any test: a write that is waited for without need fails the test.
const NEVER: Duration = Duration::from_secs(3600);

const TIMEOUTS: &str = "windlass_read_your_writes_timeouts_total{controller=\"configmap\"}";

/// The ConfigMap of the test; `None` for the ConfigMaps of the server.
fn parent(cx: &Context<ConfigMap>, key: &ObjectKey) -> Result<Option<Arc<ConfigMap>>> {
    if key.namespace() == Some("default") { cx.get(key) } else { Ok(None) }
}

/// Writes to secrets that the watch with these options does not show, five times, without a pause.
async fn write_outside(options: CacheOptions) {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    create_config_map(&client, "a").await;
    let (send, mut rounds) = mpsc::unbounded_channel();
    let controller = Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
        let send = send.clone();
        async move {
            let Some(parent) = parent(&cx, &key)? else { return Ok(Action::done()) };
            let mut new = secret("");
            new.metadata.name = None;
            new.metadata.generate_name = Some("s-".to_owned());
            let created = cx.create(new.controlled_by(&*parent)?).await?;
            assert!(cx.owned_by::<Secret>(&parent)?.is_empty(), "the selector does not match the secret");
            let label = Patch::Merge(json!({ "metadata": { "labels": { "seen": "yes" } } }));
            let key = ObjectKey::of(&created);
            cx.patch::<Secret, _>(&key, &label).await?;
            cx.delete(&created).await?;
            let _ = send.send(());
            Ok::<_, Error>(Action::requeue_after(Duration::ZERO))
        }
    })
    .watch(Watch::owned(kind::<Secret>()).options(options))
    .needs(Permission::to::<Secret>([Verb::Create, Verb::Patch, Verb::Delete]))
    .write_barrier_timeout(NEVER);
    let manager = Manager::new(client).controller(controller);
    let metrics = manager.metrics().clone();
    let running = cluster.run_restricted(manager).await;
    for round in 0..5 {
        let reconciled = tokio::time::timeout(stretched(SOON), rounds.recv()).await;
        assert_eq!(reconciled.expect("reconciled in time"), Some(()), "round {round}");
    }
    running.stop().await.expect("a graceful end");
    assert_eq!(metric(&metrics.render(), TIMEOUTS), 0);
}

#[tokio::test]
async fn a_write_outside_of_a_label_selector_is_not_waited_for() {
    let tls = || CacheOptions::new().label_selector("tls=true".parse().expect("a selector"));
    write_outside(tls()).await;
}

#[tokio::test]
async fn a_write_outside_of_a_field_selector_is_not_waited_for() {
    write_outside(CacheOptions::new().field_selector("type=kubernetes.io/tls")).await;
}

/// The controller watches the secrets of one namespace, and writes to two.
#[tokio::test]
async fn a_write_outside_of_the_namespaces_is_not_waited_for() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    create_config_map(&client, "a").await;
    let far = ObjectMeta { name: Some("far".to_owned()), ..ObjectMeta::default() };
    let far = Namespace { metadata: far, ..Namespace::default() };
    Api::all(client.clone()).create(&PostParams::default(), &far).await.expect("created");
    let (send, mut rounds) = mpsc::unbounded_channel();
    let controller = Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
        let send = send.clone();
        async move {
            if parent(&cx, &key)?.is_none() {
                return Ok(Action::done());
            }
            let label = Patch::Merge(json!({ "metadata": { "labels": { "seen": "yes" } } }));
            let read = |key: &ObjectKey| cx.lister::<Secret>()?.get(key);
            for (namespace, is_watched) in [("default", true), ("far", false)] {
                let mut new = secret("s");
                new.metadata.namespace = Some(namespace.to_owned());
                let created = cx.create(new).await?;
                let key = ObjectKey::of(&created);
                assert_eq!(read(&key)?.is_some(), is_watched, "{key} is created");
                cx.patch::<Secret, _>(&key, &label).await?;
                let has_label = read(&key)?.is_some_and(|secret| secret.metadata.labels.is_some());
                assert_eq!(has_label, is_watched, "{key} is patched");
                cx.delete(&created).await?;
                assert!(read(&key)?.is_none(), "{key} is deleted");
            }
            let _ = send.send(());
            Ok::<_, Error>(Action::requeue_after(Duration::ZERO))
        }
    })
    .watch(Watch::owned(kind::<Secret>()).options(CacheOptions::new().namespaces(["default"])))
    .needs(Permission::to::<Secret>([Verb::Create, Verb::Patch, Verb::Delete]))
    .write_barrier_timeout(NEVER);
    let running = cluster.run_restricted(Manager::new(client).controller(controller)).await;
    for round in 0..5 {
        let reconciled = tokio::time::timeout(stretched(SOON), rounds.recv()).await;
        assert_eq!(reconciled.expect("reconciled in time"), Some(()), "round {round}");
    }
    running.stop().await.expect("a graceful end");
}

/// A label of the object takes the object out of the selector, and the watch deletes the object from the cache.
#[tokio::test]
async fn an_object_that_leaves_a_selector_is_waited_for() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    create_config_map(&client, "a").await;
    let faults = Faults::before(client.clone());
    let (send, mut rounds) = mpsc::unbounded_channel();
    let selected = CacheOptions::new().label_selector("tls=true".parse().expect("a selector"));
    let controller = {
        let faults = faults.clone();
        Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
            let (send, faults) = (send.clone(), faults.clone());
            async move {
                let Some(parent) = parent(&cx, &key)? else { return Ok(Action::done()) };
                let owned = cx.owned_by::<Secret>(&parent)?.len();
                let _ = send.send(owned);
                if owned == 0 {
                    return Ok(Action::done());
                }
                faults.hold_watches();
                let leave = Patch::Merge(json!({ "metadata": { "labels": { "tls": "false" } } }));
                cx.patch::<Secret, _>(&ObjectKey::namespaced("default", "s"), &leave).await?;
                assert!(cx.owned_by::<Secret>(&parent)?.is_empty(), "read at once");
                Ok::<_, Error>(Action::requeue_after(Duration::ZERO))
            }
        })
        .watch(Watch::owned(kind::<Secret>()).options(selected))
        .needs(Permission::to::<Secret>([Verb::Patch]))
        .write_barrier_timeout(NEVER)
    };
    let owner = config_maps(&client).get("a").await.expect("read");
    let mut owned = secret("s").controlled_by(&owner).expect("an owner");
    owned.metadata.labels = Some(BTreeMap::from([("tls".to_owned(), "true".to_owned())]));
    secrets(&client).create(&PostParams::default(), &owned).await.expect("created");
    let running =
        run_restricted(&cluster, &faults, Manager::new(faults.client()).controller(controller)).await;
    let next = async |rounds: &mut mpsc::UnboundedReceiver<usize>| {
        tokio::time::timeout(stretched(SOON), rounds.recv()).await.expect("reconciled in time")
    };
    assert_eq!(next(&mut rounds).await, Some(1));
    assert!(rounds.try_recv().is_err(), "the watch is held");
    faults.release_watches();
    assert_eq!(next(&mut rounds).await, Some(0));
    running.stop().await.expect("a graceful end");
}

fn deployment(name: &str) -> Deployment {
    let labels = Some(BTreeMap::from([("app".to_owned(), "x".to_owned())]));
    let container =
        Container { name: "main".to_owned(), image: Some("busybox".to_owned()), ..Container::default() };
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: labels.clone(), ..ObjectMeta::default() }),
        spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
    };
    let selector = LabelSelector { match_labels: labels, ..LabelSelector::default() };
    Deployment {
        metadata: config_map(name).metadata,
        spec: Some(DeploymentSpec { replicas: Some(1), selector, template, ..DeploymentSpec::default() }),
        ..Deployment::default()
    }
}

/// `scale` answers with a `Scale`. The next read sees the replicas all the same, and the next reconcile waits.
#[tokio::test]
async fn a_scale_is_a_write() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    deployments.create(&PostParams::default(), &deployment("a")).await.expect("created");
    let faults = Faults::before(client.clone());
    let (send, mut read) = mpsc::unbounded_channel();
    let controller = {
        let faults = faults.clone();
        Controller::of::<Deployment>(move |key: ObjectKey, cx: Context<Deployment>| {
            let (send, faults) = (send.clone(), faults.clone());
            async move {
                faults.hold_watches();
                let api: Api<Deployment> = Api::namespaced(cx.client().clone(), "default");
                let replicas = |cx: &Context<Deployment>| -> Result<i32> {
                    let object = cx.get(&key)?;
                    Ok(object.and_then(|object| object.spec.as_ref()?.replicas).unwrap_or_default())
                };
                for _ in 0..3 {
                    let more = json!({ "spec": { "replicas": replicas(&cx)? + 1 } });
                    api.patch_scale("a", &PatchParams::default(), &Patch::Merge(more)).await?;
                }
                let _ = send.send(replicas(&cx)?);
                Ok::<_, Error>(Action::requeue_after(Duration::ZERO))
            }
        })
        .needs(Permission::to::<Deployment>([Verb::Patch]).subresource("scale"))
        .write_barrier_timeout(NEVER)
    };
    let running =
        run_restricted(&cluster, &faults, Manager::new(faults.client()).controller(controller)).await;
    assert_eq!(read.recv().await, Some(4), "each scale sees the scale before");
    let stored = deployments.get("a").await.expect("read").spec.and_then(|spec| spec.replicas);
    assert_eq!(stored, Some(4));
    assert!(read.try_recv().is_err(), "the next reconcile waits for the watch");
    faults.release_watches();
    assert_eq!(read.recv().await, Some(7));
    running.stop().await.expect("a graceful end");
}

/// Secrets of two parents share a prefix. The create of one parent, whose answer is lost, does not concern the other parent.
#[tokio::test]
async fn an_uncertain_create_belongs_to_its_owner() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    let faults = Faults::before(client.clone());
    let controller = Controller::of::<ConfigMap>(|key: ObjectKey, cx: Context<ConfigMap>| async move {
        let Some(parent) = parent(&cx, &key)? else { return Ok(Action::done()) };
        if cx.owned_by::<Secret>(&parent)?.is_empty() {
            let mut new = secret("");
            new.metadata.name = None;
            new.metadata.generate_name = Some("job-".to_owned());
            cx.create(new.controlled_by(&*parent)?).await?;
        }
        Ok::<_, Error>(Action::done())
    })
    .owns::<Secret>()
    .needs(Permission::to::<Secret>([Verb::Create]))
    .max_concurrent_reconciles(1)
    .write_barrier_timeout(NEVER);
    let manager = Manager::new(faults.client()).controller(controller);
    let running = run_restricted(&cluster, &faults, manager).await;
    create_config_map(&client, "a").await;
    let stored = async |count: usize| {
        eventually(SOON, || async {
            let found = secrets(&client).list(&ListParams::default()).await.map_err(|e| e.to_string())?;
            if found.items.len() == count { Ok(()) } else { Err(format!("{} secrets", found.items.len())) }
        })
        .await;
    };
    stored(1).await;
    // The secret is deleted, and the answer to the next create is lost.
    secrets(&client)
        .delete_collection(&DeleteParams::default(), &ListParams::default())
        .await
        .expect("deleted");
    faults.lose_answer(Method::POST, "/secrets");
    stored(1).await;
    faults.hold_watches();
    create_config_map(&client, "b").await;
    faults.release_watches();
    stored(2).await;
    // Time for a wrong create: both keys are reconciled once more.
    for name in ["a", "b"] {
        let touched = Patch::Merge(json!({ "data": { "touched": "yes" } }));
        config_maps(&client).patch(name, &PatchParams::default(), &touched).await.expect("patched");
    }
    stored(2).await;
    running.stop().await.expect("a graceful end");
    assert_eq!(secrets(&client).list(&ListParams::default()).await.expect("listed").items.len(), 2);
}

/// The answer to the create of one parent is lost. The create of another parent with the same prefix comes before the next attempt.
#[tokio::test]
async fn an_uncertain_create_is_settled_by_its_owner() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    for name in ["a", "b"] {
        create_config_map(&client, name).await;
    }
    let faults = Faults::before(client.clone());
    let begun = Arc::new(AtomicBool::new(false));
    // The numbers of attempts that have ended.
    let (first, other) = (watch::Sender::new(0), watch::Sender::new(0));
    let idle = watch::Sender::new(0);
    let controller = {
        let (begun, idle, first, other) = (begun.clone(), idle.clone(), first.clone(), other.clone());
        Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
            let (begun, idle, first, other) = (begun.clone(), idle.clone(), first.clone(), other.clone());
            async move {
                let Some(parent) = parent(&cx, &key)? else { return Ok(Action::done()) };
                if !begun.load(Ordering::SeqCst) {
                    idle.send_modify(|reconciles| *reconciles += 1);
                    return Ok(Action::done());
                }
                if !cx.owned_by::<Secret>(&parent)?.is_empty() {
                    return Ok(Action::done());
                }
                let attempts = if key.name() == "a" { &first } else { &other };
                if key.name() == "a" && *first.borrow() > 0 {
                    let _ = other.subscribe().wait_for(|attempts| *attempts > 0).await;
                }
                let mut new = secret("");
                new.metadata.name = None;
                new.metadata.generate_name = Some("job-".to_owned());
                let created = cx.create(new.controlled_by(&*parent)?).await;
                attempts.send_modify(|attempts| *attempts += 1);
                created?;
                Ok::<_, Error>(Action::done())
            }
        })
        .owns::<Secret>()
        .needs(Permission::to::<Secret>([Verb::Create]))
        .max_concurrent_reconciles(2)
        .write_barrier_timeout(NEVER)
    };
    let handle = controller.handle();
    let manager = Manager::new(faults.client()).controller(controller);
    let running = run_restricted(&cluster, &faults, manager).await;
    let ended = async |attempts: &watch::Sender<i32>, count: i32| {
        let mut attempts = attempts.subscribe();
        let ended = attempts.wait_for(|attempts| *attempts >= count);
        tokio::time::timeout(stretched(SOON), ended).await.expect("in time").expect("a sender");
    };
    ended(&idle, 2).await;
    faults.hold_watches();
    faults.lose_answer(Method::POST, "/secrets");
    begun.store(true, Ordering::SeqCst);
    handle.enqueue(ObjectKey::namespaced("default", "a"));
    ended(&first, 1).await;
    handle.enqueue(ObjectKey::namespaced("default", "b"));
    ended(&other, 1).await;
    ended(&first, 2).await;
    let stored = secrets(&client).list(&ListParams::default()).await.expect("listed").items;
    let owner = |secret: &Secret| Some(secret.metadata.owner_references.as_ref()?.first()?.name.clone());
    let mut owners: Vec<_> = stored.iter().filter_map(owner).collect();
    owners.sort();
    assert_eq!(owners, ["a", "b"], "the second attempt of the first parent creates nothing");
    faults.release_watches();
    running.stop().await.expect("a graceful end");
}

/// The server forbids to read secrets for longer than a key waits for the watches.
#[tokio::test(start_paused = true)]
async fn a_watch_that_keeps_failing_is_not_waited_for() {
    const LIMIT: Duration = Duration::from_secs(30);
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    create_config_map(&client, "a").await;
    let faults = Faults::before(client.clone());
    let (send, mut rounds) = mpsc::unbounded_channel();
    let controller = Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
        let send = send.clone();
        async move {
            let Some(parent) = parent(&cx, &key)? else { return Ok(Action::done()) };
            let mut new = secret("");
            new.metadata.name = None;
            new.metadata.generate_name = Some("s-".to_owned());
            cx.create(new.controlled_by(&*parent)?).await?;
            let _ = send.send(());
            Ok::<_, Error>(Action::requeue_after(Duration::from_secs(1)))
        }
    })
    .owns::<Secret>()
    .needs(Permission::to::<Secret>([Verb::Create]))
    .write_barrier_timeout(LIMIT);
    let manager = Manager::new(faults.client()).controller(controller);
    let running = run_restricted(&cluster, &faults, manager).await;
    rounds.recv().await.expect("a first round");
    faults.forbid_reads();
    tokio::time::sleep(3 * LIMIT).await;
    while rounds.try_recv().is_ok() {}
    let begun = Instant::now();
    for _ in 0..5 {
        rounds.recv().await.expect("a round");
    }
    assert!(begun.elapsed() < LIMIT, "five rounds took {:?}", begun.elapsed());
    running.stop().await.expect("a graceful end");
}

/// No read and no later write removes the memory of a write.
#[tokio::test(start_paused = true)]
async fn a_write_that_the_watch_has_shown_is_forgotten_in_time() {
    const REMEMBERED: &str = "windlass_remembered_writes{controller=\"configmap\"}";
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    let faults = Faults::before(client.clone());
    let controller = {
        let faults = faults.clone();
        Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
            let faults = faults.clone();
            async move {
                let Some(parent) = parent(&cx, &key)? else { return Ok(Action::done()) };
                if cx.owned_by::<Secret>(&parent)?.is_empty() {
                    faults.hold_watches();
                    cx.create(secret("s").controlled_by(&*parent)?).await?;
                }
                Ok::<_, Error>(Action::done())
            }
        })
        .watch(Watch::owned(kind::<Secret>()).predicate(Predicate::new(|_| false)))
        .needs(Permission::to::<Secret>([Verb::Create]))
    };
    let manager = Manager::new(faults.client()).controller(controller);
    let metrics = manager.metrics().clone();
    let running = run_restricted(&cluster, &faults, manager).await;
    create_config_map(&client, "a").await;
    // The unseen write, and the key.
    eventually(SOON, || async { expect_eq(metric(&metrics.render(), REMEMBERED), 2) }).await;
    faults.release_watches();
    eventually(SOON, || async { expect_eq(metric(&metrics.render(), REMEMBERED), 0) }).await;
    running.stop().await.expect("a graceful end");
}

/// With one worker, a key that waits for its watch does not hold up another key.
#[tokio::test]
async fn a_key_that_waits_leaves_the_worker_to_others() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    create_config_map(&client, "a").await;
    let faults = Faults::before(client.clone());
    let (send, mut reconciled) = mpsc::unbounded_channel();
    let controller = {
        let faults = faults.clone();
        Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
            let (send, faults) = (send.clone(), faults.clone());
            async move {
                if key.namespace() == Some("default") {
                    let _ = send.send(key.name().to_owned());
                }
                let Some(parent) = parent(&cx, &key)? else { return Ok(Action::done()) };
                if !cx.owned_by::<Secret>(&parent)?.is_empty() {
                    return Ok(Action::done());
                }
                faults.hold_watches();
                cx.create(secret("s").controlled_by(&*parent)?).await?;
                Ok::<_, Error>(Action::requeue_after(Duration::ZERO))
            }
        })
        .owns::<Secret>()
        .needs(Permission::to::<Secret>([Verb::Create]))
        .max_concurrent_reconciles(1)
        .write_barrier_timeout(NEVER)
    };
    let handle = controller.handle();
    let running =
        run_restricted(&cluster, &faults, Manager::new(faults.client()).controller(controller)).await;
    let next = async |reconciled: &mut mpsc::UnboundedReceiver<String>| {
        tokio::time::timeout(stretched(SOON), reconciled.recv()).await.expect("reconciled in time")
    };
    assert_eq!(next(&mut reconciled).await.as_deref(), Some("a"));
    handle.enqueue(ObjectKey::namespaced("default", "a"));
    handle.enqueue(ObjectKey::namespaced("default", "b"));
    assert_eq!(next(&mut reconciled).await.as_deref(), Some("b"));
    faults.release_watches();
    assert_eq!(next(&mut reconciled).await.as_deref(), Some("a"));
    running.stop().await.expect("a graceful end");
}

/// The metrics of Kubernetes and controller-runtime for a cache that lags behind the own writes.
#[tokio::test]
async fn a_reconcile_that_is_put_off_is_counted_with_the_resource_that_lags() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    create_config_map(&client, "a").await;
    let faults = Faults::before(client.clone());
    let controller = {
        let faults = faults.clone();
        Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
            let faults = faults.clone();
            async move {
                let Some(parent) = parent(&cx, &key)? else { return Ok(Action::done()) };
                if !cx.owned_by::<Secret>(&parent)?.is_empty() {
                    return Ok(Action::done());
                }
                faults.hold_watches();
                cx.create(secret("s").controlled_by(&*parent)?).await?;
                Ok::<_, Error>(Action::requeue_after(Duration::ZERO))
            }
        })
        .owns::<Secret>()
        .needs(Permission::to::<Secret>([Verb::Create]))
        .write_barrier_timeout(NEVER)
    };
    let manager = Manager::new(faults.client()).controller(controller);
    let metrics = manager.metrics().clone();
    let read = |series: &str| metric(&metrics.render(), series);
    let running = run_restricted(&cluster, &faults, manager).await;

    let skips = "windlass_stale_sync_skips_total{controller=\"configmap\",group=\"\",resource=\"secrets\"}";
    eventually(SOON, || async { expect_eq(read(skips), 1) }).await;
    let stored = secrets(&client).get("s").await.expect("read").metadata.resource_version;
    let written =
        stored.and_then(|version| version.parse::<u64>().ok()).expect("a number") % 1_000_000_000_000_000;
    let seen = "informer_store_resource_version{name=\"\",group=\"\",version=\"v1\",resource=\"secrets\"}";
    assert!(read(seen) > 0 && read(seen) < written, "{}, not before {written}", read(seen));

    faults.release_watches();
    let waits = "controller_runtime_client_consistency_wait_duration_seconds_count{operation=\"reconcile\",result=\"success\"}";
    eventually(SOON, || async { expect_eq(read(waits), 1) }).await;
    assert!(read(seen) >= written, "{}, not {written}", read(seen));
    running.stop().await.expect("a graceful end");
}

/// The labels and the type of a secret that the selectors of [`every_selector_shows_its_writes_and_waits_for_no_other`] select.
fn selected(name: &str, inside: bool) -> Secret {
    let mut secret = secret(name);
    secret.metadata.labels = Some(BTreeMap::from([("tls".to_owned(), inside.to_string())]));
    secret
}

/// One reconcile with writes inside and outside of a selector, into the selector and out of it. `knows` is true if the client can tell which
/// objects the watch shows.
async fn write_around(cx: &Context<ConfigMap>, parent: &ConfigMap, knows: bool) -> Result<()> {
    let names = |cx: &Context<ConfigMap>| -> Result<Vec<String>> {
        let mut names: Vec<_> =
            cx.owned_by::<Secret>(parent)?.iter().filter_map(|secret| secret.metadata.name.clone()).collect();
        names.sort();
        Ok(names)
    };
    let label = |value: bool| Patch::Merge(json!({ "metadata": { "labels": { "tls": value.to_string() } } }));
    let (inside, outside) =
        (ObjectKey::namespaced("default", "inside"), ObjectKey::namespaced("default", "outside"));
    let first = cx.create(selected("inside", true).controlled_by(parent)?).await?;
    let second = cx.create(selected("outside", false).controlled_by(parent)?).await?;
    assert!(!knows || names(cx)? == ["inside"], "{:?}", names(cx)?);
    cx.patch::<Secret, _>(&outside, &label(true)).await?;
    assert!(!knows || names(cx)? == ["inside", "outside"], "{:?}", names(cx)?);
    cx.patch::<Secret, _>(&inside, &label(false)).await?;
    assert!(!knows || names(cx)? == ["outside"], "{:?}", names(cx)?);
    cx.delete(&second).await?;
    cx.delete(&first).await?;
    assert!(names(cx)?.is_empty(), "{:?}", names(cx)?);
    Ok(())
}

#[tokio::test]
async fn every_selector_shows_its_writes_and_waits_for_no_other() {
    let labels = |text: &str| CacheOptions::new().label_selector(text.parse().expect("a selector"));
    let selectors = [
        (labels("tls=true"), true),
        (labels("tls in (true, maybe)"), true),
        (labels("tls!=false,tls"), true),
        (CacheOptions::new().field_selector("metadata.name=inside"), false),
        (
            CacheOptions::new()
                .field_selector("metadata.name!=inside")
                .label_selector("tls".parse().expect("a selector")),
            false,
        ),
    ];
    for (options, knows) in selectors {
        let description = format!("{options:?}");
        let cluster = TestCluster::start().await;
        create_config_map(&cluster.client(), "a").await;
        let (send, mut rounds) = mpsc::unbounded_channel();
        let controller = Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
            let send = send.clone();
            async move {
                let Some(parent) = parent(&cx, &key)? else { return Ok(Action::done()) };
                write_around(&cx, &parent, knows).await?;
                let _ = send.send(());
                Ok::<_, Error>(Action::requeue_after(Duration::ZERO))
            }
        })
        .watch(Watch::owned(kind::<Secret>()).options(options))
        .needs(Permission::to::<Secret>([Verb::Create, Verb::Patch, Verb::Delete]))
        .write_barrier_timeout(NEVER);
        let running = cluster.run_restricted(Manager::new(cluster.client()).controller(controller)).await;
        for round in 0..3 {
            let reconciled = tokio::time::timeout(stretched(SOON), rounds.recv()).await;
            assert_eq!(reconciled.ok(), Some(Some(())), "round {round} of {description}");
        }
        running.stop().await.expect("a graceful end");
    }
}
