//! Validation.

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::names;

use super::ApiServices;
use crate::field::{self, Errors, Field};
use crate::kind::Validate;

const MAX_GROUP_PRIORITY: i64 = 20_000;
const MAX_VERSION_PRIORITY: i64 = 1_000;

impl Validate for ApiServices {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        field::validate("", object, |service, errors| {
            let spec = service.at("spec");
            validate_name(&service.at("metadata"), &spec, errors);
            validate_priorities(&spec, errors);
            validate_target(&spec, errors);
        })
    }
}

/// Validates group and version, and that the name consists of version and group.
fn validate_name(metadata: &Field<'_>, spec: &Field<'_>, errors: &mut Errors) {
    let (group, version) = (spec.at("group"), spec.at("version"));
    let expected = format!("{}.{}", version.text(), group.text());
    for name in ["generateName", "name"].map(|name| metadata.at(name)) {
        if !name.text().is_empty() && name.text() != expected {
            let expected = windlass_schema::go_quote(&expected);
            let detail = format!("must be `spec.version+\".\"+spec.group`: {expected}");
            errors.push(name.invalid_as(name.text(), detail));
        }
    }
    if !group.text().is_empty() {
        group.check(names::dns_1123_subdomain, errors);
    } else if version.text() != "v1" {
        errors.push(group.required("only v1 may have an empty group and it better be legacy kube"));
    }
    for problem in names::dns_1035_label(version.text()) {
        errors.push(version.invalid_as(version.text(), problem));
    }
}

fn validate_priorities(spec: &Field<'_>, errors: &mut Errors) {
    for (field, most) in
        [("groupPriorityMinimum", MAX_GROUP_PRIORITY), ("versionPriority", MAX_VERSION_PRIORITY)]
    {
        let priority = spec.at(field);
        if !(1..=most).contains(&priority.int()) {
            let detail = format!("must be positive and less than {most}");
            errors.push(priority.invalid_as(priority.int(), detail));
        }
    }
}

/// Validates the service, or that a local group version has none of the settings of a connection.
fn validate_target(spec: &Field<'_>, errors: &mut Errors) {
    let (service, bundle, insecure) =
        (spec.at("service"), spec.at("caBundle"), spec.at("insecureSkipTLSVerify"));
    if !service.is_set() {
        if !bundle.text().is_empty() {
            let shown = format!("{} bytes", base64_length(bundle.text()));
            errors.push(bundle.invalid_as(shown, "local APIServices may not have a caBundle"));
        }
        if insecure.flag() {
            errors.push(insecure.invalid("local APIServices may not have insecureSkipTLSVerify"));
        }
        return;
    }
    for field in ["namespace", "name"] {
        let text = service.at(field);
        if text.text().is_empty() {
            errors.push(text.required(""));
        }
    }
    let port = service.at("port");
    for problem in names::port_number(port.int()) {
        errors.push(port.invalid_as(port.int(), format!("port is not valid: {problem}")));
    }
    if insecure.flag() && !bundle.text().is_empty() {
        errors.push(insecure.invalid("may not be true if caBundle is present"));
    }
}

/// Returns the number of bytes that a text in base64 stands for.
fn base64_length(text: &str) -> usize {
    text.trim_end_matches('=').len() * 3 / 4
}
