use std::collections::BTreeMap;

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Pod, PodStatus, Secret},
};
use kube_client::{
    Api,
    api::{DeleteParams, ListParams, PatchParams, PostParams},
};
use kube_core::{
    ApiResource, DynamicObject, GroupVersionKind, ObjectMeta, ResourceExt, metadata::PartialObjectMeta,
    params::Patch,
};
use serde_json::json;

use super::FakeCluster;
use crate::Fault;
use windlass_runtime::{
    Action, Context, Controller, Error, KindRef, ObjectKey, OperationResult, Result, Selector, Watch,
    events::EventType,
    finalizer::{self, Finalize},
    informer::{CacheOptions, IndexFn},
    kind,
    owner::Owned,
    permission,
};

fn meta(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), namespace: Some("default".to_owned()), ..ObjectMeta::default() }
}

fn config_map(name: &str) -> ConfigMap {
    ConfigMap { metadata: meta(name), ..ConfigMap::default() }
}

fn pod(name: &str) -> Pod {
    let spec = json!({ "containers": [{ "name": "main", "image": "busybox" }] });
    Pod { metadata: meta(name), spec: serde_json::from_value(spec).expect("a spec"), status: None }
}

fn labelled(mut map: ConfigMap, key: &str, value: &str) -> ConfigMap {
    map.metadata.labels = Some(BTreeMap::from([(key.to_owned(), value.to_owned())]));
    map
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

fn version(object: &impl ResourceExt) -> String {
    object.resource_version().expect("a resource version")
}

fn running() -> PodStatus {
    PodStatus { phase: Some("Running".to_owned()), ..PodStatus::default() }
}

#[tokio::test]
async fn a_write_is_read_at_once() -> Result<()> {
    let fake = FakeCluster::new([config_map("a")]);
    let cx: Context<ConfigMap> = fake.context();
    let parent = cx.get(&key("a"))?.expect("inserted");
    assert!(cx.owned_by::<Pod>(&parent)?.is_empty(), "a kind without objects is an empty cache");
    let created = cx.create(pod("a-0").controlled_by(parent.as_ref())?).await?;
    assert_eq!(cx.owned_by::<Pod>(&parent)?.names(), ["a-0"]);
    assert_eq!(fake.writes(), ["create Pod default/a-0"]);
    assert_eq!(fake.writes()[0].field_manager.as_deref(), Some("configmap"));
    assert_eq!(fake.writes()[0].body["spec"]["containers"][0]["image"], "busybox");
    cx.delete(&created).await?;
    assert!(cx.owned_by::<Pod>(&parent)?.is_empty());
    cx.delete(&created).await?;
    assert_eq!(fake.take_writes(), ["create Pod default/a-0", "delete Pod default/a-0"]);
    assert!(fake.writes().is_empty() && fake.list::<Pod>().is_empty());
    Ok(())
}

#[tokio::test]
async fn two_runs_are_equal() -> Result<()> {
    let run = async || -> Result<String> {
        let fake = FakeCluster::new([config_map("a")]);
        let cx: Context<ConfigMap> = fake.context();
        let mut child = pod("");
        child.metadata.name = None;
        child.metadata.generate_name = Some("a-".to_owned());
        let child = cx.create(child).await?;
        assert!(child.name_any().starts_with("a-") && child.name_any().len() == 7, "{}", child.name_any());
        Ok(serde_json::to_string(&(fake.get::<Pod>(&key(&child.name_any())), fake.list::<ConfigMap>()))?)
    };
    let first = run().await?;
    assert!(first.contains(r#""creationTimestamp":"2026-01-01T00:00:00Z""#), "{first}");
    assert_eq!(first, run().await?);
    Ok(())
}

#[tokio::test]
async fn an_update_has_conditions() -> Result<()> {
    let fake = FakeCluster::new([config_map("a")]);
    let cx: Context<ConfigMap> = fake.context();
    let read = cx.get(&key("a"))?.expect("inserted");
    assert_eq!(version(&cx.update(read.as_ref()).await?), version(read.as_ref()), "nothing changed");
    let written = cx.update(&labelled(ConfigMap::clone(&read), "x", "1")).await?;
    assert_ne!(version(&written), version(read.as_ref()));
    let error = cx.update(&labelled(ConfigMap::clone(&read), "x", "2")).await.expect_err("it is stale");
    assert!(error.is_conflict(), "{error}");
    fake.remove::<ConfigMap>(&key("a"));
    assert!(cx.update(&written).await.expect_err("it is gone").is_not_found());
    fake.insert(config_map("a"));
    let mut successor = labelled(written, "x", "2");
    successor.metadata.resource_version = None;
    let error = cx.update(&successor).await.expect_err("it has another uid");
    assert!(error.is_conflict(), "{error}");
    let error = cx.create(config_map("a")).await.expect_err("it exists");
    assert_eq!(error.to_string(), "creating ConfigMap default/a: configmaps \"a\" already exists (409)");
    let error = cx.create(ConfigMap::clone(&read)).await.expect_err("it was read");
    assert!(error.to_string().contains("resourceVersion should not be set"), "{error}");
    Ok(())
}

#[tokio::test]
async fn the_status_is_written_apart() -> Result<()> {
    let fake = FakeCluster::new([pod("a")]);
    let cx: Context<Pod> = fake.context();
    let read = cx.get(&key("a"))?.expect("inserted");
    assert_eq!(read.metadata.generation, Some(1));
    assert_eq!(cx.update_status(&read, running()).await?, OperationResult::Updated);
    assert_eq!(cx.get(&key("a"))?.and_then(|pod| pod.status.clone()), Some(running()));
    let read = cx.get(&key("a"))?.expect("still there");
    assert_eq!(read.metadata.generation, Some(1), "a status is not counted");
    assert_eq!(cx.update_status(&read, running()).await?, OperationResult::Unchanged);
    let patch = Patch::Merge(json!({ "spec": { "nodeName": "n" }, "status": { "phase": "Failed" } }));
    let patched: Pod = cx.patch(&key("a"), &patch).await?;
    assert_eq!((patched.status, patched.metadata.generation), (Some(running()), Some(2)));
    assert_eq!(fake.writes(), ["patch Pod/status default/a", "patch Pod default/a"]);
    fake.remove::<Pod>(&key("a"));
    assert_eq!(cx.update_status(&read, PodStatus::default()).await?, OperationResult::Gone);
    fake.insert(pod("a"));
    assert_eq!(cx.update_status(&read, PodStatus::default()).await?, OperationResult::Replaced);
    Ok(())
}

#[tokio::test]
async fn finalizers_hold_a_deleted_object() -> Result<()> {
    let fake = FakeCluster::new([config_map("a")]);
    let cx: Context<ConfigMap> = fake.context();
    let guarded = async |cx: &Context<ConfigMap>| -> Result<String> {
        let Some(map) = cx.get(&key("a"))? else { return Ok("gone".to_owned()) };
        let mut did = String::new();
        finalizer::guard(cx, map, "example.com/bucket", async |event| {
            did = match event {
                Finalize::Apply(_) => "apply".to_owned(),
                Finalize::Cleanup(_) => "cleanup".to_owned(),
            };
            Ok(Action::done())
        })
        .await?;
        Ok(did)
    };
    assert_eq!(guarded(&cx).await?, "apply");
    fake.delete::<ConfigMap>(&key("a"));
    let held = fake.get::<ConfigMap>(&key("a")).expect("held by the finalizer");
    assert!(held.metadata.deletion_timestamp.is_some() && cx.get_not_terminating(&key("a"))?.is_none());
    let another =
        Patch::Merge(json!({ "metadata": { "finalizers": ["example.com/bucket", "example.com/b"] } }));
    let error = cx.patch::<ConfigMap, _>(&key("a"), &another).await.expect_err("it is being deleted");
    assert!(error.is_invalid(), "{error}");
    assert_eq!(guarded(&cx).await?, "cleanup");
    assert_eq!(guarded(&cx).await?, "gone");
    assert_eq!(fake.get::<ConfigMap>(&key("a")), None);
    Ok(())
}

const TIMEOUT: Fault = Fault::Timeout { committed: false };

#[tokio::test]
async fn requests_fail_on_demand() -> Result<()> {
    let fake = FakeCluster::new([config_map("a"), config_map("b")]);
    let cx: Context<ConfigMap> = fake.context();
    fake.inject(Fault::Conflict.on_update::<ConfigMap>().named("b"));
    fake.inject(Fault::ServerError.on_writes());
    let (a, b) = (fake.get(&key("a")).expect("a"), fake.get(&key("b")).expect("b"));
    let error = cx.update::<ConfigMap>(&a).await.expect_err("the second failure matches");
    assert!(error.is_transient() && error.status().is_some_and(|status| status.code == 500), "{error}");
    assert!(cx.update::<ConfigMap>(&b).await.expect_err("the first failure matches").is_conflict());
    cx.update::<ConfigMap>(&b).await?;
    assert_eq!(fake.take_writes(), ["update ConfigMap default/b"], "a write that failed is none");

    fake.inject(Fault::Forbidden.on_create::<Pod>().always());
    for _ in 0..2 {
        assert!(cx.create(pod("a")).await.expect_err("forbidden").is_forbidden());
    }
    fake.inject(TIMEOUT.on(permission::Verb::Delete));
    assert!(cx.delete(&a).await.expect_err("a timeout").is_timeout());
    fake.inject(Fault::NotFound.on_delete::<ConfigMap>());
    cx.delete(&a).await?;
    assert!(fake.get::<ConfigMap>(&key("a")).is_some(), "the fake did not delete it");
    fake.assert_all_struck();
    fake.inject(Fault::AlreadyExists.on_create::<Pod>());
    fake.clear_faults();
    cx.create(pod("a")).await.map(drop)
}

/// The answer is lost, and the reconcile is repeated.
#[tokio::test]
async fn a_request_with_a_lost_answer_is_carried_out() -> Result<()> {
    let fake = FakeCluster::builder().build();
    let cx = fake.context::<ConfigMap>();
    fake.inject(Fault::Cut { committed: true }.on_create::<ConfigMap>().named("a"));
    assert!(cx.create(config_map("a")).await.expect_err("no answer").is_transient());
    assert!(cx.create(config_map("a")).await.expect_err("the object exists").is_already_exists());
    fake.inject(Fault::Timeout { committed: true }.on_delete::<ConfigMap>());
    let found = fake.get::<ConfigMap>(&key("a")).expect("a");
    assert!(cx.delete(&found).await.expect_err("a timeout").is_timeout());
    assert_eq!(fake.get::<ConfigMap>(&key("a")), None);
    fake.assert_all_struck();
    Ok(())
}

#[tokio::test]
#[should_panic(expected = "these faults did not strike: conflict on patch pods")]
async fn a_fault_that_did_not_strike_before_the_end_of_all_faults_fails_the_test() {
    let fake = FakeCluster::builder().build();
    fake.inject(Fault::Conflict.on_patch::<Pod>());
    fake.clear_faults();
    fake.assert_all_struck();
}

#[tokio::test]
#[should_panic(expected = "the fake cluster has no watches")]
async fn a_fault_of_a_watch_is_refused() {
    FakeCluster::builder().build().inject(Fault::Expired.on_any());
}

#[tokio::test]
async fn the_world_changes_between_two_reconciles() -> Result<()> {
    let fake = FakeCluster::builder().object(config_map("a")).objects([pod("x"), pod("y")]).build();
    let cx: Context<ConfigMap> = fake.context();
    assert_eq!(cx.lister::<Pod>()?.all()?.names(), ["x", "y"]);
    fake.update(&key("x"), |pod: &mut Pod| pod.status = Some(running()));
    let x = cx.lister::<Pod>()?.get(&key("x"))?.expect("x");
    assert_eq!(x.status, Some(running()));
    fake.remove::<Pod>(&key("y"));
    fake.insert(pod("z"));
    assert_eq!(cx.lister::<Pod>()?.all()?.names(), ["x", "z"]);
    assert!(fake.writes().is_empty(), "these were no writes of the reconciler");
    Ok(())
}

#[tokio::test]
async fn a_plain_client_sees_the_same_objects() -> Result<()> {
    let fake = FakeCluster::new([labelled(config_map("a"), "x", "1"), config_map("b")]);
    let maps: Api<ConfigMap> = Api::default_namespaced(fake.client().clone());
    let names = async |params: ListParams| -> Result<Vec<String>> {
        Ok(maps.list(&params).await?.items.iter().map(ResourceExt::name_any).collect())
    };
    assert_eq!(names(ListParams::default()).await?, ["a", "b"]);
    assert_eq!(names(ListParams::default().labels("x=1")).await?, ["a"]);
    assert_eq!(names(ListParams::default().fields("metadata.name!=a")).await?, ["b"]);
    assert_eq!(maps.get_opt("c").await?, None);
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    maps.create(&dry, &config_map("c")).await?;
    assert_eq!(maps.get_opt("c").await?, None);
    let deleted = maps.delete("a", &DeleteParams::default()).await?;
    assert!(deleted.is_right(), "{deleted:?}");
    assert_eq!(fake.writes(), ["delete ConfigMap default/a"]);
    maps.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    assert_eq!(fake.writes()[1], "deletecollection ConfigMap default");
    assert!(names(ListParams::default()).await?.is_empty());

    let deployments: Api<Deployment> = Api::default_namespaced(fake.client().clone());
    let deployment = Deployment { metadata: meta("web"), ..Deployment::default() };
    deployments.create(&PostParams::default(), &deployment).await?;
    let scale = Patch::Merge(json!({ "spec": { "replicas": 3 } }));
    let scaled = deployments.patch_scale("web", &PatchParams::default(), &scale).await?;
    assert_eq!(scaled.spec.and_then(|spec| spec.replicas), Some(3));
    assert_eq!(deployments.get("web").await?.spec.and_then(|spec| spec.replicas), Some(3));
    Ok(())
}

#[tokio::test]
async fn patches_and_apply_merge() -> Result<()> {
    let fake = FakeCluster::new([pod("a")]);
    let cx: Context<Pod> = fake.context();
    let images = |pod: &Pod| -> Vec<String> {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        containers.map(|c| format!("{}={}", c.name, c.image.as_deref().unwrap_or_default())).collect()
    };
    let add = json!({ "spec": { "containers": [{ "name": "log", "image": "fluent" }] } });
    let patched: Pod = cx.patch(&key("a"), &Patch::Strategic(add.clone())).await?;
    assert_eq!(images(&patched), ["main=busybox", "log=fluent"]);
    let delete = json!({ "spec": { "containers": [{ "name": "main", "$patch": "delete" }] } });
    let patched: Pod = cx.patch(&key("a"), &Patch::Strategic(delete)).await?;
    assert_eq!(images(&patched), ["log=fluent"]);
    let replaced: Pod = cx.patch(&key("a"), &Patch::Merge(json!({ "spec": { "containers": [] } }))).await?;
    assert!(images(&replaced).is_empty());

    let apply = |labels: serde_json::Value| {
        Patch::Apply(json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "labels": labels } }))
    };
    let mut labels = fake.get::<Pod>(&key("a")).expect("a").metadata.labels;
    assert_eq!(labels, None);
    let patched: Pod = cx.patch(&key("a"), &apply(json!({ "x": "1", "y": "1" }))).await?;
    labels = patched.metadata.labels;
    assert_eq!(labels.expect("labels").len(), 2);
    let other = Patch::Merge(json!({ "metadata": { "labels": { "z": "1" } } }));
    cx.patch::<Pod, _>(&key("a"), &other).await?;
    let patched: Pod = cx.patch(&key("a"), &apply(json!({ "y": "2" }))).await?;
    let labels = patched.metadata.labels.expect("labels");
    assert_eq!(labels, BTreeMap::from([("y".into(), "2".into()), ("z".into(), "1".into())]), "x was dropped");
    let created: Pod = cx.patch(&key("new"), &apply(json!({ "x": "1" }))).await?;
    assert!(created.uid().is_some());
    assert_eq!(fake.writes().last().map(ToString::to_string).as_deref(), Some("apply Pod default/new"));
    Ok(())
}

