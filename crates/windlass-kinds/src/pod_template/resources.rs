//! Validation of requests and limits.

use std::collections::{BTreeMap, BTreeSet};

use windlass_wire::{Quantity, names};

use crate::field::{Errors, Field};

/// The resources of containers that have no domain before their names, besides huge pages.
const OF_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// The resources that have no domain before their names.
const STANDARD: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];
/// The resources that are counted in whole numbers.
const WHOLE: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::label_key(&format!("requests.{name}")).is_empty()
}

pub(crate) fn allows_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// Validates the name of a resource, which is the key of an amount.
pub(crate) fn validate_name(name: &str, amount: &Field<'_>, errors: &mut Errors) -> bool {
    let problems = names::label_key(name);
    if !problems.is_empty() {
        errors.extend(problems.into_iter().map(|problem| amount.invalid_as(name, problem)));
        return false;
    }
    let is_standard =
        STANDARD.contains(&name) || is_huge_page(name) || name.starts_with("requests.hugepages-");
    if !name.contains('/') && !is_standard {
        errors.push(amount.invalid_as(name, "must be a standard resource type or fully qualified"));
        return false;
    }
    true
}

/// Validates the name of a resource of a container, which is the key of an amount.
pub(crate) fn validate_container_name(name: &str, amount: &Field<'_>, errors: &mut Errors) {
    validate_name(name, amount, errors);
    if !name.contains('/') {
        if !OF_CONTAINERS.contains(&name) && !is_huge_page(name) {
            errors.push(amount.invalid_as(name, "must be a standard resource for containers"));
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.push(amount.invalid_as(name, "doesn't follow extended resource name standard"));
    }
}

fn validate_pod_name(name: &str, amount: &Field<'_>, errors: &mut Errors) {
    if validate_name(name, amount, errors) && !["cpu", "memory"].contains(&name) && !is_huge_page(name) {
        errors.push(amount.unsupported_as(name, &["cpu", "hugepages-", "memory"]));
    }
}

/// Validates an amount: it is not negative, and whole if the resource is counted.
pub(crate) fn validate_amount(name: &str, amount: &Field<'_>, errors: &mut Errors) {
    let Some(quantity) = amount.quantity() else { return };
    if quantity.signum() < 0 {
        errors.push(amount.invalid_as(quantity.to_string(), "must be greater than or equal to 0"));
    }
    if (WHOLE.contains(&name) || is_extended(name)) && quantity.to_milli() % 1000 != 0 {
        errors.push(amount.invalid_as(quantity.to_string(), "must be an integer"));
    }
}

/// Validates the resources of a container. `claims` are the names of the pod's resource claims.
pub(crate) fn validate_of_container(resources: &Field<'_>, claims: &BTreeSet<&str>, errors: &mut Errors) {
    validate(resources, validate_container_name, errors);
    validate_claims(&resources.at("claims"), claims, errors);
}

/// Validates the overhead of a runtime, whose amounts are limits.
pub(crate) fn validate_overhead(overhead: &Field<'_>, errors: &mut Errors) {
    validate_lists(
        &overhead.at_path_of(&overhead.report_at("limits")),
        None,
        overhead,
        validate_container_name,
        errors,
    );
}

fn validate(resources: &Field<'_>, check_name: fn(&str, &Field<'_>, &mut Errors), errors: &mut Errors) {
    let requests = resources.at("requests");
    validate_lists(&resources.at("limits"), Some(&requests), resources, check_name, errors);
}

