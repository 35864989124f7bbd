//! The CustomResourceDefinitions of an operator, for a cluster.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionNames,
};
use serde_json::Value;

use crate::schema;

/// A contradiction between the definitions of a kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// Two definitions of a kind have the same version, and differ.
    #[error(
        "{name} has two definitions of version {version} that differ; add each version once with `Manager::crd`"
    )]
    SameVersion {
        /// The name of the CustomResourceDefinition.
        name: String,
        /// The version.
        version: String,
    },
    /// The versions of a kind disagree about a common property.
    #[error(
        "versions {one} and {other} of {name} have different {what}: make the `#[kube(..)]` attributes of both types equal"
    )]
    Disagree {
        /// The name of the CustomResourceDefinition.
        name: String,
        /// A version.
        one: String,
        /// Another version.
        other: String,
        /// The different property: `scope`, `names`.
        what: &'static str,
    },
    /// Several versions of a kind, or none, are stored.
    #[error(
        "{name} must have one version that is stored, and {found}: write `#[kube(storage = false)]` at all types but one"
    )]
    Storage {
        /// The name of the CustomResourceDefinition.
        name: String,
        /// The stored versions: `has v1 and v2`.
        found: String,
    },
    /// A definition cannot be written as JSON.
    #[error("{name} is not JSON: {reason}")]
    Json {
        /// The name of the CustomResourceDefinition.
        name: String,
        /// The error of the serializer.
        reason: String,
    },
}

/// Returns the definitions for a cluster, sorted by name: one for each kind, with all versions of the kind.
///
/// A derived definition has one version. For a kind with several versions, `crds` has one definition for each
/// version.
///
/// The schemas are equal to the schemas that [`manifests`](crate::manifests) writes: integers have
/// [limits](crate::limit_integers) that an API server enforces, and the titles and descriptions that derive macros invent are removed.
///
/// # Errors
/// The versions of a kind have different scopes or names, two definitions of one version differ, or not
/// exactly one version is stored.
///
/// ```
/// use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
/// # use serde_json::json;
/// # let of = |version: &str, storage: bool| -> CustomResourceDefinition { serde_json::from_value(json!({
/// #     "metadata": {"name": "bars.example.com"},
/// #     "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Bar", "plural": "bars"},
/// #         "versions": [{"name": version, "served": true, "storage": storage}]}
/// # })).unwrap() };
/// # let (v1, v2) = (of("v1", true), of("v2", false));
/// // Two versions of the kind Bar: v1 is stored.
/// let crds: Vec<CustomResourceDefinition> = vec![v1, v2];
/// let served = windlass_codegen::cluster_definitions(&crds).unwrap();
/// assert_eq!(served.len(), 1);
/// assert_eq!(served[0]["spec"]["versions"][1]["name"], "v2");
/// ```
pub fn cluster_definitions(crds: &[CustomResourceDefinition]) -> Result<Vec<Value>, DefinitionError> {
    merge_versions(crds)?.iter().map(prepared).collect()
}

fn prepared(crd: &CustomResourceDefinition) -> Result<Value, DefinitionError> {
    let mut value = serde_json::to_value(crd).map_err(|error| DefinitionError::Json {
        name: crd.metadata.name.clone().unwrap_or_default(),
        reason: error.to_string(),
    })?;
    schema::prepare(&mut value, None);
    Ok(value)
}

/// Merges the definitions of the versions of each kind, sorted by name.
pub(crate) fn merge_versions(
    crds: &[CustomResourceDefinition],
) -> Result<Vec<CustomResourceDefinition>, DefinitionError> {
    let mut kinds: BTreeMap<String, Vec<&CustomResourceDefinition>> = BTreeMap::new();
    for crd in crds {
        kinds.entry(crd.metadata.name.clone().unwrap_or_default()).or_default().push(crd);
    }
    kinds.iter().map(|(name, versions)| merge(name, versions)).collect()
}

fn merge(
    name: &str,
    definitions: &[&CustomResourceDefinition],
) -> Result<CustomResourceDefinition, DefinitionError> {
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
    check_storage(name, &merged)?;
    Ok(merged)
}

fn add_versions(
    name: &str,
    merged: &mut CustomResourceDefinition,
    added: &CustomResourceDefinition,
) -> Result<(), DefinitionError> {
    let version_of =
        |crd: &CustomResourceDefinition| crd.spec.versions.first().map(|first| first.name.clone());
    let disagree = |what| DefinitionError::Disagree {
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
                return Err(DefinitionError::SameVersion { name: name.to_owned(), version });
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

/// Checks that exactly one version is stored.
fn check_storage(name: &str, crd: &CustomResourceDefinition) -> Result<(), DefinitionError> {
    let versions = crd.spec.versions.iter().filter(|version| version.storage);
    let stored: Vec<&str> = versions.map(|version| version.name.as_str()).collect();
    let found = match stored.as_slice() {
        [_] => return Ok(()),
        [] => "has none".to_owned(),
        several => format!("has {}", several.join(" and ")),
    };
    Err(DefinitionError::Storage { name: name.to_owned(), found })
}
