//! The queue of the controller is in the manager's metrics, like those of the toolkit's own controllers.

use super::*;

#[tokio::test]
async fn the_named_queue_is_in_the_metrics_of_the_manager() {
    let fixture = Fixture::new().await;
    let manager = fixture.manager();
    let metrics = manager.metrics().clone();
    assert!(!metrics.render().contains("name=\"Networks\""));
    let operator = fixture.cluster.run_restricted(manager).await;
    fixture.create("a", "192.168.0.0/16", "192.168.0.1").await;
    fixture.reason("a", "Synced").await;
    let rendered = metrics.render();
    let adds = rendered
        .lines()
        .find(|line| line.starts_with("workqueue_adds_total{") && line.contains("name=\"Networks\""));
    let count = adds.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    assert!(count.is_some_and(|count| count > 0), "{rendered}");
    operator.stop_with_exact_rights().await.expect("a graceful stop");
    assert!(!metrics.render().contains("name=\"Networks\""), "the queue is gone");
}
