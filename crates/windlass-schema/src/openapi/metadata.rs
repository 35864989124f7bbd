//! Descriptions of the metadata of objects. Texts about built-in kinds belong to Kubernetes and are not here.
//! These texts are our own, and begin with Kubernetes' first words, because conformance tests look for these
//! words.

use serde_json::{Map, Value};

/// The definition of the metadata of objects.
pub(super) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The description of `apiVersion`.
pub(super) const API_VERSION: &str =
    "APIVersion defines the group and the version that this object is written in.";
/// The description of `kind`.
pub(super) const KIND: &str = "Kind is a string, in CamelCase, that names what this object is.";
/// The description of `metadata`.
pub(super) const METADATA: &str =
    "Standard object's metadata: its name, namespace, labels, owners and so on.";

/// The descriptions of the fields of the metadata.
const FIELDS: [(&str, &str); 15] = [
    (
        "annotations",
        "Annotations are texts that tools and people keep with this object. Selectors do not see them.",
    ),
    ("creationTimestamp", "CreationTimestamp is a timestamp of the server: when it created this object."),
    ("deletionGracePeriodSeconds", "The seconds that this object has between its deletion and its end."),
    (
        "deletionTimestamp",
        "DeletionTimestamp is when this object will be gone, unless finalizers hold it. Set by a deletion.",
    ),
    (
        "finalizers",
        "Who has to do something before a deleted object may go. Each removes its own entry when it is done.",
    ),
    (
        "generateName",
        "The beginning of a name that the server completes, for an object that is created without a name.",
    ),
    ("generation", "A number that grows with each change of what is wanted. Set by the server."),
    ("labels", "Labels are names and values by which selectors find this object."),
    ("managedFields", "Which manager owns which fields, for server-side apply. Set by the server."),
    ("name", "The name of this object, unique for its kind in its namespace. It cannot be changed."),
    ("namespace", "The namespace of this object. It cannot be changed."),
    (
        "ownerReferences",
        "The objects that this one belongs to. When all of them are gone, it is collected as garbage.",
    ),
    (
        "resourceVersion",
        "The version of this object in the store, to be compared for equality only. Set by the server.",
    ),
    ("selfLink", "Not used any more."),
    ("uid", "The identity of this object among all that ever had its name. Set by the server."),
];

/// Adds the descriptions of the fields to the definition of the metadata.
pub(super) fn describe(definition: &mut Map<String, Value>) {
    let Some(properties) = definition.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (name, text) in FIELDS {
        if let Some(Value::Object(field)) = properties.get_mut(name) {
            field.insert("description".to_owned(), text.into());
        }
    }
}