#[tokio::test]
async fn a_declared_controller_has_its_own_caches() -> Result<()> {
    let selector: Selector = "app=web".parse().map_err(Error::other)?;
    let pods = CacheOptions::new()
        .namespaces(["default", "other"])
        .label_selector(selector)
        .index("node", IndexFn::field("spec.nodeName".parse().map_err(Error::other)?));
    let controller = Controller::of::<ConfigMap>(|key: ObjectKey, cx: Context<ConfigMap>| async move {
        cx.create(pod(&format!("{}-0", key.name()))).await?;
        assert!(cx.lister::<Secret>().expect_err("it is not watched").is_not_declared());
        Ok::<_, Error>(Action::done())
    })
    .named("mapper")
    .watch(Watch::reads_only(KindRef::dynamic(&ApiResource::erase::<Deployment>(&())).metadata()))
    .watch(Watch::owned(kind::<Pod>()).options(pods))
    .watch(
        Watch::owned(kind::<Pod>().named("b"))
            .options(CacheOptions::new().field_selector("metadata.name=b-0")),
    );
    let fake = FakeCluster::new([config_map("a"), config_map("b")]);
    let cx: Context<ConfigMap> = fake.context_of(&controller)?;
    let mut web = Deployment { metadata: meta("web"), ..Deployment::default() };
    fake.insert(web.clone());
    web.metadata.name = Some("front".to_owned());
    cx.create(web).await?;
    fake.take_writes();
    let deployments = cx.lister::<PartialObjectMeta<Deployment>>()?.all()?;
    assert_eq!(deployments.names(), ["front", "web"]);
    fake.reconcile(&controller, key("a")).await?;
    fake.reconcile(&controller, key("b")).await?;
    assert_eq!(cx.controller(), "mapper");
    assert_eq!(fake.take_writes(), ["create Pod default/a-0", "create Pod default/b-0"]);
    assert!(cx.lister::<Pod>()?.all()?.is_empty(), "none has the label");
    assert_eq!(cx.lister_of(kind::<Pod>().named("b"))?.all()?.names(), ["b-0"]);
    let change = json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "nodeName": "n" } });
    cx.patch::<Pod, _>(&key("a-0"), &Patch::Merge(change)).await?;
    assert_eq!(cx.lister::<Pod>()?.by_index("node", "n")?.names(), ["a-0"]);
    cx.patch::<Pod, _>(&key("a-0"), &Patch::Merge(json!({ "metadata": { "labels": null } }))).await?;
    assert!(cx.lister::<Pod>()?.all()?.is_empty(), "the label is gone");
    Ok(())
}

