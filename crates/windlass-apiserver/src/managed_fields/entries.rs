//! The entries of `metadata.managedFields`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use windlass_schema::fields::{FieldSet, Managed, Managers};
use windlass_schema::{ErrorList, FieldError, go_json};

use crate::meta;

/// The field of the metadata that holds the entries.
const FIELD: &str = "managedFields";
/// How many managers that update are kept apart; the oldest are merged.
const MAX_UPDATERS: usize = 10;
/// The longest name of a manager, in bytes.
pub(crate) const MAX_NAME: usize = 128;
/// The longest name of a subresource, in bytes.
const MAX_SUBRESOURCE: usize = 256;
/// The manager of merged entries.
const ANCIENT: &str = "ancient-changes";

/// How a manager writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Apply,
    Update,
}

/// The managers of an object, and when each wrote last.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// The fields of each manager, by [`identifier`].
    pub(super) managers: Managers,
    /// The times in RFC 3339; a manager without a time is older than all others.
    pub(super) times: BTreeMap<String, String>,
}

impl Entries {
    /// Parses the entries of an object. Returns `None` for a malformed entry.
    pub(super) fn of(object: &Value) -> Option<Self> {
        let mut entries = Self::default();
        for entry in list(object).into_iter().flatten() {
            let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
            let operation = match text("operation") {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return None,
            };
            let version = text("apiVersion");
            if version.is_empty() || text("fieldsType") != "FieldsV1" {
                return None;
            }
            let fields = match entry.get("fieldsV1") {
                None | Some(Value::Null) => FieldSet::default(),
                Some(fields) => FieldSet::from_v1(fields).ok()?,
            };
            let id = identifier(text("manager"), operation, version, text("subresource"));
            let applied = operation == Operation::Apply;
            entries
                .managers
                .0
                .insert(id.clone(), Managed { fields, api_version: version.to_owned(), applied });
            if let Some(time) = entry.get("time").and_then(Value::as_str) {
                entries.times.insert(id, time.to_owned());
            }
        }
        Some(entries)
    }

    /// Writes the entries into an object; none remove the field.
    pub(super) fn write(self, object: &mut Value) {
        let Self { managers, mut times } = self;
        let mut entries: Vec<Value> =
            managers.0.into_iter().map(|(id, managed)| entry(&id, managed, times.remove(&id))).collect();
        entries.sort_by_cached_key(order);
        meta::set(object, FIELD, (!entries.is_empty()).then_some(Value::Array(entries)));
    }

    /// Merges the oldest managers with the operation Update, until at most [`MAX_UPDATERS`] are left. Only
    /// managers of the same version are merged.
    pub(super) fn merge_oldest(&mut self) {
        let updaters = self.managers.0.iter().filter(|(_, managed)| !managed.applied);
        let mut updaters: Vec<String> = updaters.map(|(id, _)| id.clone()).collect();
        let mut count = updaters.len();
        if count <= MAX_UPDATERS {
            return;
        }
        updaters.sort_by_cached_key(|id| (self.times.get(id).cloned(), id.clone()));
        let mut first_of: BTreeMap<String, String> = BTreeMap::new();
        let mut merged_into: BTreeMap<String, Vec<FieldSet>> = BTreeMap::new();
        for id in updaters {
            if count <= MAX_UPDATERS {
                break;
            }
            let Some(version) = self.managers.0.get(&id).map(|managed| managed.api_version.clone()) else {
                continue;
            };
            let Some(first) = first_of.get(&version) else {
                first_of.insert(version, id);
                continue;
            };
            let bucket = identifier(ANCIENT, Operation::Update, &version, "");
            if !self.managers.0.contains_key(&bucket)
                && let Some(managed) = self.managers.0.remove(first)
            {
                self.managers.0.insert(bucket.clone(), managed);
            }
            let Some(merged) = self.managers.0.remove(&id) else { continue };
            merged_into.entry(bucket.clone()).or_default().push(merged.fields);
            count -= 1;
            if let Some(time) = self.times.get(&id).cloned() {
                self.times.insert(bucket, time);
            }
        }
        for (bucket, merged) in merged_into {
            let Some(managed) = self.managers.0.get_mut(&bucket) else { continue };
            let all: Vec<&FieldSet> = merged.iter().chain([&managed.fields]).collect();
            managed.fields = FieldSet::union_of(&all);
        }
    }
}

/// Returns the entry of a manager.
fn entry(id: &str, managed: Managed, time: Option<String>) -> Value {
    // An identifier is an object by construction.
    let mut entry: Map<String, Value> = serde_json::from_str(id).unwrap_or_default();
    let operation = if managed.applied { "Apply" } else { "Update" };
    entry.insert("operation".into(), operation.into());
    entry.insert("apiVersion".into(), managed.api_version.into());
    if let Some(time) = time {
        entry.insert("time".into(), time.into());
    }
    entry.insert("fieldsType".into(), "FieldsV1".into());
    entry.insert("fieldsV1".into(), managed.fields.into_v1());
    Value::Object(entry)
}

