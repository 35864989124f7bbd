//! The command `dev`, as a person types it.

use std::process::Stdio;

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

use crate::user::User;

#[tokio::test]
async fn dev_runs_the_operator_and_its_sample_on_a_control_plane_of_its_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let kubeconfig = directory.path().join("kubeconfig");
    let mut operator = Command::new(env!("CARGO_BIN_EXE_ip-pool"));
    operator.arg("dev").arg("--write-kubeconfig").arg(&kubeconfig).stdout(Stdio::piped()).kill_on_drop(true);
    let mut operator = operator.spawn().expect("it starts");
    let mut lines = BufReader::new(operator.stdout.take().expect("an output")).lines();
    while let Some(line) = lines.next_line().await.expect("text") {
        if line.starts_with("The operator runs.") {
            break;
        }
    }
    let config = Kubeconfig::read_from(&kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.expect("usable");
    let user = User(Client::try_from(config).expect("a client"));
    assert_eq!(user.bound("printer").await, "10.0.0.9");
    assert!(user.bound("laptop-v6").await.starts_with("fd00:1:"));
}
