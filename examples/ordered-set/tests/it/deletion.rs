//! The deletion of sets: the remaining pods, and a deleted set that does not decode.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use ordered_set::{OrderedSet, controller};
use serde_json::{Value, json};
use windlass::prelude::*;
use windlass_test::{Fault, Faults, TestCluster, eventually};

use crate::{SOON, order::Fixture, user::User};

/// The limit of a wait if a watch lags by 30 s, in paused time.
const LATE: Duration = Duration::from_secs(600);

/// The sets of the namespace `default`, as any JSON.
fn untyped(user: &User) -> Api<DynamicObject> {
    Api::default_namespaced_with(user.0.clone(), &ApiResource::erase::<OrderedSet>(&()))
}

fn set_with_template(name: &str, template: &Value) -> DynamicObject {
    let set = json!({
        "apiVersion": "apps.abc.com/v1",
        "kind": "OrderedSet",
        "metadata": { "name": name },
        "spec": { "replicas": 1, "template": template },
    });
    serde_json::from_value(set).expect("an object")
}

/// Waits until the namespace has exactly these pods, and returns the number of owners.
async fn pods(user: &User, wanted: &[&str]) -> usize {
    eventually(SOON, || async {
        let pods = user.pods().list(&ListParams::default()).await.map_err(|error| error.to_string())?.items;
        let mut names: Vec<String> = pods.iter().map(ResourceExt::name_any).collect();
        names.sort();
        let owners = pods.iter().map(|pod| pod.owner_references().len()).sum();
        if names == wanted { Ok(owners) } else { Err(format!("{names:?}")) }
    })
    .await
}

#[tokio::test]
async fn an_orphaning_deletion_leaves_the_pods() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create("web", 2, json!({})).await;
    user.settled("web", 2).await;
    user.sets().delete("web", &DeleteParams::orphan()).await.expect("deleted");
    fixture.cluster.gone::<OrderedSet>("web").await;
    assert_eq!(pods(user, &["web-0", "web-1"]).await, 0, "the pods have no owner any more");
    fixture.stop().await;
}

/// A new set with the same name adopts the pods, including surplus pods.
#[tokio::test]
async fn a_new_set_adopts_the_pods_that_were_left() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    let uids = async || {
        let pods = user.pods().list(&ListParams::default()).await.expect("listed");
        pods.items.iter().filter_map(|pod| Some((pod.name_any(), pod.uid()?))).collect::<Vec<_>>()
    };
    user.create("web", 3, json!({})).await;
    user.settled("web", 3).await;
    let before = uids().await;
    user.sets().delete("web", &DeleteParams::orphan()).await.expect("deleted");
    fixture.cluster.gone::<OrderedSet>("web").await;
    assert_eq!(pods(user, &["web-0", "web-1", "web-2"]).await, 0);

    user.create("web", 2, json!({})).await;
    user.settled("web", 2).await;
    assert_eq!(pods(user, &["web-0", "web-1"]).await, 2);
    assert_eq!(uids().await, before[..2]);

    // A pod without an owner, after a change by a user, is adopted, too.
    let released = Patch::Merge(json!({ "metadata": { "ownerReferences": null } }));
    user.pods().patch("web-1", &PatchParams::default(), &released).await.expect("patched");
    eventually(SOON, || async {
        let owners = pods(user, &["web-0", "web-1"]).await;
        if owners == 2 { Ok(()) } else { Err(format!("{owners} owners")) }
    })
    .await;
    user.settled("web", 2).await;
    assert_eq!(uids().await, before[..2]);
    fixture.stop().await;
}

