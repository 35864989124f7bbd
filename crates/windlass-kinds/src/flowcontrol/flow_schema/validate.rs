//! Validation.

use serde_json::{Value, json};
use windlass_schema::FieldError;
use windlass_wire::names;

use super::FlowSchemas;
use crate::field::{self, Errors, Field};
use crate::flowcontrol::conditions;
use crate::kind::Validate;

const MAX_PRECEDENCE: i64 = 10_000;
const METHODS: [&str; 2] = ["ByNamespace", "ByUser"];
const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

impl Validate for FlowSchemas {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        field::validate("", object, |schema, errors| {
            spec(&schema.at("spec"), schema.at_path("metadata/name").text(), errors);
            conditions(&schema.at_path("status/conditions"), errors);
        })
    }

    fn validate_status(&self, object: &Value, _old: &Value) -> Vec<FieldError> {
        field::validate("", object, |schema, errors| {
            conditions(&schema.at_path("status/conditions"), errors);
        })
    }
}

fn spec(spec: &Field<'_>, name: &str, errors: &mut Errors) {
    let precedence = spec.at("matchingPrecedence");
    if precedence.int() <= 0 {
        errors.push(precedence.invalid("must be a positive value"));
    }
    if precedence.int() > MAX_PRECEDENCE {
        errors.push(precedence.invalid(format!("must not be greater than {MAX_PRECEDENCE}")));
    }
    if precedence.int() == 1 && name != "exempt" {
        errors.push(precedence.invalid("only the schema named 'exempt' may have matchingPrecedence 1"));
    }
    let method = spec.at_path("distinguisherMethod/type");
    if spec.at("distinguisherMethod").is_set() && !METHODS.contains(&method.text()) {
        errors.push(method.unsupported_as(json!({"Type": method.text()}), &METHODS));
    }
    let level = spec.at_path("priorityLevelConfiguration/name");
    if level.text().is_empty() {
        errors.push(level.required("must reference a priority level"));
    } else {
        level.check(names::dns_1123_subdomain, errors);
    }
    for entry in spec.at("rules").items() {
        rule(&entry, errors);
    }
}

fn rule(rule: &Field<'_>, errors: &mut Errors) {
    let subjects = rule.at("subjects");
    if subjects.is_empty() {
        errors.push(subjects.required("subjects must contain at least one value"));
    }
    for entry in subjects.items() {
        subject(&entry, errors);
    }
    let (resources, paths) = (rule.at("resourceRules"), rule.at("nonResourceRules"));
    if resources.is_empty() && paths.is_empty() {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(rule.required(detail));
    }
    for entry in resources.items() {
        resource_rule(&entry, errors);
    }
    for entry in paths.items() {
        path_rule(&entry, errors);
    }
}

/// The kinds of subjects, each with the field of the kind, in the order of errors about fields that other kinds lack.
const SUBJECTS: [(&str, &str); 3] =
    [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];

fn subject(subject: &Field<'_>, errors: &mut Errors) {
    let kind = subject.at("kind");
    let Some((_, own)) = SUBJECTS.into_iter().find(|(known, _)| *known == kind.text()) else {
        errors.push(kind.unsupported(&["Group", "ServiceAccount", "User"]));
        return;
    };
    let place = subject.at(own);
    if place.is_set() {
        subject_name(&place, own, errors);
    } else {
        errors.push(place.required(format!("{own} is required when subject kind is '{}'", kind.text())));
    }
    for (other, name) in SUBJECTS {
        let place = subject.at(name);
        if name != own && place.is_set() {
            errors.push(place.forbidden(format!("{name} is forbidden when subject kind is not '{other}'")));
        }
    }
}

fn subject_name(subject: &Field<'_>, kind: &str, errors: &mut Errors) {
    let name = subject.at("name");
    if name.text().is_empty() {
        errors.push(name.required(""));
    } else if kind == "serviceAccount" && name.text() != "*" {
        name.check(names::dns_1123_subdomain, errors);
    }
    if kind != "serviceAccount" {
        return;
    }
    let namespace = subject.at("namespace");
    if namespace.text().is_empty() {
        errors.push(namespace.required("must specify namespace for service account"));
    } else {
        namespace.check(names::dns_1123_label, errors);
    }
}

fn has_wildcard(list: &Field<'_>) -> bool {
    list.items().any(|entry| entry.text() == "*")
}

fn verbs(verbs: &Field<'_>, errors: &mut Errors) {
    if verbs.is_empty() {
        errors.push(verbs.required("verbs must contain at least one value"));
    } else if has_wildcard(verbs) {
        alone(verbs, "verbs", errors);
    } else if verbs.items().any(|verb| !VERBS.contains(&verb.text())) {
        errors.push(verbs.unsupported_as(verbs.value().clone(), &VERBS));
    }
}

/// Checks that a wildcard is the only entry of a list.
fn alone(list: &Field<'_>, what: &str, errors: &mut Errors) {
    if list.len() > 1 && has_wildcard(list) {
        errors.push(list.invalid(format!("if '*' is present, must not specify other {what}")));
    }
}

fn resource_rule(rule: &Field<'_>, errors: &mut Errors) {
    verbs(&rule.at("verbs"), errors);
    for (name, what, least) in [
        ("apiGroups", "api groups", "resource rules must supply at least one api group"),
        ("resources", "resources", "resource rules must supply at least one resource"),
    ] {
        let list = rule.at(name);
        if list.is_empty() {
            errors.push(list.required(least));
        } else {
            alone(&list, what, errors);
        }
    }
    let namespaces = rule.at("namespaces");
    if namespaces.is_empty() && !rule.at("clusterScope").flag() {
        let detail = "resource rules that are not cluster scoped must supply at least one namespace";
        errors.push(namespaces.required(detail));
    } else if has_wildcard(&namespaces) {
        alone(&namespaces, "namespaces", errors);
    } else {
        let of_list =
            |problem: String| format!("each member of this list must be '*' or a DNS-1123 label; {problem}");
        for namespace in namespaces.items() {
            let problems = |text: &str| names::dns_1123_label(text).into_iter().map(of_list).collect();
            namespace.check(problems, errors);
        }
    }
}

fn path_rule(rule: &Field<'_>, errors: &mut Errors) {
    verbs(&rule.at("verbs"), errors);
    let paths = rule.at("nonResourceURLs");
    if paths.is_empty() {
        errors.push(paths.required("nonResourceURLs must contain at least one value"));
    } else if has_wildcard(&paths) {
        alone(&paths, "non-resource URLs", errors);
    } else {
        for path in paths.items() {
            if let Some(why) = path_problem(path.text()) {
                errors.push(path.invalid(why));
            }
        }
    }
}

fn path_problem(path: &str) -> Option<&'static str> {
    let wildcard = path.find('*');
    if path.is_empty() {
        Some("must not be empty")
    } else if path == "/" {
        None
    } else if !path.starts_with('/') {
        Some("must start with slash")
    } else if path.contains(' ') {
        Some("must not contain white-space")
    } else if path.contains("//") {
        Some("must not contain double slash")
    } else if wildcard.is_some_and(|at| at != path.len() - 1 || !path.ends_with("/*")) {
        Some("wildcard can only do suffix matching")
    } else {
        None
    }
}
