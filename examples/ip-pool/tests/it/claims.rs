//! Claims from a user's point of view.

use futures::future::join_all;
use ip_pool::{IPAddress, IPClaim, manager};
use kube::{
    CustomResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;
use windlass::prelude::ResourceExt;
use windlass_test::{RestrictedManager, TestCluster, eventually};

use crate::{SOON, user::User};

pub(crate) struct Fixture {
    pub(crate) operator: RestrictedManager,
    pub(crate) user: User,
    pub(crate) cluster: TestCluster,
}

impl Fixture {
    pub(crate) async fn start() -> Self {
        let cluster = TestCluster::start().await;
        install(&cluster).await;
        Self {
            operator: cluster.run_restricted(manager(cluster.client())).await,
            user: User(cluster.client()),
            cluster,
        }
    }

    pub(crate) async fn stop(self) {
        let missing = self.operator.rights().missing;
        assert!(missing.is_empty(), "{missing:?}");
        self.operator.stop().await.expect("a graceful stop");
    }
}

pub(crate) async fn install(cluster: &TestCluster) {
    cluster.install_all(&[ip_pool::IPPool::crd(), IPClaim::crd(), IPAddress::crd()]).await;
}

#[tokio::test]
async fn a_claim_gets_an_address_and_gives_it_back() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create_pool("a", &["10.0.0.0/31", "10.0.1.0/30"], &["10.0.1.0-10.0.1.2"]).await;
    for name in ["one", "two", "three"] {
        user.claim(name, "a", None).await;
    }
    let mut given = [user.bound("one").await, user.bound("two").await, user.bound("three").await];
    let address = user.addresses().get(&given[0]).await.expect("got");
    assert_eq!(address.spec.claim.name, "one");
    user.recorded("default", &format!("one Normal Allocated {} of pool a", given[0])).await;
    given.sort();
    assert_eq!(given, ["10.0.0.0", "10.0.0.1", "10.0.1.3"]);
    user.counts("a", [3, 3, 0, 0], ["Exhausted", "AllInside"]).await;
    user.recorded("default", "a Warning Exhausted all addresses are taken").await;

    user.claim("four", "a", None).await;
    user.waits("four", "PoolExhausted").await;
    user.recorded("default", "four Warning PoolExhausted pool a has no free address").await;
    let freed = user.bound("two").await;
    user.release("two").await;
    assert_eq!(user.bound("four").await, freed, "a claim that waits gets the address at once");
    user.release("three").await;
    user.counts("a", [3, 2, 1, 0], ["Available", "AllInside"]).await;
    fixture.stop().await;
}

#[tokio::test]
async fn ipv6_pools_give_addresses_too() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create_pool("a", &["fd00:1::/126"], &["fd00:1::"]).await;
    user.claim("one", "a", Some("fd00:1::2")).await;
    assert_eq!(user.bound("one").await, "fd00:1::2");
    user.addresses().get("fd00-0001-0000-0000-0000-0000-0000-0002").await.expect("got");
    for name in ["two", "three"] {
        user.claim(name, "a", None).await;
    }
    let mut given = [user.bound("two").await, user.bound("three").await];
    given.sort();
    assert_eq!(given, ["fd00:1::1", "fd00:1::3"]);
    user.create_pool("huge", &["fd00:2::/48"], &[]).await;
    user.claim("four", "huge", None).await;
    assert!(user.bound("four").await.starts_with("fd00:2:0:"));
    user.counts("huge", [i64::MAX, 1, i64::MAX, 0], ["Available", "AllInside"]).await;
    fixture.stop().await;
}

#[tokio::test]
async fn static_claims_get_their_address_or_wait_for_it() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create_pool("a", &["10.0.0.0/24"], &["10.0.0.1"]).await;
    user.claim("first", "a", Some("10.0.0.9")).await;
    assert_eq!(user.bound("first").await, "10.0.0.9");
    user.claim("second", "a", Some("10.0.0.9")).await;
    user.waits("second", "AddressInUse").await;
    user.claim("excluded", "a", Some("10.0.0.1")).await;
    user.waits("excluded", "AddressNotInPool").await;
    user.claim("nonsense", "a", Some("ten")).await;
    user.waits("nonsense", "AddressInvalid").await;
    user.recorded("default", "second Warning AddressInUse 10.0.0.9 belongs to another claim").await;
    user.release("first").await;
    assert_eq!(user.bound("second").await, "10.0.0.9");

    // An IPv4 address in the form of IPv6 is that address.
    user.claim("mapped", "a", Some("::ffff:10.0.0.11")).await;
    assert_eq!(user.bound("mapped").await, "10.0.0.11");
    user.recorded("default", "mapped Normal Allocated 10.0.0.11 of pool a").await;
    user.claim("other", "a", Some("::ffff:10.0.0.11")).await;
    user.recorded("default", "other Warning AddressInUse 10.0.0.11 belongs to another claim").await;

    // A claim with a new requested address changes to that address.
    let patch = Patch::Merge(json!({ "spec": { "address": "10.0.0.10" } }));
    user.claims().patch("second", &PatchParams::default(), &patch).await.expect("patched");
    eventually(SOON, || user.is_address("second", "10.0.0.10")).await;
    fixture.cluster.gone::<IPAddress>("10.0.0.9").await;
    fixture.stop().await;
}

