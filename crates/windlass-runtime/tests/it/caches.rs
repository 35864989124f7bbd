//! The cache that answers for a key: by namespace, selector and kind, with writes that the watch has not
//! seen.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Secret};
use kube_client::{
    Api,
    api::{DeleteParams, ListParams, PostParams},
};
use kube_core::{
    ApiResource, DynamicObject, ObjectMeta, Resource, ResourceExt, metadata::PartialObjectMeta, params::Patch,
};
use serde_json::json;
use tokio::sync::mpsc;
use windlass_runtime::{
    Action, Context, Controller, Error, KindRef, Manager, ObjectKey, ObjectKeyExt, Permission, Predicate,
    Result, Verb, Watch,
    informer::{CacheOptions, IndexFn},
    kind,
    owner::Owned,
};
use windlass_test::{TestCluster, eventually, stretched};

use crate::{
    fault::Faults,
    fixture::{Running, SOON, metric, run_restricted},
};

fn meta(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta {
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        labels: Some(BTreeMap::from([("app".to_owned(), "x".to_owned())])),
        ..ObjectMeta::default()
    }
}

fn secret(namespace: &str, name: &str) -> Secret {
    Secret { metadata: meta(namespace, name), ..Secret::default() }
}

async fn create_namespaces(cluster: &TestCluster) {
    let namespaces: Api<Namespace> = Api::all(cluster.client());
    for name in ["a", "b"] {
        let namespace = Namespace {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            ..Namespace::default()
        };
        namespaces.create(&PostParams::default(), &namespace).await.expect("created");
    }
}

/// Runs a controller with these watches and exactly the declared rights, and returns the context.
async fn context(
    cluster: &TestCluster,
    faults: &Faults,
    namespaces: &[&str],
    declare: impl FnOnce(Controller) -> Controller,
) -> (Context<ConfigMap>, Running) {
    let (manager, first) = writer(faults, namespaces, declare);
    let running = run_restricted(cluster, faults, manager).await;
    (first.await, running)
}

