//! Server-side apply from outside.

use http::Method;
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Secret},
    },
    apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry,
};
use kube::{CustomResource, CustomResourceExt as _};
use kube_client::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use kube_core::{ApiResource, DynamicObject, Resource, ResourceExt as _, params::PropagationPolicy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use windlass_apply::{
    ApplyConfiguration,
    apps::v1::{DeploymentApplyConfiguration, deployment},
    autoscaling::v1::{scale, scale_spec},
    core::v1::{config_map, container, pod_template_spec, secret},
    meta::v1::label_selector,
};
use windlass_runtime::{
    Action, Context, Controller, Error, Manager, ObjectKey, ObjectKeyExt as _, OperationResult, Result, kind,
    owner::Owned as _,
};
use windlass_test::eventually;

use crate::{
    fault::Faults,
    fixture::{Running, SOON, expect_eq, run},
    server::{TestServer, unique},
};

#[derive(CustomResource, ApplyConfiguration, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(group = "apply.example.com", version = "v1", kind = "Website", namespaced, status = "WebsiteStatus")]
#[apply(crate = "windlass_apply")]
pub(crate) struct WebsiteSpec {
    replicas: u32,
    host: Option<String>,
}

#[derive(ApplyConfiguration, Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[apply(crate = "windlass_apply")]
#[serde(rename_all = "camelCase")]
pub(crate) struct WebsiteStatus {
    ready_replicas: Option<u32>,
    certificate: Option<String>,
}

/// The context of an idle controller, and the count of requests.
struct Writer<K> {
    cx: Context<K>,
    faults: Faults,
    running: Running,
}

impl<K> Writer<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
{
    async fn new(server: &TestServer, name: &str) -> Self {
        Self::with(server, name, |controller| controller).await
    }

    async fn with(server: &TestServer, name: &str, build: impl FnOnce(Controller) -> Controller) -> Self {
        let faults = Faults::before(server.client.clone());
        let (tell, mut told) = mpsc::unbounded_channel();
        let controller = Controller::of::<K>(move |_: ObjectKey, cx: Context<K>| {
            let _ = tell.send(cx);
            async { Ok::<_, Error>(Action::done()) }
        });
        let controller = build(controller.named(name));
        let handle = controller.handle();
        let running = run(Manager::new(faults.client()).controller(controller));
        handle.enqueue(ObjectKey::namespaced("default", "none"));
        Self { cx: told.recv().await.expect("reconciled"), faults, running }
    }

    /// The number of applies that were sent.
    fn applies(&self) -> usize {
        self.faults.count(&Method::PATCH, "fieldManager=")
    }
}

fn web(server: &TestServer, name: &str) -> DeploymentApplyConfiguration {
    deployment(name, &server.namespace)
        .label("app", "web")
        .replicas(3)
        .selector(label_selector().match_labels([("app", "web")]))
        .template(pod_template_spec().label("app", "web").containers([container("main").image("nginx")]))
}

fn owned_by<'a>(fields: Option<&'a Vec<ManagedFieldsEntry>>, manager: &str) -> Option<&'a Value> {
    let entry = fields?.iter().find(|entry| entry.manager.as_deref() == Some(manager))?;
    Some(&entry.fields_v1.as_ref()?.0)
}

#[tokio::test]
async fn only_what_was_set_is_sent_and_owned() -> Result<()> {
    let server = TestServer::start().await;
    let writer = Writer::<Secret>::new(&server, "writer").await;
    let deployments: Api<Deployment> = Api::namespaced(server.client.clone(), &server.namespace);
    let created = writer.cx.apply(&web(&server, "web").label("old", "1")).await?;
    assert_eq!(created.operation, OperationResult::Created);
    assert!(created.labels().contains_key("old"));
    writer.cx.apply(&web(&server, "web")).await?;
    let now = deployments.get("web").await?;
    assert!(!now.labels().contains_key("old"), "a field that is missing now is removed");
    let wanted = json!({
        "f:metadata": { "f:labels": { "f:app": {} } },
        "f:spec": {
            "f:replicas": {}, "f:selector": {},
            "f:template": {
                "f:metadata": { "f:labels": { "f:app": {} } },
                "f:spec": { "f:containers": { "k:{\"name\":\"main\"}": { ".": {}, "f:image": {}, "f:name": {} } } },
            },
        },
    });
    assert_eq!(owned_by(now.metadata.managed_fields.as_ref(), "writer"), Some(&wanted));
    writer.running.stop().await
}

