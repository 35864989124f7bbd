//! Neutron that is down, slow, or refuses; an operator that is killed.

use network::neutron::stand_in::Faults;

use super::*;

#[tokio::test]
async fn an_outage_of_neutron_is_reported_and_survived() {
    let fixture = Fixture::new().await;
    let operator = fixture.run().await;
    for (faults, reason) in [
        (Faults::down(), "NeutronUnavailable"),
        (Faults::slow(Duration::from_secs(10)), "NeutronUnavailable"),
        (Faults::always(401), "Unauthorized"),
        (Faults::always(409), "Conflict"),
        (Faults::always(500), "NeutronError"),
    ] {
        fixture.stand_in.set_faults(faults.clone());
        fixture.create("a", "10.0.0.0/24", "10.0.0.1").await;
        fixture.reason("a", reason).await;
        fixture.stand_in.set_faults(Faults::default());
        fixture.reason("a", "Synced").await;
        fixture.settled(&["default/a 10.0.0.0/24 10.0.0.1"]).await;

        fixture.stand_in.set_faults(faults);
        fixture.delete("a").await;
        fixture.reason("a", reason).await;
        fixture.stand_in.set_faults(Faults::default());
        fixture.cluster.gone::<Network>("a").await;
        fixture.settled(&[]).await;
    }
    operator.stop().await.expect("a graceful stop");
}

/// A request that Neutron will refuse again is not repeated before the timer or a change of the object.
#[tokio::test]
async fn a_refusal_is_not_repeated_at_once() {
    let fixture = Fixture::new().await;
    let operator = fixture.run_with_resync(Duration::from_secs(3600)).await;
    fixture.stand_in.set_faults(Faults::always(400));
    // The status of `a` is a change, too, and `a` is tried again after the change. The retry is over when `b`
    // has been refused.
    for name in ["a", "b"] {
        fixture.create(name, "10.0.0.0/24", "10.0.0.1").await;
        fixture.reason(name, "Refused").await;
    }
    fixture.stand_in.set_faults(Faults::default());
    fixture.create("c", "10.0.0.0/24", "10.0.0.1").await;
    fixture.reason("c", "Synced").await;
    fixture.delete("c").await;
    fixture.cluster.gone::<Network>("c").await;
    fixture.reason("a", "Refused").await;
    fixture.patch("a", json!({ "gateway": "10.0.0.2" })).await;
    fixture.reason("a", "Synced").await;
    operator.stop().await.expect("a graceful stop");
}

/// A request that exceeds a quota is not repeated either: only a user or a deletion makes room.
#[tokio::test]
async fn a_quota_is_not_asked_again_at_once() {
    let fixture = Fixture::new().await;
    let operator = fixture.run_with_resync(Duration::from_secs(3600)).await;
    fixture.stand_in.set_default_quota(0);
    for name in ["a", "b"] {
        fixture.create(name, "10.0.0.0/24", "10.0.0.1").await;
        fixture.reason(name, "QuotaExceeded").await;
    }
    fixture.stand_in.set_default_quota(-1);
    fixture.create("c", "10.0.0.0/24", "10.0.0.1").await;
    fixture.reason("c", "Synced").await;
    fixture.delete("c").await;
    fixture.cluster.gone::<Network>("c").await;
    fixture.reason("a", "QuotaExceeded").await;
    fixture.patch("a", json!({ "gateway": "10.0.0.2" })).await;
    fixture.reason("a", "Synced").await;
    operator.stop().await.expect("a graceful stop");
}

#[tokio::test]
async fn a_quota_is_reported_and_used_as_soon_as_there_is_room() {
    let fixture = Fixture::new().await;
    fixture.stand_in.set_quota("kubernetes", "network", 1);
    let operator = fixture.run().await;
    fixture.create("a", "10.0.0.0/24", "10.0.0.1").await;
    fixture.reason("a", "Synced").await;
    fixture.create("b", "10.0.0.0/24", "10.0.0.1").await;
    assert!(
        fixture.reason("b", "QuotaExceeded").await.contains("Quota exceeded for resources: ['network'].")
    );
    fixture.delete("a").await;
    fixture.reason("b", "Synced").await;
    fixture.settled(&["default/b 10.0.0.0/24 10.0.0.1"]).await;
    operator.stop().await.expect("a graceful stop");
}

