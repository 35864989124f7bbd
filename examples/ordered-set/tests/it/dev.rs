//! The command `dev`, as on a terminal.

use windlass_test::DevProgram;

use crate::user::User;

#[tokio::test]
async fn dev_runs_the_operator_and_its_sample_on_a_control_plane_of_its_own() {
    let program = DevProgram::start(env!("CARGO_BIN_EXE_ordered-set")).await;
    User(program.client()).settled("web", 3).await;
}
