//! Create, change, drift, deletion, and specs that cannot be.

use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use network::neutron::{AllocationPool, NetworkChange, NewNetwork, SubnetChange};

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

/// The manager has rights in one namespace only.
#[tokio::test]
async fn a_controller_of_one_namespace_watches_that_namespace() {
    let fixture = Fixture::new().await;
    let manager = fixture.manager().namespaces(["default"]);
    let operator = fixture.cluster.run_restricted(manager).await;
    fixture.create("a", "192.168.0.0/16", "192.168.0.1").await;
    fixture.settled(&["default/a 192.168.0.0/16 192.168.0.1"]).await;
    fixture.delete("a").await;
    fixture.cluster.gone::<Network>("a").await;
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
    let address = |text: &str| text.parse().expect("an address");
    let pool = |start, end| Some(vec![AllocationPool { start: address(start), end: address(end) }]);
    for change in [
        SubnetChange {
            gateway_ip: Some(address("10.0.0.254")),
            allocation_pools: pool("10.0.0.1", "10.0.0.253"),
            ..SubnetChange::default()
        },
        SubnetChange { allocation_pools: pool("10.0.0.20", "10.0.0.29"), ..SubnetChange::default() },
        SubnetChange { name: Some("renamed".to_owned()), ..SubnetChange::default() },
        SubnetChange { enable_dhcp: Some(false), ..SubnetChange::default() },
    ] {
        fixture.neutron.update_subnet(&subnet.id, &change).await.expect("changed");
        eventually(SOON, || async {
            let found = fixture.neutron.subnets(&[("network_id", &found.id)]).await.expect("listed");
            if found == [subnet.clone()] { Ok(()) } else { Err(format!("{change:?}: {found:?}")) }
        })
        .await;
    }

    fixture.neutron.delete_subnet(&subnet.id).await.expect("deleted");
    fixture.settled(&["default/a 10.0.0.0/24 10.0.0.1"]).await;

    fixture.neutron.delete_network(&found.id).await.expect("deleted");
    fixture.settled(&["default/a 10.0.0.0/24 10.0.0.1"]).await;
    let status = fixture.cluster.wait_for::<Network>("a", |object| {
        object.status.as_ref().is_some_and(|status| status.network_id.as_ref() != Some(&found.id))
    });
    status.await;
    let events: Api<Event> = Api::default_namespaced(fixture.cluster.client());
    eventually(SOON, || async {
        let events = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items;
        let reasons: Vec<_> = events.into_iter().filter_map(|event| event.reason).collect();
        if reasons.iter().any(|reason| reason == "Recreated") { Ok(()) } else { Err(format!("{reasons:?}")) }
    })
    .await;

    // A network without an object, as after a removal of the finalizer by hand.
    let orphan = NewNetwork { name: "default/gone".to_owned(), description: OWNED.1.to_owned() };
    fixture.neutron.create_network(&orphan).await.expect("created");
    let foreign = NewNetwork { name: "default/gone".to_owned(), description: "mine".to_owned() };
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
    let object = fixture.objects().get("a").await.expect("got");
    let (version, uid) = (object.resource_version(), object.uid());

    // Many resyncs later, no write has happened.
    fixture.create("b", "10.0.0.0/24", "10.0.0.1").await;
    fixture.reason("b", "Synced").await;
    fixture.delete("b").await;
    fixture.cluster.gone::<Network>("b").await;
    assert_eq!(fixture.objects().get("a").await.expect("got").resource_version(), version);
    fixture.settled(&["default/a 10.0.0.0/24 10.0.0.1"]).await;

    let events: Api<Event> = Api::default_namespaced(fixture.cluster.client());
    eventually(SOON, || async {
        let events = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let of_a = events.items.iter().filter(|event| event.involved_object.uid == uid);
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

/// The status names the network: another name or description in Neutron leads to no second network.
#[tokio::test]
async fn a_network_that_is_renamed_in_neutron_is_found_by_its_id() {
    let fixture = Fixture::new().await;
    let operator = fixture.run().await;
    fixture.create("a", "10.0.0.0/24", "10.0.0.1").await;
    fixture.reason("a", "Synced").await;
    let found = fixture.neutron.networks(&[OWNED]).await.expect("listed").remove(0);
    let nothing = NetworkChange::default();
    for change in [
        NetworkChange { admin_state_up: Some(false), ..nothing.clone() },
        NetworkChange { description: Some("mine".to_owned()), ..nothing.clone() },
        NetworkChange { name: Some("mine".to_owned()), ..nothing.clone() },
        NetworkChange { name: Some("default/b".to_owned()), ..nothing.clone() },
    ] {
        fixture.neutron.update_network(&found.id, &change).await.expect("changed");
        eventually(SOON, || async {
            let all = fixture.neutron.networks(&[]).await.expect("listed");
            if all == [found.clone()] { Ok(()) } else { Err(format!("{change:?}: {all:?}")) }
        })
        .await;
    }
    assert_eq!(fixture.stand_in.created("networks"), 1);

    // The network does not outlive the object.
    let renamed =
        NetworkChange { description: Some("mine".to_owned()), name: Some("mine".to_owned()), ..nothing };
    fixture.neutron.update_network(&found.id, &renamed).await.expect("changed");
    fixture.delete("a").await;
    fixture.cluster.gone::<Network>("a").await;
    assert!(fixture.neutron.networks(&[]).await.expect("listed").is_empty());
    operator.stop().await.expect("a graceful stop");
}

#[tokio::test]
async fn a_cidr_cannot_change_even_if_the_subnet_was_renamed() {
    let fixture = Fixture::new().await;
    // With a long resync, the name is not changed back before the spec changes.
    let operator = fixture.run_with_resync(Duration::from_secs(3600)).await;
    fixture.create("a", "10.0.0.0/24", "10.0.0.1").await;
    fixture.reason("a", "Synced").await;
    let subnet = fixture.neutron.subnets(&[("cidr", "10.0.0.0/24")]).await.expect("listed").remove(0);
    let renamed = SubnetChange { name: Some("renamed".to_owned()), ..SubnetChange::default() };
    fixture.neutron.update_subnet(&subnet.id, &renamed).await.expect("changed");
    fixture.patch("a", json!({ "cidr": "10.1.0.0/24", "gateway": "10.1.0.1" })).await;
    assert!(fixture.reason("a", "CIDRImmutable").await.contains("has 10.0.0.0/24, which cannot change"));
    assert_eq!(fixture.stand_in.created("subnets"), 1);
    operator.stop().await.expect("a graceful stop");
}

#[tokio::test]
async fn an_object_that_others_hold_says_that_its_network_is_gone() {
    let fixture = Fixture::new().await;
    let operator = fixture.run().await;
    fixture.create("a", "10.0.0.0/24", "10.0.0.1").await;
    fixture.reason("a", "Synced").await;
    let hold = |held: bool| {
        let finalizers =
            json!([{ "op": "add", "path": "/metadata/finalizers/-", "value": "example.com/other" }]);
        let released = json!([{ "op": "remove", "path": "/metadata/finalizers/0" }]);
        Patch::<()>::Json(serde_json::from_value(if held { finalizers } else { released }).expect("a patch"))
    };
    fixture.objects().patch("a", &PatchParams::default(), &hold(true)).await.expect("patched");
    fixture.delete("a").await;
    fixture.reason("a", "Deleted").await;
    fixture.settled(&[]).await;
    let status = fixture.objects().get("a").await.expect("got").status.expect("a status");
    assert_eq!((status.network_id, status.subnet_id), (None, None));
    fixture.objects().patch("a", &PatchParams::default(), &hold(false)).await.expect("patched");
    fixture.cluster.gone::<Network>("a").await;
    operator.stop().await.expect("a graceful stop");
}

#[tokio::test]
async fn an_id_of_another_object_in_the_status_takes_nothing_over() {
    let fixture = Fixture::new().await;
    let operator = fixture.run().await;
    fixture.create("a", "10.0.0.0/24", "10.0.0.1").await;
    fixture.create("b", "10.1.0.0/24", "10.1.0.1").await;
    let wanted = ["default/a 10.0.0.0/24 10.0.0.1", "default/b 10.1.0.0/24 10.1.0.1"];
    fixture.settled(&wanted).await;
    for name in ["a", "b"] {
        fixture.reason(name, "Synced").await;
    }
    let id = async |name: &str| {
        fixture.objects().get(name).await.expect("got").status.and_then(|status| status.network_id)
    };
    let (of_a, of_b) = (id("a").await, id("b").await);
    let patch = Patch::Merge(json!({ "status": { "networkID": of_b } }));
    fixture.objects().patch_status("a", &PatchParams::default(), &patch).await.expect("patched");
    eventually(SOON, || async {
        let found = id("a").await;
        if found == of_a { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    fixture.settled(&wanted).await;
    assert_eq!(id("b").await, of_b);
    operator.stop().await.expect("a graceful stop");
}

#[tokio::test]
async fn an_id_of_a_foreign_network_in_the_status_takes_nothing_over() {
    let fixture = Fixture::new().await;
    let operator = fixture.run().await;
    let foreign = NewNetwork { name: "mine".to_owned(), description: "mine".to_owned() };
    let foreign = fixture.neutron.create_network(&foreign).await.expect("created");
    fixture.create("a", "10.0.0.0/24", "10.0.0.1").await;
    fixture.reason("a", "Synced").await;
    let id =
        async || fixture.objects().get("a").await.expect("got").status.and_then(|status| status.network_id);
    let before = id().await;
    let patch = Patch::Merge(json!({ "status": { "networkID": foreign.id } }));
    fixture.objects().patch_status("a", &PatchParams::default(), &patch).await.expect("patched");
    eventually(SOON, || async {
        let found = id().await;
        if found == before { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    // The deletion finds the ID in the status, and no other network of the object, as after a deletion that is repeated.
    operator.stop().await.expect("a graceful stop");
    fixture.objects().patch_status("a", &PatchParams::default(), &patch).await.expect("patched");
    fixture.neutron.delete_network(&before.expect("an ID")).await.expect("deleted");
    fixture.delete("a").await;
    let operator = fixture.run().await;
    fixture.cluster.gone::<Network>("a").await;
    assert_eq!(fixture.neutron.networks(&[]).await.expect("listed"), [foreign]);
    operator.stop().await.expect("a graceful stop");
}

/// With the field manager `helm`, for instance, by a user of Helm.
#[tokio::test]
async fn the_operator_takes_no_field_from_its_user() {
    let fixture = Fixture::new().await;
    fixture.cluster.check_ownership(fixture.manager(), include_str!("../../sample.yaml")).await;
}
