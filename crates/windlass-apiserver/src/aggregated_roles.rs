//! The aggregated cluster roles, and the changes that make the rules of an aggregated role outdated.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use memchr::memmem;
use serde_json::Value;
use windlass_kinds::resources::CLUSTER_ROLES;

use crate::object_size::MAX_STORED;
use crate::store::{Change, Event, LabelSet, Store, Stored, Tail, View};
use crate::wire::LabelSelector;
use crate::wire::selector::LabelOperator;

/// The aggregated roles of a store.
#[derive(Debug, Default)]
pub(crate) struct AggregatedRoles {
    /// The revision of the last change that was followed; `None` before the first.
    followed: Option<u64>,
    /// The selectors of each aggregated role, by key.
    selectors: BTreeMap<Arc<str>, Vec<LabelSelector>>,
    /// The aggregated roles whose rules may be outdated.
    outdated: BTreeSet<Arc<str>>,
}

impl AggregatedRoles {
    /// Follows the changes of cluster roles since the last call. Looks at the roles that changed; the first time, at all roles.
    pub(crate) fn follow(&mut self, store: &Store) {
        match self.followed.map(|revision| store.log(&CLUSTER_ROLES).tail(revision, usize::MAX)) {
            Some(Tail::Events(events)) => events.iter().for_each(|event| self.note(event)),
            Some(Tail::Expired(_) | Tail::Closed) | None => self.start(&store.view()),
        }
    }

    /// Returns the keys of the aggregated roles whose rules may be outdated.
    pub(crate) fn outdated(&self) -> Vec<Arc<str>> {
        self.outdated.iter().cloned().collect()
    }

    /// Notes that an aggregated role has the rules of the selected roles.
    pub(crate) fn settled(&mut self, key: &str) {
        self.outdated.remove(key);
    }

    /// Returns the roles that an aggregated role selects, in the order of kube-controller-manager: by selector, then by name. A role may
    /// occur more than once. `None` for other roles.
    pub(crate) fn selected(&self, store: &Store, view: &View, key: &str) -> Option<Vec<Arc<Stored>>> {
        let mut selected = Vec::new();
        for selector in self.selectors.get(key)? {
            let others = candidates(store, view, selector).into_iter();
            let others =
                others.filter(|(other, stored)| **other != *key && matches(selector, stored.labels()));
            selected.extend(others.map(|(_, stored)| stored));
        }
        Some(selected)
    }

    fn start(&mut self, view: &View) {
        self.selectors.clear();
        for (key, stored) in view.range(&CLUSTER_ROLES, None) {
            self.add(key, stored);
        }
        self.followed = Some(view.revision());
    }

    fn note(&mut self, event: &Event) {
        let versions = event.old.iter().chain([&event.object]);
        let is_selected =
            |selector: &LabelSelector| versions.clone().any(|stored| matches(selector, stored.labels()));
        let selecting = self.selectors.iter().filter(|(_, selectors)| selectors.iter().any(is_selected));
        self.outdated.extend(selecting.map(|(key, _)| Arc::clone(key)));
        self.selectors.remove(&event.key);
        self.outdated.remove(&event.key);
        if event.change != Change::Deleted {
            self.add(&event.key, &event.object);
        }
        self.followed = Some(event.rv);
    }

    /// Adds a role, if the role is aggregated.
    fn add(&mut self, key: &Arc<str>, stored: &Stored) {
        // Most roles need no parsing.
        if memmem::find(stored.json(), b"\"aggregationRule\"").is_none() {
            return;
        }
        if let Some(selectors) = selectors(&stored.value()) {
            self.selectors.insert(Arc::clone(key), selectors.collect());
            self.outdated.insert(Arc::clone(key));
        }
    }
}

/// Returns the selectors of an aggregated role. `None` for other roles.
pub(crate) fn selectors(role: &Value) -> Option<impl Iterator<Item = LabelSelector> + '_> {
    let rule = role.get("aggregationRule").filter(|rule| rule.is_object())?;
    let selectors = rule.get("clusterRoleSelectors").and_then(Value::as_array);
    Some(selectors.into_iter().flatten().map(LabelSelector::from_object))
}

fn matches(selector: &LabelSelector, labels: &LabelSet) -> bool {
    selector.matches_by(|label| labels.get(label))
}

/// Returns the roles that a selector may match, by name; found by an index of labels where possible.
fn candidates(store: &Store, view: &View, selector: &LabelSelector) -> Vec<(Arc<str>, Arc<Stored>)> {
    let owned = |(key, stored): (&Arc<str>, &Arc<Stored>)| (Arc::clone(key), Arc::clone(stored));
    let requirements = selector.requirements().iter();
    let choices: Vec<(&str, &[String])> = requirements
        .filter(|requirement| requirement.operator == LabelOperator::In)
        .map(|requirement| (requirement.key.as_str(), requirement.values.as_slice()))
        .collect();
    if !choices.is_empty()
        && let Some(keys) = store.keys_by_label(view, &CLUSTER_ROLES, &choices)
    {
        return keys.iter().filter_map(|key| view.entry(&CLUSTER_ROLES, key)).map(owned).collect();
    }
    view.range(&CLUSTER_ROLES, None).map(owned).collect()
}

/// The different rules of roles, in the order of the roles.
#[derive(Default)]
pub(crate) struct DistinctRules {
    /// The place of each rule.
    places: HashMap<Value, usize>,
    /// The size of the rules in bytes.
    size: usize,
}