#[tokio::test]
async fn a_conflict_names_the_owner_of_each_field() -> Result<()> {
    let server = TestServer::start().await;
    let writer = Writer::<Secret>::new(&server, "writer").await;
    let cx = &writer.cx;
    let maps: Api<ConfigMap> = Api::namespaced(server.client.clone(), &server.namespace);
    let theirs = config_map("c", &server.namespace).data([("a", "theirs"), ("b", "theirs"), ("same", "x")]);
    maps.patch("c", &PatchParams::apply("kubectl"), &Patch::Apply(&theirs)).await?;
    let edit = json!({ "data": { "c": "edited" } });
    let editor = PatchParams { field_manager: Some("editor".to_owned()), ..PatchParams::default() };
    maps.patch("c", &editor, &Patch::Merge(edit)).await?;

    let ours = config_map("c", &server.namespace);
    let ours = ours.data([("a", "ours"), ("b", "ours"), ("c", "ours"), ("d", "ours"), ("same", "x")]);
    let error = cx.apply(&ours).force(false).await.expect_err("a conflict");
    assert!(error.is_conflict() && error.is_field_conflict());
    let owners: Vec<_> = error
        .field_conflicts()
        .into_iter()
        .map(|conflict| (conflict.field, conflict.manager, conflict.applied))
        .collect();
    let owner = |field: &str, manager: &str, applied| (field.to_owned(), manager.to_owned(), applied);
    let mut sorted = owners.clone();
    sorted.sort();
    let wanted = [
        owner(".data.a", "kubectl", true),
        owner(".data.b", "kubectl", true),
        owner(".data.c", "editor", false),
    ];
    assert_eq!(sorted, wanted);
    let text = format!(
        "applying ConfigMap {}/c: .data.c is owned by \"editor\", .data.a and .data.b are owned by \"kubectl\"; leave it to \
         the owner, or apply with force (409)",
        server.namespace
    );
    assert_eq!(error.to_string(), text);

    let forced = cx.apply(&ours).await?;
    let data = forced.data.clone().unwrap_or_default();
    assert_eq!(data.values().collect::<Vec<_>>(), ["ours", "ours", "ours", "ours", "x"]);
    cx.apply(&config_map("c", &server.namespace)).await?;
    let left = maps.get("c").await?.data.unwrap_or_default();
    assert_eq!(left.keys().collect::<Vec<_>>(), ["same"], "what kubectl owns as well stays");
    writer.running.stop().await
}

#[tokio::test]
async fn two_writers_of_one_status_do_not_overwrite_each_other() -> Result<()> {
    let server = TestServer::start().await;
    server.install(&Website::crd(), &ApiResource::erase::<Website>(&())).await;
    let replicas = Writer::<Website>::new(&server, "replicas").await;
    let certificates = Writer::<Website>::new(&server, "certificates").await;
    let site = || Website::apply("a", &server.namespace);
    replicas.cx.apply(&site().replicas(2)).await?;
    certificates.cx.apply_status(&site().status(WebsiteStatus::apply().certificate("issued"))).await?;
    for ready in [1, 2] {
        // The spec is not sent with the status.
        let both = site().replicas(7).status(WebsiteStatus::apply().ready_replicas(ready));
        replicas.cx.apply_status(&both).await?;
    }
    let sites: Api<Website> = Api::namespaced(server.client.clone(), &server.namespace);
    let now = sites.get("a").await?;
    assert_eq!(now.spec.replicas, 2);
    let status = now.status.expect("a status");
    assert_eq!((status.ready_replicas, status.certificate.as_deref()), (Some(2), Some("issued")));

    certificates.cx.apply_status(&site().status(WebsiteStatus::apply())).await?;
    let status = sites.get("a").await?.status.expect("a status");
    assert_eq!(
        (status.ready_replicas, status.certificate),
        (Some(2), None),
        "each removes its own field only"
    );

    let sent = certificates.applies();
    let again = certificates.cx.apply_status(&site().status(WebsiteStatus::apply())).await?;
    assert!(!again.operation.is_written());
    assert_eq!(certificates.applies(), sent, "the same status is not sent again");
    replicas.running.stop().await?;
    certificates.running.stop().await
}

