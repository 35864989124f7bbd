//! CustomResourceDefinitions: one for each kind, with all its versions.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, CustomResourceDefinitionNames, ServiceReference,
    WebhookClientConfig, WebhookConversion,
};

use super::{
    error::ManifestError,
    options::{Names, Options},
    schema,
    tree::Folder,
};
use crate::{ConversionItem, Inventory};

/// The name of the folder.
pub(super) const FOLDER: &str = "crd";

/// `config/crd`: a file in `bases/` for each kind.
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

/// Merges the definitions of the versions of each kind.
pub(super) fn merged(
    inventory: &Inventory,
    names: &Names,
) -> Result<Vec<CustomResourceDefinition>, ManifestError> {
    let mut kinds: BTreeMap<String, Vec<&CustomResourceDefinition>> = BTreeMap::new();
    for crd in &inventory.crds {
        let name = crd.metadata.name.clone().unwrap_or_default();
        kinds.entry(name).or_default().push(crd);
    }
    let conversions: &[ConversionItem] =
        inventory.webhooks.as_ref().map_or(&[], |webhooks| &webhooks.conversions);
    let conversion = |name: &str| {
        conversions.iter().find(|conversion| name == format!("{}.{}", conversion.plural, conversion.group))
    };
    kinds.iter().map(|(name, versions)| merge(name, versions, conversion(name), names)).collect()
}

fn merge(
    name: &str,
    definitions: &[&CustomResourceDefinition],
    conversion: Option<&ConversionItem>,
    names: &Names,
) -> Result<CustomResourceDefinition, ManifestError> {
    let mut merged = CustomResourceDefinition::default();
    for (index, definition) in definitions.iter().enumerate() {
        if index == 0 {
            merged = (*definition).clone();
        } else {
            add_versions(name, &mut merged, definition)?;
        }
    }
    merged.spec.names = tidy_names(merged.spec.names);
    merged.spec.versions.sort_by(|one, other| one.name.cmp(&other.name));
    let stored = stored_version(name, &merged)?;
    if let Some(conversion) = conversion {
        check_conversion(name, &merged, &stored, conversion)?;
        merged.spec.conversion = Some(stanza(conversion, names));
    }
    Ok(merged)
}

fn add_versions(
    name: &str,
    merged: &mut CustomResourceDefinition,
    added: &CustomResourceDefinition,
) -> Result<(), ManifestError> {
    let version_of =
        |crd: &CustomResourceDefinition| crd.spec.versions.first().map(|first| first.name.clone());
    let disagree = |what| ManifestError::Disagree {
        name: name.to_owned(),
        one: version_of(merged).unwrap_or_default(),
        other: version_of(added).unwrap_or_default(),
        what,
    };
    if merged.spec.scope != added.spec.scope {
        return Err(disagree("scope"));
    }
    if tidy_names(merged.spec.names.clone()) != tidy_names(added.spec.names.clone()) {
        return Err(disagree("names"));
    }
    for version in &added.spec.versions {
        match merged.spec.versions.iter().find(|other| other.name == version.name) {
            None => merged.spec.versions.push(version.clone()),
            Some(same) if same == version => {}
            Some(_) => {
                let version = version.name.clone();
                return Err(ManifestError::SameVersion { name: name.to_owned(), version });
            }
        }
    }
    let own = &mut merged.metadata;
    own.labels.get_or_insert_default().extend(added.metadata.labels.clone().unwrap_or_default());
    own.annotations.get_or_insert_default().extend(added.metadata.annotations.clone().unwrap_or_default());
    own.labels.take_if(|labels| labels.is_empty());
    own.annotations.take_if(|annotations| annotations.is_empty());
    Ok(())
}

/// Writes the list kind, as controller-gen does, and no empty lists.
fn tidy_names(mut names: CustomResourceDefinitionNames) -> CustomResourceDefinitionNames {
    names.list_kind.get_or_insert_with(|| format!("{}List", names.kind));
    names.short_names.take_if(|names| names.is_empty());
    names.categories.take_if(|categories| categories.is_empty());
    names
}

/// Returns the version that is stored.
fn stored_version(name: &str, crd: &CustomResourceDefinition) -> Result<String, ManifestError> {
    let stored: Vec<&str> = crd
        .spec
        .versions
        .iter()
        .filter(|version| version.storage)
        .map(|version| version.name.as_str())
        .collect();
    match stored.as_slice() {
        [one] => Ok((*one).to_owned()),
        [] => Err(ManifestError::Storage { name: name.to_owned(), found: "has none".to_owned() }),
        several => {
            let found = format!("has {}", several.join(" and "));
            Err(ManifestError::Storage { name: name.to_owned(), found })
        }
    }
}

fn check_conversion(
    name: &str,
    crd: &CustomResourceDefinition,
    stored: &str,
    conversion: &ConversionItem,
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
    if conversion.hub == stored {
        return Ok(());
    }
    Err(ManifestError::Hub { name: name(), hub: conversion.hub.clone(), stored: stored.to_owned() })
}

fn stanza(conversion: &ConversionItem, names: &Names) -> CustomResourceConversion {
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