#[tokio::test]
async fn dynamic_kinds_need_no_declaration() -> Result<()> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Backup"));
    let mut backup =
        DynamicObject::new("a", &resource).within("default").data(json!({ "spec": { "keep": 1 } }));
    let fake = FakeCluster::new([backup.clone()]);
    let cx = fake.context_of_kind(&resource);
    let read = cx.get(&key("a"))?.expect("inserted");
    assert_eq!((&read.data["spec"]["keep"], read.metadata.generation), (&json!(1), Some(1)));
    cx.update_status(&read, json!({ "done": true })).await?;
    assert_eq!(cx.get(&key("a"))?.expect("there").data["status"]["done"], true);
    let error = cx.update(&backup).await.expect_err("a custom resource is not updated without a version");
    assert!(error.is_invalid(), "{error}");
    backup.metadata.name = Some("b".to_owned());
    let upserted = cx.create_or_update(backup, |backup| {
        backup.data["spec"]["keep"] = json!(2);
        Ok(())
    });
    assert_eq!(upserted.await?.operation, OperationResult::Created);
    assert_eq!(fake.writes(), ["patch Backup/status default/a", "create Backup default/b"]);
    assert_eq!(fake.list_of(&resource).len(), 2);
    assert!(cx.lister_of(KindRef::dynamic(&resource).metadata())?.get(&key("b"))?.is_some());
    Ok(())
}

