//! The controller manager under faults reaches the right state, regardless of failures in between.

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Client, CustomResourceExt,
    api::{ListParams, PostParams},
};
use pod_counter::{COUNT_LABEL, EcsBind, EcsBindSpec};
use windlass::prelude::*;
use windlass_test::Scenario;

use crate::{create_pod, delete_pod, election, manager};

async fn bind(client: &Client, name: &str, pod: &str) {
    let spec = EcsBindSpec { pod_name: pod.to_owned(), instance_id: format!("i-{name}") };
    let binds: Api<EcsBind> = Api::default_namespaced(client.clone());
    binds.create(&PostParams::default(), &EcsBind::new(name, spec)).await.expect("created");
}

/// Checks that the label counts the pods, and that exactly these objects are bound.
async fn has(client: Client, bound: &[&str]) -> Result<(), String> {
    let failed = |error: kube::Error| error.to_string();
    let pods =
        Api::<Pod>::all(client.clone()).list(&ListParams::default()).await.map_err(failed)?.items.len();
    for node in Api::<Node>::all(client.clone()).list(&ListParams::default()).await.map_err(failed)? {
        let label = node.labels().get(COUNT_LABEL).cloned().unwrap_or_default();
        if label != pods.to_string() {
            return Err(format!("node {} counts {label:?}, and there are {pods} pods", node.name_any()));
        }
    }
    let binds: Api<EcsBind> = Api::default_namespaced(client);
    let binds = binds.list(&ListParams::default()).await.map_err(failed)?.items;
    let is_bound = |bind: &&EcsBind| bind.status.as_ref().is_some_and(|status| status.bound);
    let found: Vec<String> = binds.iter().filter(is_bound).map(ResourceExt::name_any).collect();
    if found == bound { Ok(()) } else { Err(format!("{found:?} are bound, not {bound:?}")) }
}

#[test]
fn it_ends_in_the_right_state_whatever_fails() {
    Scenario::new(|client| manager(client).leader_election(election("replica")))
        .crd(EcsBind::crd())
        .step(|client| async move {
            create_pod(&client, "a").await;
            bind(&client, "one", "a").await;
        })
        .step(|client| async move { bind(&client, "two", "a").await })
        .step(|client| async move { bind(&client, "three", "b").await })
        .step(|client| async move { create_pod(&client, "b").await })
        .step(|client| async move { create_pod(&client, "c").await })
        .step(|client| async move { delete_pod(&client, "a").await })
        .check(|client| async move { has(client, &["three"]).await })
        .run_many(10);
}
