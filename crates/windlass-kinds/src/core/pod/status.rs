//! Validation of the status of a pod.

use std::collections::{BTreeMap, BTreeSet};

use windlass_wire::names;

use crate::addresses::{address_unless_known, validate_families};
use crate::field::{Errors, Field};
use crate::pod_template::annotations;

/// Validates a write of the status.
pub(super) fn validate_update(pod: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let (listed, known) = (pod.at_path("metadata/annotations"), old.at_path("metadata/annotations"));
    annotations::validate_change(&listed, &known, errors);
    annotations::validate(&listed, &pod.at("spec"), errors);
    let (status, before) = (pod.at("status"), old.at("status"));
    validate_conditions(&status.at("conditions"), errors);
    let node = status.at("nominatedNodeName");
    if node.text() != before.at("nominatedNodeName").text() && !node.text().is_empty() {
        node.check(names::dns_1123_subdomain, errors);
        if !old.at_path("spec/nodeName").text().is_empty() {
            errors.push(node.forbidden("may not be set on pods that are already bound to a node"));
        }
    }
    not_negative(&status.at("observedGeneration"), errors);
    let class = status.at("qosClass");
    if class.text() != before.at("qosClass").text() {
        errors.push(class.invalid_as(class.text(), "field is immutable"));
    }
    for (list, containers) in
        [("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")]
    {
        validate_states(&status.at(list), &before.at(list), &old.at("spec"), containers, errors);
    }
    validate_ephemeral_states(&status, &before, errors);
    validate_claims(&status.at("resourceClaimStatuses"), &pod.at_path("spec/resourceClaims"), errors);
    validate_addresses(&status, &before, errors);
    let is_windows = pod.at_path("spec/os/name").text() == "windows";
    for list in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        for container in status.at(list).items() {
            validate_user(&container.at_path("user/linux"), is_windows, errors);
        }
    }
}

fn not_negative(field: &Field<'_>, errors: &mut Errors) {
    if field.int() < 0 {
        errors.push(field.invalid("must be a non-negative integer"));
    }
}

fn validate_conditions(conditions: &Field<'_>, errors: &mut Errors) {
    for condition in conditions.items() {
        not_negative(&condition.at("observedGeneration"), errors);
        let kind = condition.at("type");
        if !["PodScheduled", "Ready", "Initialized"].contains(&kind.text()) {
            kind.at_path_of(&condition.at("Type")).check(names::label_key, errors);
        }
    }
}

/// Checks that ended containers run again only if they are restarted.
fn validate_states(
    statuses: &Field<'_>,
    before: &Field<'_>,
    spec: &Field<'_>,
    containers: &str,
    errors: &mut Errors,
) {
    let restarts_all = ["initContainers", "containers"].iter().any(|list| {
        let mut rules =
            spec.at(list).items().flat_map(|container| container.at("restartPolicyRules").items());
        rules.any(|rule| rule.at("action").text() == "RestartAllContainers")
    });
    if restarts_all {
        return;
    }
    let running = running(statuses);
    let mut by_name: BTreeMap<&str, Field<'_>> = BTreeMap::new();
    for container in spec.at(containers).items() {
        by_name.entry(container.at("name").text()).or_insert(container);
    }
    for (index, before) in before.items().enumerate() {
        let ended = before.at_path("state/terminated");
        let name = before.at("name").text();
        if !ended.is_set() || !running.contains(name) {
            continue;
        }
        let container = by_name.get(name);
        let restarts =
            container.is_some_and(|container| restarts(container, spec, ended.at("exitCode").int()));
        if !restarts {
            let state = statuses.index(index).at("state");
            errors.push(state.forbidden("may not be transitioned to non-terminated state"));
        }
    }
}

/// Returns the names of the containers that have not ended.
fn running<'a>(statuses: &Field<'a>) -> BTreeSet<&'a str> {
    let is_running = |status: &Field<'_>| !status.at_path("state/terminated").is_set();
    statuses.items().filter(is_running).map(|status| status.at("name").text()).collect()
}

/// Returns whether a container that ended with a code starts again.
fn restarts(container: &Field<'_>, spec: &Field<'_>, code: i64) -> bool {
    let own = container.at("restartPolicy");
    for rule in container.at("restartPolicyRules").items() {
        let codes = rule.at("exitCodes");
        let listed = codes.at("values").items().any(|value| value.int() == code);
        let is_met = match codes.at("operator").text() {
            "In" => listed,
            "NotIn" => !listed,
            _ => false,
        };
        if own.is_set() && is_met && rule.at("action").text() == "Restart" {
            return true;
        }
    }
    match if own.is_set() { own.text() } else { spec.at("restartPolicy").text() } {
        "Always" => true,
        "OnFailure" => code != 0,
        _ => false,
    }
}

fn validate_ephemeral_states(status: &Field<'_>, before: &Field<'_>, errors: &mut Errors) {
    let statuses = status.at("ephemeralContainerStatuses");
    let running = running(&statuses);
    for (index, before) in before.at("ephemeralContainerStatuses").items().enumerate() {
        if before.at_path("state/terminated").is_set() && running.contains(before.at("name").text()) {
            let state = statuses.index(index).at("state");
            errors.push(state.forbidden("may not be transitioned to non-terminated state"));
        }
    }
}

fn validate_claims(statuses: &Field<'_>, claims: &Field<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    let known: BTreeSet<&str> = claims.items().map(|claim| claim.at("name").text()).collect();
    for status in statuses.items() {
        let (name, claim) = (status.at("name"), status.at("resourceClaimName"));
        if !known.contains(name.text()) {
            let detail = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(name.invalid_as(name.text(), detail));
        }
        if !seen.insert(name.text()) {
            errors.push(name.duplicate_as(name.text()));
        }
        if claim.is_set() {
            claim.check(names::dns_1123_subdomain, errors);
        }
    }
}

fn validate_addresses(status: &Field<'_>, before: &Field<'_>, errors: &mut Errors) {
    let host = status.at_path("hostIPs").index(0).at("ip");
    if !status.at("hostIPs").is_empty() && status.at("hostIP").text() != host.text() {
        errors.push(host.invalid_as(host.text(), "must be equal to `hostIP`"));
    }
    for name in ["podIPs", "hostIPs"] {
        let list = status.at(name);
        let known: BTreeSet<&str> = before.at(name).items().map(|entry| entry.at("ip").text()).collect();
        for entry in list.items() {
            address_unless_known(&entry.at("ip").at_path_of(&entry), &known, errors);
        }
        validate_families(&list, list.items().map(|entry| entry.at("ip").text()).collect(), errors);
    }
}

fn validate_user(user: &Field<'_>, is_windows: bool, errors: &mut Errors) {
    if !user.is_set() {
        return;
    }
    if is_windows {
        errors.push(user.forbidden("cannot be set for a windows pod"));
        return;
    }
    for id in ["uid", "gid"] {
        user.at(id).within(0, i64::from(i32::MAX), errors);
    }
    for group in user.at("supplementalGroups").items() {
        group.within(0, i64::from(i32::MAX), errors);
    }
}