#[tokio::test]
async fn events_are_kept() {
    let fake = FakeCluster::new([config_map("a")]);
    let cx: Context<ConfigMap> = fake.context();
    let map = cx.get(&key("a")).expect("decodes").expect("inserted");
    cx.recorder().warning(map.as_ref(), "Full", "the bucket is full");
    assert_eq!(fake.events(), ["Warning Full ConfigMap default/a: the bucket is full"]);
    assert_eq!((fake.events()[0].kind, &*fake.events()[0].component), (EventType::Warning, "configmap"));
}

#[tokio::test]
async fn dependents_go_with_their_owner_only_if_asked() -> Result<()> {
    for collect in [false, true] {
        let mut builder = FakeCluster::builder().object(config_map("a")).controller_name("mine");
        if collect {
            builder = builder.collect_garbage();
        }
        let fake = builder.build();
        let cx: Context<ConfigMap> = fake.context();
        assert_eq!(cx.controller(), "mine");
        let parent = cx.get(&key("a"))?.expect("inserted");
        let child = cx.create(config_map("child").controlled_by(parent.as_ref())?).await?;
        cx.create(pod("grandchild").controlled_by(&child)?).await?;
        cx.delete(parent.as_ref()).await?;
        assert_eq!(fake.list::<Pod>().is_empty(), collect);
        assert_eq!(cx.get(&key("child"))?.is_none(), collect);
    }
    Ok(())
}

