//! CustomResourceDefinitions, installed and waited for.

use std::panic::Location;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::Client;
use kube_client::api::{Api, PostParams};
use kube_core::ResourceExt;

use crate::eventually::keep_trying;

/// Creates the CRDs and waits until all of their resources are served.
pub(crate) async fn install(
    client: Client,
    definitions: impl IntoIterator<Item = CustomResourceDefinition>,
    limit: Duration,
    caller: &'static Location<'static>,
) {
    let api: Api<CustomResourceDefinition> = Api::all(client);
    let mut names = Vec::new();
    for definition in definitions {
        let name = definition.name_any();
        let definition = limited(&definition);
        match api.create(&PostParams::default(), &definition).await {
            // A cluster that is not the test's own may have it from the test before.
            Err(kube_client::Error::Api(status)) if status.reason == "AlreadyExists" => {}
            Err(error) => panic!("{caller}: cannot install the CRD {name}: {error}"),
            Ok(_) => {}
        }
        names.push(name);
    }
    for name in names {
        keep_trying(limit, || established(&api, &name), caller).await;
    }
}

/// Returns the definition as `operator crds` prints it: with limits of integers that the server enforces.
fn limited(definition: &CustomResourceDefinition) -> CustomResourceDefinition {
    let mut value = serde_json::to_value(definition).expect("a definition is JSON");
    windlass_codegen::limit_integers(&mut value);
    serde_json::from_value(value).expect("a definition with other limits is one")
}

async fn established(api: &Api<CustomResourceDefinition>, name: &str) -> Result<(), String> {
    let definition = api.get(name).await.map_err(|error| error.to_string())?;
    let conditions = definition.status.and_then(|status| status.conditions).unwrap_or_default();
    if conditions.iter().any(|c| c.type_ == "Established" && c.status == "True") {
        return Ok(());
    }
    let shown = conditions
        .iter()
        .map(|c| format!("{}={} {}", c.type_, c.status, c.message.as_deref().unwrap_or_default()));
    Err(format!("CRD {name} is not established: [{}]", shown.collect::<Vec<_>>().join(", ")))
}
