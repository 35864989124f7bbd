//! CustomResourceDefinitions: one for each kind, with all versions of the kind.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, ServiceReference, WebhookClientConfig,
    WebhookConversion,
};

use super::{
    error::ManifestError,
    options::{Names, Options},
    tree::Folder,
};
use crate::{ConversionDeclaration, Inventory, definitions::merge_versions, schema};

/// The name of the folder.
pub(super) const FOLDER: &str = "crd";

/// Returns `config/crd`: a file in `bases/` for each kind.
pub(super) fn folder(
    inventory: &Inventory,
    options: &Options,
    names: &Names,
) -> Result<Folder, ManifestError> {
    let mut folder = Folder::new(FOLDER);
    for crd in merged(inventory, names)? {
        let file = format!("bases/{}_{}.yaml", crd.spec.group, crd.spec.names.plural);
        let mut value = serde_json::to_value(&crd).map_err(|error| ManifestError::Json(error.to_string()))?;
        schema::prepare(&mut value, options.max_description);
        folder = folder.file(file, vec![value]);
    }
    Ok(folder)
}

/// Merges the definitions of the versions of each kind, and adds the conversions.
pub(super) fn merged(
    inventory: &Inventory,
    names: &Names,
) -> Result<Vec<CustomResourceDefinition>, ManifestError> {
    let conversions: &[ConversionDeclaration] =
        inventory.webhooks.as_ref().map_or(&[], |webhooks| &webhooks.conversions);
    let mut merged = merge_versions(&inventory.crds)?;
    for crd in &mut merged {
        let is_of = |conversion: &&ConversionDeclaration| {
            conversion.plural == crd.spec.names.plural && conversion.group == crd.spec.group
        };
        if let Some(conversion) = conversions.iter().find(is_of) {
            convert(crd, conversion, names)?;
        }
    }
    Ok(merged)
}

/// Adds the conversion to the definition of a kind with conversions.
fn convert(
    crd: &mut CustomResourceDefinition,
    conversion: &ConversionDeclaration,
    names: &Names,
) -> Result<(), ManifestError> {
    let name = crd.metadata.name.clone().unwrap_or_default();
    check_conversion(&name, crd, conversion)?;
    crd.spec.conversion = Some(stanza(conversion, names));
    Ok(())
}

fn check_conversion(
    name: &str,
    crd: &CustomResourceDefinition,
    conversion: &ConversionDeclaration,
) -> Result<(), ManifestError> {
    let name = || name.to_owned();
    let is_defined = |version: &&String| crd.spec.versions.iter().any(|defined| defined.name == **version);
    if let Some(version) = conversion.versions.iter().find(|version| !is_defined(version)) {
        return Err(ManifestError::Undefined { name: name(), version: version.clone() });
    }
    if let Some(version) =
        crd.spec.versions.iter().find(|version| !conversion.versions.contains(&version.name))
    {
        return Err(ManifestError::Unconverted { name: name(), version: version.name.clone() });
    }
    match crd.spec.versions.iter().find(|version| version.storage) {
        Some(stored) if stored.name != conversion.hub => {
            let (hub, stored) = (conversion.hub.clone(), stored.name.clone());
            Err(ManifestError::Hub { name: name(), hub, stored })
        }
        _ => Ok(()),
    }
}

fn stanza(conversion: &ConversionDeclaration, names: &Names) -> CustomResourceConversion {
    let service = ServiceReference {
        name: names.webhook_service.clone(),
        namespace: names.namespace.clone(),
        path: Some(conversion.path.clone()),
        port: None,
    };
    CustomResourceConversion {
        strategy: "Webhook".to_owned(),
        webhook: Some(WebhookConversion {
            client_config: Some(WebhookClientConfig { ca_bundle: None, service: Some(service), url: None }),
            conversion_review_versions: vec!["v1".to_owned()],
        }),
    }
}