impl User {
    async fn is_address(&self, claim: &str, wanted: &str) -> Result<(), String> {
        let (_, address) = self.state_of(claim).await?;
        if address.as_deref() == Some(wanted) { Ok(()) } else { Err(format!("{address:?}")) }
    }
}

#[tokio::test]
async fn a_claim_waits_for_its_pool() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.claim("early", "a", None).await;
    user.waits("early", "PoolNotFound").await;
    user.create_pool("a", &["10.0.0.7/24"], &[]).await;
    user.waits("early", "PoolInvalid").await;
    user.counts("a", [0, 0, 0, 0], ["Invalid", "AllInside"]).await;
    user.change_pool("a", json!({ "cidrs": ["10.0.0.7/32"] })).await;
    assert_eq!(user.bound("early").await, "10.0.0.7");
    fixture.stop().await;
}

#[tokio::test]
async fn a_claim_of_the_same_name_is_another_claim() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create_pool("a", &["10.0.0.0/24"], &[]).await;
    user.claim("one", "a", None).await;
    user.bound("one").await;
    user.release("one").await;
    user.claim("one", "a", None).await;
    let uid = user.claims().get("one").await.expect("got").uid();
    let address = user.bound("one").await;
    eventually(SOON, || async {
        let held = user.addresses().get(&address).await.map_err(|error| error.to_string())?.spec.claim.uid;
        if Some(&held) == uid.as_ref() { Ok(()) } else { Err(held) }
    })
    .await;
    eventually(SOON, || user.is_consistent(1)).await;
    fixture.stop().await;
}

#[tokio::test]
async fn an_address_that_a_person_deleted_is_taken_again() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create_pool("a", &["10.0.0.0/24"], &[]).await;
    user.claim("one", "a", None).await;
    let address = user.bound("one").await;
    let before = user.addresses().get(&address).await.expect("got").uid();
    user.addresses().delete(&address, &DeleteParams::default()).await.expect("deleted");
    eventually(SOON, || async {
        let now = user.addresses().get(&address).await.map_err(|error| error.to_string())?.uid();
        if now == before { Err("it is the old one") } else { Ok(()) }.map_err(ToOwned::to_owned)
    })
    .await;
    assert_eq!(user.bound("one").await, address);
    fixture.stop().await;
}

/// The name of an address decides, because the name cannot be edited.
#[tokio::test]
async fn an_address_whose_spec_a_person_changed_keeps_its_name() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create_pool("a", &["10.0.0.0/30"], &[]).await;
    user.claim("one", "a", Some("10.0.0.1")).await;
    user.claim("two", "a", None).await;
    let (one, two) = (user.bound("one").await, user.bound("two").await);
    let spec = Patch::Merge(json!({ "spec": { "address": two } }));
    user.addresses().patch(&one, &PatchParams::default(), &spec).await.expect("patched");
    // The next change of the claim is worked on after that.
    let any = Patch::Merge(json!({ "spec": { "address": null } }));
    let changed = user.claims().patch("one", &PatchParams::default(), &any).await.expect("patched");
    eventually(SOON, || async {
        let claim = user.claims().get("one").await.map_err(|error| error.to_string())?;
        let seen = claim.status.and_then(|status| status.conditions[0].observed_generation);
        if seen == changed.metadata.generation { Ok(()) } else { Err(format!("{seen:?}")) }
    })
    .await;
    assert_eq!((user.bound("one").await, user.bound("two").await), (one.clone(), two));
    user.counts("a", [4, 2, 2, 0], ["Available", "AllInside"]).await;
    user.release("one").await;
    fixture.cluster.gone::<IPAddress>(one).await;
    user.counts("a", [4, 1, 3, 0], ["Available", "AllInside"]).await;
    fixture.stop().await;
}