/// A request with a lost response has made a network. The controller finds this network and does not create
/// another network.
#[tokio::test]
async fn a_lost_response_makes_no_second_network() {
    let fixture = Fixture::new().await;
    fixture.stand_in.set_faults(Faults::lost_responses(3));
    let operator = fixture.run().await;
    fixture.create("a", "10.0.0.0/24", "10.0.0.1").await;
    fixture.reason("a", "Synced").await;
    assert_eq!(fixture.actual().await, ["default/a 10.0.0.0/24 10.0.0.1"]);
    assert_eq!(fixture.stand_in.created("networks"), 1);
    operator.stop().await.expect("a graceful stop");
}

/// An operator that is aborted between any two steps leaves no network without an object, and no object with
/// two networks.
#[tokio::test]
async fn a_killed_operator_leaves_no_orphan_and_no_second_network() {
    let fixture = Fixture::new().await;
    fixture.stand_in.set_faults(Faults::slow(Duration::from_millis(10)));
    for round in 0..8u64 {
        let operator = tokio::spawn(fixture.manager().run());
        if round == 0 {
            fixture.create("a", "10.0.0.0/24", "10.0.0.1").await;
            fixture.create("b", "10.0.0.0/24", "10.0.0.1").await;
        }
        if round == 4 {
            fixture.delete("b").await;
        }
        // Each round aborts the operator at another step.
        tokio::time::sleep(Duration::from_millis(15 + 11 * round)).await;
        operator.abort();
        assert!(operator.await.is_err_and(|ended| ended.is_cancelled()), "it was killed");
    }
    let operator = fixture.run().await;
    fixture.cluster.gone::<Network>("b").await;
    fixture.settled(&["default/a 10.0.0.0/24 10.0.0.1"]).await;
    operator.stop().await.expect("a graceful stop");
}

/// Two hundred objects reach the wanted state, although every fourth request to Neutron fails.
#[tokio::test]
async fn two_hundred_networks_under_faults_end_as_wanted() {
    let mut fixture = Fixture::new().await;
    // A busy machine needs longer than for a single object.
    fixture.cluster = fixture.cluster.wait_limit(SOON * 8);
    fixture.stand_in.set_quota("kubernetes", "network", -1);
    fixture.stand_in.set_quota("kubernetes", "subnet", -1);
    let operator = fixture.run().await;
    fixture.stand_in.set_faults(Faults::random(25, 7));
    for number in 0..200 {
        fixture
            .create(&format!("n{number:03}"), &format!("10.{number}.0.0/16"), &format!("10.{number}.0.1"))
            .await;
    }
    for number in (0..200).step_by(2) {
        fixture.delete(&format!("n{number:03}")).await;
    }
    for number in (0..200).step_by(2) {
        fixture.cluster.gone::<Network>(format!("n{number:03}")).await;
    }
    for number in (1..200).step_by(2) {
        fixture
            .cluster
            .wait_for::<Network>(format!("n{number:03}"), |object| {
                object.status.as_ref().is_some_and(|status| status.subnet_id.is_some())
            })
            .await;
    }
    fixture.stand_in.set_faults(Faults::default());
    let wanted: Vec<String> = (1..200)
        .step_by(2)
        .map(|number| format!("default/n{number:03} 10.{number}.0.0/16 10.{number}.0.1"))
        .collect();
    fixture.settled(&wanted.iter().map(String::as_str).collect::<Vec<_>>()).await;
    for number in (1..200).step_by(2) {
        fixture.delete(&format!("n{number:03}")).await;
    }
    fixture.settled(&[]).await;
    operator.stop().await.expect("a graceful stop");
}
