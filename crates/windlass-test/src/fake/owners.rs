//! The owner of each field of an object.

use std::collections::{BTreeMap, BTreeSet};

use kube_core::response::{Status, StatusCause, StatusDetails};
use serde_json::Value;

use super::{patch::list_key, status::failure};

/// The path of a field, in the server's form: `.spec.containers[name="main"].image`.
pub(super) type FieldPath = Vec<Step>;

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Member(String),
    /// The item of a list with this value in the member of this name.
    Item(&'static str, String),
}

/// The field managers of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Owners {
    managers: BTreeMap<Manager, BTreeSet<FieldPath>>,
}

/// A field manager. An Apply manager and an Update manager of the same name are distinct.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Manager {
    pub(super) name: String,
    pub(super) subresource: Option<String>,
    pub(super) applies: bool,
}

/// The fields of `metadata` that have no owner.
const IDENTITY: [&str; 10] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
];

impl Owners {
    /// Makes a manager the owner of the fields of a configuration. Returns the fields that the manager
    /// applied before, leaves out now and does not share with another manager, in the order of the
    /// [removal](remove): the key of an item of a list is the last field of the item.
    ///
    /// # Errors
    /// Without force: another manager owns a field with another value.
    pub(super) fn apply(
        &mut self,
        manager: &Manager,
        configuration: &Value,
        live: &Value,
        force: bool,
    ) -> Result<Vec<FieldPath>, Box<Status>> {
        let (wanted, live) = (leaves(configuration), leaves(live));
        let wanted: BTreeMap<_, _> = wanted.into_iter().filter(|(path, _)| manager.may_write(path)).collect();
        let mut conflicts = Vec::new();
        for (other, fields) in self.managers.iter_mut().filter(|(other, _)| *other != manager) {
            let differs = |path: &FieldPath| {
                wanted.get(path).is_some_and(|value| live.get(path).is_some_and(|live| live != value))
            };
            let of_other: Vec<_> = fields.iter().filter(|path| differs(path)).cloned().collect();
            for path in of_other {
                fields.remove(&path);
                conflicts.push((other.clone(), path));
            }
        }
        if !force && !conflicts.is_empty() {
            return Err(conflict(&conflicts));
        }
        let wanted: BTreeSet<FieldPath> = wanted.into_keys().collect();
        let before = self.managers.insert(manager.clone(), wanted.clone()).unwrap_or_default();
        let of_others = |path: &FieldPath| {
            self.managers.iter().any(|(other, fields)| other != manager && fields.contains(path))
        };
        let dropped = before.into_iter().filter(|path| !wanted.contains(path) && !of_others(path));
        let (mut keys, mut dropped): (Vec<_>, Vec<_>) = dropped.partition(|path| is_item_key(path));
        // The key of an item is in the way to the keys of the item's own lists.
        keys.sort_by_key(|path| std::cmp::Reverse(path.len()));
        dropped.append(&mut keys);
        Ok(dropped)
    }

    /// Makes a manager the owner of the fields that a write changed, and forgets removed fields.
    pub(super) fn written(&mut self, manager: &Manager, old: &Value, new: &Value) {
        let (old, new) = (leaves(old), leaves(new));
        let changed: BTreeSet<FieldPath> = new
            .iter()
            .filter(|(path, value)| old.get(*path) != Some(value))
            .map(|(path, _)| path.clone())
            .collect();
        for fields in self.managers.values_mut() {
            fields.retain(|path| new.contains_key(path) && !changed.contains(path));
        }
        if !changed.is_empty() {
            self.managers.entry(manager.clone()).or_default().extend(changed);
        }
        self.managers.retain(|_, fields| !fields.is_empty());
    }
}

impl Manager {
    /// Returns whether the manager's requests can change a field.
    fn may_write(&self, path: &FieldPath) -> bool {
        let is_status = matches!(path.first(), Some(Step::Member(name)) if name == "status");
        match self.subresource.as_deref() {
            None => !is_status,
            Some("status") => is_status,
            Some("scale") => path.as_slice() == [Step::member("spec"), Step::member("replicas")],
            Some(_) => true,
        }
    }

