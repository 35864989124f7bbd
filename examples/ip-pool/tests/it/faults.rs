//! The operator under faults reaches the right state, regardless of failures in between.

use ip_pool::{IPAddress, IPClaim, IPPool, manager};
use kube::CustomResourceExt;
use serde_json::json;
use windlass_test::Scenario;

use crate::user::User;

#[test]
fn it_ends_in_the_right_state_whatever_fails() {
    Scenario::new(manager)
        .crd(IPPool::crd())
        .crd(IPClaim::crd())
        .crd(IPAddress::crd())
        .step(|client| async move {
            User(client.clone()).create_pool("a", &["10.0.0.0/30"], &[]).await;
            User(client).create_pool("b", &["10.1.0.0/30"], &["10.1.0.0/31"]).await;
        })
        .step(|client| async move { User(client).claim("one", "a", None).await })
        .step(|client| async move { User(client).claim("two", "b", Some("10.1.0.3")).await })
        .step(|client| async move {
            for name in ["three", "four", "five"] {
                User(client.clone()).claim(name, "a", None).await;
            }
        })
        .step(|client| async move { User(client).claim("six", "b", Some("10.1.0.3")).await })
        .step(|client| async move { User(client).release("one").await })
        .step(|client| async move { User(client).release("two").await })
        .step(
            |client| async move { User(client).change_pool("a", json!({ "cidrs": ["10.0.0.0/31"] })).await },
        )
        .step(|client| async move { User(client).release("three").await })
        .step(
            |client| async move { User(client).change_pool("a", json!({ "cidrs": ["10.0.0.0/29"] })).await },
        )
        .step(|client| async move { User(client).claim("three", "a", None).await })
        .check(|client| async move {
            let user = User(client);
            user.is_consistent(4).await?;
            let pool = user.pools().get("a").await.map_err(|error| error.to_string())?;
            let status = pool.status.unwrap_or_default();
            let counts = [status.total, status.allocated, status.available, status.outside];
            if counts == [8, 3, 5, 0] { Ok(()) } else { Err(format!("{counts:?}")) }
        })
        .run_many(5);
}
