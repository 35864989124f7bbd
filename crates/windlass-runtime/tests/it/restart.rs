//! A server that is replaced by one without its data.

use futures::{FutureExt, stream};
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{Client, client::Body};
use kube_core::ApiResource;
use tokio::sync::watch;
use windlass_runtime::{
    BoxError, client,
    informer::{SharedInformerFactory, WatchOptions},
};
use windlass_test::{TestCluster, eventually};

use crate::fixture::{SOON, create_config_map};

/// Forwards requests to the current server. When it changes, all connections break.
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
    let factory = SharedInformerFactory::new(switch.client());
    let resource = ApiResource::erase::<ConfigMap>(&());
    let informer = factory.informer(&resource, WatchOptions::default()).expect("an informer");
    factory.start();
    factory.wait_for_cache_sync(SOON).await.expect("a first list");
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