/// Only one claim reports an address that a user gave to another claim.
#[tokio::test]
async fn a_claim_whose_address_was_given_away_gets_another() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create_pool("a", &["10.0.0.0/30"], &["10.0.0.0", "10.0.0.3"]).await;
    user.claim("one", "a", None).await;
    let address = user.bound("one").await;
    user.claim("two", "a", Some(&address)).await;
    user.waits("two", "AddressInUse").await;
    let two = user.claims().get("two").await.expect("got").uid();
    let given = Patch::Merge(json!({ "spec": { "claim": { "name": "two", "uid": two } } }));
    user.addresses().patch(&address, &PatchParams::default(), &given).await.expect("patched");
    assert_eq!(user.bound("two").await, address);
    eventually(SOON, || user.is_consistent(2)).await;
    user.counts("a", [2, 2, 0, 0], ["Exhausted", "AllInside"]).await;
    fixture.stop().await;
}

#[tokio::test]
async fn a_claim_has_one_condition_of_its_type() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create_pool("a", &["10.0.0.0/30"], &[]).await;
    user.claim("one", "a", None).await;
    user.bound("one").await;
    let foreign = |type_: &str| json!({ "type": type_, "status": "False", "reason": "Foreign", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let mut conditions =
        json!(user.claims().get("one").await.expect("got").status.expect("a status").conditions);
    let list = conditions.as_array_mut().expect("a list");
    list.extend([foreign("Bound"), foreign("Other")]);
    let patch = Patch::Merge(json!({ "status": { "conditions": conditions } }));
    user.claims().patch_status("one", &PatchParams::default(), &patch).await.expect("patched");
    eventually(SOON, || async {
        let status = user.claims().get("one").await.map_err(|error| error.to_string())?.status;
        let conditions = status.unwrap_or_default().conditions;
        let types: Vec<_> = conditions.iter().map(|condition| condition.type_.as_str()).collect();
        if types == ["Bound", "Other"] { Ok(()) } else { Err(format!("{types:?}")) }
    })
    .await;
    fixture.stop().await;
}

#[tokio::test]
async fn each_address_that_becomes_free_goes_to_a_claim_that_waits() {
    const CLAIMS: usize = 64;
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create_pool("a", &["10.0.0.0/26"], &[]).await;
    let all = |prefix: &'static str| (0..CLAIMS).map(move |number| format!("{prefix}-{number}"));
    join_all(all("early").map(|name| async move { user.claim(&name, "a", None).await })).await;
    eventually(SOON, || user.is_consistent(CLAIMS)).await;
    for name in all("late") {
        user.claim(&name, "a", None).await;
    }
    for name in all("late") {
        user.waits(&name, "PoolExhausted").await;
    }
    join_all(all("early").map(|name| async move { user.release(&name).await })).await;
    eventually(SOON, || user.is_consistent(CLAIMS)).await;
    fixture.stop().await;
}

#[tokio::test]
async fn an_address_that_a_claim_asks_for_is_not_given_to_another() {
    let cluster = TestCluster::start().await;
    install(&cluster).await;
    let user = User(cluster.client());
    user.create_pool("a", &["10.0.0.8/31"], &[]).await;
    user.create_pool("b", &["10.0.1.0/32"], &[]).await;
    let any = ["any-1", "any-2", "any-3", "any-4"];
    for name in any {
        user.claim(name, "a", None).await;
    }
    user.claim("static", "a", Some("10.0.0.9")).await;
    // A claim of another pool does not block an address of this pool.
    user.claim("elsewhere", "b", Some("10.0.0.8")).await;
    let operator = cluster.run(manager(cluster.client()));
    assert_eq!(user.bound("static").await, "10.0.0.9");
    user.counts("a", [2, 2, 0, 0], ["Exhausted", "AllInside"]).await;
    user.waits("elsewhere", "AddressNotInPool").await;
    operator.stop().await.expect("a graceful stop");
}

#[tokio::test]
async fn addresses_are_released_of_claims_that_went_while_no_operator_ran() {
    let cluster = TestCluster::start().await;
    install(&cluster).await;
    let user = User(cluster.client());
    let operator = cluster.run(manager(cluster.client()));
    user.create_pool("a", &["10.0.0.0/24"], &[]).await;
    user.claim("one", "a", None).await;
    user.claim("two", "a", None).await;
    let address = user.bound("one").await;
    user.bound("two").await;
    operator.stop().await.expect("a graceful stop");
    user.release("one").await;
    let operator = cluster.run(manager(cluster.client()));
    cluster.gone::<IPAddress>(address).await;
    user.counts("a", [256, 1, 255, 0], ["Available", "AllInside"]).await;
    operator.stop().await.expect("a graceful stop");
}
