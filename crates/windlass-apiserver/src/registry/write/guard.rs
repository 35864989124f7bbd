//! The guards of commits: the state in which an object may be created.

use crate::resource::Resource;
use crate::store::View;
use crate::wire::ApiError;
use windlass_kinds::resources::DEFINITIONS;
use windlass_kinds::resources::NAMESPACES;

/// Returns whether an object may be created in this state: the namespace and the definition exist, and are
/// not terminating. The names for errors are the name and the `generateName` of the object.
pub(super) fn may_create(
    view: &View,
    resource: &Resource,
    namespace: &str,
    [name, prefix]: [&str; 2],
) -> Result<(), ApiError> {
    if let Some(custom) = &resource.custom {
        let definition = view.get(&DEFINITIONS, &custom.definition);
        let Some(definition) = definition.filter(|found| found.uid() == custom.definition_uid) else {
            return Err(ApiError::not_found(&resource.group_resource(), name));
        };
        if definition.is_terminating() {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(ApiError::forbidden(&resource.group_resource(), name, why));
        }
    }
    if !resource.namespaced {
        return Ok(());
    }
    may_create_in(view, resource, namespace, [name, prefix])
}

/// Returns whether the namespace of an object that is to be created is there, and stays. An error has the first of `names` that is
/// not empty.
pub(in crate::registry) fn may_create_in(
    view: &View,
    resource: &Resource,
    namespace: &str,
    names: [&str; 2],
) -> Result<(), ApiError> {
    match view.get(&NAMESPACES, namespace) {
        Some(found) if !found.is_terminating() => Ok(()),
        Some(_) => {
            let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or("Unknown");
            Err(ApiError::namespace_terminating(&resource.group_resource(), name, namespace))
        }
        None => Err(ApiError::not_found(&NAMESPACES.group_resource(), namespace)),
    }
}
