//! The manifests agree with the code.

use std::process::Command;

#[test]
fn the_manifests_are_up_to_date() {
    let printed = Command::new(env!("CARGO_BIN_EXE_ip-pool")).arg("crds").output().expect("it runs");
    let printed = String::from_utf8(printed.stdout).expect("text");
    assert_eq!(include_str!("../../crd.yaml"), printed, "run `ip-pool crds > crd.yaml`");
}