/// Waits until the context's cache has an object that meets the condition `shows`.
async fn cached<K>(cx: &Context<K>, key: &ObjectKey, shows: impl Fn(&Deployment) -> bool) {
    eventually(SOON, async || {
        let object = cx.lister::<Deployment>()?.get(key)?;
        let is_so = object.as_deref().is_some_and(&shows);
        if is_so { Ok(()) } else { Err(Error::other("not yet")) }
    })
    .await;
}

#[tokio::test]
async fn the_same_configuration_is_not_sent_again_unless_the_object_changed() -> Result<()> {
    let server = TestServer::start().await;
    let writer = Writer::<Deployment>::new(&server, "writer").await;
    let cx = &writer.cx;
    let key = ObjectKey::namespaced(&server.namespace, "web");
    let deployments: Api<Deployment> = Api::namespaced(server.client.clone(), &server.namespace);
    let merge = async |patch: Value| {
        let patch = Patch::Merge(patch);
        deployments.patch("web", &PatchParams::default(), &patch).await.expect("patched")
    };

    // The watch does not show the object yet; the overlay does.
    writer.faults.hold_watches();
    assert!(cx.apply(&web(&server, "web")).await?.operation.is_written());
    assert!(!cx.apply(&web(&server, "web")).await?.operation.is_written(), "before the watch has seen it");
    writer.faults.release_watches();
    let unchanged = cx.apply(&web(&server, "web")).await?;
    assert!(!unchanged.operation.is_written());
    assert_eq!(
        unchanged.spec.as_ref().and_then(|spec| spec.replicas),
        Some(3),
        "the object is returned all the same"
    );
    assert_eq!(writer.applies(), 1);

    // A change of the status does not count.
    let status = Patch::Merge(json!({ "status": { "observedGeneration": 1 } }));
    deployments.patch_status("web", &PatchParams::default(), &status).await?;
    cached(cx, &key, |web| web.status.as_ref().is_some_and(|status| status.observed_generation == Some(1)))
        .await;
    assert!(!cx.apply(&web(&server, "web")).await?.operation.is_written());

    // A change of a field is repaired.
    merge(json!({ "spec": { "replicas": 9 } })).await;
    cached(cx, &key, |web| web.spec.as_ref().and_then(|spec| spec.replicas) == Some(9)).await;
    let repaired = cx.apply(&web(&server, "web")).await?;
    assert_eq!(repaired.spec.as_ref().and_then(|spec| spec.replicas), Some(3));
    assert!(repaired.operation.is_written() && !cx.apply(&web(&server, "web")).await?.operation.is_written());

    // A changed configuration is sent.
    assert!(cx.apply(&web(&server, "web").replicas(4)).await?.operation.is_written());
    assert!(cx.apply(&web(&server, "web")).await?.operation.is_written());
    assert_eq!(writer.applies(), 4);

    // An object that was deleted and created again has another UID.
    let old = cx.lister::<Deployment>()?.get(&key)?.expect("cached");
    deployments.delete("web", &DeleteParams::default()).await?;
    let mut copy = Deployment::clone(&old);
    copy.metadata = kube_core::ObjectMeta {
        name: Some("web".to_owned()),
        labels: old.metadata.labels.clone(),
        ..Default::default()
    };
    copy.status = None;
    let gone = || async {
        expect_eq(deployments.get_opt("web").await?.is_none(), true).map_err(|e| Error::other(e.to_string()))
    };
    eventually(SOON, gone).await;
    let new = deployments.create(&PostParams::default(), &copy).await?;
    cached(cx, &key, |web| web.uid() == new.uid()).await;
    assert!(cx.apply(&web(&server, "web")).await?.operation.is_written());
    writer.running.stop().await
}

#[tokio::test]
async fn a_kind_that_is_not_cached_is_always_sent() -> Result<()> {
    let server = TestServer::start().await;
    let writer = Writer::<Secret>::new(&server, "writer").await;
    for _ in 0..2 {
        assert!(
            writer
                .cx
                .apply(&config_map("c", &server.namespace).data([("a", "1")]))
                .await?
                .operation
                .is_written()
        );
    }
    assert_eq!(writer.applies(), 2);
    writer.running.stop().await
}

