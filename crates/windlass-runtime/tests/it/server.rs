//! The server of a test: a separate embedded server or, with `WINDLASS_TEST_KUBECONFIG`, a separate namespace
//! on the named server.

use std::sync::atomic::{AtomicU32, Ordering};

use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube_client::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use kube_core::{ApiResource, DynamicObject, ObjectMeta, ResourceExt as _};
use windlass_runtime::client::{ClientBuilder, ConfigSource};
use windlass_test::{TestCluster, eventually};

use crate::fixture::SOON;

pub(crate) struct TestServer {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    _cluster: Option<TestCluster>,
}

impl TestServer {
    pub(crate) async fn start() -> Self {
        let (client, cluster) = match std::env::var_os("WINDLASS_TEST_KUBECONFIG") {
            None => {
                let cluster = TestCluster::start().await;
                (cluster.client(), Some(cluster))
            }
            Some(path) => {
                let source = ConfigSource { kubeconfig: Some(path.into()), ..ConfigSource::default() };
                let config = source.load().await.expect("a kubeconfig");
                (ClientBuilder::new(config).build().expect("a client"), None)
            }
        };
        let server = Self { client, namespace: unique("test"), _cluster: cluster };
        server.add_namespace(&server.namespace).await;
        server
    }

    pub(crate) async fn add_namespace(&self, name: &str) {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces.create(&PostParams::default(), &namespace).await.expect("created");
    }

    /// Installs a CRD, and waits until the kind is served.
    pub(crate) async fn install(&self, definition: &CustomResourceDefinition, resource: &ApiResource) {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let force = PatchParams::apply("tests").force();
        let name = definition.name_any();
        definitions.patch(&name, &force, &Patch::Apply(definition)).await.expect("installed");
        let objects: Api<DynamicObject> = Api::all_with(self.client.clone(), resource);
        let one = ListParams::default().limit(1);
        eventually(SOON, async || objects.list(&one).await.map(drop)).await;
    }
}

/// Returns a name that no other test uses, in this process or another.
pub(crate) fn unique(prefix: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    format!("{prefix}-{}-{}", now.as_micros(), COUNT.fetch_add(1, Ordering::Relaxed))
}
