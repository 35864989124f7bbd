//! The command `dev`, as a person types it.

use std::process::Stdio;

use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, Config,
    api::ListParams,
    config::{KubeConfigOptions, Kubeconfig},
};
use pod_counter::{COUNT_LABEL, EcsBind};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};
use windlass::prelude::*;
use windlass_test::eventually;

use crate::SOON;

#[tokio::test]
async fn dev_runs_the_operator_and_its_samples_on_a_control_plane_of_its_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let kubeconfig = directory.path().join("kubeconfig");
    let mut operator = Command::new(env!("CARGO_BIN_EXE_pod-counter"));
    operator.arg("dev").arg("--write-kubeconfig").arg(&kubeconfig).stdout(Stdio::piped()).kill_on_drop(true);
    let mut operator = operator.spawn().expect("it starts");
    let mut lines = BufReader::new(operator.stdout.take().expect("an output")).lines();
    let mut said = Vec::new();
    while let Some(line) = lines.next_line().await.expect("text") {
        let ready = line.starts_with("The operator runs.");
        said.push(line);
        if ready {
            break;
        }
    }
    for line in ["installed ecsbinds.ecs.hopegi.com", "applied pod/web", "applied ecsbind/web-disk"] {
        assert!(said.iter().any(|said| said == line), "{said:?}");
    }

    let config = Kubeconfig::read_from(&kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.expect("usable");
    let client = Client::try_from(config).expect("a client");
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

    let pid = operator.id().expect("it runs").to_string();
    let stopped = std::process::Command::new("kill").args(["-INT", &pid]).status().expect("kill");
    assert!(stopped.success());
    assert!(operator.wait().await.expect("it ends").success());
}

#[test]
fn dev_refuses_another_cluster() {
    let mut operator = std::process::Command::new(env!("CARGO_BIN_EXE_pod-counter"));
    let output = operator.args(["dev", "--kubeconfig", "elsewhere"]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--kubeconfig names a cluster, but `dev` runs one of its own"), "{said}");
}
