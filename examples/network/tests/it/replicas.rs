//! Two replicas: a leader and a standby.

use windlass::leader_election::LeaderElection;

use super::*;

#[tokio::test]
async fn another_replica_takes_over() {
    let fixture = Fixture::new().await;
    let replica = |identity: &str| {
        let election = LeaderElection::new("network").namespace("default").identity(identity);
        fixture.manager().leader_election(election)
    };
    let first = fixture.cluster.run(replica("first"));
    fixture.create("a", "10.0.0.0/24", "10.0.0.1").await;
    fixture.reason("a", "Synced").await;
    let second = fixture.cluster.run(replica("second"));
    fixture.create("b", "10.0.0.0/24", "10.0.0.1").await;
    fixture.reason("b", "Synced").await;
    first.stop().await.expect("a graceful stop");
    fixture.create("c", "10.0.0.0/24", "10.0.0.1").await;
    fixture.reason("c", "Synced").await;
    fixture
        .settled(
            &["a", "b", "c"]
                .map(|name| format!("default/{name} 10.0.0.0/24 10.0.0.1"))
                .each_ref()
                .map(String::as_str),
        )
        .await;
    assert_eq!(fixture.stand_in.created("networks"), 3);
    second.stop().await.expect("a graceful stop");
}
