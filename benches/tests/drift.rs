//! A short virtual day. The full day is `cargo run --release -p windlass-benches -- drift`.

use std::process::Command;

#[test]
fn hours_of_rollouts_leave_the_memory_of_a_fresh_list() {
    let drift = Command::new(env!("CARGO_BIN_EXE_bench"))
        .args(["drift", "--objects", "1000", "--hours", "6"])
        .output()
        .expect("the program runs");
    assert!(drift.status.success(), "{}", String::from_utf8_lossy(&drift.stderr));
}
