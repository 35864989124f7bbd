//! Validation of ingresses and their classes.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_store::object_meta as meta;
use windlass_wire::names;

use super::{CLASS, Ingresses};
use crate::addresses::{address_unless_known, is_address};
use crate::checks::{domain_path, path_segment};
use crate::field::{self, Errors, Field};
use crate::json::map_at;
use crate::kind::{Validate, WriteContext};
use crate::subresource::Subresource;

impl Validate for Ingresses {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        field::validate("spec", &object["spec"], validate)
    }

    fn validate_create(&self, _cx: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        let mut errors = self.validate(object);
        let annotation = map_at(object, "/metadata/annotations").and_then(|all| all.get(CLASS));
        let class = object.pointer("/spec/ingressClassName").filter(|class| !class.is_null());
        if let (Some(annotation), Some(class)) = (annotation, class)
            && annotation != class
        {
            let detail = "must match `ingressClassName` when both are specified";
            errors.push(FieldError::invalid(format!("annotations.{CLASS}"), annotation.clone(), detail));
        }
        errors
    }

    fn validate_update(&self, cx: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        if *cx.subresource != Subresource::Status {
            return self.validate(object);
        }
        field::validate("status.loadBalancer", &object["status"]["loadBalancer"], |status, errors| {
            validate_status(status, &status.with(&old["status"]["loadBalancer"]), errors);
        })
    }

    fn warnings(&self, cx: &WriteContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        if !cx.subresource.is_empty() {
            return Vec::new();
        }
        let mut warnings: Vec<String> = Vec::new();
        if old.is_none()
            && meta::has_annotation(object, CLASS)
            && object.pointer("/spec/ingressClassName").is_none()
        {
            warnings.push(format!(
                "annotation \"{CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"
            ));
        }
        warnings
    }
}

const NOT_ADDRESS: &str = "must be a DNS name, not an IP address";

/// Validates the spec of an ingress.
pub(super) fn validate(spec: &Field<'_>, errors: &mut Errors) {
    let (backend, rules) = (spec.at("defaultBackend"), spec.at("rules"));
    if rules.is_empty() && !backend.is_set() {
        errors.push(
            spec.invalid_as(rules.value().clone(), "either `defaultBackend` or `rules` must be specified"),
        );
    }
    if backend.is_set() {
        validate_backend(&backend, errors);
    }
    for rule in rules.items() {
        validate_rule(&rule, errors);
    }
    for secured in spec.at("tls").items() {
        for host in secured.at("hosts").items() {
            host.check(host_name, errors);
        }
        secured.at("secretName").check_if_any(names::dns_1123_subdomain, errors);
    }
    let class = spec.at("ingressClassName");
    if class.is_set() {
        class.check(names::dns_1123_subdomain, errors);
    }
}

/// Checks a host name, which may begin with a wildcard.
fn host_name(host: &str) -> Vec<String> {
    if host.contains('*') { names::wildcard_subdomain(host) } else { names::dns_1123_subdomain(host) }
}

fn validate_rule(rule: &Field<'_>, errors: &mut Errors) {
    let host = rule.at("host");
    if is_address(host.text()) {
        errors.push(host.invalid(NOT_ADDRESS));
    }
    host.check_if_any(host_name, errors);
    let http = rule.at("http");
    if !http.is_set() {
        return;
    }
    let paths = http.at("paths");
    if paths.is_empty() {
        errors.push(paths.required(""));
    }
    for path in paths.items() {
        validate_path(&path, errors);
    }
}

