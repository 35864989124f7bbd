//! Shared caches, one watch per kind and selector. (The signatures that the controller uses; the rest is on its way.)
#![allow(missing_docs, clippy::all, clippy::pedantic, unreachable_pub)]
use kube_core::ApiResource;
use windlass_cache::{RawObject, Store};
#[derive(Clone)]
pub struct SharedInformerFactory;
impl SharedInformerFactory {
    pub fn new(_: kube_client::Client) -> Self {
        Self
    }
    pub fn informer(&self, _: &ApiResource, _: WatchOptions) -> Result<SharedInformer, String> {
        Err(String::new())
    }
    pub fn start(&self) {}
    pub async fn shutdown(&self) {}
}
#[derive(Clone, Default)]
pub struct WatchOptions {
    pub namespaces: Vec<String>,
    pub metadata_only: bool,
}
impl WatchOptions {
    pub fn admits(&self, _: &RawObject) -> bool {
        true
    }
}
#[derive(Clone)]
pub struct SharedInformer {
    s: Store,
    o: WatchOptions,
    r: ApiResource,
    p: tokio::sync::watch::Receiver<u64>,
}
impl SharedInformer {
    pub fn store(&self) -> &Store {
        &self.s
    }
    pub fn options(&self) -> &WatchOptions {
        &self.o
    }
    pub fn resource(&self) -> &ApiResource {
        &self.r
    }
    pub fn high_water_mark(&self) -> u64 {
        0
    }
    pub fn progress(&self) -> tokio::sync::watch::Receiver<u64> {
        self.p.clone()
    }
    pub fn add_handler(&self, _: impl Handler, _: HandlerOptions) -> HandlerRegistration {
        HandlerRegistration
    }
}
#[derive(Default)]
pub struct HandlerOptions;
pub struct HandlerRegistration;
impl HandlerRegistration {
    pub fn synced(&self) -> impl Future<Output = ()> + Send + 'static {
        async {}
    }
}
pub trait Handler: Send + Sync + 'static {
    fn on_add(&self, object: &RawObject, initial: bool);
    fn on_update(&self, old: &RawObject, new: &RawObject);
    fn on_delete(&self, last: &RawObject, unknown: bool);
}