/// The watch of sets lags behind the watch of pods: the operator sees pods without an owner, and a set that is not deleted yet.
#[tokio::test(start_paused = true)]
async fn an_orphaning_deletion_leaves_the_pods_of_a_set_whose_deletion_is_not_seen_yet() {
    let cluster = TestCluster::with_controllers().await.wait_limit(LATE);
    cluster.install_crd::<OrderedSet>().await;
    let faults = Faults::new(cluster.client());
    faults.inject(Fault::Stale { events: 1000 }.on(Verb::Watch).to("orderedsets").always());
    let operator = cluster.run(Manager::new(faults.client()).controller(controller()));
    let user = User(cluster.client());
    user.create("web", 2, json!({})).await;
    eventually(LATE, || user.has("web", 2)).await;
    let uids = async || {
        let pods = user.pods().list(&ListParams::default()).await.expect("listed");
        pods.items.iter().filter_map(|pod| Some((pod.name_any(), pod.uid()?))).collect::<Vec<_>>()
    };
    let before = uids().await;

    user.sets().delete("web", &DeleteParams::orphan()).await.expect("deleted");
    cluster.gone::<OrderedSet>("web").await;
    // The garbage collector has time to delete pods with an owner that is gone.
    tokio::time::sleep(LATE).await;
    assert_eq!(uids().await, before);
    assert_eq!(pods(&user, &["web-0", "web-1"]).await, 0, "the pods have no owner any more");
    operator.stop().await.expect("a graceful stop");
}

/// The garbage collector deletes all pods at once, like the pods of a StatefulSet.
#[tokio::test]
async fn a_foreground_deletion_ends_without_pods() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create("web", 3, json!({ "kubelet.windlass.dev/stop-after": "200ms" })).await;
    user.settled("web", 3).await;
    user.sets().delete("web", &DeleteParams::foreground()).await.expect("deleted");
    fixture.cluster.gone::<OrderedSet>("web").await;
    pods(user, &[]).await;
    fixture.stop().await;
}

#[tokio::test]
async fn a_template_of_the_wrong_type_is_refused() {
    let fixture = Fixture::start().await;
    let main = |field: &str, value: Value| json!({ "spec": { "containers": [{ "name": "main", "image": "nginx", field: value }] } });
    for (template, field) in [
        (json!({ "spec": { "containers": "x" } }), "spec.template.spec.containers"),
        (main("command", json!("sleep")), "spec.template.spec.containers[0].command"),
        (
            main("ports", json!([{ "containerPort": "http" }])),
            "spec.template.spec.containers[0].ports[0].containerPort",
        ),
        (
            json!({ "metadata": { "labels": { "a": 1 } }, "spec": { "containers": [] } }),
            "spec.template.metadata.labels.a",
        ),
    ] {
        let set = set_with_template("broken", &template);
        let refused = untyped(&fixture.user).create(&PostParams::default(), &set).await;
        let message = refused.expect_err("refused").to_string();
        assert!(message.contains(&format!("{field}: Invalid value")), "{message}");
    }
    // Quantities may be numbers.
    let set =
        set_with_template("right", &main("resources", json!({ "requests": { "cpu": 1, "memory": "1Mi" } })));
    untyped(&fixture.user).create(&PostParams::default(), &set).await.expect("created");
    fixture.user.settled("right", 1).await;
    fixture.stop().await;
}

/// A CRD that was looser once has left a set that does not decode.
#[tokio::test]
async fn a_set_that_does_not_decode_can_be_deleted() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create("web", 1, json!({})).await;
    user.settled("web", 1).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(user.0.clone());
    let loose = json!([{
        "op": "replace",
        "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec",
        "value": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    }]);
    let loose = Patch::<()>::Json(serde_json::from_value(loose).expect("a patch"));
    definitions.patch("orderedsets.apps.abc.com", &PatchParams::default(), &loose).await.expect("patched");
    let broken = Patch::Merge(json!({ "spec": { "template": { "spec": { "containers": "x" } } } }));
    eventually(SOON, || async {
        let patched = untyped(user).patch("web", &PatchParams::default(), &broken).await;
        patched.map(drop).map_err(|error| error.to_string())
    })
    .await;
    untyped(user).delete("web", &DeleteParams::default()).await.expect("deleted");
    eventually(SOON, || async {
        match untyped(user).get_opt("web").await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    pods(user, &[]).await;
    fixture.stop().await;
}
