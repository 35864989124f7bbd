//! The operator under faults reaches the right state, regardless of failures in between.

use kube::CustomResourceExt;
use sample_controller::{Foo, controller};
use windlass::leader_election::LeaderElection;
use windlass::prelude::*;
use windlass_test::Scenario;

use crate::user::User;

#[test]
fn it_ends_in_the_right_state_whatever_fails() {
    let operator = |client| {
        let election = LeaderElection::new("sample-controller").identity("replica");
        Manager::new(client).controller(controller()).leader_election(election)
    };
    Scenario::new(operator)
        .crd(Foo::crd())
        .step(|client| async move { User(client).create("a", "web", Some(2)).await })
        .step(|client| async move { User(client).create_deployment("taken").await })
        .step(|client| async move { User(client).create("b", "taken", Some(1)).await })
        .step(|client| async move { User(client).scale("a", 3).await })
        .step(|client| async move { User(client).create("c", "short", Some(1)).await })
        .step(|client| async move { User(client).delete_deployment("taken").await })
        .step(|client| async move { User(client).delete("c").await })
        .check(|client| async move {
            let user = User(client);
            user.has("a", 3).await?;
            user.has("b", 1).await?;
            let short = user.deployments().get_opt("short").await.map_err(|error| error.to_string())?;
            if short.is_none() { Ok(()) } else { Err("the Deployment of c is left".to_owned()) }
        })
        .run_many(10);
}
