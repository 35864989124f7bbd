//! The last applies of a controller. An apply of the same configuration is not sent again.

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hash, Hasher, RandomState},
};

use parking_lot::Mutex;
use serde_json::Value;
use windlass_cache::{ObjectKey, RawObject};

use crate::resource_path::GroupResource;

/// The number of applies that are remembered at least; twice as many at most. An entry takes about 200 bytes.
const REMEMBERED: usize = 32_768;

/// The last applies, by object and subresource. The number of remembered applies is bounded.
#[derive(Default)]
pub(crate) struct LastApplies {
    generations: Mutex<Generations>,
    /// The seed of the hashes: the author of an object cannot prepare two bodies with equal hashes.
    hasher: RandomState,
}

/// Two maps: a full young map becomes the old map, and the old map is forgotten.
#[derive(Default)]
struct Generations {
    young: HashMap<Slot, LastApplied>,
    old: HashMap<Slot, LastApplied>,
}

/// An object or a subresource.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Slot {
    /// The field manager that applies. Controllers of one manager own the same fields.
    pub(crate) field_manager: String,
    pub(crate) resource: GroupResource,
    pub(crate) key: ObjectKey,
    pub(crate) subresource: String,
}

/// An apply, and the resulting object.
#[derive(Clone, Debug)]
pub(crate) struct LastApplied {
    /// The hash of the applied body.
    body: u64,
    uid: String,
    resource_version: String,
    /// The hash of the part of the object that the apply may change.
    content: u64,
}

/// The part of an object that an apply may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but the status.
    Main,
    Status,
}

impl Part {
    /// Returns the part that an apply of a subresource may change; `None` if the subresource is not the
    /// object.
    pub(crate) fn of(subresource: &str) -> Option<Self> {
        match subresource {
            "" => Some(Self::Main),
            "status" => Some(Self::Status),
            _ => None,
        }
    }
}

impl LastApplies {
    /// Returns the hash of a body.
    pub(crate) fn hash(&self, value: &Value) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        write(value, &mut hasher);
        hasher.finish()
    }

    /// Returns the hash of the part of an object that an apply may change.
    fn hash_of_part(&self, part: Part, object: &Value) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        match part {
            Part::Status => write(&object["status"], &mut hasher),
            Part::Main => {
                for (name, value) in sorted(object) {
                    match name.as_str() {
                        // Items of a list have neither API version nor kind.
                        "status" | "apiVersion" | "kind" => {}
                        "metadata" => {
                            let owned_by_server =
                                |name: &str| matches!(name, "resourceVersion" | "managedFields");
                            for (name, value) in sorted(value).filter(|(name, _)| !owned_by_server(name)) {
                                name.hash(&mut hasher);
                                write(value, &mut hasher);
                            }
                        }
                        _ => {
                            name.hash(&mut hasher);
                            write(value, &mut hasher);
                        }
                    }
                }
            }
        }
        hasher.finish()
    }

    /// Returns whether the last apply had this body, and the applied part of the object has not changed
    /// since.
    pub(crate) fn is_current(&self, slot: &Slot, body: u64, part: Part, now: &RawObject) -> bool {
        let Some(last) = self.get(slot) else { return false };
        if last.body != body || last.uid != now.uid() {
            return false;
        }
        if last.resource_version == now.resource_version() {
            return true;
        }
        let Ok(object) = serde_json::from_slice(&now.json()) else { return false };
        if last.content != self.hash_of_part(part, &object) {
            return false;
        }
        self.remember(
            slot.clone(),
            Some(LastApplied { resource_version: now.resource_version().to_owned(), ..last }),
        );
        true
    }

    /// Returns an entry, and makes the entry young again.
    fn get(&self, slot: &Slot) -> Option<LastApplied> {
        let mut generations = self.generations.lock();
        if let Some(found) = generations.young.get(slot) {
            return Some(found.clone());
        }
        let (slot, found) = generations.old.remove_entry(slot)?;
        generations.insert(slot, found.clone());
        Some(found)
    }

    /// Remembers an apply. If two applies were answered at the same time, the apply that the server carried
    /// out last counts.
    pub(crate) fn remember(&self, slot: Slot, applied: Option<LastApplied>) {
        let Some(applied) = applied else { return };
        let mut generations = self.generations.lock();
        let is_newer = |known: &LastApplied| {
            known.uid == applied.uid
                && revision(&known.resource_version) > revision(&applied.resource_version)
        };
        let known = generations.young.get(&slot).or_else(|| generations.old.get(&slot));
        if !known.is_some_and(is_newer) {
            generations.insert(slot, applied);
        }
    }

    pub(crate) fn forget(&self, slot: &Slot) {
        let mut generations = self.generations.lock();
        generations.young.remove(slot);
        generations.old.remove(slot);
    }
}

impl Generations {
    fn insert(&mut self, slot: Slot, applied: LastApplied) {
        if self.young.len() >= REMEMBERED && !self.young.contains_key(&slot) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(slot, applied);
    }
}

impl LastApplied {
    /// Reads the response to an apply. `None` for a response without an object.
    pub(crate) fn of(response: &[u8], body: u64, part: Part, applies: &LastApplies) -> Option<Self> {
        let object: Value = serde_json::from_slice(response).ok()?;
        let text = |name: &str| Some(object["metadata"][name].as_str()?.to_owned());
        let (uid, resource_version) = (text("uid")?, text("resourceVersion")?);
        Some(Self { body, uid, resource_version, content: applies.hash_of_part(part, &object) })
    }
}