/// The rules of an aggregated role are larger than an object may be.
#[derive(Debug)]
pub(crate) struct RulesTooLarge;

impl DistinctRules {
    /// Adds the rules of a role.
    pub(crate) fn add(&mut self, mut role: Value) -> Result<(), RulesTooLarge> {
        let Some(Value::Array(rules)) = role.get_mut("rules").map(Value::take) else { return Ok(()) };
        for rule in rules {
            let place = self.places.len();
            if !self.places.contains_key(&rule) {
                self.size += serde_json::to_string(&rule).map_or(0, |text| text.len());
                self.places.insert(rule, place);
            }
            if self.size > MAX_STORED {
                return Err(RulesTooLarge);
            }
        }
        Ok(())
    }

    pub(crate) fn into_list(self) -> Value {
        let mut rules: Vec<(Value, usize)> = self.places.into_iter().collect();
        rules.sort_unstable_by_key(|(_, place)| *place);
        rules.into_iter().map(|(rule, _)| rule).collect()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::store::{Draft, Layout, ObjectAttrs, Retention, Write};

    /// Writes a role, or deletes the role.
    fn write(store: &Store, name: &str, role: Option<&Value>) {
        let layout = Layout { api_version: "rbac.authorization.k8s.io/v1".into(), schema: 0 };
        let draft = role.map(|role| Draft::new(role, layout, ObjectAttrs::default(), store.labels()));
        let expected = store.view().get(&CLUSTER_ROLES, name).map(|stored| stored.rv);
        let write = Write { id: &CLUSTER_ROLES, key: name, expected, draft, now: Timestamp::UNIX_EPOCH };
        store.commit_now(write, |_| Ok(())).unwrap();
    }

    fn role(name: &str, label: &str) -> Value {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name, "uid": "u", "labels": {"to": label}},
        })
    }

    fn aggregated(name: &str, label: &str) -> Value {
        let mut role = role(name, "none");
        role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"to": label}}]});
        role
    }

    fn followed(roles: &mut AggregatedRoles, store: &Store) -> Vec<String> {
        roles.follow(store);
        let outdated = roles.outdated();
        outdated.iter().for_each(|key| roles.settled(key));
        outdated.iter().map(|key| (**key).to_owned()).collect()
    }

    #[test]
    fn a_change_concerns_the_aggregated_roles_that_select_the_changed_role() {
        let store = Store::new(0, Retention::default());
        let mut roles = AggregatedRoles::default();
        for number in 0..100 {
            let label = number.to_string();
            write(&store, &format!("sum-{label}"), Some(&aggregated(&format!("sum-{label}"), &label)));
            for part in 0..10 {
                let name = format!("part-{label}-{part}");
                write(&store, &name, Some(&role(&name, &label)));
            }
        }
        assert_eq!(followed(&mut roles, &store).len(), 100, "all are new");
        assert!(followed(&mut roles, &store).is_empty());
        write(&store, "part-7-0", Some(&role("part-7-0", "7")));
        assert_eq!(followed(&mut roles, &store), ["sum-7"]);
        let selected = roles.selected(&store, &store.view(), "sum-7").unwrap();
        assert_eq!(selected.len(), 10);
        assert_eq!(selected[9].value()["metadata"]["name"], "part-7-9");
        let selector = &roles.selectors["sum-7"][0];
        assert_eq!(candidates(&store, &store.view(), selector).len(), 10, "other roles are not looked at");

        write(&store, "part-7-0", Some(&role("part-7-0", "8")));
        assert_eq!(followed(&mut roles, &store), ["sum-7", "sum-8"]);
        write(&store, "part-9-0", None);
        assert_eq!(followed(&mut roles, &store), ["sum-9"]);
        write(&store, "sum-3", Some(&aggregated("sum-3", "4")));
        assert_eq!(followed(&mut roles, &store), ["sum-3"]);
        write(&store, "part-4-0", None);
        assert_eq!(followed(&mut roles, &store), ["sum-3", "sum-4"]);
        write(&store, "sum-4", None);
        write(&store, "part-4-1", None);
        assert_eq!(followed(&mut roles, &store), ["sum-3"]);
        write(&store, "sum-3", Some(&role("sum-3", "none")));
        assert!(followed(&mut roles, &store).is_empty());
        assert!(roles.selected(&store, &store.view(), "sum-3").is_none());
    }

    #[test]
    fn changes_that_the_history_has_lost_are_followed() {
        let store = Store::new(0, Retention::default());
        let mut roles = AggregatedRoles::default();
        write(&store, "sum", Some(&aggregated("sum", "a")));
        assert_eq!(followed(&mut roles, &store), ["sum"]);
        write(&store, "part", Some(&role("part", "a")));
        store.compact();
        assert_eq!(followed(&mut roles, &store), ["sum"]);
    }

    #[test]
    fn rules_are_listed_once_within_the_size_of_an_object() {
        let rule = |verb: &str| json!({"verbs": [verb]});
        let mut rules = DistinctRules::default();
        rules.add(json!({"rules": [rule("b"), rule("a")]})).unwrap();
        rules.add(json!({"rules": [rule("a"), rule("c")]})).unwrap();
        rules.add(json!({"rules": null})).unwrap();
        assert!(rules.add(json!({"rules": [rule(&"x".repeat(MAX_STORED))]})).is_err());
        let mut rules = DistinctRules::default();
        rules.add(json!({"rules": [rule("b"), rule("a"), rule("b")]})).unwrap();
        assert_eq!(rules.into_list(), json!([rule("b"), rule("a")]));
    }
}
