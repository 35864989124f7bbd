//! The resources that a pod requests, or is limited to, as a whole.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::wire::Quantity;

/// Amounts by the names of resources.
pub(super) type Amounts = BTreeMap<String, Quantity>;

/// Reads the amounts of a map.
pub(super) fn amounts(map: &Value) -> Amounts {
    let amounts = map.as_object().into_iter().flatten();
    amounts.filter_map(|(name, amount)| Some((name.clone(), amount.as_str()?.parse().ok()?))).collect()
}

/// The containers of a pod, and then its init containers.
pub(super) fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    ["containers", "initContainers"].into_iter().flat_map(|list| listed(pod, list))
}

fn listed<'a>(pod: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    pod["spec"][list].as_array().into_iter().flatten()
}

/// The `requests` or `limits` of a pod: those of its containers together, or more if an init container needs more.
pub(super) fn total(pod: &Value, field: &str) -> Amounts {
    let of = |container: &Value| amounts(&container["resources"][field]);
    let mut total = Amounts::new();
    listed(pod, "containers").for_each(|container| add(&mut total, &of(container)));
    let (mut sidecars, mut most) = (Amounts::new(), Amounts::new());
    for container in listed(pod, "initContainers") {
        let own = of(container);
        if container["restartPolicy"] == "Always" {
            add(&mut total, &own);
            add(&mut sidecars, &own);
            raise(&mut most, &sidecars);
        } else {
            let mut together = own;
            add(&mut together, &sidecars);
            raise(&mut most, &together);
        }
    }
    raise(&mut total, &most);
    for (resource, amount) in amounts(&pod["spec"]["resources"][field]) {
        if matches!(resource.as_str(), "cpu" | "memory") {
            total.insert(resource, amount);
        }
    }
    total
}

fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = total.get(name).map_or(*amount, |present| *present + *amount);
        total.insert(name.clone(), sum);
    }
}

fn raise(total: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        if total.get(name).is_none_or(|present| amount > present) {
            total.insert(name.clone(), *amount);
        }
    }
}