fn validate_path(entry: &Field<'_>, errors: &mut Errors) {
    const SEQUENCES: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
    let (kind, path) = (entry.at("pathType"), entry.at("path"));
    if !kind.is_set() {
        errors.push(kind.required("pathType must be specified"));
        return;
    }
    let text = path.text();
    match kind.text() {
        "Exact" | "Prefix" => {
            if !text.starts_with('/') {
                errors.push(path.invalid_as(text, "must be an absolute path"));
            }
            for sequence in SEQUENCES.iter().filter(|sequence| text.contains(**sequence)) {
                errors.push(path.invalid(format!("must not contain '{sequence}'")));
            }
            for end in ["/..", "/."].iter().filter(|end| text.ends_with(**end)) {
                errors.push(path.invalid(format!("cannot end with '{end}'")));
            }
        }
        "ImplementationSpecific" => {
            if !text.is_empty() && !text.starts_with('/') {
                errors.push(path.invalid("must be an absolute path"));
            }
        }
        _ => errors.push(kind.unsupported(&["Exact", "ImplementationSpecific", "Prefix"])),
    }
    validate_backend(&entry.at("backend"), errors);
}

fn validate_backend(backend: &Field<'_>, errors: &mut Errors) {
    let (resource, service) = (backend.at("resource"), backend.at("service"));
    match (resource.is_set(), service.is_set()) {
        (true, true) => {
            errors.push(backend.invalid_as("", "cannot set both resource and service backends"));
        }
        (true, false) => validate_reference(&resource, errors),
        (false, true) => {
            service.at("name").require_check(names::dns_1123_label, errors);
            let (name, number) = (service.at_path("port/name"), service.at_path("port/number"));
            match (name.text().is_empty(), number.int() == 0) {
                (false, false) => {
                    errors.push(backend.invalid_as("", "cannot set both port name & port number"));
                }
                (false, true) => name.check(names::port_name, errors),
                (true, false) => number.within(1, 65535, errors),
                (true, true) => errors.push(backend.required("port name or number is required")),
            }
        }
        (false, false) => errors.push(backend.invalid_as("", "resource or service backend is required")),
    }
}

/// Validates a reference to an object of any kind.
fn validate_reference(reference: &Field<'_>, errors: &mut Errors) {
    let group = reference.at("apiGroup");
    if group.is_set() {
        group.check(names::dns_1123_subdomain, errors);
    }
    for name in ["kind", "name"] {
        reference.at(name).require_check(path_segment, errors);
    }
}

/// Validates a write of the status.
pub(super) fn validate_status(status: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let known: BTreeSet<&str> = old.at("ingress").items().map(|point| point.at("ip").text()).collect();
    for point in status.at("ingress").items() {
        validate_point(&point, &known, errors);
    }
}

/// Validates an address or a name under which an ingress or service is reached.
pub(crate) fn validate_point(point: &Field<'_>, known: &BTreeSet<&str>, errors: &mut Errors) {
    let (ip, name) = (point.at("ip"), point.at("hostname"));
    if !ip.text().is_empty() {
        address_unless_known(&ip, known, errors);
    }
    name.check_if_any(names::dns_1123_subdomain, errors);
    if is_address(name.text()) {
        errors.push(name.invalid(NOT_ADDRESS));
    }
}

/// Validates the spec of a class.
pub(crate) fn validate_class(spec: &Field<'_>, errors: &mut Errors) {
    let controller = spec.at("controller");
    if controller.text().len() > 250 {
        errors.push(controller.too_long(250));
    }
    domain_path(&controller, errors);
    let parameters = spec.at("parameters");
    if !parameters.is_set() {
        return;
    }
    validate_reference(&parameters, errors);
    let (scope, namespace) = (parameters.at("scope"), parameters.at("namespace"));
    if !scope.is_set() {
        errors.push(scope.required(""));
        return;
    }
    scope.one_of(&["Cluster", "Namespace"], errors);
    match scope.text() {
        "Namespace" => {
            if namespace.is_set() {
                namespace.require_check(names::dns_1123_label, errors);
            } else {
                errors.push(namespace.required("`parameters.scope` is set to 'Namespace'"));
            }
        }
        "Cluster" if namespace.is_set() => {
            errors.push(namespace.forbidden("`parameters.scope` is set to 'Cluster'"));
        }
        _ => {}
    }
}