/// Returns a manager of a controller with these watches, and the context of the first reconcile.
fn writer(
    faults: &Faults,
    namespaces: &[&str],
    declare: impl FnOnce(Controller) -> Controller,
) -> (Manager, impl Future<Output = Context<ConfigMap>>) {
    let (send, mut received) = mpsc::unbounded_channel();
    let controller = Controller::of::<ConfigMap>(move |_: ObjectKey, cx: Context<ConfigMap>| {
        let _ = send.send(cx);
        async { Ok::<_, Error>(Action::done()) }
    });
    let controller =
        declare(controller).needs(Permission::to::<Secret>([Verb::Create, Verb::Patch, Verb::Delete]));
    let handle = controller.handle();
    let manager = Manager::new(faults.client()).namespaces(namespaces.iter().copied()).controller(controller);
    handle.enqueue(ObjectKey::namespaced("a", "none"));
    (manager, async move { received.recv().await.expect("reconciled") })
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Selected {
    All,
    ByLabel,
    ByField,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Access {
    Typed,
    Metadata,
    Dynamic,
}

struct Case {
    selected: Selected,
    access: Access,
    cx: Context<ConfigMap>,
    resource: ApiResource,
}

impl Case {
    fn options(selected: Selected) -> CacheOptions {
        let options = CacheOptions::new().index(
            "app",
            IndexFn::new(|object| object.label("app").map(str::to_owned).into_iter().collect()),
        );
        match selected {
            Selected::All => options,
            Selected::ByLabel => options.label_selector("app".parse().expect("a selector")),
            Selected::ByField => options.field_selector("metadata.name!=other"),
        }
    }

    /// The names and labels of namespace `a`, while no watch changes the cache.
    fn read(&self, owner: &ConfigMap) -> Vec<String> {
        self.try_read(owner).expect("all ways of reading agree")
    }

    /// Waits until the names and labels of namespace `a` are `wanted`. A watch may change the cache between two reads.
    async fn shows(&self, owner: &ConfigMap, wanted: &[&str]) {
        eventually(SOON, || async {
            let lines = self.try_read(owner)?;
            if lines == wanted { Ok(()) } else { Err(format!("{lines:?}")) }
        })
        .await;
    }

    /// The names and labels that each way of reading shows of namespace `a`, or the ways that disagree.
    fn try_read(&self, owner: &ConfigMap) -> Result<Vec<String>, String> {
        match self.access {
            Access::Typed => read_with(owner, &self.cx.lister::<Secret>().expect("declared")),
            Access::Metadata => {
                read_with(owner, &self.cx.lister::<PartialObjectMeta<Secret>>().expect("declared"))
            }
            Access::Dynamic => read_with(owner, &self.cx.lister_of(&self.resource).expect("declared")),
        }
    }

    async fn create(&self, owner: &ConfigMap, name: &str) -> Result<()> {
        if self.access == Access::Dynamic {
            let mut object = DynamicObject::new(name, &self.resource);
            object.metadata = meta("a", name);
            return self.cx.create(object.controlled_by(owner)?).await.map(drop);
        }
        self.cx.create(secret("a", name).controlled_by(owner)?).await.map(drop)
    }

    async fn label(&self, name: &str, app: &str) -> Result<()> {
        let key = ObjectKey::namespaced("a", name);
        let patch = Patch::Merge(json!({ "metadata": { "labels": { "app": app } } }));
        if self.access == Access::Dynamic {
            return self.cx.patch_of(&self.resource, &key, &patch).await.map(drop);
        }
        self.cx.patch::<Secret, _>(&key, &patch).await.map(drop)
    }

    async fn delete(&self, name: &str) -> Result<()> {
        if self.access == Access::Dynamic {
            let mut object = DynamicObject::new(name, &self.resource);
            object.metadata = meta("a", name);
            return self.cx.delete(&object).await;
        }
        self.cx.delete(&secret("a", name)).await
    }
}

/// Returns the names and labels of namespace `a`. The error names a read whose result differs from the
/// others.
fn read_with<K>(owner: &ConfigMap, lister: &windlass_runtime::Lister<K>) -> Result<Vec<String>, String>
where
    K: Resource + serde::de::DeserializeOwned + Send + Sync + 'static,
{
    let show = |object: &K| {
        format!("{}={}", object.name_any(), object.labels().get("app").cloned().unwrap_or_default())
    };
    let sorted = |mut lines: Vec<String>| {
        lines.sort();
        lines
    };
    let agrees = |how: &str, agrees: bool| if agrees { Ok(()) } else { Err(format!("{how} disagrees")) };
    let owned = lister.owned_by(owner).expect("decode");
    let lines = sorted(owned.iter().map(show).collect());
    let controlled = lister.controlled_by(owner).expect("decode");
    agrees("controlled_by", sorted(controlled.iter().map(show).collect()) == lines)?;
    let listed = lister.namespace("a").all().expect("decode");
    agrees("namespace", sorted(listed.iter().map(show).collect()) == lines)?;
    for line in &lines {
        let (name, app) = line.split_once('=').expect("a line");
        let key = ObjectKey::namespaced("a", name);
        let got = lister.get(&key).expect("decodes");
        agrees("get", got.is_some_and(|got| show(&got) == *line))?;
        let indexed = lister.by_index("app", app).expect("an index");
        agrees("by_index", indexed.iter().any(|object| show(object) == *line))?;
        let selected = lister.list(&format!("app={app}").parse().expect("a selector")).expect("decode");
        agrees("list", selected.iter().any(|object| show(object) == *line))?;
    }
    Ok(lines)
}

/// Every read and write, under every combination of namespaces, selector, and way of reading.
#[tokio::test(flavor = "multi_thread")]
async fn reads_see_writes_whatever_is_watched() {
    for namespaces in [&["a"][..], &["a", "b"], &[]] {
        for selected in [Selected::All, Selected::ByLabel, Selected::ByField] {
            for access in [Access::Typed, Access::Metadata, Access::Dynamic] {
                let case = format!("{namespaces:?} {selected:?} {access:?}");
                let checked =
                    tokio::time::timeout(stretched(SOON), check(namespaces, selected, access)).await;
                checked
                    .unwrap_or_else(|_| panic!("{case}: not in time"))
                    .unwrap_or_else(|e| panic!("{case}: {e}"));
            }
        }
    }
}

async fn check(namespaces: &[&str], selected: Selected, access: Access) -> Result<()> {
    let cluster = TestCluster::start().await;
    create_namespaces(&cluster).await;
    let owners: Api<ConfigMap> = Api::namespaced(cluster.client(), "a");
    let owner = ConfigMap { metadata: meta("a", "owner"), ..ConfigMap::default() };
    let owner = owners.create(&PostParams::default(), &owner).await?;
    let faults = Faults::before(cluster.client());
    let resource = ApiResource::erase::<Secret>(&());
    let options = Case::options(selected);
    let (cx, running) = context(&cluster, &faults, namespaces, |controller| match access {
        Access::Typed => controller.watch(Watch::owned(kind::<Secret>()).options(options)),
        Access::Metadata => {
            controller.watch(Watch::owned(kind::<PartialObjectMeta<Secret>>()).options(options))
        }
        Access::Dynamic => controller.watch(Watch::owned(&resource).options(options)),
    })
    .await;
    let case = Case { selected, access, cx, resource };
    assert!(case.read(&owner).is_empty());

    faults.hold_watches();
    case.create(&owner, "one").await?;
    // Only the server knows whether a field selector admits a new object.
    let at_once: &[&str] = if case.selected == Selected::ByField { &[] } else { &["one=x"] };
    assert_eq!(case.read(&owner), at_once, "created, the watch has not seen it");
    faults.release_watches();
    case.shows(&owner, &["one=x"]).await;

    faults.hold_watches();
    case.label("one", "y").await?;
    assert_eq!(case.read(&owner), ["one=y"], "changed, the watch has not seen it");
    faults.release_watches();
    let elsewhere: Api<Secret> = Api::namespaced(cluster.client(), "b");
    elsewhere.create(&PostParams::default(), &secret("b", "far")).await?;
    case.create(&owner, "two").await?;
    case.shows(&owner, &["one=y", "two=x"]).await;

    faults.hold_watches();
    case.delete("one").await?;
    assert_eq!(case.read(&owner), ["two=x"], "deleted, the watch has not seen it");
    faults.release_watches();
    case.delete("two").await?;
    assert!(case.read(&owner).is_empty());
    running.stop().await
}

/// A namespace without events does not delay reconciles in other namespaces.
#[tokio::test]
async fn a_quiet_namespace_delays_nothing() {
    let cluster = TestCluster::start().await;
    create_namespaces(&cluster).await;
    let controller = Controller::of::<ConfigMap>(|key: ObjectKey, cx: Context<ConfigMap>| async move {
        let Some(parent) = cx.get(&key)? else { return Ok(Action::done()) };
        let round = cx.owned_by::<Secret>(&parent)?.len();
        if round >= 15 {
            return Ok(Action::done());
        }
        for n in 0..3 {
            cx.create(secret("a", &format!("s{}", round + n)).controlled_by(&*parent)?).await?;
        }
        Ok::<_, Error>(Action::requeue_after(Duration::ZERO))
    })
    .owns::<Secret>()
    .needs(Permission::to::<Secret>([Verb::Create]));
    let manager = Manager::new(cluster.client()).namespaces(["a", "b"]).controller(controller);
    let metrics = manager.metrics().clone();
    let running = cluster.run_restricted(manager).await;
    let owners: Api<ConfigMap> = Api::namespaced(cluster.client(), "a");
    let owner = ConfigMap { metadata: meta("a", "owner"), ..ConfigMap::default() };
    owners.create(&PostParams::default(), &owner).await.expect("created");
    let secrets: Api<Secret> = Api::namespaced(cluster.client(), "a");
    eventually(SOON, || async {
        let found = secrets.list(&ListParams::default()).await.map_err(|e| e.to_string())?.items.len();
        if found == 15 { Ok(()) } else { Err(format!("{found} secrets")) }
    })
    .await;
    running.stop().await.expect("a graceful end");
    let timeouts = "windlass_read_your_writes_timeouts_total{controller=\"configmap\"}";
    assert_eq!(metric(&metrics.render(), timeouts), 0);
}

/// An object that another writer deleted after a write is gone, even while another namespace is quiet.
#[tokio::test]
async fn a_quiet_namespace_keeps_no_ghost() {
    let cluster = TestCluster::start().await;
    create_namespaces(&cluster).await;
    let (send, mut received) = mpsc::unbounded_channel();
    let controller = Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
        let send = send.clone();
        async move {
            let there = cx.get(&key)?.is_some();
            if there {
                let patch = Patch::Merge(json!({ "data": { "seen": "yes" } }));
                cx.patch::<ConfigMap, _>(&key, &patch).await?;
            }
            let _ = send.send(there);
            Ok::<_, Error>(Action::done())
        }
    })
    .predicate(Predicate::new(|delta| !matches!(delta, windlass_runtime::Delta::Updated { .. })))
    .needs(Permission::to::<ConfigMap>([Verb::Patch]));
    let manager = Manager::new(cluster.client()).namespaces(["a", "b"]).controller(controller);
    let running = cluster.run_restricted(manager).await;
    let owners: Api<ConfigMap> = Api::namespaced(cluster.client(), "a");
    let owner = ConfigMap { metadata: meta("a", "owner"), ..ConfigMap::default() };
    owners.create(&PostParams::default(), &owner).await.expect("created");
    assert_eq!(received.recv().await, Some(true));
    owners.delete("owner", &DeleteParams::default()).await.expect("deleted");
    let gone = tokio::time::timeout(stretched(SOON), received.recv()).await.expect("reconciled in time");
    assert_eq!(gone, Some(false), "the deleted object is read as gone");
    running.stop().await.expect("a graceful end");
}

