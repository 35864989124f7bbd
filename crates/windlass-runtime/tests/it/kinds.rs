//! The argument that names a kind: of watches, reads, patches and informers.

use std::sync::Arc;

use http::Method;
use k8s_openapi::api::{
    apps::v1::Deployment,
    autoscaling::v1::Scale,
    core::v1::{ConfigMap, Event, Pod, Secret},
    scheduling::v1::PriorityClass,
};
use kube_client::{
    Api,
    api::{DeleteParams, ListParams, PatchParams, PostParams},
};
use kube_core::{
    ApiResource, DynamicObject, GroupVersionKind, ObjectMeta, ResourceExt, metadata::PartialObjectMeta,
    params::Patch,
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::mpsc;
use windlass_runtime::{
    Action, ApiReader, Context, Controller, Error, KindRef, Manager, ObjectKey, Permission, RunContext,
    Runnable, Verb, Watch,
    informer::{CacheOptions, ResourceEventHandlerFuncs, SharedInformerFactory},
    kind,
};
use windlass_test::{TestCluster, eventually, stretched};

use crate::{
    fault::Faults,
    fixture::{
        Running, SOON, config_map, config_maps, create_config_map, expect_eq, labelled, run, secret, secrets,
    },
};

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

/// Runs a controller that sends its context, and returns the context.
async fn context(
    cluster: &TestCluster,
    declare: impl FnOnce(Controller) -> Controller,
) -> (Context<ConfigMap>, windlass_test::RestrictedManager) {
    let (tell, mut told) = mpsc::unbounded_channel();
    let controller = Controller::of::<ConfigMap>(move |_: ObjectKey, cx: Context<ConfigMap>| {
        let _ = tell.send(cx);
        async { Ok::<_, Error>(Action::done()) }
    });
    let handle = controller.handle();
    let manager = Manager::new(cluster.client()).controller(declare(controller));
    let running = cluster.run_restricted(manager).await;
    handle.enqueue(key("none"));
    (told.recv().await.expect("reconciled"), running)
}

#[tokio::test]
async fn an_api_reader_asks_the_server() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    let rights = Permission::to::<Secret>([Verb::Get, Verb::List]);
    let (cx, running) = context(&cluster, |controller| controller.needs(rights)).await;
    let reader = cx.api_reader();
    assert!(reader.get::<Secret>(&key("a")).await.expect("no error").is_none());
    let mut stored = secret("a");
    stored.labels_mut().insert("app".to_owned(), "web".to_owned());
    stored.string_data = Some([("k".to_owned(), "v".to_owned())].into());
    secrets(&client).create(&PostParams::default(), &stored).await.expect("created");
    secrets(&client).create(&PostParams::default(), &secret("b")).await.expect("created");

    let read = reader.get::<Secret>(&key("a")).await.expect("no error").expect("there");
    assert_eq!(read.data.expect("data")["k"].0, b"v");
    let app = "app=web".parse().expect("a selector");
    let listed = reader.list::<Secret>(Some("default"), &app).await.expect("listed");
    assert_eq!(listed.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["a"]);

    let resource = ApiResource::erase::<Secret>(&());
    let dynamic = reader.list_of(&resource, None, &app).await.expect("listed");
    assert_eq!(dynamic[0].types.as_ref().map(|types| types.kind.as_str()), Some("Secret"));
    let metadata = reader.get_of(kind::<PartialObjectMeta<Secret>>(), &key("a")).await.expect("no error");
    assert_eq!(metadata.expect("there").labels()["app"], "web");

    let mut unknown = resource.clone();
    unknown.plural = "nosuchthings".to_owned();
    let error = ApiReader::new(client).get_of(&unknown, &key("a")).await.expect_err("the kind is not served");
    assert!(error.is_not_found(), "{error}");
    running.stop().await.expect("a graceful end");
}

