//! The operator under faults reaches the right state, regardless of failures in between.

use kube::{CustomResourceExt, api::DeleteParams};
use ordered_set::{OrderedSet, controller};
use serde_json::json;
use windlass::leader_election::LeaderElection;
use windlass::prelude::*;
use windlass_test::Scenario;

use crate::{history, user::User};

#[test]
fn it_ends_in_the_right_state_whatever_fails() {
    let operator = |client| {
        let election = LeaderElection::new("ordered-set").identity("replica");
        Manager::new(client).controller(controller()).leader_election(election)
    };
    Scenario::new(operator)
        .crd(OrderedSet::crd())
        .step(|client| async move { User(client).create("a", 2, json!({})).await })
        .step(|client| async move { User(client).scale("a", 4).await })
        .step(|client| async move {
            // Whichever pods there are.
            for name in ["a-0", "a-2"] {
                let _ = User(client.clone()).pods().delete(name, &DeleteParams::default()).await;
            }
        })
        .step(|client| async move { User(client).set_image("a", "nginx:2").await })
        .step(|client| async move { User(client).scale("a", 1).await })
        .step(|client| async move { User(client).scale("a", 3).await })
        .check(|client| async move {
            let user = User(client);
            user.has("a", 3).await?;
            history::check_creations(&history::of(&user).await);
            Ok(())
        })
        .run_many(5);
}
