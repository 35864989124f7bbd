//! The operator's assumptions about Neutron's API. `NEUTRON_TEST_URL` names a real server (`cargo xtask
//! neutron start`) for the same tests.

use std::{
    env,
    sync::atomic::{AtomicU32, Ordering},
};

use network::neutron::{AllocationPool, Error, NetworkChange, NewNetwork, NewSubnet, SubnetChange};

use super::*;

static PROJECTS: AtomicU32 = AtomicU32::new(0);

/// A server, and a separate project for this test.
struct Server {
    neutron: Neutron,
    url: String,
    project: String,
    _stand_in: Option<StandIn>,
}

impl Server {
    async fn new() -> Self {
        let (url, stand_in) = if let Ok(url) = env::var("NEUTRON_TEST_URL") {
            (url, None)
        } else {
            let stand_in = StandIn::start().await.expect("a port");
            (stand_in.url(), Some(stand_in))
        };
        let number = PROJECTS.fetch_add(1, Ordering::Relaxed);
        let project = format!("test-{}-{number}-{}", std::process::id(), fastrand::u32(..));
        let config =
            NeutronConfig { project: Some(project.clone()), page: 10, ..NeutronConfig::noauth(&url) };
        Self { neutron: Neutron::new(config).expect("a client"), url, project, _stand_in: stand_in }
    }

    async fn network(&self, name: &str) -> network::neutron::Network {
        let new = NewNetwork { name: name.to_owned(), description: "of a test".to_owned() };
        self.neutron.create_network(&new).await.expect("created")
    }

    async fn subnet(
        &self,
        network_id: &str,
        cidr: &str,
        gateway: &str,
    ) -> Result<network::neutron::Subnet, Error> {
        let new = NewSubnet {
            network_id: network_id.to_owned(),
            name: "s".to_owned(),
            cidr: cidr.to_owned(),
            gateway_ip: gateway.parse().expect("an address"),
            ip_version: if cidr.contains(':') { 6 } else { 4 },
        };
        self.neutron.create_subnet(&new).await
    }

    fn own<'a>(&'a self, name: &'a str) -> [(&'a str, &'a str); 2] {
        [("tenant_id", &self.project), ("name", name)]
    }
}

fn pools(desired: &[(&str, &str)]) -> Vec<AllocationPool> {
    let address = |text: &str| text.parse().expect("an address");
    desired.iter().map(|(start, end)| AllocationPool { start: address(start), end: address(end) }).collect()
}

