//! The manifests agree with the code.

use std::process::Command;

#[test]
fn the_manifests_are_up_to_date() {
    let printed =
        Command::new(env!("CARGO_BIN_EXE_sample-controller")).arg("crds").output().expect("it runs");
    let printed = String::from_utf8(printed.stdout).expect("text");
    assert_eq!(include_str!("../../crd.yaml"), printed, "run `sample-controller crds > crd.yaml`");

    let without_status = printed.replace("    subresources:\n      status: {}\n", "");
    assert_ne!(without_status, printed);
    assert_eq!(include_str!("../../crd-without-status.yaml"), without_status);
}