fn tls() -> CacheOptions {
    CacheOptions::new().label_selector("tls=true".parse().expect("a selector"))
}

async fn nothing(_: ObjectKey, _: Context<ConfigMap>) -> Result<Action> {
    Ok(Action::done())
}

/// A read that could mean two caches is refused when the manager starts.
#[tokio::test]
async fn two_caches_of_one_kind_are_named_or_refused() {
    let cluster = TestCluster::start().await;
    create_namespaces(&cluster).await;
    let watch = |kind| Watch::<ObjectKey>::mapped(kind, |_: &Secret, _| Ok(Vec::new()));
    let narrow = || watch(kind::<Secret>()).options(tls());
    for swapped in [false, true] {
        let controller = Controller::of::<ConfigMap>(nothing);
        let controller = if swapped {
            controller.owns::<Secret>().watch(narrow())
        } else {
            controller.watch(narrow()).owns::<Secret>()
        };
        let error =
            Manager::new(cluster.client()).controller(controller).run_until(std::future::pending()).await;
        let message = error.expect_err("ambiguous").to_string();
        assert!(message.contains("\"configmap\" watches Secret twice"), "{message}");
        assert!(message.contains(".named(..)") && message.contains(".without_reads()"), "{message}");
    }

    let secrets: Api<Secret> = Api::namespaced(cluster.client(), "a");
    secrets.create(&PostParams::default(), &secret("a", "plain")).await.expect("created");
    let mut with_label = secret("a", "tls");
    with_label.metadata.labels = Some(BTreeMap::from([("tls".to_owned(), "true".to_owned())]));
    secrets.create(&PostParams::default(), &with_label).await.expect("created");
    let faults = Faults::before(cluster.client());
    let (cx, running) = context(&cluster, &faults, &[], |controller| {
        controller
            .watch(watch(kind::<Secret>().named("tls")).options(tls()))
            .watch(watch(kind::<Secret>()).options(CacheOptions::new().namespaces(["b"])).without_reads())
            .owns::<Secret>()
    })
    .await;
    assert_eq!(cx.lister::<Secret>().expect("declared").all().expect("decode").names(), ["plain", "tls"]);
    let named = |name: &str| cx.lister_of(kind::<Secret>().named(name));
    assert_eq!(named("tls").expect("declared").all().expect("decode").names(), ["tls"]);
    let error = named("other").expect_err("no such watch").to_string();
    assert!(error.contains("named \"other\""), "{error}");
    running.stop().await.expect("a graceful end");
}