#[track_caller]
fn refused(result: Result<impl std::fmt::Debug, Error>) -> (u16, String, String) {
    match result.expect_err("refused") {
        Error::Refused { code, kind, message, .. } => (code, kind, message),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn networks_are_created_found_changed_and_deleted() {
    let server = Server::new().await;
    let made = server.network("default/a").await;
    assert_eq!(
        (made.name.as_str(), made.status.as_str(), made.admin_state_up),
        ("default/a", "ACTIVE", true)
    );
    assert!(made.created_at.is_some());
    server.network("default/a").await;
    server.network("default/b").await;
    let found = server.neutron.networks(&server.own("default/a")).await.expect("listed");
    assert_eq!(found.len(), 2, "names are not unique");
    let described = [server.own("default/a")[0], server.own("default/a")[1], ("description", "another")];
    assert!(server.neutron.networks(&described).await.expect("listed").is_empty());

    let down = NetworkChange { admin_state_up: Some(false), ..NetworkChange::default() };
    assert!(!server.neutron.update_network(&made.id, &down).await.expect("changed").admin_state_up);
    let (name, description) = (Some("renamed".to_owned()), Some("of another".to_owned()));
    let renamed = NetworkChange { name, description, ..NetworkChange::default() };
    server.neutron.update_network(&made.id, &renamed).await.expect("changed");
    let found = server.neutron.network(&made.id).await.expect("got").expect("a network");
    assert_eq!(
        (found.name.as_str(), found.description.as_str(), found.admin_state_up),
        ("renamed", "of another", false)
    );
    server.neutron.delete_network(&made.id).await.expect("deleted");
    server.neutron.delete_network(&made.id).await.expect("gone already");
    assert_eq!(server.neutron.network(&made.id).await.expect("answered"), None);
    let (code, kind, message) = refused(server.neutron.update_network(&made.id, &down).await);
    assert_eq!((code, kind.as_str()), (404, "NetworkNotFound"));
    assert_eq!(message, format!("Network {} could not be found.", made.id));
}

#[tokio::test]
async fn subnets_have_pools_without_the_gateway_and_do_not_overlap() {
    let server = Server::new().await;
    let network = server.network("default/a").await;
    let first = server.subnet(&network.id, "10.0.0.0/24", "10.0.0.1").await.expect("created");
    assert_eq!(first.allocation_pools, pools(&[("10.0.0.2", "10.0.0.254")]));
    let middle = server.subnet(&network.id, "10.2.0.0/24", "10.2.0.9").await.expect("created");
    assert_eq!(middle.allocation_pools, pools(&[("10.2.0.1", "10.2.0.8"), ("10.2.0.10", "10.2.0.254")]));
    let six = server.subnet(&network.id, "fd00::/64", "fd00::1").await.expect("created");
    assert_eq!(six.allocation_pools, pools(&[("fd00::2", "fd00::ffff:ffff:ffff:ffff")]));
    assert_eq!(
        server.subnet(&network.id, "10.3.0.9/24", "10.3.0.1").await.expect("created").cidr,
        "10.3.0.0/24"
    );

    let (code, kind, message) = refused(server.subnet(&network.id, "10.0.0.0/25", "10.0.0.1").await);
    assert_eq!((code, kind.as_str()), (400, "InvalidInput"));
    assert!(message.ends_with("overlaps with another subnet."), "{message}");
    let absent = "6f0e6f3e-6a3b-4d55-9b3f-000000000000";
    assert_eq!(refused(server.subnet(absent, "10.0.0.0/24", "10.0.0.1").await).1, "NetworkNotFound");
    assert_eq!(refused(server.subnet("x", "10.0.0.0/24", "10.0.0.1").await).0, 400);
    let (code, _, message) = refused(server.subnet(&network.id, "10.0.0.x/24", "10.0.0.1").await);
    assert_eq!(
        (code, message.as_str()),
        (400, "Invalid input for operation: 10.0.0.x/24 is not in a CIDR format.")
    );
    let listed = server.neutron.subnets(&[("network_id", &network.id)]).await.expect("listed");
    assert_eq!(listed.len(), 4);
    server.neutron.delete_subnet(&middle.id).await.expect("deleted");
    server.neutron.delete_network(&network.id).await.expect("deleted with its subnets");
    assert!(server.neutron.subnets(&[("network_id", &network.id)]).await.expect("listed").is_empty());
}

#[tokio::test]
async fn a_gateway_changes_only_together_with_the_pools() {
    let server = Server::new().await;
    let network = server.network("default/a").await;
    let subnet = server.subnet(&network.id, "10.0.0.0/24", "10.0.0.1").await.expect("created");
    let gateway_ip = "10.0.0.254".parse().expect("an address");
    let alone = SubnetChange { gateway_ip: Some(gateway_ip), ..SubnetChange::default() };
    let (code, kind, message) = refused(server.neutron.update_subnet(&subnet.id, &alone).await);
    assert_eq!((code, kind.as_str()), (409, "GatewayConflictWithAllocationPools"));
    assert_eq!(message, "Gateway ip 10.0.0.254 conflicts with allocation pool 10.0.0.2-10.0.0.254.");
    let moved = pools(&[("10.0.0.1", "10.0.0.253")]);
    let both = SubnetChange { allocation_pools: Some(moved.clone()), ..alone };
    let changed = server.neutron.update_subnet(&subnet.id, &both).await.expect("changed");
    assert_eq!((changed.gateway_ip, changed.allocation_pools), (Some(gateway_ip), moved));
}

#[tokio::test]
async fn each_field_of_a_subnet_changes_alone() {
    let server = Server::new().await;
    let network = server.network("default/a").await;
    let subnet = server.subnet(&network.id, "10.0.0.0/24", "10.0.0.1").await.expect("created");
    assert!(subnet.enable_dhcp);
    let nothing = SubnetChange::default();
    let name = SubnetChange { name: Some("renamed".to_owned()), ..nothing.clone() };
    let changed = server.neutron.update_subnet(&subnet.id, &name).await.expect("changed");
    assert_eq!((changed.name.as_str(), &changed.allocation_pools), ("renamed", &subnet.allocation_pools));
    for enable_dhcp in [false, true] {
        let dhcp = SubnetChange { enable_dhcp: Some(enable_dhcp), ..nothing.clone() };
        assert_eq!(
            server.neutron.update_subnet(&subnet.id, &dhcp).await.expect("changed").enable_dhcp,
            enable_dhcp
        );
    }
    let change =
        |ranges: &[(&str, &str)]| SubnetChange { allocation_pools: Some(pools(ranges)), ..nothing.clone() };
    let two = [("10.0.0.128", "10.0.0.254"), ("10.0.0.2", "10.0.0.9")];
    let changed = server.neutron.update_subnet(&subnet.id, &change(&two)).await.expect("changed");
    let mut found = changed.allocation_pools;
    found.sort_unstable();
    assert_eq!(found, pools(&[two[1], two[0]]));
    for (ranges, code, kind, message) in [
        (
            &[("10.0.0.9", "10.0.0.5")][..],
            400,
            "InvalidAllocationPool",
            "The allocation pool {'end': '10.0.0.5', 'start': '10.0.0.9'} is not valid.",
        ),
        (
            &[("10.0.1.5", "10.0.1.9")],
            400,
            "OutOfBoundsAllocationPool",
            "The allocation pool 10.0.1.5-10.0.1.9 spans beyond the subnet cidr 10.0.0.0/24.",
        ),
        (
            &[("10.0.0.250", "10.0.0.255")],
            400,
            "OutOfBoundsAllocationPool",
            "The allocation pool 10.0.0.250-10.0.0.255 spans beyond the subnet cidr 10.0.0.0/24.",
        ),
        (
            &[("10.0.0.5", "10.0.0.9"), ("10.0.0.8", "10.0.0.12")],
            409,
            "OverlappingAllocationPools",
            "Found overlapping allocation pools: 10.0.0.5-10.0.0.9 10.0.0.8-10.0.0.12 for subnet 10.0.0.0/24.",
        ),
    ] {
        let refusal = refused(server.neutron.update_subnet(&subnet.id, &change(ranges)).await);
        assert_eq!(refusal, (code, kind.to_owned(), message.to_owned()));
    }
}

#[tokio::test]
async fn some_blocks_and_gateways_are_refused() {
    let server = Server::new().await;
    let dhcp = "if enable_dhcp is True";
    for (cidr, gateway, refusal) in [
        ("10.0.0.0/30", "10.0.0.1", ""),
        ("fd00::/126", "fd00::1", ""),
        ("fd00::/64", "fd00::", ""),
        ("fd00::/64", "fd00::ffff:ffff:ffff:ffff", ""),
        ("fe80::/64", "fe80::1", ""),
        ("128.0.0.0/1", "128.0.0.1", ""),
        ("10.0.0.0/24", "10.9.0.1", ""),
        ("10.0.0.0/24", "10.0.0.0", "Gateway is not valid on subnet"),
        ("10.0.0.0/24", "10.0.0.255", "Gateway is not valid on subnet"),
        ("10.0.0.0/24", "fd00::1", "gateway_ip 'fd00::1' does not match the ip_version '4'"),
        (
            "10.0.0.0/31",
            "10.0.0.1",
            "Subnet has a prefix length that is incompatible with DHCP service enabled",
        ),
        (
            "10.0.0.1/32",
            "10.0.0.1",
            "Subnet has a prefix length that is incompatible with DHCP service enabled",
        ),
        (
            "fd00::/127",
            "fd00::1",
            "Subnet has a prefix length that is incompatible with DHCP service enabled",
        ),
        ("::1/128", "::1", "Subnet has a prefix length that is incompatible with DHCP service enabled"),
        ("224.0.0.0/8", "224.0.0.1", &format!("Multicast IP subnet is not supported {dhcp}")),
        ("ff02::/64", "ff02::1", &format!("Multicast IP subnet is not supported {dhcp}")),
        ("127.1.0.0/16", "127.1.0.1", &format!("Loopback IP subnet is not supported {dhcp}")),
        ("0.0.0.0/0", "10.0.0.1", &format!("First IP '0.0.0.0' of network is not supported {dhcp}.")),
        ("0.0.0.0/8", "0.0.0.1", &format!("First IP '0.0.0.0' of network is not supported {dhcp}.")),
        ("::/0", "fd00::1", "IPv6 subnet '::' is not supported"),
        ("::/64", "::1", "IPv6 subnet '::' is not supported"),
    ] {
        let network = server.network("default/a").await;
        let result = server.subnet(&network.id, cidr, gateway).await;
        if refusal.is_empty() {
            result.unwrap_or_else(|error| panic!("{cidr} {gateway}: {error}"));
        } else {
            let wanted = (400, "InvalidInput".to_owned(), format!("Invalid input for operation: {refusal}."));
            assert_eq!(refused(result), wanted, "{cidr} {gateway}");
        }
        server.neutron.delete_network(&network.id).await.expect("deleted");
    }
}

#[tokio::test]
async fn a_quota_is_a_conflict_of_its_own() {
    let server = Server::new().await;
    let url = format!("{}/v2.0/quotas/{}", server.url, server.project);
    put(&url, json!({ "quota": { "network": 1 } })).await;
    server.network("a").await;
    let new = NewNetwork { name: "b".to_owned(), description: String::new() };
    let error = server.neutron.create_network(&new).await.expect_err("refused");
    assert!(error.is_quota_exceeded() && !error.is_conflict(), "{error}");
    assert_eq!(error.reason(), "QuotaExceeded");
    assert!(error.to_string().contains("Quota exceeded for resources: ['network']."), "{error}");
}

#[tokio::test]
async fn lists_are_read_to_the_end() {
    let server = Server::new().await;
    for _ in 0..25 {
        server.network("many").await;
    }
    let found = server.neutron.networks(&server.own("many")).await.expect("listed");
    let mut ids: Vec<&str> = found.iter().map(|network| network.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 25, "three pages, each network once");
}
