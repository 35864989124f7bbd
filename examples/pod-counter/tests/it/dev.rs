//! The command `dev`, as on a terminal.

use k8s_openapi::api::core::v1::Node;
use kube::{Api, api::ListParams};
use pod_counter::{COUNT_LABEL, EcsBind};
use windlass::prelude::*;
use windlass_test::{DevProgram, eventually};

use crate::SOON;

#[tokio::test]
async fn dev_runs_the_operator_and_its_samples_on_a_control_plane_of_its_own() {
    let program = DevProgram::start(env!("CARGO_BIN_EXE_pod-counter")).await;
    let said = program.said();
    for line in ["installed ecsbinds.ecs.hopegi.com", "applied pod/web", "applied ecsbind/web-disk"] {
        assert!(said.iter().any(|said| said == line), "{said:?}");
    }

    let client = program.client();
    let (nodes, binds): (Api<Node>, Api<EcsBind>) =
        (Api::all(client.clone()), Api::default_namespaced(client));
    eventually(SOON, || async {
        let nodes = nodes.list(&ListParams::default()).await.map_err(|e| e.to_string())?;
        let bind = binds.get("web-disk").await.map_err(|e| e.to_string())?;
        let counted = nodes.items.iter().any(|node| node.labels().get(COUNT_LABEL).is_some_and(|n| n == "1"));
        if counted && bind.status.as_ref().is_some_and(|status| status.bound) {
            Ok(())
        } else {
            Err(format!("{:?}", bind.status))
        }
    })
    .await;

    assert!(program.interrupt().await.success());
}

#[test]
fn dev_refuses_another_cluster() {
    let mut operator = std::process::Command::new(env!("CARGO_BIN_EXE_pod-counter"));
    let output = operator.args(["dev", "--kubeconfig", "elsewhere"]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--kubeconfig names a cluster, but `dev` starts an embedded cluster"), "{said}");
}