/// The key of a controller that watches only the metadata is read from the cache of the metadata.
#[tokio::test]
async fn a_controller_of_metadata_reads_the_metadata() {
    let cluster = TestCluster::start().await;
    let (tell, mut told) = mpsc::unbounded_channel();
    let reconcile = move |key: ObjectKey, cx: Context<PartialObjectMeta<ConfigMap>>| {
        let read = cx.get(&key).map(|object| object.map(|object| object.labels().clone()));
        let whole = cx.lister::<ConfigMap>().map(drop).map_err(|error| error.to_string());
        if key.name() == "a" {
            let _ = tell.send((read, whole));
        }
        async { Ok::<_, Error>(Action::done()) }
    };
    let controller = Controller::of::<PartialObjectMeta<ConfigMap>>(reconcile);
    let running = cluster.run_restricted(Manager::new(cluster.client()).controller(controller)).await;
    let map = labelled(config_map("a"), "app", "web");
    config_maps(&cluster.client()).create(&PostParams::default(), &map).await.expect("created");
    let (read, whole) = told.recv().await.expect("reconciled");
    assert_eq!(read.expect("decodes").expect("there")["app"], "web");
    let error = whole.expect_err("whole objects are not watched");
    assert!(error.contains("PartialObjectMeta<ConfigMap>"), "{error}");
    running.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn an_owner_of_a_named_kind_is_enqueued() {
    let cluster = TestCluster::start().await;
    let (tell, mut told) = mpsc::unbounded_channel();
    let controller = Controller::<ObjectKey>::keyed("owners", move |key: ObjectKey, _: Context<()>| {
        let _ = tell.send(key);
        async { Ok::<_, Error>(Action::done()) }
    });
    let secrets_of_maps =
        Watch::owned(kind::<Secret>()).owner_kind(ApiResource::erase::<ConfigMap>(&())).match_every_owner();
    let manager = Manager::new(cluster.client()).controller(controller.watch(secrets_of_maps));
    let running = cluster.run_restricted(manager).await;
    let owner = create_config_map(&cluster.client(), "a").await;
    let owned = windlass_runtime::owner::Owned::also_owned_by(secret("s"), &owner).expect("an owner");
    secrets(&cluster.client()).create(&PostParams::default(), &owned).await.expect("created");
    assert_eq!(told.recv().await, Some(key("a")));
    running.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn a_subresource_and_a_kind_without_a_type_are_patched() {
    let cluster = TestCluster::start().await;
    let deployments: Api<Deployment> = Api::default_namespaced(cluster.client());
    let web: Deployment = serde_json::from_value(json!({
        "metadata": { "name": "web" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "busybox" }] },
            },
        },
    }))
    .expect("a deployment");
    deployments.create(&PostParams::default(), &web).await.expect("created");
    let rights = [
        Permission::to::<Deployment>([Verb::Patch]),
        Permission::to::<Deployment>([Verb::Patch]).subresource("scale"),
        Permission::status_of::<Deployment>(),
    ];
    let declare = |controller: Controller| rights.into_iter().fold(controller, Controller::needs);
    let (cx, running) = context(&cluster, declare).await;
    let three = Patch::Merge(json!({ "spec": { "replicas": 3 } }));
    let scale = cx.patch::<Deployment, _>(&key("web"), &three).subresource::<Scale>("scale").await;
    assert_eq!(scale.expect("patched").spec.and_then(|spec| spec.replicas), Some(3));
    let observed = Patch::Merge(json!({ "status": { "observedGeneration": 1 } }));
    let patched = cx.patch::<Deployment, _>(&key("web"), &observed).status().await.expect("patched");
    assert_eq!(patched.status.and_then(|status| status.observed_generation), Some(1));
    let label = Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
    let resource = ApiResource::erase::<Deployment>(&());
    let patched = cx.patch_of(&resource, &key("web"), &label).await.expect("patched");
    assert_eq!(patched.labels()["a"], "b");
    running.stop().await.expect("a graceful end");
}

/// A runnable reads two caches of one kind, the second by name.
#[tokio::test]
async fn a_runnable_reads_a_named_cache() {
    let cluster = TestCluster::start().await;
    for (name, app) in [("a", "web"), ("b", "db")] {
        let map = labelled(config_map(name), "app", app);
        config_maps(&cluster.client()).create(&PostParams::default(), &map).await.expect("created");
    }
    let web = || kind::<ConfigMap>().named("web");
    let (tell, mut told) = mpsc::unbounded_channel();
    let read = Runnable::new("read", move |cx: RunContext| async move {
        let names = |namespace: &str, list: windlass_runtime::Objects<ConfigMap>| {
            let in_namespace = |map: &&ConfigMap| map.namespace().as_deref() == Some(namespace);
            list.iter().filter(in_namespace).map(ResourceExt::name_any).collect::<Vec<_>>().join(" ")
        };
        let all = names("default", cx.lister::<ConfigMap>()?.all()?);
        let _ = tell.send((all, names("default", cx.lister_of(web())?.all()?)));
        Ok::<_, Error>(())
    });
    let labels = CacheOptions::new().label_selector("app=web".parse().expect("a selector"));
    let read = read.reads::<ConfigMap>().reads_of(web(), labels);
    let running = cluster.run_restricted(Manager::new(cluster.client()).runnable(read)).await;
    let (all, named) = told.recv().await.expect("read");
    assert!(all.contains('a') && all.contains('b'), "{all}");
    assert_eq!(named, "a");
    running.stop().await.expect("a graceful end");
}

