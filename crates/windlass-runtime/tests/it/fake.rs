//! The fake cluster answers as an API server does: the same writes, one after the other, on both.

use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::ConfigMap},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube_client::{
    Api,
    api::{DeleteParams, ListParams, PostParams, Preconditions},
};
use kube_core::{ApiResource, DynamicObject, GroupVersionKind, ResourceExt, params::Patch};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use windlass_runtime::{Action, Context, Controller, Error, Manager, ObjectKey, Result, finalizer};
use windlass_test::TestCluster;
use windlass_test::fake::FakeCluster;

const FINALIZER: &str = "example.com/bucket";

/// One request, or one method of a context.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Create,
    CreateWithResourceVersion,
    CreateWithStatus,
    CreateDryRun,
    UpdateUnchanged,
    UpdateLabel,
    UpdateStale,
    UpdateAnotherUid,
    UpdateWithoutResourceVersion,
    UpdateSpecAndStatus,
    MergePatch,
    MergePatchUnchanged,
    MergePatchStale,
    JsonPatchFailingTest,
    JsonPatchOfNothing,
    JsonPatchReplacesNothing,
    StrategicPatch,
    StatusWrite,
    StatusUnchanged,
    StatusPatchOfEverything,
    StatusOfOldUid,
    FinalizerGuard,
    FinalizerAdd,
    FinalizersRemove,
    DeleteOldUid,
    DeletePreconditionUid,
    DeletePreconditionVersion,
    Delete,
    DeleteDryRun,
    List,
    ListSelected,
    ListByField,
}

use Step::{
    Create, CreateDryRun, CreateWithResourceVersion, CreateWithStatus, Delete, DeleteDryRun, DeleteOldUid,
    DeletePreconditionUid, DeletePreconditionVersion, FinalizerAdd, FinalizerGuard, FinalizersRemove,
    JsonPatchFailingTest, JsonPatchOfNothing, JsonPatchReplacesNothing, List, ListByField, ListSelected,
    MergePatch, MergePatchStale, MergePatchUnchanged, StatusOfOldUid, StatusPatchOfEverything,
    StatusUnchanged, StatusWrite, StrategicPatch, UpdateAnotherUid, UpdateLabel, UpdateSpecAndStatus,
    UpdateStale, UpdateUnchanged, UpdateWithoutResourceVersion,
};

const STEPS: &[Step] = &[
    // Nothing is there yet.
    UpdateLabel,
    MergePatch,
    JsonPatchFailingTest,
    StatusWrite,
    Delete,
    List,
    // A life.
    CreateDryRun,
    Create,
    Create,
    CreateWithResourceVersion,
    List,
    UpdateUnchanged,
    UpdateLabel,
    UpdateStale,
    UpdateAnotherUid,
    UpdateWithoutResourceVersion,
    UpdateSpecAndStatus,
    ListSelected,
    ListByField,
    MergePatch,
    MergePatchUnchanged,
    MergePatchStale,
    JsonPatchFailingTest,
    JsonPatchOfNothing,
    JsonPatchReplacesNothing,
    StrategicPatch,
    StatusWrite,
    StatusUnchanged,
    StatusPatchOfEverything,
    FinalizerGuard,
    FinalizerGuard,
    // Its end.
    DeletePreconditionUid,
    DeletePreconditionVersion,
    DeleteDryRun,
    Delete,
    Delete,
    Create,
    UpdateLabel,
    FinalizerAdd,
    MergePatch,
    FinalizersRemove,
    FinalizersRemove,
    StatusWrite,
    Delete,
    // A successor.
    CreateWithStatus,
    StatusOfOldUid,
    DeleteOldUid,
    UpdateStale,
    Delete,
    List,
];

/// One server, a kind, and what was seen of its object.
struct Subject {
    cx: Context<DynamicObject>,
    api: Api<DynamicObject>,
    resource: ApiResource,
    /// The object as it was first created.
    first: Option<DynamicObject>,
    /// The object as it is now, or was last.
    last: DynamicObject,
}

fn key() -> ObjectKey {
    ObjectKey::namespaced("default", "a")
}

fn labelled(object: &DynamicObject, value: &str) -> DynamicObject {
    let mut object = object.clone();
    object.labels_mut().insert("step".to_owned(), value.to_owned());
    object
}

impl Subject {
    fn new(cx: Context<DynamicObject>, resource: &ApiResource) -> Self {
        let api = Api::default_namespaced_with(cx.client().clone(), resource);
        let data = match resource.kind.as_str() {
            "ConfigMap" => json!({ "data": { "x": "1" } }),
            "Deployment" => json!({ "spec": {
                "replicas": 1,
                "selector": { "matchLabels": { "app": "a" } },
                "template": {
                    "metadata": { "labels": { "app": "a" } },
                    "spec": { "containers": [{ "name": "main", "image": "busybox" }] },
                },
            } }),
            _ => json!({ "spec": { "replicas": 1 } }),
        };
        let last = DynamicObject::new("a", resource).within("default").data(data);
        Self { cx, api, resource: resource.clone(), first: None, last }
    }

