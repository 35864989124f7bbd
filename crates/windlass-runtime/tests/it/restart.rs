//! A server that is replaced by a server without the data.

use std::time::Duration;

use futures::{FutureExt, stream};
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_client::{Client, client::Body};
use tokio::sync::watch;
use windlass_runtime::{
    Action, BoxError, Context, Controller, Manager, ObjectKey, ObjectKeyExt, Result, client,
    informer::{CacheOptions, SharedInformerFactory},
    kind,
    permission::{Permission, Verb},
};
use windlass_test::{TestCluster, eventually, stretched};

use crate::fixture::{SOON, create_config_map, expect_eq, run, secret, secret_count};

/// Forwards requests to the current server. A switch breaks all connections.
#[derive(Clone)]
struct Switch(watch::Sender<Client>);

impl Switch {
    fn client(&self) -> Client {
        let switch = self.clone();
        client::in_process(tower::service_fn(move |request| switch.clone().serve(request).boxed()))
            .expect("a client")
    }

    async fn serve(
        self,
        request: Request<Body>,
    ) -> Result<Response<UnsyncBoxBody<bytes::Bytes, BoxError>>, BoxError> {
        let mut server = self.0.subscribe();
        let current = server.borrow_and_update().clone();
        let (parts, body) = current.send(request).await?.into_parts();
        let frames = stream::unfold(Some((body, server)), |open| async {
            let (mut body, mut server) = open?;
            tokio::select! {
                frame = body.frame() => Some((frame?.map_err(BoxError::from), Some((body, server)))),
                _ = server.changed() => Some((Err("connection reset".into()), None)),
            }
        });
        Ok(Response::from_parts(parts, StreamBody::new(frames).boxed_unsync()))
    }
}

#[tokio::test]
async fn a_cache_follows_a_server_that_was_replaced_by_one_without_its_data() {
    // The server that starts first has the lower revisions.
    let replacement = TestCluster::start().await;
    let original = TestCluster::start().await;
    for number in 0..50 {
        create_config_map(&original.client(), &format!("old-{number}")).await;
    }
    create_config_map(&replacement.client(), "new").await;

    let switch = Switch(watch::Sender::new(original.client()));
    let factory = SharedInformerFactory::new(switch.client(), Duration::ZERO);
    let informer = factory.informer(kind::<ConfigMap>(), CacheOptions::default()).expect("an informer");
    factory.start();
    factory.wait_for_cache_sync(stretched(SOON)).await.expect("a first list");
    let has = |name: &str| informer.store().get_by_name(Some("default"), name).is_some();
    assert!(has("old-49") && !has("new"));

    switch.0.send_replace(replacement.client());
    eventually(SOON, || async {
        let followed = has("new") && !has("old-0") && !has("old-49");
        followed.then_some(()).ok_or("the cache has the objects of the original server")
    })
    .await;
    assert_eq!(informer.metrics().relists, 1);
    factory.shutdown().await;
}

/// Keeps a Secret with the name of each ConfigMap.
async fn keep_secret(key: ObjectKey, cx: Context<ConfigMap>) -> Result<Action> {
    if cx.get_not_terminating(&key)?.is_some() {
        cx.apply_object(&secret(key.name())).await?;
    }
    Ok(Action::done())
}

/// Revisions begin anew, and the controller's memory of earlier writes is wrong.
#[tokio::test]
async fn a_controller_goes_on_with_a_server_that_was_replaced_by_an_empty_one() {
    let replacement = TestCluster::start().await;
    let original = TestCluster::start().await;
    let manager = |client| {
        let controller = Controller::of::<ConfigMap>(keep_secret)
            .watches::<Secret>(|secret, _| Ok(vec![ObjectKey::of(secret)]))
            .needs(Permission::to::<Secret>([Verb::Create, Verb::Patch]));
        Manager::new(client).namespaces(["default"]).controller(controller)
    };
    let before = original.restricted_account(&manager(original.client())).await;
    let after = replacement.restricted_account(&manager(replacement.client())).await;
    let switch = Switch(watch::Sender::new(before.client()));
    let running = run(manager(switch.client()));
    for number in 0..20 {
        create_config_map(&original.client(), &number.to_string()).await;
    }
    eventually(SOON, || async { expect_eq(secret_count(&original.client()).await, 20) }).await;

    switch.0.send_replace(after.client());
    for number in 10..30 {
        create_config_map(&replacement.client(), &number.to_string()).await;
    }
    eventually(SOON, || async { expect_eq(secret_count(&replacement.client()).await, 20) }).await;
    assert_eq!(secret_count(&original.client()).await, 20, "the original is not written any more");
    running.stop().await.expect("a graceful end");
    after.assert_exact();
}