/// Informers and handlers live as long as their factory. A factory that shares watches ends neither the
/// watches nor the handlers of another factory.
#[tokio::test]
async fn a_factory_keeps_its_informers_and_handlers() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    let factory = SharedInformerFactory::builder(client.clone()).namespace("default").build();
    let lines = Arc::new(Mutex::new(Vec::new()));
    let note = |who: &'static str| {
        let lines = lines.clone();
        ResourceEventHandlerFuncs::new()
            .add_func(move |map: &Arc<ConfigMap>| lines.lock().push(format!("{who} {}", map.name_any())))
    };
    // The test drops the informers; the factories keep the informers.
    let registration =
        factory.informer_for(kind::<ConfigMap>()).expect("an informer").add_event_handler(note("own"));
    let sharing = SharedInformerFactory::sharing(&factory).namespace("default").build();
    sharing.informer_for(kind::<ConfigMap>()).expect("an informer").add_event_handler(note("shared"));
    assert_eq!(factory.informers().len(), 1, "one watch");
    factory.start();
    factory.wait_for_cache_sync(stretched(SOON)).await.expect("synced");
    registration.synced().await;
    create_config_map(&client, "a").await;
    let sorted = || {
        let mut lines = lines.lock().clone();
        lines.retain(|line| !line.contains("kube-root-ca"));
        lines.sort();
        lines
    };
    eventually(SOON, async || expect_eq(sorted(), vec!["own a".to_owned(), "shared a".to_owned()])).await;

    sharing.shutdown().await;
    create_config_map(&client, "b").await;
    eventually(SOON, async || expect_eq(sorted().len(), 3)).await;
    let informer = factory.informer_for(kind::<ConfigMap>()).expect("the same informer");
    informer.remove_event_handler(&registration);
    assert!(!registration.has_synced(), "the handler is gone");
    config_maps(&client).delete("a", &DeleteParams::default()).await.expect("deleted");
    create_config_map(&client, "c").await;
    let lister = informer.lister();
    eventually(SOON, async || expect_eq(lister.get(&key("c")).expect("decodes").is_some(), true)).await;
    assert_eq!(sorted(), ["own a", "own b", "shared a"]);
    factory.shutdown().await;
    assert!(factory.informer_for(kind::<Pod>()).is_err(), "the factory has been shut down");
}

/// A runnable that shuts down its informers does not end the caches of the manager.
#[tokio::test]
async fn a_runnable_shuts_only_its_own_informers_down() {
    let cluster = TestCluster::start().await;
    let ended = Runnable::new("ends", |cx: RunContext| async move {
        cx.informers().informer_for(kind::<ConfigMap>())?;
        cx.informers().shutdown().await;
        Ok::<_, Error>(())
    });
    let (tell, mut told) = mpsc::unbounded_channel();
    let controller = Controller::of::<ConfigMap>(move |key: ObjectKey, _: Context<ConfigMap>| {
        let _ = tell.send(key);
        async { Ok::<_, Error>(Action::done()) }
    });
    let running = run(Manager::new(cluster.client()).controller(controller).runnable(ended));
    for name in ["a", "b"] {
        create_config_map(&cluster.client(), name).await;
        while tokio::time::timeout(stretched(SOON), told.recv()).await.expect("in time") != Some(key(name)) {}
    }
    running.stop().await.expect("a graceful end");
}

/// A name, a type and a resource describe the same kind.
#[test]
fn a_kind_names_its_resource() {
    let typed = kind::<Secret>().named("x");
    assert_eq!(typed.resource(), &ApiResource::erase::<Secret>(&()));
    let text = format!("{:?}", KindRef::dynamic(typed.resource()).metadata().named("y"));
    assert!(text.contains("secrets") && text.contains("metadata_only: true") && text.contains('y'), "{text}");
}