    /// The object as a client makes it, without anything that the server sets.
    fn fresh(&self) -> DynamicObject {
        Self::new(self.cx.clone(), &self.resource).last
    }

    fn first(&self) -> &DynamicObject {
        self.first.as_ref().unwrap_or(&self.last)
    }

    fn with_status(object: &DynamicObject, replicas: u32) -> DynamicObject {
        let mut object = object.clone();
        object.data["status"] = json!({ "replicas": replicas });
        object
    }

    async fn run(&mut self, step: Step) -> Result<String> {
        let last = self.last.clone();
        let mut stale_version = json!({ "metadata": { "labels": { "step": "stale" } } });
        stale_version["metadata"]["resourceVersion"] = json!(self.first().resource_version());
        let merge = json!({ "metadata": { "labels": { "step": "merged" } } });
        let done = |_: DynamicObject| "ok".to_owned();
        match step {
            Create => self.cx.create(self.fresh()).await.map(done),
            CreateWithResourceVersion => self.cx.create(last).await.map(done),
            CreateWithStatus => {
                let created = self.cx.create(Self::with_status(&self.fresh(), 7)).await?;
                Ok(format!("status {}", created.data["status"]["replicas"]))
            }
            CreateDryRun => {
                let dry = PostParams { dry_run: true, ..PostParams::default() };
                Ok(done(self.api.create(&dry, &self.fresh()).await?))
            }
            UpdateUnchanged => self.cx.update(&last).await.map(done),
            UpdateLabel => self.cx.update(&labelled(&last, "updated")).await.map(done),
            UpdateStale => self.cx.update(&labelled(self.first(), "stale")).await.map(done),
            UpdateAnotherUid => {
                let mut other = labelled(&last, "other");
                other.metadata.uid = Some("00000000-0000-4000-8000-000000000000".to_owned());
                self.cx.update(&other).await.map(done)
            }
            UpdateWithoutResourceVersion => {
                let mut unconditional = labelled(&last, "unconditional");
                unconditional.metadata.resource_version = None;
                self.cx.update(&unconditional).await.map(done)
            }
            UpdateSpecAndStatus => {
                let mut changed = Self::with_status(&last, 5);
                match self.resource.kind.as_str() {
                    "ConfigMap" => changed.data["data"]["x"] = json!("2"),
                    _ => changed.data["spec"]["replicas"] = json!(2),
                }
                self.cx.update(&changed).await.map(done)
            }
            MergePatch | MergePatchUnchanged => self.patch(&Patch::Merge(merge)).await,
            MergePatchStale => self.patch(&Patch::Merge(stale_version)).await,
            JsonPatchFailingTest => {
                self.json_patch(json!([{ "op": "test", "path": "/metadata/uid", "value": "none" }])).await
            }
            JsonPatchOfNothing => {
                self.json_patch(json!([{ "op": "remove", "path": "/metadata/annotations/none" }])).await
            }
            JsonPatchReplacesNothing => {
                let path = "/metadata/labels/other";
                self.json_patch(json!([{ "op": "replace", "path": path, "value": "replaced" }])).await
            }
            StrategicPatch => {
                self.patch(&Patch::Strategic(json!({ "metadata": { "labels": { "step": "strategic" } } })))
                    .await
            }
            StatusWrite | StatusUnchanged => {
                let written = self.cx.update_status(&last, json!({ "replicas": 3 })).await?;
                Ok(format!("{written:?}"))
            }
            StatusOfOldUid => {
                let written = self.cx.update_status(self.first(), json!({ "replicas": 4 })).await?;
                Ok(format!("{written:?}"))
            }
            StatusPatchOfEverything => {
                let patch = json!({ "spec": { "replicas": 9 }, "status": { "replicas": 4 } });
                let patch = Patch::Merge(patch);
                let patched: Result<DynamicObject> = self.cx.patch(&key(), &patch).status().await;
                patched.map(done)
            }
            FinalizerGuard => {
                let object = self.cx.get(&key())?.ok_or_else(|| Error::other("not in the cache"))?;
                let action = finalizer::guard(&self.cx, object, FINALIZER, async |_| Ok(Action::done()));
                action.await.map(|_| "guarded".to_owned())
            }
            FinalizerAdd => {
                let finalizers = json!([FINALIZER, "example.com/another"]);
                self.patch(&Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }))).await
            }
            FinalizersRemove => {
                self.patch(&Patch::Merge(json!({ "metadata": { "finalizers": null } }))).await
            }
            DeleteOldUid => self.cx.delete(self.first()).await.map(|()| "ok".to_owned()),
            Delete => self.cx.delete(&last).await.map(|()| "ok".to_owned()),
            DeletePreconditionUid => {
                let uid = Some("00000000-0000-4000-8000-000000000000".to_owned());
                self.delete(Preconditions { uid, resource_version: None }).await
            }
            DeletePreconditionVersion => {
                let resource_version = self.first().resource_version();
                self.delete(Preconditions { uid: None, resource_version }).await
            }
            DeleteDryRun => {
                self.api.delete("a", &DeleteParams { dry_run: true, ..DeleteParams::default() }).await?;
                Ok("ok".to_owned())
            }
            List => self.list(ListParams::default()).await,
            ListSelected => {
                let (is, not) = (ListParams::default().labels("step"), ListParams::default().labels("!step"));
                Ok(format!("{} {}", self.list(is).await?, self.list(not).await?))
            }
            ListByField => {
                let (is, not) = ("metadata.name=a", "metadata.name!=a");
                let (is, not) = (ListParams::default().fields(is), ListParams::default().fields(not));
                Ok(format!("{} {}", self.list(is).await?, self.list(not).await?))
            }
        }
    }

    async fn patch(&self, patch: &Patch<Value>) -> Result<String> {
        self.cx.patch::<DynamicObject, _>(&key(), patch).await.map(|_| "ok".to_owned())
    }

    async fn json_patch(&self, operations: Value) -> Result<String> {
        self.patch(&Patch::Json(serde_json::from_value(operations)?)).await
    }

    async fn delete(&self, preconditions: Preconditions) -> Result<String> {
        let conditions = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        self.api.delete("a", &conditions).await?;
        Ok("ok".to_owned())
    }

    async fn list(&self, params: ListParams) -> Result<String> {
        let list = self.api.list(&params).await?;
        let names = list.items.iter().map(ResourceExt::name_any).filter(|name| name == "a");
        Ok(format!("{:?}", names.collect::<Vec<_>>()))
    }

    /// Runs a step, and tells how it ended and what it left.
    async fn observe(&mut self, step: Step) -> String {
        let outcome = match self.run(step).await {
            Ok(outcome) => outcome,
            Err(error) => describe(&error),
        };
        let before = self.last.clone();
        let Some(now) = self.api.get_opt("a").await.expect("a read") else {
            let cached = self.cx.get(&key()).expect("decodes").is_some();
            return format!("{outcome}; gone, cached {cached}");
        };
        let cached = self.cx.get(&key()).expect("decodes").map(|object| object.resource_version());
        let moved = now.resource_version() != before.resource_version();
        let state = format!(
            "version {}, generation {:?}, step {:?}, finalizers {}, deleting {}, same uid {}, status {}, cached {}",
            if moved { "moved" } else { "kept" },
            now.metadata.generation,
            now.labels().get("step"),
            now.finalizers().len(),
            now.metadata.deletion_timestamp.is_some(),
            now.uid() == before.uid(),
            now.data["status"]["replicas"],
            cached == Some(now.resource_version()),
        );
        self.first.get_or_insert_with(|| now.clone());
        self.last = now;
        format!("{outcome}; {state}")
    }
}

