//! Validation of the environment variables of containers.

use std::collections::BTreeMap;

use windlass_wire::names;

use super::references::{VARIABLE_FIELDS, validate_container_resource, validate_object_field};
use crate::field::{Errors, Field};
use crate::volume::source::no_backsteps;

/// Validates the variables of a container.
pub(crate) fn validate_variables(variables: &Field<'_>, errors: &mut Errors) {
    for variable in variables.items() {
        variable.at("name").require_check(names::env_var_name, errors);
        let source = variable.at("valueFrom");
        if source.is_set() {
            validate_source(&source, variable.at("value").text(), errors);
        }
    }
}

fn validate_source(source: &Field<'_>, value: &str, errors: &mut Errors) {
    let mut given = 0;
    let mut each = |name: &str, check: &dyn Fn(&Field<'_>, &mut Errors)| {
        let reference = source.at(name);
        if reference.is_set() {
            given += 1;
            check(&reference, errors);
        }
    };
    each("fieldRef", &|reference, errors| validate_object_field(reference, &VARIABLE_FIELDS, errors));
    each("resourceFieldRef", &|reference, errors| validate_container_resource(reference, false, errors));
    each("configMapKeyRef", &validate_key);
    each("secretKeyRef", &validate_key);
    each("fileKeyRef", &validate_file_key);
    if given == 0 {
        let detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
        errors.push(source.invalid_as("", detail));
    } else if !value.is_empty() {
        errors.push(source.invalid_as("", "may not be specified when `value` is not empty"));
    } else if given > 1 {
        errors.push(source.invalid_as("", "may not have more than one field specified at a time"));
    }
}

fn validate_key(reference: &Field<'_>, errors: &mut Errors) {
    reference.at("name").check(names::dns_1123_subdomain, errors);
    reference.at("key").require_check(names::config_map_key, errors);
}

fn validate_file_key(reference: &Field<'_>, errors: &mut Errors) {
    reference.at("key").require_check(names::env_var_name, errors);
    reference.at("volumeName").require_check(names::dns_1123_label, errors);
    let path = reference.at("path");
    if !path.require(errors) {
        no_backsteps(&path, errors);
    }
}

/// Validates the sources of many variables at once.
pub(crate) fn validate_sources(sources: &Field<'_>, errors: &mut Errors) {
    for source in sources.items() {
        source.at("prefix").check_if_any(names::env_var_name, errors);
        let mut given = 0;
        for name in ["configMapRef", "secretRef"] {
            let reference = source.at(name);
            if reference.is_set() {
                given += 1;
                reference.at("name").require_check(|name| names::subdomain_name(name, true), errors);
            }
        }
        match given {
            0 => errors.push(sources.invalid_as("", "must specify one of: `configMapRef` or `secretRef`")),
            1 => {}
            _ => errors.push(sources.invalid_as("", "may not have more than one field specified at a time")),
        }
    }
}

/// Checks that the volumes with files of variables are `emptyDir` volumes of the pod.
pub(crate) fn validate_file_volumes(spec: &Field<'_>, errors: &mut Errors) {
    let volumes: BTreeMap<&str, bool> = spec
        .at("volumes")
        .items()
        .map(|volume| (volume.at("name").text(), volume.at("emptyDir").is_set()))
        .collect();
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for variable in spec.at(list).items().flat_map(|container| container.at("env").items()) {
            let reference = variable.at_path("valueFrom/fileKeyRef");
            if !reference.is_set() {
                continue;
            }
            let name = reference.at("volumeName");
            match volumes.get(name.text()) {
                None => errors.push(name.not_found()),
                Some(false) => {
                    errors.push(name.invalid_as(name.text(), "referenced volume must be of type emptyDir"));
                }
                Some(true) => {}
            }
        }
    }
}
