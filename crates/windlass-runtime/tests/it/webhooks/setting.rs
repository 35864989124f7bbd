//! The cluster of a test: a separate cluster, or the cluster of `WINDLASS_TEST_KUBECONFIG`, with
//! `--test-threads=1`.

use k8s_openapi::{
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        core::v1::{ConfigMap, Secret, Service},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube_client::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
};
use windlass_runtime::Manager;
use windlass_runtime::client::{ClientBuilder, ConfigSource};
use windlass_test::{TestCluster, eventually};

use crate::fixture::{Running, SOON, run};

pub(super) struct Cluster {
    client: Client,
    embedded: Option<TestCluster>,
}

impl Cluster {
    pub(super) async fn start() -> Self {
        let Some(kubeconfig) = std::env::var_os("WINDLASS_TEST_KUBECONFIG") else {
            let cluster = TestCluster::start().await;
            return Self { client: cluster.client(), embedded: Some(cluster) };
        };
        let source = ConfigSource { kubeconfig: Some(kubeconfig.into()), ..ConfigSource::default() };
        let client =
            ClientBuilder::new(source.load().await.expect("a kubeconfig")).build().expect("a client");
        clear(&client).await;
        Self { client, embedded: None }
    }

    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Runs a manager with exactly the declared rights; on a real cluster, as an administrator.
    pub(super) async fn run(&self, manager: Manager) -> Running {
        let Some(cluster) = &self.embedded else { return run(manager) };
        let account = cluster.restricted_account(&manager).await;
        run(manager.client(account.client()))
    }

    /// Creates a definition and waits until the resources are served.
    pub(super) async fn install(&self, definition: &CustomResourceDefinition) {
        let api: Api<CustomResourceDefinition> = Api::all(self.client());
        api.create(&PostParams::default(), definition).await.expect("created");
        let name = definition.metadata.name.clone().unwrap_or_default();
        eventually(SOON, || async {
            let status = api.get(&name).await.map_err(|error| error.to_string())?.status;
            let mut conditions = status.and_then(|status| status.conditions).unwrap_or_default().into_iter();
            let established = conditions.any(|one| one.type_ == "Established" && one.status == "True");
            if established { Ok(()) } else { Err("not established".to_owned()) }
        })
        .await;
    }
}

/// Removes the objects of earlier tests.
async fn clear(client: &Client) {
    let (delete, all) = (DeleteParams::default(), ListParams::default());
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    mutating.delete_collection(&delete, &all).await.expect("deleted");
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    validating.delete_collection(&delete, &all).await.expect("deleted");
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    eventually(SOON, || maps.delete_collection(&delete, &all)).await;
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    secrets.delete_collection(&delete, &all).await.expect("deleted");
    let services: Api<Service> = Api::default_namespaced(client.clone());
    let _ = services.delete("hooks", &delete).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    if let Ok(Some(mut definition)) = definitions.get_opt("bars.example.com").await {
        // The objects are listed when the definition is deleted, and the webhook is gone.
        definition.spec.conversion = None;
        let _ = definitions.replace("bars.example.com", &PostParams::default(), &definition).await;
        let _ = definitions.delete("bars.example.com", &delete).await;
        eventually(SOON, || async {
            match definitions.get_opt("bars.example.com").await {
                Ok(None) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }
}
