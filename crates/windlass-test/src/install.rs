//! CustomResourceDefinitions, installed and waited for.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::Client;
use kube_client::api::{Api, PostParams};
use kube_core::ResourceExt;

use crate::eventually;

/// Creates the CRD and waits until its resources are served.
pub(crate) async fn install(client: Client, definition: &CustomResourceDefinition) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client);
    let name = definition.name_any();
    if let Err(error) = definitions.create(&PostParams::default(), definition).await {
        panic!("cannot install the CRD {name}: {error}");
    }
    eventually(Duration::from_secs(10), || async {
        let latest = definitions.get(&name).await.map_err(|error| error.to_string())?;
        let conditions = latest.status.and_then(|status| status.conditions).unwrap_or_default();
        let established = conditions.iter().any(|c| c.type_ == "Established" && c.status == "True");
        let said: Vec<String> = conditions
            .iter()
            .map(|c| format!("{}={} {}", c.type_, c.status, c.message.as_deref().unwrap_or_default()))
            .collect();
        if established {
            Ok(())
        } else {
            Err(format!("CRD {name} is not established: [{}]", said.join(", ")))
        }
    })
    .await;
}
