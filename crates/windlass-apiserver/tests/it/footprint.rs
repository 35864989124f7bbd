//! What a server costs.

use std::time::{Duration, Instant};

use windlass_apiserver::Server;

/// A generous bound, so that it holds without optimisation on a busy machine; the benchmark has the real one.
#[test]
fn a_server_is_made_in_no_time() {
    Server::builder().build().unwrap();
    let start = Instant::now();
    for _ in 0..10 {
        Server::builder().build().unwrap();
    }
    let each = start.elapsed() / 10;
    assert!(each < Duration::from_millis(100), "{each:?}");
}
