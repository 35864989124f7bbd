//! CustomResourceDefinitions, installed and waited for.

use std::panic::Location;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::Client;
use tokio::time::timeout;
use windlass_dev::install_crds;
use windlass_patience::stretched;

/// Applies the CRDs and waits until all resources are served.
pub(crate) async fn install(
    client: Client,
    definitions: Vec<CustomResourceDefinition>,
    limit: Duration,
    caller: &'static Location<'static>,
) {
    let limit = stretched(limit);
    let installed = timeout(limit, install_crds(&client, &definitions)).await;
    let result =
        installed.unwrap_or_else(|_| panic!("{caller}: the CRDs are not installed within {limit:?}"));
    if let Err(error) = result {
        panic!("{caller}: {error}");
    }
}
