//! The command `dev`, as on a terminal.

use windlass_test::DevProgram;

use crate::user::User;

#[tokio::test]
async fn dev_runs_the_operator_and_its_sample_on_a_control_plane_of_its_own() {
    let program = DevProgram::start(env!("CARGO_BIN_EXE_ip-pool")).await;
    let user = User(program.client());
    assert_eq!(user.bound("printer").await, "10.0.0.9");
    assert!(user.bound("laptop-v6").await.starts_with("fd00:1:"));
}
