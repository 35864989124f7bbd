//! The order of creation, deletion and update, proven from the log of the server.

use kube::api::DeleteParams;
use ordered_set::{OrderedSet, controller};
use serde_json::json;
use windlass::{Metrics, prelude::*};
use windlass_test::{RestrictedManager, TestCluster};

use crate::{
    history::{self, Entry::*},
    user::User,
};

pub(crate) struct Fixture {
    pub(crate) operator: RestrictedManager,
    pub(crate) user: User,
    pub(crate) cluster: TestCluster,
    metrics: Metrics,
}

impl Fixture {
    pub(crate) async fn start() -> Self {
        let cluster = TestCluster::with_controllers().await;
        cluster.install_crd::<OrderedSet>().await;
        let manager = Manager::new(cluster.client()).controller(controller());
        let metrics = manager.metrics().clone();
        let operator = cluster.run_restricted(manager).await;
        Self { operator, user: User(cluster.client()), cluster, metrics }
    }

    pub(crate) async fn stop(self) {
        let missing = self.operator.rights().missing;
        assert!(missing.is_empty(), "{missing:?}");
        self.operator.stop().await.expect("a graceful stop");
    }
}

#[tokio::test]
async fn pods_come_in_order_and_go_in_the_reverse_order() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create("web", 3, json!({})).await;
    user.settled("web", 3).await;
    let up = [Created(0), Ready(0), Created(1), Ready(1), Created(2), Ready(2)];
    assert_eq!(history::of(user).await, up);

    user.scale("web", 1).await;
    user.settled("web", 1).await;
    let down = [Deleting(2), Gone(2), Deleting(1), Gone(1)];
    assert_eq!(history::of(user).await[up.len()..], down);

    user.scale("web", 2).await;
    user.settled("web", 2).await;
    let again = [Created(1), Ready(1)];
    assert_eq!(history::of(user).await[up.len() + down.len()..], again);

    user.sets().delete("web", &DeleteParams::default()).await.expect("deleted");
    fixture.cluster.gone::<OrderedSet>("web").await;
    let end = [Deleting(1), Gone(1), Deleting(0), Gone(0)];
    assert_eq!(history::of(user).await[up.len() + down.len() + again.len()..], end);
    fixture.stop().await;
}

#[tokio::test]
async fn an_update_goes_from_the_last_pod_to_the_first() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create("web", 3, json!({})).await;
    user.settled("web", 3).await;
    user.set_image("web", "nginx:2").await;
    user.settled("web", 3).await;
    let replaced = |index| [Deleting(index), Gone(index), Created(index), Ready(index)];
    let update: Vec<_> = [2, 1, 0].into_iter().flat_map(replaced).collect();
    assert_eq!(history::of(user).await[6..], update);
    for index in 0..3 {
        let pod = user.pods().get(&format!("web-{index}")).await.expect("got");
        assert_eq!(pod.spec.expect("a spec").containers[0].image.as_deref(), Some("nginx:2"));
    }
    fixture.stop().await;
}

#[tokio::test]
async fn pods_that_fail_come_back_before_anything_else_happens() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create("web", 3, json!({})).await;
    user.settled("web", 3).await;
    // While the set grows and shrinks, pods are deleted and evicted.
    user.delete_pod("web-1").await;
    user.scale("web", 5).await;
    user.settled("web", 5).await;
    user.fail_pod("web-0").await;
    user.scale("web", 2).await;
    user.settled("web", 2).await;
    user.delete_pod("web-0").await;
    user.delete_pod("web-1").await;
    user.scale("web", 4).await;
    user.settled("web", 4).await;
    let log = history::of(user).await;
    history::check_creations(&log);
    assert_eq!(log.iter().filter(|entry| **entry == Created(0)).count(), 3, "{log:?}");
    fixture.stop().await;
}

#[tokio::test]
async fn the_scale_is_a_subresource() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create("web", 1, json!({})).await;
    user.settled("web", 1).await;
    let scale = user.sets().get_scale("web").await.expect("got");
    let status = scale.status.expect("a status");
    assert_eq!((status.replicas, status.selector.as_deref()), (1, Some("apps.abc.com/ordered-set=web")));
    fixture.stop().await;
}

#[tokio::test]
async fn a_large_set_is_not_taken_for_a_loop() {
    let fixture = Fixture::start().await;
    fixture.user.create("web", 40, json!({})).await;
    let ready = |set: &OrderedSet| set.status.as_ref().is_some_and(|status| status.ready_replicas == 40);
    fixture.cluster.wait_for::<OrderedSet>("web", ready).await;
    let rendered = fixture.metrics.render();
    let found = rendered.lines().filter(|line| line.starts_with("windlass_hot_loops_total"));
    assert!(found.clone().all(|line| line.ends_with(" 0")), "{:?}", found.collect::<Vec<_>>());
    fixture.stop().await;
}
