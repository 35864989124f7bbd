//! A short soak test. The full soak is `cargo run --release -p windlass-benches -- soak`.

use std::process::Command;

#[test]
fn fifty_thousand_changes_leave_the_memory_where_it_is() {
    // The soak runs in its own process, because it measures the memory of the process.
    let soak = Command::new(env!("CARGO_BIN_EXE_bench"))
        .args(["soak", "--events", "50000", "--objects", "1000"])
        .output()
        .expect("the program runs");
    assert!(soak.status.success(), "{}", String::from_utf8_lossy(&soak.stderr));
}
