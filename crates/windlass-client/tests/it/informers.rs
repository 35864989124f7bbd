//! Caches and event handlers.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::ResourceExt;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use windlass_client::{
    CreateOptions, DeleteOptions, DynamicObject, ResourceEventHandler, ResourceEventHandlerFuncs, Selector,
    SharedInformerFactory, UpdateOptions,
    clientset::Clientset,
    informers::{GroupInformers as _, for_resource},
    kind,
    scheme::GroupVersionResource,
};
use windlass_test::{TestCluster, eventually, stretched};

use crate::{LIMIT, config_map};

/// A handler that sends a line for each call.
struct Lines(UnboundedSender<String>);

impl ResourceEventHandler<ConfigMap> for Lines {
    fn on_add(&self, object: &Arc<ConfigMap>, is_in_initial_list: bool) {
        let when = if is_in_initial_list { "initial" } else { "later" };
        let _ = self.0.send(format!("add {} {when}", object.name_any()));
    }

    fn on_update(&self, old: &Arc<ConfigMap>, new: &Arc<ConfigMap>) {
        let color = |object: &ConfigMap| object.labels()["color"].clone();
        let same = if old.resource_version() == new.resource_version() { " again" } else { "" };
        let _ = self.0.send(format!("update {} {} {}{same}", new.name_any(), color(old), color(new)));
    }

    fn on_delete(&self, last: &Arc<ConfigMap>, _: bool) {
        let _ = self.0.send(format!("delete {}", last.name_any()));
    }
}

async fn next(lines: &mut UnboundedReceiver<String>) -> String {
    tokio::time::timeout(stretched(LIMIT), lines.recv()).await.expect("in time").expect("a line")
}

#[tokio::test]
async fn handlers_get_old_and_new_and_listers_see_the_same() {
    let cluster = TestCluster::start().await;
    let clientset = Clientset::new(cluster.client());
    let client = clientset.core_v1().config_maps("default");
    client.create(&config_map("a", "blue"), &CreateOptions::default()).await.expect("created");

    let factory = SharedInformerFactory::builder(cluster.client()).namespace("default").build();
    let config_maps = factory.core().v1().config_maps();
    let (sender, mut lines) = unbounded_channel();
    let registration = config_maps.informer().expect("an informer").add_event_handler(Lines(sender));
    assert!(!config_maps.informer().expect("the same").has_synced(), "nothing is watched before start");
    factory.start();
    factory.wait_for_cache_sync(stretched(LIMIT)).await.expect("synced");
    registration.synced().await;
    assert_eq!(next(&mut lines).await, "add a initial");

    client.create(&config_map("b", "red"), &CreateOptions::default()).await.expect("created");
    assert_eq!(next(&mut lines).await, "add b later");
    client.update(&config_map("b", "green"), &UpdateOptions::default()).await.expect("updated");
    assert_eq!(next(&mut lines).await, "update b red green");
    let lister = config_maps.lister().expect("a lister");
    let selector: Selector = "color=green".parse().expect("a selector");
    assert_eq!(lister.list(&selector).expect("listed").names(), ["b"]);
    assert_eq!(
        lister.config_maps("default").list(&Selector::everything()).expect("listed").names(),
        ["a", "b"]
    );
    assert!(lister.config_maps("default").get("b").expect("decodes").is_some());
    assert!(lister.config_maps("other").get("b").expect("decodes").is_none());
    client.delete("b", &DeleteOptions::default()).await.expect("deleted");
    assert_eq!(next(&mut lines).await, "delete b");

    config_maps.informer().expect("the same").remove_event_handler(&registration);
    client.delete("a", &DeleteOptions::default()).await.expect("deleted");
    eventually(LIMIT, || async {
        let left = lister.list(&Selector::everything()).map_err(|error| error.to_string())?;
        if left.is_empty() { Ok(()) } else { Err(format!("{:?}", left.names())) }
    })
    .await;
    assert!(lines.recv().await.is_none(), "a handler that was removed is not called");
    factory.shutdown().await;
    assert!(factory.core().v1().pods().informer().is_err(), "the factory has been shut down");
}

#[tokio::test]
async fn a_resync_repeats_every_object_with_equal_resource_versions() {
    let cluster = TestCluster::start().await;
    let client = Clientset::new(cluster.client()).core_v1().config_maps("default");
    client.create(&config_map("a", "blue"), &CreateOptions::default()).await.expect("created");
    let factory = SharedInformerFactory::builder(cluster.client())
        .namespace("default")
        .resync(Duration::from_secs(3600))
        .resync_of(kind::<ConfigMap>(), Duration::from_millis(50))
        .tweak_list_options(|options| options.label_selector(Selector::from_labels([("color", "blue")])))
        .build();
    let (sender, mut lines) = unbounded_channel();
    factory.core().v1().config_maps().informer().expect("an informer").add_event_handler(Lines(sender));
    factory.start();
    assert_eq!(next(&mut lines).await, "add a initial");
    assert_eq!(next(&mut lines).await, "update a blue blue again");
    assert_eq!(next(&mut lines).await, "update a blue blue again");
}

#[tokio::test]
async fn an_informer_of_a_resource_by_name_shares_the_cache_of_the_typed_one() {
    let cluster = TestCluster::start().await;
    let factory = SharedInformerFactory::new(cluster.client(), Duration::ZERO);
    let by_name = for_resource(&factory, &GroupVersionResource::gvr("", "v1", "configmaps")).expect("known");
    let typed = factory.core().v1().config_maps().informer().expect("an informer");
    let (sender, mut lines) = unbounded_channel();
    by_name.add_event_handler(ResourceEventHandlerFuncs::new().add_func(
        move |object: &Arc<DynamicObject>| {
            let _ = sender.send(object.name_any());
        },
    ));
    factory.start();
    factory.wait_for_cache_sync(stretched(LIMIT)).await.expect("synced");
    let client = Clientset::new(cluster.client()).core_v1().config_maps("default");
    client.create(&config_map("a", "blue"), &CreateOptions::default()).await.expect("created");
    while next(&mut lines).await != "a" {}
    assert!(typed.last_sync_resource_version() > 0);
    let unknown = for_resource(&factory, &GroupVersionResource::gvr("x.example.com", "v1", "xs"));
    assert!(unknown.expect_err("unknown").to_string().contains("no informer found"));
}