fn revision(resource_version: &str) -> u64 {
    resource_version.parse().unwrap_or(0)
}

/// Returns the members of an object, sorted by name.
fn sorted(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let mut members: Vec<_> = value.as_object().into_iter().flatten().collect();
    members.sort_by_key(|(name, _)| *name);
    members.into_iter()
}

fn write(value: &Value, to: &mut impl Hasher) {
    match value {
        Value::Null => to.write_u8(0),
        Value::Bool(value) => (1_u8, value).hash(to),
        Value::Number(number) => (2_u8, number).hash(to),
        Value::String(text) => (3_u8, text).hash(to),
        Value::Array(items) => {
            (4_u8, items.len()).hash(to);
            items.iter().for_each(|item| write(item, to));
        }
        Value::Object(members) => {
            (5_u8, members.len()).hash(to);
            for (name, value) in sorted(value) {
                name.hash(to);
                write(value, to);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn slot(name: &str) -> Slot {
        let resource = GroupResource { group: String::new(), resource: "configmaps".to_owned() };
        let key = ObjectKey::namespaced("default", name);
        Slot { field_manager: "m".to_owned(), resource, key, subresource: String::new() }
    }

    fn object(uid: &str, version: u64, data: &str, phase: &str) -> Value {
        json!({ "metadata": { "name": "a", "namespace": "default", "uid": uid, "resourceVersion": version.to_string() },
            "data": { "k": data }, "status": { "phase": phase } })
    }

    fn raw(object: &Value) -> RawObject {
        RawObject::from_json(object.to_string().as_bytes()).unwrap()
    }

    struct Tried(LastApplies);

    impl Tried {
        fn applied(&self, part: Part, response: &Value) {
            let applied = LastApplied::of(response.to_string().as_bytes(), 1, part, &self.0);
            self.0.remember(slot("a"), applied);
        }

        fn is_current(&self, body: u64, part: Part, now: &Value) -> bool {
            self.0.is_current(&slot("a"), body, part, &raw(now))
        }
    }

    #[test]
    fn the_same_is_not_sent_to_an_object_that_did_not_change() {
        let tried = Tried(LastApplies::default());
        let main = Part::Main;
        assert!(!tried.is_current(1, main, &object("u", 5, "x", "")), "never applied");
        tried.applied(main, &object("u", 5, "x", ""));
        assert!(tried.is_current(1, main, &object("u", 5, "x", "")));
        assert!(!tried.is_current(2, main, &object("u", 5, "x", "")), "another body");
        assert!(!tried.is_current(1, main, &object("v", 5, "x", "")), "replaced");
        assert!(!tried.is_current(1, main, &object("u", 6, "y", "")), "changed");
        assert!(tried.is_current(1, main, &object("u", 7, "x", "Ready")), "its status changed");
        assert!(tried.is_current(1, main, &object("u", 7, "x", "Ready")));
        tried.0.forget(&slot("a"));
        assert!(!tried.is_current(1, main, &object("u", 7, "x", "Ready")));
    }

    #[test]
    fn only_the_status_counts_for_the_status() {
        let tried = Tried(LastApplies::default());
        tried.applied(Part::Status, &object("u", 5, "x", "Ready"));
        assert!(tried.is_current(1, Part::Status, &object("u", 6, "y", "Ready")));
        assert!(!tried.is_current(1, Part::Status, &object("u", 7, "y", "Gone")));
    }

    #[test]
    fn of_two_answers_the_newer_counts_in_whatever_order_they_come() {
        let tried = Tried(LastApplies::default());
        tried.applied(Part::Main, &object("u", 10, "x", ""));
        let older = LastApplied::of(object("u", 9, "y", "").to_string().as_bytes(), 2, Part::Main, &tried.0);
        tried.0.remember(slot("a"), older);
        assert!(tried.is_current(1, Part::Main, &object("u", 10, "x", "")));
    }

    #[test]
    fn the_order_of_members_does_not_count_and_that_of_items_does() {
        let applies = LastApplies::default();
        let hash = |text: &str| applies.hash(&serde_json::from_str(text).unwrap());
        assert_eq!(hash(r#"{"a": 1, "b": {"c": 2, "d": 3}}"#), hash(r#"{"b": {"d": 3, "c": 2}, "a": 1}"#));
        assert_ne!(hash("[1, 2]"), hash("[2, 1]"));
        assert_ne!(hash(r#"{"a": [1]}"#), hash(r#"{"a": 1}"#));
    }

    #[test]
    fn memory_is_bounded_and_what_is_used_stays() {
        let applies = LastApplies::default();
        let applied =
            LastApplied::of(object("u", 5, "x", "").to_string().as_bytes(), 1, Part::Main, &applies);
        applies.remember(slot("used"), applied.clone());
        for n in 0..5 * REMEMBERED {
            applies.remember(slot(&format!("n{n}")), applied.clone());
            if n % 1000 == 0 {
                assert!(applies.get(&slot("used")).is_some(), "{n}");
            }
        }
        let generations = applies.generations.lock();
        assert!(generations.young.len() + generations.old.len() <= 2 * REMEMBERED);
    }
}
