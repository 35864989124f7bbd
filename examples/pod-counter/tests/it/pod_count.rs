use k8s_openapi::api::{coordination::v1::Lease, core::v1::Node};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams},
};
use pod_counter::COUNT_LABEL;
use serde_json::json;
use windlass::prelude::*;
use windlass_test::eventually;

use crate::{SOON, cluster, create_pod, election, events, manager};

/// The number on the only node.
async fn count(client: &Client) -> Option<String> {
    let nodes: Api<Node> = Api::all(client.clone());
    let nodes = nodes.list(&ListParams::default()).await.expect("listed").items;
    let [node] = &nodes[..] else { panic!("{} nodes", nodes.len()) };
    node.labels().get(COUNT_LABEL).cloned()
}

async fn counted(client: &Client, pods: &str) {
    eventually(SOON, || async {
        let count = count(client).await;
        if count.as_deref() == Some(pods) { Ok(()) } else { Err(format!("{count:?}, not {pods}")) }
    })
    .await;
}

#[tokio::test]
async fn the_count_is_on_the_control_plane_and_in_an_event_on_each_pod() {
    let cluster = cluster().await;
    let client = cluster.client();
    create_pod(&client, "a").await;
    create_pod(&client, "b").await;
    let operator = cluster.run_restricted(manager(client.clone())).await;
    counted(&client, "2").await;
    for name in ["a", "b"] {
        eventually(SOON, || async {
            let events = events(&client, "Pod", name).await;
            let wanted = "SuccessCalculatePod pod count is 2 (pod_controller)";
            if events.iter().any(|event| event == wanted) { Ok(()) } else { Err(format!("{events:?}")) }
        })
        .await;
    }
    operator.stop().await.expect("a graceful stop");
}

#[tokio::test]
async fn a_node_that_only_works_has_no_count() {
    let cluster = cluster().await;
    let client = cluster.client();
    let nodes: Api<Node> = Api::all(client.clone());
    let name = nodes.list(&ListParams::default()).await.expect("listed").items[0].name_any();
    let role = json!({ "metadata": { "labels": {
        "node-role.kubernetes.io/control-plane": null, "node-role.kubernetes.io/worker": "",
    } } });
    nodes.patch(&name, &PatchParams::default(), &Patch::Merge(role)).await.expect("patched");
    create_pod(&client, "a").await;
    let operator = cluster.run_restricted(manager(client.clone())).await;
    eventually(SOON, || async {
        if events(&client, "Pod", "a").await.iter().any(|event| event.contains("pod count is 1")) {
            Ok(())
        } else {
            Err("not counted")
        }
    })
    .await;
    assert_eq!(count(&client).await, None);
    operator.stop().await.expect("a graceful stop");
}

#[tokio::test]
async fn a_node_that_leaves_the_control_plane_loses_its_count() {
    let cluster = cluster().await;
    let client = cluster.client();
    create_pod(&client, "a").await;
    let operator = cluster.run_restricted(manager(client.clone())).await;
    counted(&client, "1").await;
    let nodes: Api<Node> = Api::all(client.clone());
    let name = nodes.list(&ListParams::default()).await.expect("listed").items[0].name_any();
    let role = json!({ "metadata": { "labels": { "node-role.kubernetes.io/control-plane": null } } });
    nodes.patch(&name, &PatchParams::default(), &Patch::Merge(role)).await.expect("patched");
    eventually(SOON, || async {
        match count(&client).await {
            None => Ok(()),
            Some(count) => Err(count),
        }
    })
    .await;
    operator.stop().await.expect("a graceful stop");
}

#[tokio::test]
async fn controllers_are_selected_by_name() {
    let cluster = cluster().await;
    let client = cluster.client();
    create_pod(&client, "a").await;
    let only_ecs = manager(client.clone()).select_controllers(["*", "-pod-controller"]);
    let handle = only_ecs.handle();
    let operator = cluster.run(only_ecs);
    let error = handle.stop("pod-controller").await.expect_err("it does not run");
    assert!(error.to_string().contains("no part called"), "{error}");
    handle.stop("ecsbind-controller").await.expect("it runs");
    assert_eq!(count(&client).await, None);
    handle.add_controller(pod_counter::pod_controller()).await.expect("added");
    counted(&client, "1").await;
    operator.stop().await.expect("a graceful stop");

    let unknown = manager(client).select_controllers(["*", "-pods"]);
    let error = unknown.run_until(std::future::pending()).await.expect_err("no such controller");
    assert!(error.to_string().contains("\"-pods\" is not in the list of known controllers"), "{error}");
}

#[tokio::test]
async fn of_two_replicas_one_works_and_the_other_takes_over() {
    let cluster = cluster().await;
    let client = cluster.client();
    let leases: Api<Lease> = Api::default_namespaced(client.clone());
    let holder = || async {
        let lease = leases.get_opt("pod-counter").await.expect("read");
        lease.and_then(|lease| lease.spec?.holder_identity).filter(|holder| !holder.is_empty())
    };
    let one = cluster.run(manager(client.clone()).leader_election(election("one")));
    eventually(SOON, || async {
        if holder().await.as_deref() == Some("one") { Ok(()) } else { Err("no leader") }
    })
    .await;
    let two = cluster.run(manager(client.clone()).leader_election(election("two")));
    counted(&client, "0").await;
    assert_eq!(holder().await.as_deref(), Some("one"));
    one.stop().await.expect("a graceful stop");
    create_pod(&client, "a").await;
    counted(&client, "1").await;
    assert_eq!(holder().await.as_deref(), Some("two"));
    two.stop().await.expect("a graceful stop");
}