/// The server writes `PartialObjectMetadata` instead of the kind.
#[tokio::test]
async fn an_object_of_metadata_without_a_type_is_reported_and_deleted() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    create_config_map(&client, "a").await;
    let resource = ApiResource::erase::<ConfigMap>(&());
    let metadata = || KindRef::dynamic(&resource).metadata();
    let read = ApiReader::new(client.clone()).get_of(metadata(), &key("a")).await.expect("read");
    assert_eq!(read.and_then(|map| map.types).map(|types| types.kind).as_deref(), Some("ConfigMap"));

    type Metadata = PartialObjectMeta<DynamicObject>;
    let reconcile = |key: ObjectKey, cx: Context<Metadata>| async move {
        let Some(map) = cx.get(&key)?.filter(|_| key.name() == "a") else { return Ok(Action::done()) };
        cx.recorder().normal(&map, "Expired", "the time of the object is over");
        cx.delete(&map).await?;
        Ok::<_, Error>(Action::done())
    };
    let controller = Controller::of_kind(metadata(), reconcile);
    let running = run(Manager::new(client.clone()).controller(controller));
    let events: Api<Event> = Api::default_namespaced(client.clone());
    eventually(SOON, || async {
        let listed = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let about = listed.items.iter().map(|event| event.involved_object.kind.as_deref());
        expect_eq(about.collect::<Vec<_>>(), vec![Some("ConfigMap")]).map_err(|error| error.to_string())
    })
    .await;
    eventually(SOON, || async {
        expect_eq(config_maps(&client).get_opt("a").await.expect("read").is_none(), true)
    })
    .await;
    running.stop().await.expect("a graceful end");
}

/// Runs a controller of the metadata of ConfigMaps without a Rust type. Returns the context of the controller once the cache shows `a`.
async fn metadata_context(faults: &Faults) -> (Context<PartialObjectMeta<DynamicObject>>, Running) {
    let (tell, mut told) = mpsc::unbounded_channel();
    let reconcile = move |key: ObjectKey, cx: Context<PartialObjectMeta<DynamicObject>>| {
        if key.name() == "a" {
            let _ = tell.send(cx);
        }
        async { Ok::<_, Error>(Action::done()) }
    };
    let metadata = KindRef::dynamic(&ApiResource::erase::<ConfigMap>(&())).metadata();
    let controller = Controller::of_kind(metadata, reconcile);
    let running = run(Manager::new(faults.client()).controller(controller));
    (told.recv().await.expect("reconciled"), running)
}

/// A PUT of the metadata alone would remove the data.
#[tokio::test]
async fn an_object_of_metadata_replaces_no_object() {
    let cluster = TestCluster::start().await;
    let maps = config_maps(&cluster.client());
    let map = ConfigMap { data: Some([("k".to_owned(), "v".to_owned())].into()), ..config_map("a") };
    maps.create(&PostParams::default(), &map).await.expect("created");
    let (cx, running) = metadata_context(&Faults::before(cluster.client())).await;
    let object = cx.get(&key("a")).expect("decodes").expect("there");
    let update = cx.update(&*object).await.map(drop);
    let change = |object: &mut PartialObjectMeta<DynamicObject>| {
        object.labels_mut().insert("app".to_owned(), "web".to_owned());
        Ok(())
    };
    let create_or_update = cx.create_or_update(PartialObjectMeta::clone(&object), change).await.map(drop);
    let reader = ApiReader::new(cluster.client());
    let typed = reader.get_of(kind::<PartialObjectMeta<ConfigMap>>(), &key("a")).await.expect("read");
    let typed = cx.update(&typed.expect("there")).await.map(drop);
    for refused in [update, create_or_update, typed] {
        let error = refused.expect_err("only the metadata").to_string();
        assert!(error.contains("default/a") && error.contains("use `patch` or `apply`"), "{error}");
    }
    let stored = maps.get("a").await.expect("there");
    assert_eq!((stored.data, stored.metadata.labels), (map.data, None));
    running.stop().await.expect("a graceful end");
}

/// The reply to a write of kube's client may be metadata, too.
#[tokio::test]
async fn metadata_that_the_watch_has_not_shown_yet_names_the_kind() {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "a").await;
    let faults = Faults::before(cluster.client());
    let (cx, running) = metadata_context(&faults).await;
    faults.hold_watches();
    let maps: Api<ConfigMap> = Api::default_namespaced(cx.client().clone());
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "app": "web" } } }));
    maps.patch_metadata("a", &PatchParams::default(), &patch).await.expect("patched");
    let object = cx.get(&key("a")).expect("decodes").expect("there");
    assert_eq!(object.labels().get("app").map(String::as_str), Some("web"), "the read sees the write");
    let types = object.types.clone().expect("types");
    assert_eq!((types.api_version.as_str(), types.kind.as_str()), ("v1", "ConfigMap"));
    cx.delete(&object).await.expect("deleted");
    faults.release_watches();
    running.stop().await.expect("a graceful end");
}