fn describe(error: &Error) -> String {
    let Some(status) = error.status() else { return format!("no answer: {error}") };
    let details = status.details.as_ref();
    let (name, kind, group) =
        details.map_or(("", "", ""), |details| (&details.name, &details.kind, &details.group));
    format!("{} {} about {kind:?} {group:?} {name:?}", status.code, status.reason)
}

fn widgets() -> CustomResourceDefinition {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let version = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": { "openAPIV3Schema": schema }, "subresources": { "status": {} },
    });
    let definition = json!({
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "versions": [version],
            "names": { "kind": "Widget", "plural": "widgets", "singular": "widget" },
        },
    });
    serde_json::from_value(definition).expect("a CRD")
}

#[tokio::test]
async fn the_fake_answers_as_an_api_server() {
    let cluster = TestCluster::start().await;
    cluster.install(&widgets()).await;
    let mut differences = Vec::new();
    for resource in [
        ApiResource::erase::<ConfigMap>(&()),
        ApiResource::erase::<Deployment>(&()),
        ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget")),
    ] {
        let (tell, mut told) = mpsc::unbounded_channel();
        let controller = Controller::of_kind(&resource, move |_: ObjectKey, cx| {
            let _ = tell.send(cx);
            async { Ok::<_, Error>(Action::done()) }
        });
        let handle = controller.handle();
        let running = cluster.run(Manager::new(cluster.client()).controller(controller));
        handle.enqueue(ObjectKey::namespaced("default", "none"));
        let real: Context<DynamicObject> = told.recv().await.expect("reconciled");

        let fake = FakeCluster::builder().build();
        let mut real = Subject::new(real, &resource);
        let mut fake = Subject::new(fake.context_of_kind(&resource), &resource);
        for (number, step) in STEPS.iter().enumerate() {
            // A ConfigMap has no status, which the fake does not know.
            if resource.kind == "ConfigMap" && format!("{step:?}").starts_with("Status") {
                continue;
            }
            let (real, fake) = (real.observe(*step).await, fake.observe(*step).await);
            if real != fake {
                differences
                    .push(format!("{} {number} {step:?}\n  real: {real}\n  fake: {fake}", resource.kind));
            }
        }
        running.stop().await.expect("stopped");
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
