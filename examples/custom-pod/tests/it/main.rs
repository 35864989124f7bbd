//! The operator on a control plane in the test's process.

mod faults;
mod reconcile;
mod rights;
mod walkthrough;

use std::time::Duration;

use custom_pod::{CustomPod, CustomPodSpec, CustomPodStatus};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use windlass::prelude::*;
use windlass_test::{RestrictedManager, TestCluster, eventually};

const SOON: Duration = Duration::from_secs(20);

/// A cluster with the CRD and the running operator.
struct Fixture {
    operator: RestrictedManager,
    cluster: TestCluster,
}

impl Fixture {
    async fn start() -> Self {
        let cluster = TestCluster::with_controllers().await;
        cluster.install_crd::<CustomPod>().await;
        let manager = Manager::new(cluster.client()).controller(custom_pod::controller());
        Self { operator: cluster.run_restricted(manager).await, cluster }
    }

    async fn stop(self) {
        let missing = self.operator.rights().missing;
        assert!(missing.is_empty(), "{missing:?}");
        self.operator.stop().await.expect("a graceful stop");
    }

    fn client(&self) -> Client {
        self.cluster.client()
    }

    fn objects(&self) -> Api<CustomPod> {
        Api::default_namespaced(self.client())
    }

    fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.client())
    }

    async fn create(&self, name: &str, replicas: u32) {
        let object = CustomPod::new(name, CustomPodSpec { replicas });
        self.objects().create(&PostParams::default(), &object).await.expect("created");
    }

    async fn scale(&self, name: &str, replicas: u32) {
        let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        self.objects().patch(name, &PatchParams::default(), &patch).await.expect("scaled");
    }

    async fn pod_names(&self) -> Vec<String> {
        let pods = self.pods().list(&ListParams::default()).await.expect("listed");
        let alive = pods.items.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let mut names: Vec<_> = alive.map(ResourceExt::name_any).collect();
        names.sort();
        names
    }

    /// Waits until there are `count` pods and the status lists the pods. Returns the names of the pods.
    async fn settled(&self, name: &str, count: usize) -> Vec<String> {
        eventually(SOON, || async {
            let names = self.pod_names().await;
            let status =
                self.objects().get(name).await.map_err(|e| e.to_string())?.status.unwrap_or_default();
            let CustomPodStatus { replicas, pod_names } = &status;
            if names.len() == count && *replicas as usize == count && *pod_names == names {
                return Ok(names);
            }
            Err(format!("{count} pods are wanted; there are {names:?}, and the status is {status:?}"))
        })
        .await
    }

    /// Waits until the status of an object counts the replicas.
    async fn reported(&self, name: &str, replicas: u32) {
        let counted = |object: &CustomPod| object.status.as_ref().is_some_and(|s| s.replicas == replicas);
        self.cluster.wait_for::<CustomPod>(name, counted).await;
    }
}

#[tokio::test]
async fn scales_up_and_down() {
    let fixture = Fixture::start().await;
    fixture.create("a", 1).await;
    let first = fixture.settled("a", 1).await;
    fixture.scale("a", 3).await;
    let three = fixture.settled("a", 3).await;
    assert!(three.contains(&first[0]), "the first one stays");
    fixture.scale("a", 1).await;
    let last = fixture.settled("a", 1).await;
    // Creation times have whole seconds: any of the three pods may count as the newest.
    assert!(three.contains(&last[0]), "one of the three is left");
    fixture.scale("a", 0).await;
    fixture.settled("a", 0).await;
    fixture.stop().await;
}

#[tokio::test]
async fn a_wish_without_measure_is_taken_back() {
    let fixture = Fixture::start().await;
    fixture.create("huge", 1_000_000).await;
    eventually(SOON, || async {
        let pods = fixture.pod_names().await.len();
        if pods > 50 { Ok(()) } else { Err(format!("{pods} pods")) }
    })
    .await;
    fixture.create("small", 1).await;
    fixture.reported("small", 1).await;
    fixture.scale("huge", 0).await;
    fixture.reported("huge", 0).await;
    fixture.stop().await;
}