#[tokio::test]
async fn typed_and_dynamic_kinds_in_several_namespaces() -> Result<()> {
    let server = TestServer::start().await;
    server.install(&Website::crd(), &ApiResource::erase::<Website>(&())).await;
    let other = unique("other");
    server.add_namespace(&other).await;
    let writer = Writer::<ConfigMap>::with(&server, "writer", Controller::owns::<Website>).await;
    let cx = &writer.cx;
    for round in 0..2 {
        for namespace in [&server.namespace, &other] {
            let typed = cx.apply(&Website::apply("a", namespace).replicas(1)).await?;
            let map = cx.apply(&config_map("a", namespace).data([("k", "v")])).await?;
            let mut dynamic = DynamicObject::new("b", &ApiResource::erase::<Website>(&())).within(namespace);
            dynamic.data = json!({ "spec": { "replicas": 2 } });
            let dynamic = cx.apply(&dynamic.label("l", "m")).await?;
            assert_eq!(dynamic.labels()["l"], "m");
            assert_eq!(
                [typed.operation.is_written(), map.operation.is_written(), dynamic.operation.is_written()],
                [round == 0; 3],
                "{namespace} {round}"
            );
            assert_eq!(typed.namespace().as_ref(), Some(namespace));
        }
    }
    assert_eq!(writer.applies(), 6);
    writer.running.stop().await
}

#[tokio::test]
async fn an_owned_object_is_applied_with_its_owner() -> Result<()> {
    let server = TestServer::start().await;
    let writer = Writer::<ConfigMap>::with(&server, "writer", Controller::owns::<Secret>).await;
    let cx = &writer.cx;
    let parent = cx.apply(&config_map("parent", &server.namespace)).await?;
    let child = secret("child", &server.namespace).string_data([("k", "v")]).controlled_by(&*parent)?;
    cx.apply(&child).await?;
    assert_eq!(cx.owned_by::<Secret>(&parent)?.len(), 1, "read back at once");
    writer.running.stop().await
}

#[tokio::test]
async fn subresources_are_applied() -> Result<()> {
    let server = TestServer::start().await;
    let writer = Writer::<Secret>::new(&server, "scaler").await;
    let deployments: Api<Deployment> = Api::namespaced(server.client.clone(), &server.namespace);
    deployments.patch("web", &PatchParams::apply("other"), &Patch::Apply(&web(&server, "web"))).await?;
    let two = scale("web", &server.namespace).spec(scale_spec().replicas(2));
    let error = writer.cx.apply_subresource(kind::<Deployment>(), "scale", &two).force(false).await;
    let error = error.expect_err("another manager owns the replicas");
    assert_eq!(error.field_conflicts()[0].manager, "other");
    let scaled = writer.cx.apply_subresource(kind::<Deployment>(), "scale", &two).await?;
    assert_eq!(scaled.spec.as_ref().and_then(|spec| spec.replicas), Some(2));
    let now = deployments.get("web").await?;
    assert_eq!(now.spec.as_ref().and_then(|spec| spec.replicas), Some(2));
    writer.running.stop().await
}

#[tokio::test]
async fn preconditions_are_checked_by_the_server() -> Result<()> {
    let server = TestServer::start().await;
    let writer = Writer::<Secret>::new(&server, "writer").await;
    let cx = &writer.cx;
    let key = ObjectKey::namespaced(&server.namespace, "c");
    let one = || config_map("c", &server.namespace).data([("a", "1")]);
    assert!(cx.apply(&one()).if_uid("no-such-uid").await.expect_err("there is none").is_conflict());
    let first = cx.apply(&one()).await?;
    let (uid, version) = (first.uid().expect("a uid"), first.resource_version().expect("a version"));
    cx.apply(&one()).if_uid(&uid).if_resource_version(&version).await?;
    cx.apply(&one().data([("b", "2")])).if_uid(&uid).await?;

    let apply = cx.apply(&one()).if_resource_version(&version).await;
    let merge = Patch::Merge(json!({ "data": { "x": "y" } }));
    let merged = cx.patch::<ConfigMap, _>(&key, &merge).if_resource_version(&version).await;
    let steps = json!([{ "op": "add", "path": "/data/x", "value": "y" }]);
    let json_patch = Patch::Json::<()>(serde_json::from_value(steps)?);
    let stepped = cx.patch::<ConfigMap, _>(&key, &json_patch).if_resource_version(&version).await;
    let updated = cx.update(&*first.object).await;
    for (what, result) in [
        ("apply", apply.map(drop)),
        ("merge", merged.map(drop)),
        ("json", stepped.map(drop)),
        ("update", updated.map(drop)),
    ] {
        let error = result.expect_err(what);
        assert!(error.is_conflict() && !error.is_field_conflict(), "{what}: {error}");
    }
    let error = cx.apply(&one()).if_uid("another").await.expect_err("another uid");
    assert!(error.is_conflict(), "{error}");
    for patch in [&merge, &Patch::Merge(json!({}))] {
        let error = cx.patch::<ConfigMap, _>(&key, patch).if_uid("another").await.expect_err("another uid");
        assert!(error.is_conflict(), "{error}");
    }
    let error = cx.delete(&*first.object).if_unchanged().await.expect_err("it has changed");
    assert!(error.is_conflict(), "{error}");
    let now = cx.patch::<ConfigMap, _>(&key, &json_patch).if_uid(&uid).await?;
    assert_eq!(now.data.as_ref().map(std::collections::BTreeMap::len), Some(3));
    cx.delete(&now).if_unchanged().propagation(PropagationPolicy::Foreground).grace_period(0).await?;
    cx.delete(&now).await?;
    writer.running.stop().await
}

