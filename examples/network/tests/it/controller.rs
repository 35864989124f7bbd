//! Create, change, drift, deletion, and specs that cannot be.

use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use network::neutron::SubnetChange;

use super::*;

#[tokio::test]
async fn neutron_follows_the_object_with_exactly_the_declared_rights() {
    let fixture = Fixture::new().await;
    let operator = fixture.run().await;
    fixture.create("a", "192.168.0.0/16", "192.168.0.1").await;
    fixture.settled(&["default/a 192.168.0.0/16 192.168.0.1"]).await;
    fixture.reason("a", "Synced").await;
    let status = fixture.objects().get("a").await.expect("got").status.expect("a status");
    assert!(status.network_id.is_some() && status.subnet_id.is_some(), "{status:?}");

    fixture.patch("a", json!({ "gateway": "192.168.255.254" })).await;
    fixture.settled(&["default/a 192.168.0.0/16 192.168.255.254"]).await;
    fixture.create("b", "fd00::/64", "fd00::1").await;
    fixture.settled(&["default/a 192.168.0.0/16 192.168.255.254", "default/b fd00::/64 fd00::1"]).await;

    fixture.delete("a").await;
    fixture.cluster.gone::<Network>("a").await;
    fixture.settled(&["default/b fd00::/64 fd00::1"]).await;
    operator.stop_with_exact_rights().await.expect("a graceful stop");
}

#[tokio::test]
async fn what_is_changed_in_neutron_is_changed_back() {
    let fixture = Fixture::new().await;
    let operator = fixture.run().await;
    fixture.create("a", "10.0.0.0/24", "10.0.0.1").await;
    fixture.reason("a", "Synced").await;
    let found = fixture.neutron.networks(&[OWNED]).await.expect("listed").remove(0);
    let subnet = fixture.neutron.subnets(&[("network_id", &found.id)]).await.expect("listed").remove(0);
    let gateway = "10.0.0.254".parse().expect("an address");
    let pool = network::neutron::AllocationPool {
        start: "10.0.0.1".parse().expect("an address"),
        end: "10.0.0.253".parse().expect("an address"),
    };
    let change = SubnetChange { gateway_ip: gateway, allocation_pools: vec![pool] };
    fixture.neutron.update_subnet(&subnet.id, &change).await.expect("changed");
    fixture.settled(&["default/a 10.0.0.0/24 10.0.0.1"]).await;

    fixture.neutron.delete_subnet(&subnet.id).await.expect("deleted");
    fixture.settled(&["default/a 10.0.0.0/24 10.0.0.1"]).await;

    fixture.neutron.delete_network(&found.id).await.expect("deleted");
    fixture.settled(&["default/a 10.0.0.0/24 10.0.0.1"]).await;
    let status = fixture.cluster.wait_for::<Network>("a", |object| {
        object.status.as_ref().is_some_and(|status| status.network_id.as_ref() != Some(&found.id))
    });
    status.await;

    // A network without an object, as it is left when the finalizer is removed by hand.
    let orphan =
        network::neutron::NewNetwork { name: "default/gone".to_owned(), description: OWNED.1.to_owned() };
    fixture.neutron.create_network(&orphan).await.expect("created");
    let foreign =
        network::neutron::NewNetwork { name: "default/gone".to_owned(), description: "mine".to_owned() };
    fixture.neutron.create_network(&foreign).await.expect("created");
    fixture.settled(&["default/a 10.0.0.0/24 10.0.0.1"]).await;
    assert_eq!(fixture.neutron.networks(&[("description", "mine")]).await.expect("listed").len(), 1);
    operator.stop().await.expect("a graceful stop");
}

#[tokio::test]
async fn a_spec_that_cannot_be_is_reported_once_and_not_tried_again() {
    let fixture = Fixture::new().await;
    let operator = fixture.run().await;
    fixture.create("a", "10.0.0.0/33", "10.0.0.1").await;
    assert!(fixture.reason("a", "InvalidCIDR").await.contains("10.0.0.0/33"));
    fixture.patch("a", json!({ "cidr": "10.0.0.0/24", "gateway": "10.1.0.1" })).await;
    assert_eq!(fixture.reason("a", "InvalidGateway").await, "spec.gateway: 10.1.0.1 is not in 10.0.0.0/24");
    fixture.patch("a", json!({ "gateway": "10.0.0.1" })).await;
    fixture.reason("a", "Synced").await;
    fixture.patch("a", json!({ "cidr": "10.1.0.0/24", "gateway": "10.1.0.1" })).await;
    assert!(fixture.reason("a", "CIDRImmutable").await.contains("has 10.0.0.0/24, which cannot change"));
    let version = fixture.objects().get("a").await.expect("got").resource_version();

    // Many resyncs later, nothing has been written.
    fixture.create("b", "10.0.0.0/24", "10.0.0.1").await;
    fixture.reason("b", "Synced").await;
    fixture.delete("b").await;
    fixture.cluster.gone::<Network>("b").await;
    assert_eq!(fixture.objects().get("a").await.expect("got").resource_version(), version);
    fixture.settled(&["default/a 10.0.0.0/24 10.0.0.1"]).await;

    let events: Api<Event> = Api::default_namespaced(fixture.cluster.client());
    eventually(SOON, || async {
        let events = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let of_a = events.items.iter().filter(|event| event.involved_object.name.as_deref() == Some("a"));
        let mut reasons: Vec<_> = of_a.filter_map(|event| event.reason.as_deref()).collect();
        reasons.sort_unstable();
        let wanted = ["CIDRImmutable", "InvalidCIDR", "InvalidGateway", "Synced"];
        if reasons == wanted { Ok(()) } else { Err(format!("{reasons:?}")) }
    })
    .await;
    fixture.delete("a").await;
    fixture.cluster.gone::<Network>("a").await;
    fixture.settled(&[]).await;
    operator.stop().await.expect("a graceful stop");
}