/// Returns a context with this field manager.
fn writer(fake: &FakeCluster, name: &str) -> Context<ConfigMap> {
    let controller =
        Controller::of::<ConfigMap>(async |_: ObjectKey, _: Context<ConfigMap>| -> Result<Action> {
            Ok(Action::done())
        });
    fake.context_of(&controller.named(name)).expect("watches that agree")
}

/// As in a manager, a controller remembers the applies of earlier reconciles.
#[tokio::test]
async fn a_second_reconcile_applies_nothing_again() -> Result<()> {
    use windlass_runtime::apply::core::v1::config_map as configuration;

    async fn reconcile(key: ObjectKey, cx: Context<Pod>) -> Result<Action> {
        let Some(pod) = cx.get(&key)? else { return Ok(Action::done()) };
        let map = configuration(key.sibling("of-a").name(), "default").data([("k", "v")]);
        cx.apply(&map.controlled_by(&pod)?).await?;
        Ok(Action::done())
    }
    let fake = FakeCluster::new([pod("a")]);
    let controller = Controller::of::<Pod>(reconcile).owns::<ConfigMap>();
    fake.reconcile(&controller, key("a")).await?;
    assert_eq!(fake.take_writes(), ["apply ConfigMap default/of-a"]);
    fake.reconcile(&controller, key("a")).await?;
    assert!(fake.writes().is_empty(), "nothing is left to do");
    fake.delete::<ConfigMap>(&key("of-a"));
    fake.reconcile(&controller, key("a")).await?;
    assert_eq!(fake.take_writes(), ["apply ConfigMap default/of-a"], "the object is gone");
    fake.reconcile(&controller.named("another"), key("a")).await?;
    assert_eq!(
        fake.take_writes(),
        ["apply ConfigMap default/of-a"],
        "another controller applied nothing before"
    );
    Ok(())
}

