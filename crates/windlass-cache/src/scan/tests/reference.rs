//! The reference for the scan: the same results by `serde_json`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use serde_json::{Map, Value};

use crate::{RawObject, scan::transform::Segment};

/// The indexed parts of an object.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    texts: Vec<String>,
    generation: i64,
    labels: BTreeMap<String, String>,
    owners: Vec<(String, String, String, String, bool, bool)>,
    finalizers: Vec<String>,
}

impl Seen {
    pub(super) fn of(object: &RawObject) -> Self {
        let own = |text: &str| text.to_owned();
        Self {
            texts: vec![
                own(object.name()),
                own(object.namespace().unwrap_or_default()),
                own(object.uid()),
                own(object.resource_version()),
                own(object.creation_timestamp().unwrap_or_default()),
                own(object.deletion_timestamp().unwrap_or_default()),
            ],
            generation: object.generation(),
            labels: object.labels().map(|(key, value)| (own(key), own(value))).collect(),
            owners: object
                .owner_references()
                .map(|owner| {
                    let [api_version, kind, name, uid] =
                        [owner.api_version, owner.kind, owner.name, owner.uid].map(own);
                    (api_version, kind, name, uid, owner.controller, owner.block_owner_deletion)
                })
                .collect(),
            finalizers: object.finalizers().map(own).collect(),
        }
    }

    /// Reads the fields of a value; `None` if the value is not an object of Kubernetes.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let empty = Map::new();
        let metadata = match value.as_object()?.get("metadata") {
            None | Some(Value::Null) => &empty,
            Some(metadata) => metadata.as_object()?,
        };
        let text = |field: &str| text(metadata.get(field));
        let texts = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"]
            .into_iter()
            .map(text)
            .collect::<Option<Vec<_>>>()?;
        if texts[0].is_empty() {
            return None;
        }
        map(metadata.get("annotations"))?;
        let labels = map(metadata.get("labels"))?
            .into_iter()
            .flatten()
            .map(|(key, value)| Some((key.clone(), self::text(Some(value))?)))
            .collect::<Option<_>>()?;
        let owners = array(metadata.get("ownerReferences"))?.iter().map(owner).collect::<Option<_>>()?;
        let finalizers = array(metadata.get("finalizers"))?;
        let finalizers = finalizers.iter().map(|value| self::text(Some(value))).collect::<Option<_>>()?;
        let generation = match metadata.get("generation") {
            None | Some(Value::Null) => 0,
            Some(value) => value.as_i64()?,
        };
        Some(Self { texts, generation, labels, owners, finalizers })
    }
}

fn owner(value: &Value) -> Option<(String, String, String, String, bool, bool)> {
    let owner = value.as_object()?;
    let text = |field: &str| text(owner.get(field));
    let flag = |field: &str| match owner.get(field) {
        None | Some(Value::Null) => Some(false),
        Some(value) => value.as_bool(),
    };
    let strings = (text("apiVersion")?, text("kind")?, text("name")?, text("uid")?);
    Some((strings.0, strings.1, strings.2, strings.3, flag("controller")?, flag("blockOwnerDeletion")?))
}

fn text(value: Option<&Value>) -> Option<String> {
    match value {
        None | Some(Value::Null) => Some(String::new()),
        Some(value) => Some(value.as_str()?.to_owned()),
    }
}

#[expect(clippy::option_option, reason = "wrong, absent, or there")]
fn map(value: Option<&Value>) -> Option<Option<&Map<String, Value>>> {
    match value {
        None | Some(Value::Null) => Some(None),
        Some(value) => Some(Some(value.as_object()?)),
    }
}

fn array(value: Option<&Value>) -> Option<&[Value]> {
    match value {
        None | Some(Value::Null) => Some(&[]),
        Some(value) => Some(value.as_array()?),
    }
}

/// Removes the fields at a path from a value.
pub(super) fn without(value: &mut Value, path: &[Segment]) {
    let Some((first, rest)) = path.split_first() else { return };
    match (first, value) {
        (Segment::Member(name), Value::Object(members)) => {
            if rest.is_empty() {
                members.remove(&**name);
            } else if let Some(member) = members.get_mut(&**name) {
                without(member, rest);
            }
        }
        (Segment::AnyMember, Value::Object(members)) => {
            if rest.is_empty() {
                members.clear();
            } else {
                members.values_mut().for_each(|member| without(member, rest));
            }
        }
        (Segment::Elements, Value::Array(elements)) => {
            elements.iter_mut().for_each(|element| without(element, rest));
        }
        _ => {}
    }
}

/// Returns whether an object in the JSON has two members of the same name.
pub(super) fn has_duplicates(json: &[u8]) -> bool {
    serde_json::from_slice::<Duplicates>(json).is_ok_and(|duplicates| duplicates.0)
}

struct Duplicates(bool);

impl<'de> Deserialize<'de> for Duplicates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Duplicates;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Duplicates, A::Error> {
        let (mut seen, mut found) = (BTreeSet::new(), false);
        while let Some((name, inner)) = map.next_entry::<String, Duplicates>()? {
            found |= inner.0 | !seen.insert(name);
        }
        Ok(Duplicates(found))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Duplicates, A::Error> {
        let mut found = false;
        while let Some(inner) = elements.next_element::<Duplicates>()? {
            found |= inner.0;
        }
        Ok(Duplicates(found))
    }

    fn visit_unit<E>(self) -> Result<Duplicates, E> {
        Ok(Duplicates(false))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Duplicates, E> {
        Ok(Duplicates(false))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Duplicates, E> {
        Ok(Duplicates(false))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Duplicates, E> {
        Ok(Duplicates(false))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Duplicates, E> {
        Ok(Duplicates(false))
    }

    fn visit_str<E>(self, _: &str) -> Result<Duplicates, E> {
        Ok(Duplicates(false))
    }
}
