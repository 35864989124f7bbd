//! Changes of CustomResourceDefinitions that break clients or objects that are stored.
//!
//! ```
//! use windlass_codegen::{compatibility::breaking_changes, manifests::documents};
//!
//! let crd = |maximum: u32| documents(&format!(r#"
//! kind: CustomResourceDefinition
//! metadata: {{ name: bars.example.com }}
//! spec:
//!   versions:
//!   - name: v1
//!     served: true
//!     storage: true
//!     schema:
//!       openAPIV3Schema: {{ type: object, properties: {{ size: {{ type: integer, maximum: {maximum} }} }} }}
//! "#)).unwrap();
//! let changes = breaking_changes(&crd(10), &crd(5));
//! assert_eq!(changes[0].to_string(), "bars.example.com v1 .size: maximum was 10 and is 5");
//! assert!(breaking_changes(&crd(5), &crd(10)).is_empty());
//! ```

mod schema;

use std::fmt;

use serde_json::Value;

/// A change that breaks clients or stored objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct BreakingChange {
    /// The name of the CustomResourceDefinition.
    pub crd: String,
    /// The version, for a change in a single version.
    pub version: Option<String>,
    /// The path of the field, such as `.spec.replicas`, if the change is in the schema.
    pub path: String,
    /// What changed.
    pub what: String,
}

impl fmt::Display for BreakingChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.crd)?;
        if let Some(version) = &self.version {
            write!(f, " {version}")?;
        }
        if !self.path.is_empty() {
            write!(f, " {}", self.path)?;
        }
        write!(f, ": {}", self.what)
    }
}

/// Compares the definitions of a release with newer definitions, and returns the changes that break clients
/// or stored objects, sorted.
///
/// Breaking changes are: a kind, a served or stored version, a field, a subresource or a selectable field
/// that is gone; another scope or other names; a rule of a schema that is new or tighter; a field that is
/// newly required and has no default. Objects that are no definitions are ignored.
pub fn breaking_changes(old: &[Value], new: &[Value]) -> Vec<BreakingChange> {
    let mut changes = Vec::new();
    for before in old.iter().filter(|object| is_definition(object)) {
        let name = text(&before["metadata"]["name"]);
        let after =
            new.iter().find(|object| is_definition(object) && text(&object["metadata"]["name"]) == name);
        let mut found = Found { crd: name, version: None, changes: &mut changes };
        match after {
            Some(after) => definition(&before["spec"], &after["spec"], &mut found),
            None => found.add("", "the kind is gone"),
        }
    }
    changes.sort();
    changes.dedup();
    changes
}

fn is_definition(object: &Value) -> bool {
    object["kind"] == "CustomResourceDefinition"
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Where changes are collected.
struct Found<'a> {
    crd: &'a str,
    version: Option<&'a str>,
    changes: &'a mut Vec<BreakingChange>,
}

impl Found<'_> {
    fn add(&mut self, path: &str, what: impl Into<String>) {
        self.changes.push(BreakingChange {
            crd: self.crd.to_owned(),
            version: self.version.map(ToOwned::to_owned),
            path: path.to_owned(),
            what: what.into(),
        });
    }
}

fn definition<'a>(before: &'a Value, after: &Value, found: &mut Found<'a>) {
    let fixed = [
        ("scope", &before["scope"], &after["scope"]),
        ("kind", &before["names"]["kind"], &after["names"]["kind"]),
        ("plural name", &before["names"]["plural"], &after["names"]["plural"]),
        ("singular name", &before["names"]["singular"], &after["names"]["singular"]),
        ("list kind", &before["names"]["listKind"], &after["names"]["listKind"]),
    ];
    for (what, before, after) in fixed {
        if !before.is_null() && !after.is_null() && before != after {
            found.add("", format!("the {what} was {} and is {}", text(before), text(after)));
        }
    }
    lost_names("short name", &before["names"]["shortNames"], &after["names"]["shortNames"], found);
    for version in items(&before["versions"]) {
        let name = text(&version["name"]);
        found.version = Some(name);
        match items(&after["versions"]).find(|other| text(&other["name"]) == name) {
            Some(after) => version_changes(version, after, found),
            None => lost_version(version, found),
        }
        found.version = None;
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn lost_names(what: &str, before: &Value, after: &Value, found: &mut Found<'_>) {
    for name in items(before).filter(|name| !items(after).any(|other| other == *name)) {
        found.add("", format!("the {what} {} is gone", text(name)));
    }
}

fn lost_version(version: &Value, found: &mut Found<'_>) {
    if version["storage"] == true {
        found.add("", "the version is gone, and objects are stored in it: migrate them, and drop it from status.storedVersions, before");
    } else if version["served"] == true {
        found.add("", "the version is gone, and clients may use it: stop to serve it in a release before");
    }
}

fn version_changes(before: &Value, after: &Value, found: &mut Found<'_>) {
    if before["served"] == true && after["served"] == false {
        found.add("", "the version is not served any more");
    }
    for subresource in ["status", "scale"] {
        if !before["subresources"][subresource].is_null() && after["subresources"][subresource].is_null() {
            found.add("", format!("the subresource {subresource} is gone"));
        }
    }
    if before["subresources"]["status"].is_null() && !after["subresources"]["status"].is_null() {
        found.add("", "the subresource status is new: writes of whole objects leave out the status");
    }
    for field in items(&before["selectableFields"]) {
        if !items(&after["selectableFields"]).any(|other| other["jsonPath"] == field["jsonPath"]) {
            found.add("", format!("the field selector {} is gone", text(&field["jsonPath"])));
        }
    }
    let schema = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
    schema::compare(&schema(before), &schema(after), "", found);
}

#[cfg(test)]
mod tests;