#[tokio::test]
async fn a_pod_deleted_by_hand_comes_back() {
    let fixture = Fixture::start().await;
    fixture.create("a", 2).await;
    let before = fixture.settled("a", 2).await;
    fixture.pods().delete(&before[0], &DeleteParams::default()).await.expect("deleted");
    eventually(SOON, || async {
        let names = fixture.pod_names().await;
        if names.len() == 2 && !names.contains(&before[0]) { Ok(()) } else { Err(format!("{names:?}")) }
    })
    .await;
    assert!(fixture.settled("a", 2).await.contains(&before[1]), "the other one stays");
    fixture.stop().await;
}

#[tokio::test]
async fn the_deleted_object_takes_its_pods_along_and_no_others() {
    let fixture = Fixture::start().await;
    fixture.create("a", 2).await;
    let before = fixture.settled("a", 2).await;
    fixture.create("b", 1).await;
    fixture.reported("b", 1).await;
    fixture.objects().delete("a", &DeleteParams::default()).await.expect("deleted");
    for pod in before {
        fixture.cluster.gone::<Pod>(pod).await;
    }
    assert!(matches!(fixture.pod_names().await.as_slice(), [one] if one.starts_with("b-")));
    fixture.stop().await;
}

#[tokio::test]
async fn pods_are_owned_and_carry_the_name() {
    let fixture = Fixture::start().await;
    fixture.create("a", 1).await;
    let names = fixture.settled("a", 1).await;
    let pod = fixture.pods().get(&names[0]).await.expect("got");
    let parent = fixture.objects().get("a").await.expect("got");
    let owner = &pod.owner_references()[0];
    assert_eq!((&*owner.kind, &*owner.name, &*owner.api_version), ("CustomPod", "a", "zhhnzw.mock.com/v1"));
    assert_eq!(Some(&owner.uid), parent.uid().as_ref());
    assert_eq!(owner.controller, Some(true));
    assert!(names[0].starts_with("a-"), "{names:?}");
    fixture.stop().await;
}

#[tokio::test]
async fn nothing_is_written_when_nothing_changes() {
    let fixture = Fixture::start().await;
    fixture.create("a", 2).await;
    fixture.settled("a", 2).await;
    // Each change of a pod triggers a reconcile, and a label on the object does, too.
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "touched": "yes" } } }));
    let touched = fixture.objects().patch("a", &PatchParams::default(), &patch).await.expect("touched");
    fixture.create("b", 1).await;
    fixture.reported("b", 1).await;
    let later = fixture.objects().get("a").await.expect("got");
    assert_eq!(
        later.resource_version(),
        touched.resource_version(),
        "b came after the label, and a was left alone"
    );
    fixture.stop().await;
}

/// A status that does not decode, perhaps written by an older version of the operator, must not look like an absent object.
#[tokio::test]
async fn an_object_that_does_not_decode_is_an_error_and_not_an_absence() {
    let cluster = TestCluster::with_controllers().await;
    let mut crd = serde_json::to_value(CustomPod::crd()).expect("serializes");
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    // The API server would reject a scale that is not a number.
    crd["spec"]["versions"][0]["subresources"] = json!({ "status": {} });
    cluster.install(&serde_json::from_value(crd).expect("a CRD")).await;
    let resource = kube::api::ApiResource::erase::<CustomPod>(&());
    let raw: Api<DynamicObject> = Api::default_namespaced_with(cluster.client(), &resource);
    let broken = DynamicObject::new("a", &resource).data(json!({ "spec": { "replicas": "three" } }));
    raw.create(&PostParams::default(), &broken).await.expect("created");

    let manager = Manager::new(cluster.client()).controller(custom_pod::controller());
    let metrics = manager.metrics().clone();
    let operator = cluster.run(manager);
    eventually(SOON, || async {
        let text = metrics.render();
        let errors = text.lines().find(|line| line.starts_with("controller_runtime_reconcile_errors_total"));
        match errors.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok()) {
            Some(1..) => Ok(()),
            other => Err(format!("errors: {other:?}")),
        }
    })
    .await;
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    assert!(pods.list(&ListParams::default()).await.expect("listed").items.is_empty());

    // An object that decodes again is reconciled.
    let fix = Patch::Merge(json!({ "spec": { "replicas": 1 } }));
    raw.patch("a", &PatchParams::default(), &fix).await.expect("patched");
    eventually(SOON, || async {
        match pods.list(&ListParams::default()).await {
            Ok(pods) if pods.items.len() == 1 => Ok(()),
            other => Err(format!("{:?}", other.map(|pods| pods.items.len()))),
        }
    })
    .await;
    operator.stop().await.expect("a graceful stop");
}