/// The server completes the name of the child, and the response to the creation is lost: the overlay does not
/// know the child.
#[tokio::test]
async fn a_create_whose_answer_is_lost_is_not_repeated() -> Result<()> {
    let server = TestServer::start().await;
    let faults = Faults::before(server.client.clone());
    let maps: Api<ConfigMap> = Api::namespaced(server.client.clone(), &server.namespace);
    let parent = ConfigMap { metadata: named("parent"), ..ConfigMap::default() };
    maps.create(&PostParams::default(), &parent).await?;
    faults.lose_answer(Method::POST, "/secrets");
    let (tell, mut told) = mpsc::unbounded_channel();
    let parent = ObjectKey::namespaced(&server.namespace, "parent");
    let controller = Controller::of::<ConfigMap>({
        let faults = faults.clone();
        move |key: ObjectKey, cx: Context<ConfigMap>| {
            let (faults, tell, is_parent) = (faults.clone(), tell.clone(), key == parent);
            async move {
                let Some(parent) = cx.get(&key)?.filter(|_| is_parent) else {
                    return Ok::<_, Error>(Action::done());
                };
                if cx.owned_by::<Secret>(&parent)?.is_empty() {
                    // The watch does not show the child before the second attempt.
                    faults.hold_watches();
                    let mut child = Secret::default();
                    child.metadata.generate_name = Some("child-".to_owned());
                    child.metadata.namespace = parent.namespace();
                    let result = cx.create(child.controlled_by(&*parent)?).await;
                    let _ = tell.send(result.as_ref().err().map(ToString::to_string));
                    result?;
                }
                let _ = tell.send(None);
                Ok(Action::done())
            }
        }
    })
    .named("creator")
    .owns::<Secret>();
    let running = run(Manager::new(faults.client()).controller(controller));
    let lost = told.recv().await.flatten().expect("an error");
    assert!(lost.contains("the connection broke"), "{lost}");
    let uncertain = told.recv().await.flatten().expect("an error");
    assert_eq!(
        uncertain,
        "an earlier attempt to create Secret child-* may have succeeded; the reconcile is repeated when the caches show it \
         (409)"
    );
    faults.release_watches();
    assert_eq!(told.recv().await.flatten(), None, "the child is there");
    assert_eq!(faults.count(&Method::POST, "/secrets"), 1);
    let secrets: Api<Secret> = Api::namespaced(server.client.clone(), &server.namespace);
    assert_eq!(secrets.list(&ListParams::default()).await?.items.len(), 1);
    running.stop().await
}

fn named(name: &str) -> kube_core::ObjectMeta {
    kube_core::ObjectMeta { name: Some(name.to_owned()), ..Default::default() }
}

#[tokio::test]
async fn an_apply_can_be_spawned() -> Result<()> {
    let server = TestServer::start().await;
    let writer = Writer::<Secret>::new(&server, "writer").await;
    let map = config_map("a", &server.namespace);
    let cx = writer.cx.clone();
    let applied = tokio::spawn(async move { cx.apply(&map).await }).await.map_err(Error::other)??;
    assert_eq!(ObjectKey::of(&*applied.object).name(), "a");
    writer.running.stop().await
}