fn validate_lists(
    limits: &Field<'_>,
    requests: Option<&Field<'_>>,
    resources: &Field<'_>,
    check_name: fn(&str, &Field<'_>, &mut Errors),
    errors: &mut Errors,
) {
    let (mut is_computing, mut is_huge) = (false, false);
    for list in [Some(limits), requests].into_iter().flatten() {
        for (name, amount) in list.entries() {
            check_name(name, &amount, errors);
            validate_amount(name, &amount, errors);
            if requests.is_some_and(|requests| std::ptr::eq(requests, list)) {
                validate_request(name, &amount.at_path_of(list), limits, errors);
            }
            if is_huge_page(name) {
                is_huge = true;
                validate_pages(name, &amount, errors);
            }
            is_computing |= ["cpu", "memory"].contains(&name);
        }
    }
    if is_huge && !is_computing {
        errors.push(resources.forbidden("HugePages require cpu or memory"));
    }
}

/// Checks that a request is within its limit.
fn validate_request(name: &str, request: &Field<'_>, limits: &Field<'_>, errors: &mut Errors) {
    let Some(quantity) = request.quantity() else { return };
    match limits.key(name).quantity() {
        Some(limit) if quantity != limit && !allows_overcommit(name) => {
            let detail = format!("must be equal to {name} limit of {limit}");
            errors.push(request.invalid_as(quantity.to_string(), detail));
        }
        Some(limit) if quantity > limit => {
            let detail = format!("must be less than or equal to {name} limit of {limit}");
            errors.push(request.invalid_as(quantity.to_string(), detail));
        }
        None if !allows_overcommit(name) => {
            errors.push(limits.required("Limit must be set for non overcommitable resources"));
        }
        _ => {}
    }
}

fn validate_pages(name: &str, amount: &Field<'_>, errors: &mut Errors) {
    let size: Option<Quantity> = name.strip_prefix("hugepages-").and_then(|size| size.parse().ok());
    let Some(quantity) = amount.quantity() else { return };
    let fits = size.is_some_and(|size| {
        size.signum() > 0 && size.is_whole() && quantity.to_milli() % size.to_milli() == 0
    });
    if !fits {
        let shown = quantity.to_string();
        let detail = format!("{shown} is not positive integer multiple of {name}");
        errors.push(amount.invalid_as(shown, detail));
    }
}

fn validate_claims(list: &Field<'_>, known: &BTreeSet<&str>, errors: &mut Errors) {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut requested: BTreeMap<&str, usize> = BTreeMap::new();
    for claim in list.items() {
        let (name, request) = (claim.at("name").text(), claim.at("request"));
        if name.is_empty() {
            errors.push(claim.required(""));
            continue;
        }
        if seen.contains(name) {
            errors.push(claim.duplicate_as(name));
        } else {
            request.check_if_any(names::dns_1123_label, errors);
            let key = match request.text() {
                "" => name.to_owned(),
                request => format!("{name}/{request}"),
            };
            if seen.contains(&key) {
                errors.push(claim.duplicate_as(key.as_str()));
            } else if request.text().is_empty() {
                // Requests of this claim were referenced before.
                let overlaps = requested.get(name).copied().unwrap_or_default();
                errors.extend((0..overlaps).map(|_| claim.duplicate_as(name)));
            } else {
                *requested.entry(name).or_default() += 1;
            }
            seen.insert(key);
        }
        if !known.contains(name) {
            let mut error = claim.not_found_as(name);
            error.detail = "must be one of the names in pod.spec.resourceClaims".to_owned();
            if known.is_empty() {
                error.detail.push_str(" which is empty");
            } else {
                let names: Vec<&str> = known.iter().copied().collect();
                error.detail.push_str(": ");
                error.detail.push_str(&names.join(", "));
            }
            errors.push(error);
        }
    }
}

/// Validates the resources of a whole pod.
pub(crate) fn validate_of_pod(spec: &Field<'_>, errors: &mut Errors) {
    let resources = spec.at("resources");
    if !resources.is_set() {
        return;
    }
    if spec.at_path("os/name").text() == "windows" {
        errors.push(resources.forbidden("may not be set for a windows pod"));
        return;
    }
    let claims = resources.at("claims");
    if claims.is_set() {
        errors.push(claims.forbidden("claims may not be set for Resources at pod-level"));
    }
    validate(&resources, validate_pod_name, errors);
    validate_claims(&claims, &BTreeSet::new(), errors);
    let pod_limits = resources.at("limits");
    for (index, container) in spec.at("containers").items().enumerate() {
        for (name, amount) in container.at_path("resources/limits").entries() {
            let (Some(of_container), Some(of_pod)) = (amount.quantity(), pod_limits.key(name).quantity())
            else {
                continue;
            };
            if of_container > of_pod {
                let shown = format!("must be less than or equal to pod limits of {of_pod}");
                let place = resources.at("containers").index(index).key(name).at("limits");
                errors.push(place.invalid_as(of_container.to_string(), shown));
            }
        }
    }
    validate_sums(spec, &resources, errors);
}

/// Checks that the requests of a pod cover the requests of the containers.
fn validate_sums(spec: &Field<'_>, resources: &Field<'_>, errors: &mut Errors) {
    for (kind, words) in [("requests", "container requests"), ("limits", "container limits")] {
        for (name, amount) in resources.at(kind).entries() {
            if kind == "limits" && !is_huge_page(name) {
                continue;
            }
            let Some(of_pod) = amount.quantity() else { continue };
            let sum = sum_of(spec, kind, name);
            if sum.as_ref().is_some_and(|sum| *sum > of_pod) {
                let sum = sum.map(|sum| sum.to_string()).unwrap_or_default();
                let detail = format!("must be greater than or equal to aggregate {words} of {sum}");
                errors.push(amount.invalid_as(of_pod.to_string(), detail));
            }
        }
    }
}

/// Returns the sum of a pod's containers. Sidecars count with all containers that start later.
fn sum_of(spec: &Field<'_>, kind: &str, name: &str) -> Option<Quantity> {
    let amount = |container: &Field<'_>| container.at("resources").at(kind).key(name).quantity();
    let add = |sum: Option<Quantity>, more: Option<Quantity>| match (sum, more) {
        (Some(sum), Some(more)) => Some(sum + more),
        (sum, more) => sum.or(more),
    };
    let (mut sidecars, mut most) = (None, None);
    for container in spec.at("initContainers").items() {
        let own = amount(&container);
        let now = if container.at("restartPolicy").text() == "Always" {
            sidecars = add(sidecars, own);
            sidecars
        } else {
            add(sidecars, own)
        };
        most = most.max(now);
    }
    spec.at("containers").items().fold(sidecars, |sum, container| add(sum, amount(&container))).max(most)
}
