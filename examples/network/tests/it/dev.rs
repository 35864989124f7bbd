//! The command `dev`, as on a terminal.

use windlass_test::DevProgram;

use super::*;

#[tokio::test]
async fn dev_runs_the_operator_and_its_sample_with_a_stand_in_of_neutron() {
    let program = DevProgram::start(env!("CARGO_BIN_EXE_network")).await;
    let said = program.said();
    assert!(said.iter().any(|line| line.ends_with("get networks")), "{said:?}");
    let networks = objects(&program.client());
    eventually(SOON, || async {
        let network = networks.get("example-network").await.map_err(|error| error.to_string())?;
        let (reason, message) = ready(&network);
        if reason == "Synced" { Ok(()) } else { Err(format!("{reason}: {message}")) }
    })
    .await;
    assert!(program.interrupt().await.success());
}
