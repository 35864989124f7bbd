//! Validation of references to fields of the pod and to resources of its containers.

use windlass_wire::names;

use crate::field::{Errors, Field};

/// The fields that an environment variable may show, besides labels and annotations.
pub(crate) const VARIABLE_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// The fields that a volume may show.
pub(crate) const VOLUME_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
/// The fields that the API can select at all.
const FIELDS: [&str; 14] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const SIZES: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// Validates a reference to a field of the pod. The field must be in `known`.
pub(crate) fn validate_object_field(reference: &Field<'_>, known: &[&str], errors: &mut Errors) {
    let (version, path) = (reference.at("apiVersion"), reference.at("fieldPath"));
    if version.require(errors) || path.require(errors) {
        return;
    }
    let subscripted = subscript(path.text());
    let problem = if version.text() != "v1" {
        Some(format!("unsupported pod version: {}", version.text()))
    } else if let Some((field, _)) = subscripted {
        let fits = ["metadata.annotations", "metadata.labels"].contains(&field);
        (!fits).then(|| format!("field label does not support subscript: {}", path.text()))
    } else {
        let fits = FIELDS.contains(&path.text()) || path.text() == "spec.host";
        (!fits).then(|| format!("field label not supported: {}", path.text()))
    };
    if let Some(problem) = problem {
        errors.push(path.invalid(format!("error converting fieldPath: {problem}")));
        return;
    }
    if let Some((field, key)) = subscripted {
        let key = if field == "metadata.annotations" { key.to_lowercase() } else { key.to_owned() };
        let problems = names::label_key(&key).into_iter();
        errors.extend(problems.map(|problem| reference.invalid_as(key.as_str(), problem)));
        return;
    }
    let field = if path.text() == "spec.host" { "spec.nodeName" } else { path.text() };
    if !known.contains(&field) {
        errors.push(path.unsupported_text(field, known));
    }
}

/// Splits `metadata.labels['key']` into the field and the key.
fn subscript(path: &str) -> Option<(&str, &str)> {
    let (field, key) = path.strip_suffix("']")?.split_once("['")?;
    (!field.is_empty()).then_some((field, key))
}

/// Validates a reference to a request or limit of a container.
pub(crate) fn validate_container_resource(reference: &Field<'_>, in_volume: bool, errors: &mut Errors) {
    let (container, resource) = (reference.at("containerName"), reference.at("resource"));
    let name = resource.text();
    let is_huge = name.starts_with("requests.hugepages-") || name.starts_with("limits.hugepages-");
    if in_volume && container.text().is_empty() {
        errors.push(container.required(""));
    } else if !resource.require(errors) && !RESOURCES.contains(&name) && !is_huge {
        errors.push(resource.unsupported_text(name, &RESOURCES));
    }
    let divisor = reference.at("divisor");
    let Some(quantity) = divisor.quantity().filter(|quantity| quantity.signum() != 0) else { return };
    let (known, kind): (&[&str], &str) = match name.split_once('.').map_or("", |(_, kind)| kind) {
        "cpu" if RESOURCES.contains(&name) => (&["1m", "1"], "cpu"),
        "memory" if RESOURCES.contains(&name) => (&SIZES, "memory"),
        "ephemeral-storage" if RESOURCES.contains(&name) => (&SIZES, "local ephemeral storage"),
        _ if is_huge => (&SIZES, "hugepages"),
        _ => return,
    };
    if !known.contains(&quantity.to_string().as_str()) {
        let listed = if kind == "cpu" { "1m and 1".to_owned() } else { known.join(", ") };
        let detail = format!("only divisor's values {listed} are supported with the {kind} resource");
        errors.push(divisor.invalid_as(name, detail));
    }
}
