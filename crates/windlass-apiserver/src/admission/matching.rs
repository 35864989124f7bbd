//! The match between criteria and a request, and the version of the object for a webhook or a policy.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::attributes::{Attributes, GroupVersion, resource_of};
use super::criteria::{Criteria, Rule, Scope};
use super::{Objects, Operation, Surroundings};
use crate::meta;
use crate::resource::Resource;
use crate::wire::{ApiError, LabelSelector};
use windlass_kinds::resources::{EVENTS, NAMESPACES};

/// The version of the objects for a webhook or a policy.
#[derive(Clone)]
pub(super) enum Shown {
    /// That of the request.
    AsRequested,
    /// Another version, or another group with the same objects.
    As(Arc<Resource>),
}

/// Returns the version of the objects of a request for criteria that match; `None` for criteria that do not match.
pub(super) fn matches(
    criteria: &Criteria,
    request: &Attributes<'_>,
    objects: Objects<'_>,
    around: Surroundings<'_>,
) -> Result<Option<Shown>, ApiError> {
    let in_namespace = is_namespace_selected(criteria, request, objects, around);
    if matches!(in_namespace, Ok(false)) || !is_object_selected(criteria, request, objects) {
        return Ok(None);
    }
    let covered = |rules: &[Rule]| covered(rules, criteria.matches_equivalent, request, around);
    if !criteria.excluded.is_empty() && covered(&criteria.excluded).is_some() {
        return Ok(None);
    }
    let shown = if criteria.covers_all { Some(Shown::AsRequested) } else { covered(&criteria.rules) };
    match shown {
        // A namespace that is not there matters only to criteria that match otherwise.
        Some(shown) => in_namespace.map(|_| Some(shown)),
        None => Ok(None),
    }
}

/// Returns the version in which rules cover a request.
fn covered(
    rules: &[Rule],
    matches_equivalent: bool,
    request: &Attributes<'_>,
    around: Surroundings<'_>,
) -> Option<Shown> {
    if rules.iter().any(|rule| covers(rule, request, request.group_version_resource())) {
        Some(Shown::AsRequested)
    } else if matches_equivalent {
        equivalent(rules, request, around).map(Shown::As)
    } else {
        None
    }
}

/// Returns another resource with the same objects that a rule covers. Earlier rules count first.
fn equivalent(rules: &[Rule], request: &Attributes<'_>, around: Surroundings<'_>) -> Option<Arc<Resource>> {
    let others = |resource: &&Arc<Resource>| {
        resource.storage == request.resource.storage
            && resource_of(resource) != request.group_version_resource()
            && (request.subresource.is_empty() || resource.subresource(request.subresource).is_some())
    };
    let groups = around.served.groups().iter();
    // Only events are served by two groups.
    let groups =
        groups.filter(|group| group.name == request.resource.group || request.resource.storage == *EVENTS);
    let candidates: Vec<&Arc<Resource>> = groups
        .flat_map(|group| &group.versions)
        .flat_map(|version| version.resources.values())
        .filter(others)
        .collect();
    let mut found = rules
        .iter()
        .filter_map(|rule| candidates.iter().find(|candidate| covers(rule, request, resource_of(candidate))));
    found.next().map(|resource| Arc::clone(resource))
}

fn covers(rule: &Rule, request: &Attributes<'_>, resource: GroupVersion<'_>) -> bool {
    is_in_scope(rule.scope, request)
        && lists(&rule.operations, request.operation.name())
        && lists(&rule.groups, resource.group)
        && lists(&rule.versions, resource.version)
        && rule.resources.iter().any(|pattern| {
            let (name, subresource) = pattern.split_once('/').unwrap_or((pattern, ""));
            (name == "*" || name == resource.name)
                && (subresource == "*" || subresource == request.subresource)
        })
        && (rule.names.is_empty() || rule.names.iter().any(|name| name == request.name))
}

fn is_in_scope(scope: Scope, request: &Attributes<'_>) -> bool {
    let is_cluster_scoped = is_namespace(request) || request.namespace.is_empty();
    match scope {
        Scope::All => true,
        Scope::Cluster => is_cluster_scoped,
        Scope::Namespaced => !is_cluster_scoped,
    }
}

fn is_namespace(request: &Attributes<'_>) -> bool {
    request.resource.storage == *NAMESPACES
}

fn lists(items: &[String], wanted: &str) -> bool {
    items.iter().any(|item| item == "*" || item == wanted)
}

fn is_namespace_selected(
    criteria: &Criteria,
    request: &Attributes<'_>,
    objects: Objects<'_>,
    around: Surroundings<'_>,
) -> Result<bool, ApiError> {
    let Some(selector) = &criteria.namespace_selector else { return Ok(true) };
    // Other cluster-scoped objects are never exempted.
    if request.namespace.is_empty() && !is_namespace(request) {
        return Ok(true);
    }
    let is_write = matches!(request.operation, Operation::Create | Operation::Update);
    if is_namespace(request) && request.subresource.is_empty() && is_write {
        return Ok(selector.matches(objects.new.and_then(meta::labels)));
    }
    match around.view.get(&NAMESPACES, request.namespace) {
        Some(namespace) => Ok(selector.matches_by(|label| namespace.labels().get(label))),
        None => Err(ApiError::not_found(&NAMESPACES.group_resource(), request.namespace)),
    }
}

/// Returns whether the new or the old object has the labels.
fn is_object_selected(criteria: &Criteria, request: &Attributes<'_>, objects: Objects<'_>) -> bool {
    let Some(selector) = &criteria.object_selector else { return true };
    if request.operation == Operation::Connect {
        // The options of a connection have no metadata, and therefore match no selector.
        return false;
    }
    let has_labels =
        |object: Option<&Value>| object.is_some_and(|object| matches_labels(selector, meta::labels(object)));
    has_labels(objects.new) || has_labels(objects.old)
}

fn matches_labels(selector: &LabelSelector, labels: Option<&Map<String, Value>>) -> bool {
    selector.matches(labels)
}
