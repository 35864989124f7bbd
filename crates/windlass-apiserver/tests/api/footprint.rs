//! The cost of a server.

use std::time::{Duration, Instant};

use windlass_apiserver::Server;

/// The bound is generous: the bound holds without optimisation on a busy machine. The benchmark has the real
/// bound.
#[test]
fn a_server_is_built_in_a_fraction_of_a_second() {
    Server::builder().build().unwrap();
    let start = Instant::now();
    for _ in 0..10 {
        Server::builder().build().unwrap();
    }
    let each = start.elapsed() / 10;
    assert!(each < Duration::from_millis(500), "{each:?}");
}
