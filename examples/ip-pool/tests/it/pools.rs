//! Pools from a user's point of view.

use kube::api::DeleteParams;
use serde_json::json;
use windlass_test::eventually;

use crate::{SOON, claims::Fixture};

#[tokio::test]
async fn a_pool_that_shrinks_keeps_the_addresses_in_use() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create_pool("a", &["10.0.0.0/29"], &[]).await;
    user.claim("high", "a", Some("10.0.0.7")).await;
    user.claim("low", "a", Some("10.0.0.1")).await;
    user.bound("high").await;
    user.bound("low").await;
    user.counts("a", [8, 2, 6, 0], ["Available", "AllInside"]).await;

    user.change_pool("a", json!({ "cidrs": ["10.0.0.0/31"] })).await;
    user.counts("a", [2, 2, 1, 1], ["Available", "InUseOutside"]).await;
    assert_eq!(user.bound("high").await, "10.0.0.7");
    user.claim("any", "a", None).await;
    assert_eq!(user.bound("any").await, "10.0.0.0", "none outside of the pool is given");
    user.counts("a", [2, 3, 0, 1], ["Exhausted", "InUseOutside"]).await;

    user.release("high").await;
    user.counts("a", [2, 2, 0, 0], ["Exhausted", "AllInside"]).await;
    user.claim("next", "a", None).await;
    user.waits("next", "PoolExhausted").await;
    user.change_pool("a", json!({ "exclusions": ["10.0.0.3"], "cidrs": ["10.0.0.0/30"] })).await;
    assert_eq!(user.bound("next").await, "10.0.0.2", "a pool that grows serves the claims that wait");
    fixture.stop().await;
}

#[tokio::test]
async fn a_deleted_pool_stays_until_its_last_address_is_free() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create_pool("a", &["10.0.0.0/30"], &[]).await;
    user.claim("one", "a", None).await;
    let address = user.bound("one").await;
    user.pools().delete("a", &DeleteParams::default()).await.expect("deleted");
    user.counts("a", [4, 1, 3, 0], ["Deleting", "AllInside"]).await;
    user.claim("two", "a", None).await;
    user.waits("two", "PoolNotFound").await;
    assert_eq!(user.bound("one").await, address, "its address is kept");
    user.release("one").await;
    eventually(SOON, || async {
        match user.pools().get_opt("a").await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    fixture.stop().await;
}

/// Claims that now have an address of another pool do not stand in the way of the claims that still wait.
#[tokio::test]
async fn an_address_goes_to_a_claim_that_still_waits_for_the_pool() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create_pool("a", &["10.0.0.0/32"], &[]).await;
    user.create_pool("b", &["10.1.0.0/24"], &[]).await;
    user.claim("holder", "a", None).await;
    user.bound("holder").await;
    let moved: Vec<String> = (0..4).map(|number| format!("moved-{number}")).collect();
    for name in &moved {
        user.claim(name, "a", None).await;
        user.waits(name, "PoolExhausted").await;
    }
    user.claim("waiting", "a", None).await;
    user.waits("waiting", "PoolExhausted").await;
    for name in &moved {
        user.change_claim(name, json!({ "pool": "b" })).await;
        user.bound(name).await;
    }
    user.release("holder").await;
    assert_eq!(user.bound("waiting").await, "10.0.0.0");
    fixture.stop().await;
}

#[tokio::test]
async fn pools_with_the_same_addresses_give_each_once() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create_pool("a", &["10.0.0.0/31"], &[]).await;
    user.create_pool("b", &["10.0.0.1/32"], &[]).await;
    for (claim, pool) in [("one", "b"), ("two", "a")] {
        user.claim(claim, pool, None).await;
        user.bound(claim).await;
    }
    user.claim("three", "b", None).await;
    user.waits("three", "PoolExhausted").await;
    user.claim("four", "a", None).await;
    user.waits("four", "PoolExhausted").await;
    user.counts("a", [2, 1, 0, 0], ["Exhausted", "AllInside"]).await;
    fixture.stop().await;
}

#[tokio::test]
async fn an_address_counts_in_every_pool_that_has_it() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create_pool("a", &["10.0.0.0/30"], &[]).await;
    user.create_pool("b", &["10.0.0.0/32"], &[]).await;
    user.counts("a", [4, 0, 4, 0], ["Available", "AllInside"]).await;
    user.counts("b", [1, 0, 1, 0], ["Available", "AllInside"]).await;
    user.claim("one", "a", Some("10.0.0.0")).await;
    user.counts("a", [4, 1, 3, 0], ["Available", "AllInside"]).await;
    user.counts("b", [1, 0, 0, 0], ["Exhausted", "AllInside"]).await;
    user.release("one").await;
    user.counts("b", [1, 0, 1, 0], ["Available", "AllInside"]).await;
    fixture.stop().await;
}