#[tokio::test]
async fn apply_knows_the_owners_of_fields() -> Result<()> {
    use windlass_runtime::apply::core::v1::config_map;

    let fake = FakeCluster::new([ConfigMap { metadata: meta("a"), ..ConfigMap::default() }]);
    let (ours, theirs) = (writer(&fake, "ours"), writer(&fake, "theirs"));
    let map = || config_map("a", "default");
    theirs.apply(&map().data([("x", "theirs"), ("same", "s")])).await?;
    fake.update(&key("a"), |map: &mut ConfigMap| {
        map.data.get_or_insert_default().insert("y".to_owned(), "test".to_owned());
    });
    let wanted = map().data([("x", "ours"), ("y", "ours"), ("z", "ours"), ("same", "s")]);
    let error = ours.apply(&wanted).force(false).await.expect_err("a conflict");
    assert_eq!(
        error.to_string(),
        "applying ConfigMap default/a: .data.y is owned by \"test\", .data.x is owned by \"theirs\"; leave it to the owner, or \
         apply with force (409)"
    );
    assert_eq!(
        error.field_conflicts().iter().map(|conflict| conflict.applied).collect::<Vec<_>>(),
        [false, true]
    );
    let values = |map: &ConfigMap| -> Vec<String> {
        let data = map.data.iter().flatten();
        data.map(|(key, value)| format!("{key}={value}")).collect()
    };
    assert_eq!(
        values(&fake.get(&key("a")).expect("the map")),
        ["same=s", "x=theirs", "y=test"],
        "nothing was written"
    );

    assert_eq!(values(&*ours.apply(&wanted).await?), ["same=s", "x=ours", "y=ours", "z=ours"]);
    assert!(!ours.apply(&wanted).await?.operation.is_written(), "the same is not sent again");
    let left = ours.apply(&map()).await?;
    assert_eq!(values(&left), ["same=s"], "what the other one owns as well stays, what it lost does not");
    theirs.apply(&map()).await?;
    assert_eq!(values(&fake.get(&key("a")).expect("the map")), Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn items_of_lists_have_owners() -> Result<()> {
    use windlass_runtime::apply::core::v1::{container, pod};

    let fake = FakeCluster::builder().build();
    let (ours, theirs) = (writer(&fake, "ours"), writer(&fake, "theirs"));
    let with = |name: &str, image: &str| pod("p", "default").containers([container(name).image(image)]);
    ours.apply(&with("main", "a")).await?;
    theirs.apply(&with("side", "b")).await?;
    let error = theirs.apply(&with("main", "c")).force(false).await.expect_err("a conflict");
    assert_eq!(error.field_conflicts()[0].field, ".spec.containers[name=\"main\"].image");
    let applied = theirs.apply(&pod("p", "default")).await?;
    let names: Vec<_> =
        applied.spec.iter().flat_map(|spec| &spec.containers).map(|item| &item.name).collect();
    assert_eq!(names, ["main"]);
    assert!(
        ours.apply(&with("main", "a")).if_uid("another").await.expect_err("another object").is_conflict()
    );
    Ok(())
}

/// An item that is dropped goes with all of its fields, whatever the names of the fields.
#[tokio::test]
async fn an_apply_removes_the_items_that_the_apply_drops() -> Result<()> {
    use windlass_runtime::apply::core::v1::{container, container_port, env_var, pod};

    let fake = FakeCluster::builder().build();
    let (ours, theirs) = (writer(&fake, "ours"), writer(&fake, "theirs"));
    let main = || container("main").image("a");
    let side = container("side")
        .env([env_var("COLOR").value("blue")])
        .image("b")
        .ports([container_port(80).protocol("TCP")])
        .working_dir("/side");
    theirs.apply(&pod("p", "default").containers([main()])).await?;
    ours.apply(&pod("p", "default").containers([side])).await?;
    let containers = |pod: &Pod| serde_json::to_value(&pod.spec.as_ref().expect("a spec").containers);
    let applied = ours.apply(&pod("p", "default")).await?;
    assert_eq!(containers(&applied).expect("JSON"), json!([{ "name": "main", "image": "a" }]));

    // An item with a field of another manager keeps the key.
    ours.apply(&pod("p", "default").containers([main(), container("side").image("b")])).await?;
    let workdir = json!([{ "op": "add", "path": "/spec/containers/1/workingDir", "value": "/theirs" }]);
    let workdir = Patch::<()>::Json(serde_json::from_value(workdir).expect("a patch"));
    theirs.patch::<Pod, _>(&key("p"), &workdir).await?;
    let applied = ours.apply(&pod("p", "default").containers([main()])).await?;
    let left = json!([{ "name": "main", "image": "a" }, { "name": "side", "workingDir": "/theirs" }]);
    assert_eq!(containers(&applied).expect("JSON"), left);
    Ok(())
}

/// The groups of some CRDs end like the groups of Kubernetes.
#[tokio::test]
async fn a_strategic_merge_patch_is_for_built_in_kinds() {
    let fake = FakeCluster::builder().build();
    for (api_version, kind, is_built_in) in [
        ("samplecontroller.k8s.io/v1alpha1", "Foo", false),
        ("gateway.networking.k8s.io/v1", "Gateway", false),
        ("example.com/v1", "Backup", false),
        ("networking.k8s.io/v1", "Ingress", true),
        ("apps/v1", "Deployment", true),
    ] {
        let (group, version) = api_version.split_once('/').expect("a group");
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = Api::namespaced_with(fake.client().clone(), "default", &resource);
        api.create(&PostParams::default(), &DynamicObject::new("a", &resource)).await.expect("created");
        let patch = Patch::Strategic(json!({ "metadata": { "labels": { "a": "b" } } }));
        let patched = api.patch("a", &PatchParams::default(), &patch).await;
        assert_eq!(patched.is_ok(), is_built_in, "{api_version} {kind}: {patched:?}");
    }
}

/// A controller without the right to list cannot find the outcome of a create. The controller is not held up
/// forever.
#[tokio::test]
async fn an_uncertain_create_is_repeated_if_lists_are_forbidden() -> Result<()> {
    let fake = FakeCluster::builder().build();
    let cx = fake.context::<ConfigMap>();
    let child = || {
        let metadata =
            ObjectMeta { generate_name: Some("a-".to_owned()), namespace: meta("a").namespace, ..meta("") };
        ConfigMap { metadata: ObjectMeta { name: None, ..metadata }, ..ConfigMap::default() }
    };
    fake.inject(TIMEOUT.on_create::<ConfigMap>());
    assert!(cx.create(child()).await.expect_err("a timeout").is_timeout());
    assert!(cx.create(child()).await.expect_err("it may have succeeded").is_conflict());
    cx.create(child()).await?;

    fake.inject(TIMEOUT.on_create::<ConfigMap>());
    assert!(cx.create(child()).await.expect_err("a timeout").is_timeout());
    fake.inject(Fault::Forbidden.on(permission::Verb::List));
    cx.create(child()).await?;
    assert_eq!(fake.list::<ConfigMap>().len(), 2);
    Ok(())
}
