//! Short runs of the long tests, on a server in this process.

use std::time::Duration;

use windlass_siege::{Target, concurrency, fuzz};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_requests_to_all_resources_end() {
    let target = Target::embedded().await.unwrap();
    let found = fuzz::run(&target, 7, Duration::from_secs(6)).await.unwrap();
    target.stop().await;
    assert_eq!(found, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_clients_see_the_same_objects() {
    let target = Target::embedded().await.unwrap();
    let report = concurrency::run(&target, 7, Duration::from_secs(6)).await.unwrap();
    target.stop().await;
    assert!(report.is_right(), "{report}");
}