/// Cluster-scoped kinds are watched under `--namespace`, with any declaration, with the declared rights.
#[tokio::test]
async fn cluster_scoped_kinds_are_watched_under_a_namespace() {
    let cluster = TestCluster::start().await;
    create_namespaces(&cluster).await;
    let nodes: Api<Node> = Api::all(cluster.client());
    let node = Node {
        metadata: ObjectMeta { name: Some("n".to_owned()), ..ObjectMeta::default() },
        ..Node::default()
    };
    nodes.create(&PostParams::default(), &node).await.expect("created");
    let faults = Faults::before(cluster.client());
    let resource = ApiResource::erase::<Node>(&());
    let declarations: [fn(Controller, ApiResource) -> Controller; 4] = [
        |controller, resource| controller.watch(Watch::reads_only(KindRef::dynamic(&resource).metadata())),
        |controller, resource| controller.watch(Watch::mapped_raw(resource, |_, _| Ok(Vec::new()))),
        |controller, resource| {
            controller.watch(Watch::reads_only(KindRef::dynamic(&resource).cluster_scoped()))
        },
        |controller, _| controller.watches::<Node>(|_, _| Ok(Vec::new())),
    ];
    for declare in declarations {
        let (cx, running) =
            context(&cluster, &faults, &["a"], |controller| declare(controller, resource.clone())).await;
        let listed = cx.lister::<PartialObjectMeta<Node>>().expect("declared").all().expect("decode");
        assert_eq!(listed.names(), ["n"]);
        running.stop().await.expect("a graceful end");
    }
}