/// Returns the identifier of a manager: a manager has an entry for each operation and subresource, and for
/// each version of an Update. A manager with the operation Apply keeps the entry after a change of version.
pub(super) fn identifier(
    manager: &str,
    operation: Operation,
    api_version: &str,
    subresource: &str,
) -> String {
    // The order of the fields decides the order of managers, and is that of the Go type.
    let mut fields: Vec<String> = Vec::new();
    let mut add = |field: &str, value: &str| {
        if !value.is_empty() {
            fields.push(format!("\"{field}\":{}", go_json(&value.into())));
        }
    };
    add("manager", manager);
    match operation {
        Operation::Apply => add("operation", "Apply"),
        Operation::Update => {
            add("operation", "Update");
            add("apiVersion", api_version);
        }
    }
    add("subresource", subresource);
    format!("{{{}}}", fields.join(","))
}

/// Returns the unchanged entries of an object.
pub(super) fn list(object: &Value) -> Option<&Vec<Value>> {
    object.get("metadata")?.get(FIELD)?.as_array()
}

/// Returns whether the name of a manager may have a character: of whitespace, only the space.
pub(crate) fn is_printable(character: char) -> bool {
    character == ' ' || !character.is_control() && !character.is_whitespace()
}

/// Validates the name of a manager at a path.
pub(crate) fn problems_of_name(path: &str, name: &str) -> Vec<FieldError> {
    let mut errors = ErrorList::new();
    if name.len() > MAX_NAME {
        errors.push(FieldError::too_long(path, MAX_NAME));
    }
    for (at, character) in name.char_indices().filter(|(_, character)| !is_printable(*character)) {
        let why = format!("invalid character U+{:04X} (at position {at})", u32::from(character));
        errors.push(FieldError::invalid(path, name, why));
    }
    errors.into_vec()
}

/// Validates the names in the entries of an object.
pub(crate) fn problems(object: &Value) -> Vec<FieldError> {
    let mut errors = ErrorList::new();
    for (index, entry) in list(object).into_iter().flatten().enumerate() {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        let (manager, subresource) = (text("manager"), text("subresource"));
        // Almost all are short and plain.
        if manager.len() > MAX_NAME || !manager.bytes().all(|byte| byte.is_ascii_graphic()) {
            errors.extend(problems_of_name(&format!("metadata.managedFields[{index}].manager"), manager));
        }
        if subresource.len() > MAX_SUBRESOURCE {
            let path = format!("metadata.managedFields[{index}].subresource");
            errors.push(FieldError::too_long(path, MAX_SUBRESOURCE));
        }
    }
    errors.into_vec()
}

/// Returns whether a client asks to drop all entries: with an empty list, or with a list of one empty entry.
pub(crate) fn is_reset(object: &Value) -> bool {
    match list(object).map(Vec::as_slice) {
        Some([]) => true,
        Some([entry]) => entry.as_object().is_some_and(|fields| fields.values().all(is_zero)),
        _ => false,
    }
}

/// Writes into an object that all entries are to be dropped.
pub(crate) fn reset(object: &mut Value) {
    meta::set(object, FIELD, Some(Value::Array(Vec::new())));
}

fn is_zero(value: &Value) -> bool {
    *value == Value::Null || *value == json!("")
}

/// Removes the entries from an object.
pub(super) fn remove(object: &mut Value) {
    meta::set(object, FIELD, None);
}

/// Gives `new` the entries of `old` unchanged.
pub(super) fn keep(new: &mut Value, old: Option<&Value>) {
    meta::set(new, FIELD, old.and_then(list).map(|entries| Value::Array(entries.clone())));
}

/// Entries are sorted by operation, time, manager, version and subresource.
fn order(entry: &Value) -> [String; 5] {
    ["operation", "time", "manager", "apiVersion", "subresource"]
        .map(|field| entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned())
}

/// Gives the entries of `new` the times of the entries of `old`, if the objects are otherwise equal: a write
/// without a changed field is not a write.
pub(crate) fn restore_times(new: &mut Value, old: &Value) {
    let (Some(entries), Some(former)) = (list(new), list(old)) else { return };
    if entries.len() != former.len() || entries == former {
        return;
    }
    let same = |entry: &Value, former: &Value| {
        let fields = |entry: &'_ Value| {
            entry.as_object().map_or(0, |fields| fields.len() - usize::from(fields.contains_key("time")))
        };
        let of_former =
            |(field, value): (&String, &Value)| field == "time" || former.get(field) == Some(value);
        fields(entry) == fields(former) && entry.as_object().is_some_and(|entry| entry.iter().all(of_former))
    };
    if entries.iter().zip(former).all(|(entry, former)| same(entry, former)) && same_but_entries(new, old) {
        meta::copy(new, old, FIELD);
    }
}

fn same_but_entries(new: &Value, old: &Value) -> bool {
    let equal = |new: &Map<String, Value>, old: &Map<String, Value>, but: &str| {
        new.len() == old.len()
            && new.iter().all(|(field, value)| field == but || old.get(field) == Some(value))
            && new.contains_key(but) == old.contains_key(but)
    };
    let (Some(fields), Some(former)) = (new.as_object(), old.as_object()) else { return false };
    fn metadata(fields: &Map<String, Value>) -> Option<&Map<String, Value>> {
        fields.get("metadata").and_then(Value::as_object)
    }
    let (Some(metadata), Some(former_metadata)) = (metadata(fields), metadata(former)) else { return false };
    equal(fields, former, "metadata") && equal(metadata, former_metadata, FIELD)
}
