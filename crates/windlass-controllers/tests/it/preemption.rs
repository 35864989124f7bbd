//! Pods of a high priority take the place of other pods.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube_client::api::{Api, PostParams};
use serde_json::{Value, json};

use crate::support::{
    becomes, cluster_with, create, event, gone, node, node_of, phase, pod, schedule_message,
};

fn requesting(name: &str, cpu: &str, class: Option<&str>) -> Value {
    let mut pod = pod(name, &json!({}));
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
    pod["spec"]["priorityClassName"] = json!(class);
    pod
}

#[tokio::test]
async fn an_important_pod_takes_the_place_of_another_pod() {
    let small = node("windlass", json!({}), json!({"status": {"capacity": {"cpu": "1"}}}));
    let (cluster, _running) = cluster_with(vec![small]).await;
    let client = cluster.client();
    let classes: Api<PriorityClass> = Api::all(client.clone());
    let class = json!({"metadata": {"name": "high"}, "value": 1000});
    classes.create(&PostParams::default(), &serde_json::from_value(class).unwrap()).await.unwrap();
    create::<Pod>(&client, requesting("small", "300m", None)).await;
    create::<Pod>(&client, requesting("large", "600m", None)).await;
    for name in ["small", "large"] {
        becomes::<Pod>(&client, name, |pod| phase(pod) == "Running").await;
    }
    create::<Pod>(&client, requesting("equal", "600m", None)).await;
    let waiting = becomes::<Pod>(&client, "equal", |pod| !schedule_message(pod).is_empty()).await;
    assert_eq!(
        schedule_message(&waiting),
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found \
         for incoming pod."
    );
    create::<Pod>(&client, requesting("important", "600m", Some("high"))).await;
    gone::<Pod>(&client, "large").await;
    let placed = becomes::<Pod>(&client, "important", |pod| phase(pod) == "Running").await;
    assert_eq!(node_of(&placed), "windlass");
    let message = event(&client, "large", "Preempted").await;
    assert_eq!(message, format!("Preempted by pod {} on node windlass", placed.metadata.uid.unwrap()));
    becomes::<Pod>(&client, "small", |pod| phase(pod) == "Running").await;
    becomes::<Pod>(&client, "equal", |pod| phase(pod) == "Pending").await;
}