/// A controller of a kind that is known only at run time reads, writes and owns.
#[tokio::test]
async fn a_dynamic_kind_is_reconciled() {
    let cluster = TestCluster::start().await;
    create_namespaces(&cluster).await;
    let parents = ApiResource::erase::<ConfigMap>(&());
    let children = ApiResource::erase::<Secret>(&());
    let reconcile = {
        let children = children.clone();
        move |key: ObjectKey, cx: Context<DynamicObject>| {
            let children = children.clone();
            async move {
                let Some(parent) = cx.get(&key)? else { return Ok(Action::done()) };
                let owned = cx.lister_of(&children)?.owned_by(&parent)?;
                if owned.is_empty() {
                    let mut child = DynamicObject::new("child", &children);
                    child.metadata.namespace = parent.namespace();
                    cx.create(child.controlled_by(&*parent)?).await?;
                }
                let patch = Patch::Merge(json!({ "data": { "children": owned.len().to_string() } }));
                cx.patch::<DynamicObject, _>(&ObjectKey::of(&*parent), &patch).await?;
                Ok::<_, Error>(Action::done())
            }
        }
    };
    let controller = Controller::of_kind(parents, reconcile)
        .watch(Watch::owned(children))
        .needs(Permission::to::<Secret>([Verb::Create]))
        .needs(Permission::to::<ConfigMap>([Verb::Patch]))
        .named("dynamic");
    let manager = Manager::new(cluster.client()).namespaces(["a"]).controller(controller);
    let running = cluster.run_restricted(manager).await;
    let owners: Api<ConfigMap> = Api::namespaced(cluster.client(), "a");
    let owner = ConfigMap { metadata: meta("a", "owner"), ..ConfigMap::default() };
    owners.create(&PostParams::default(), &owner).await.expect("created");
    eventually(SOON, || async {
        let data = owners.get("owner").await.map_err(|e| e.to_string())?.data.unwrap_or_default();
        if data.get("children").map(String::as_str) == Some("1") { Ok(()) } else { Err(format!("{data:?}")) }
    })
    .await;
    running.stop().await.expect("a graceful end");
}

/// A migration reads both versions of a kind.
#[tokio::test]
async fn two_versions_of_a_kind_are_read_apart() {
    use k8s_openapi::api::autoscaling::{v1, v2};

    let cluster = TestCluster::start().await;
    create_namespaces(&cluster).await;
    let spec = json!({ "maxReplicas": 3, "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" } });
    let scaler = json!({ "metadata": { "name": "web", "namespace": "a" }, "spec": spec });
    let scaler: v2::HorizontalPodAutoscaler = serde_json::from_value(scaler).expect("an autoscaler");
    let scalers: Api<v2::HorizontalPodAutoscaler> = Api::namespaced(cluster.client(), "a");
    scalers.create(&PostParams::default(), &scaler).await.expect("created");
    let faults = Faults::before(cluster.client());
    let (cx, running) = context(&cluster, &faults, &[], |controller| {
        controller.reads::<v1::HorizontalPodAutoscaler>().reads::<v2::HorizontalPodAutoscaler>()
    })
    .await;
    let key = ObjectKey::namespaced("a", "web");
    for version in ["v1", "v2"] {
        let resource = ApiResource {
            group: "autoscaling".to_owned(),
            version: version.to_owned(),
            api_version: format!("autoscaling/{version}"),
            kind: "HorizontalPodAutoscaler".to_owned(),
            plural: "horizontalpodautoscalers".to_owned(),
        };
        let found = cx.lister_of(&resource).expect("declared").get(&key).expect("decodes").expect("there");
        let types = found.types.clone().expect("types");
        assert_eq!(types.api_version, resource.api_version);
    }
    let old = cx.lister::<v1::HorizontalPodAutoscaler>().expect("declared");
    assert_eq!(old.get(&key).expect("decodes").expect("there").spec.max_replicas, 3);
    running.stop().await.expect("a graceful end");
}