    fn print(&self) -> String {
        let subresource =
            self.subresource.as_ref().map_or_else(String::new, |name| format!(" with subresource {name:?}"));
        let update = if self.applies { "" } else { " using an update" };
        format!("{:?}{subresource}{update}", self.name)
    }
}

impl Step {
    fn member(name: &str) -> Self {
        Self::Member(name.to_owned())
    }
}

/// Returns whether a field is the key of an item of a list.
fn is_item_key(path: &[Step]) -> bool {
    matches!(path, [.., Step::Item(key, _), Step::Member(name)] if name == key)
}

/// Removes a field, and parents that are empty without the field. The key of an item stays while the item has other fields.
pub(super) fn remove(object: &mut Value, path: &[Step]) {
    let Some((step, rest)) = path.split_first() else { return };
    match (step, object) {
        (Step::Member(name), Value::Object(members)) => {
            let Some(member) = members.get_mut(name) else { return };
            remove(member, rest);
            if rest.is_empty() || is_empty(member) {
                members.remove(name);
            }
        }
        (Step::Item(key, value), Value::Array(items)) => {
            let Some(place) = items.iter().position(|item| text(&item[*key]) == *value) else { return };
            let has_other_fields = items[place].as_object().is_some_and(|fields| fields.len() > 1);
            if has_other_fields && matches!(rest, [Step::Member(name)] if name == key) {
                return;
            }
            remove(&mut items[place], rest);
            if rest.is_empty() || is_empty(&items[place]) {
                items.remove(place);
            }
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

/// Returns the fields of an object that can be owned, with values.
fn leaves(object: &Value) -> BTreeMap<FieldPath, &Value> {
    let mut found = BTreeMap::new();
    let mut path = Vec::new();
    for (name, value) in object.as_object().into_iter().flatten() {
        match name.as_str() {
            "apiVersion" | "kind" => continue,
            "metadata" => {
                path.push(Step::member(name));
                let fields = value.as_object().into_iter().flatten();
                for (name, value) in fields.filter(|(name, _)| !IDENTITY.contains(&name.as_str())) {
                    path.push(Step::member(name));
                    walk(value, &mut path, &mut found);
                    path.pop();
                }
            }
            _ => {
                path.push(Step::member(name));
                walk(value, &mut path, &mut found);
            }
        }
        path.pop();
    }
    found
}

fn walk<'v>(value: &'v Value, path: &mut FieldPath, found: &mut BTreeMap<FieldPath, &'v Value>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                path.push(Step::member(name));
                walk(value, path, found);
                path.pop();
            }
        }
        Value::Array(items) => {
            let Some(key) = list_key(items.iter()) else {
                found.insert(path.clone(), value);
                return;
            };
            for item in items {
                path.push(Step::Item(key, text(&item[key])));
                walk(item, path, found);
                path.pop();
            }
        }
        _ => drop(found.insert(path.clone(), value)),
    }
}

/// Returns the value of a list key, in the server's form.
fn text(value: &Value) -> String {
    value.to_string()
}

fn print(path: &[Step]) -> String {
    let step = |step: &Step| match step {
        Step::Member(name) => format!(".{name}"),
        Step::Item(key, value) => format!("[{key}={value}]"),
    };
    path.iter().map(step).collect()
}

/// Returns 409: other managers own fields of the configuration.
fn conflict(conflicts: &[(Manager, FieldPath)]) -> Box<Status> {
    let message = if let [(manager, path)] = conflicts {
        format!("Apply failed with 1 conflict: conflict with {}: {}", manager.print(), print(path))
    } else {
        let mut lines = Vec::new();
        let mut last = None;
        for (manager, path) in conflicts {
            if last != Some(manager) {
                lines.push(format!("conflicts with {}:", manager.print()));
                last = Some(manager);
            }
            lines.push(format!("- {}", print(path)));
        }
        format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
    };
    let cause = |(manager, path): &(Manager, FieldPath)| StatusCause {
        reason: "FieldManagerConflict".to_owned(),
        message: format!("conflict with {}", manager.print()),
        field: print(path),
    };
    let details = StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: conflicts.iter().map(cause).collect(),
        retry_after_seconds: 0,
    };
    Box::new(failure(409, "Conflict", message).with_details(details))
}