/// The controller asks the server for the scope of the owner's kind until the server serves the kind.
#[tokio::test]
async fn a_watch_of_a_kind_that_is_not_served_ends_with_the_controller() {
    let cluster = TestCluster::start().await;
    let reconcile = |_: ObjectKey, _: Context<()>| async { Ok::<_, Error>(Action::done()) };
    let controller = Controller::<ObjectKey>::keyed("owners", reconcile);
    let handle = controller.handle();
    let faults = Faults::before(cluster.client());
    let running = run(Manager::new(faults.client()).controller(controller));
    let widgets = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    let mut adding = std::pin::pin!(handle.watch(Watch::owned(kind::<Secret>()).owner_kind(widgets)));
    let asks = || async { expect_eq(faults.count(&Method::GET, "/apis/example.com/v1") > 0, true) };
    tokio::select! {
        added = adding.as_mut() => panic!("the server does not serve the kind: {added:?}"),
        () = eventually(SOON, asks) => {}
    }
    running.stop().await.expect("a graceful end");
    let ended = tokio::time::timeout(stretched(SOON), adding).await.expect("the controller has ended");
    assert!(ended.expect_err("no controller").is_stopped());
}

/// Returns a controller that sends each key, and the keys.
fn keys_of(kind: &ApiResource) -> (Controller<ObjectKey>, mpsc::UnboundedReceiver<ObjectKey>) {
    let (tell, told) = mpsc::unbounded_channel();
    let controller = Controller::of_kind(kind, move |key: ObjectKey, _: Context<DynamicObject>| {
        let _ = tell.send(key);
        async { Ok::<_, Error>(Action::done()) }
    });
    (controller, told)
}

/// Creates a Secret that an object controls.
async fn create_owned_secret(cluster: &TestCluster, owner: &PriorityClass) {
    let owned = windlass_runtime::owner::Owned::controlled_by(secret("s"), owner).expect("an owner");
    secrets(&cluster.client()).create(&PostParams::default(), &owned).await.expect("created");
}

async fn create_priority_class(cluster: &TestCluster) -> PriorityClass {
    let metadata = ObjectMeta { name: Some("high".to_owned()), ..ObjectMeta::default() };
    let class = PriorityClass { metadata, value: Some(7), ..PriorityClass::default() };
    Api::all(cluster.client()).create(&PostParams::default(), &class).await.expect("created")
}

#[tokio::test]
async fn a_later_watch_of_owned_objects_enqueues_a_cluster_scoped_owner_without_a_type() {
    let cluster = TestCluster::start().await;
    let owner = create_priority_class(&cluster).await;
    let resource = ApiResource::erase::<PriorityClass>(&());
    let (controller, mut told) = keys_of(&resource);
    let handle = controller.handle();
    let running = run(Manager::new(cluster.client()).controller(controller));
    let mut next = async || loop {
        // The server makes further objects of the kind.
        if let Some(key) = told.recv().await.filter(|key| key.name() == "high") {
            return key;
        }
    };
    next().await;
    handle.watch(Watch::owned(kind::<Secret>())).await.expect("watched");
    create_owned_secret(&cluster, &owner).await;
    assert_eq!(next().await, ObjectKey::cluster("high"));
    running.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn a_named_kind_of_owners_without_a_type_may_be_cluster_scoped() {
    let cluster = TestCluster::start().await;
    let owner = create_priority_class(&cluster).await;
    let (tell, mut told) = mpsc::unbounded_channel();
    let controller = Controller::<ObjectKey>::keyed("owners", move |key: ObjectKey, _: Context<()>| {
        let _ = tell.send(key);
        async { Ok::<_, Error>(Action::done()) }
    });
    let owned = Watch::owned(kind::<Secret>()).owner_kind(ApiResource::erase::<PriorityClass>(&()));
    let running = run(Manager::new(cluster.client()).controller(controller.watch(owned)));
    create_owned_secret(&cluster, &owner).await;
    assert_eq!(told.recv().await, Some(ObjectKey::cluster("high")));
    running.stop().await.expect("a graceful end");
}
