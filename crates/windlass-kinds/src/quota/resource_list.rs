//! ResourceList by the names of resources.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_schema::Quantity;

/// ResourceList by the names of resources: a `ResourceList`.
pub type ResourceList = BTreeMap<String, Quantity>;

/// Reads the amounts of a JSON map. Values that are not quantities are left out.
pub fn amounts(map: &Value) -> ResourceList {
    let amounts = map.as_object().into_iter().flatten();
    amounts.filter_map(|(name, amount)| Some((name.clone(), amount.as_str()?.parse().ok()?))).collect()
}

/// Adds `more` to `total`.
pub(crate) fn add(total: &mut ResourceList, more: &ResourceList) {
    for (name, amount) in more {
        let sum = total.get(name).map_or(*amount, |present| *present + *amount);
        total.insert(name.clone(), sum);
    }
}

/// Raises each amount of `total` to that of `other`, if that is more.
pub(crate) fn raise(total: &mut ResourceList, other: &ResourceList) {
    for (name, amount) in other {
        if total.get(name).is_none_or(|present| amount > present) {
            total.insert(name.clone(), *amount);
        }
    }
}

/// Returns the growth from `old` to `new`; zero for a decrease.
pub(crate) fn growth(new: &ResourceList, old: &ResourceList) -> ResourceList {
    let more = |(name, amount): (&String, &Quantity)| {
        let grown = old.get(name).map_or(*amount, |old| *amount - *old);
        (name.clone(), grown.max(Quantity::ZERO))
    };
    new.iter().map(more).collect()
}

/// Returns the amounts with names in `wanted`.
pub(crate) fn mask(amounts: &ResourceList, wanted: &ResourceList) -> ResourceList {
    let kept = amounts.iter().filter(|(name, _)| wanted.contains_key(*name));
    kept.map(|(name, amount)| (name.clone(), *amount)).collect()
}

/// Writes amounts as the messages of kube-apiserver do: `cpu=1,pods=2`.
pub(crate) fn shown(amounts: &ResourceList) -> String {
    let parts: Vec<String> = amounts.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
    parts.join(",")
}
