//! The fields that a server-side apply may not change.

use std::{collections::BTreeMap, fmt};

use kube_core::response::{Status, StatusCause};

use super::Error;

/// A field of another field manager that a server-side apply without force would change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldConflict {
    /// The path of the field, such as `.spec.replicas`.
    pub field: String,
    /// The name of the owning field manager.
    pub manager: String,
    /// The subresource of the manager's write.
    pub subresource: Option<String>,
    /// True if the manager owns the field by an apply. Otherwise, the manager set the field by an update or a
    /// non-apply patch.
    pub applied: bool,
}

impl Error {
    /// Returns the fields that made a server-side apply without force fail, with the owners. Empty for any
    /// other error.
    ///
    /// ```
    /// # use windlass_runtime::Error;
    /// fn owners(error: &Error) -> Vec<String> {
    ///     error.field_conflicts().into_iter().map(|conflict| conflict.manager).collect()
    /// }
    /// ```
    pub fn field_conflicts(&self) -> Vec<FieldConflict> {
        self.status().map(field_conflicts).unwrap_or_default()
    }

    /// Returns whether a server-side apply failed because another manager owns a field. A retry without force
    /// fails in the same way.
    pub fn is_field_conflict(&self) -> bool {
        self.is_conflict() && !self.field_conflicts().is_empty()
    }
}

pub(super) fn field_conflicts(status: &Status) -> Vec<FieldConflict> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.filter(|cause| cause.reason == "FieldManagerConflict").map(FieldConflict::of).collect()
}

impl FieldConflict {
    /// Reads the server's words: `conflict with "kubectl" with subresource "status" using v1 at 2026-01-01T00:00:00Z`.
    fn of(cause: &StatusCause) -> Self {
        let mut rest = cause.message.strip_prefix("conflict with ").unwrap_or(&cause.message);
        let manager = quoted(&mut rest).unwrap_or_else(|| rest.to_owned());
        let subresource = match rest.strip_prefix(" with subresource ") {
            Some(after) => {
                rest = after;
                quoted(&mut rest)
            }
            None => None,
        };
        let applied = !rest.starts_with(" using ");
        Self { field: cause.field.clone(), manager, subresource, applied }
    }
}

/// Takes a string in Go's quotes from the front of a text.
fn quoted(text: &mut &str) -> Option<String> {
    let inner = text.strip_prefix('"')?;
    let mut escaped = false;
    let end = inner.char_indices().find_map(|(place, c)| match c {
        _ if escaped => {
            escaped = false;
            None
        }
        '\\' => {
            escaped = true;
            None
        }
        '"' => Some(place),
        _ => None,
    })?;
    let (name, rest) = (&inner[..end], &inner[end + 1..]);
    *text = rest;
    Some(name.replace("\\\"", "\"").replace("\\\\", "\\"))
}

/// Prints conflicts in one line, by owner.
pub(super) fn print(conflicts: &[FieldConflict], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut by_owner: BTreeMap<(&str, Option<&str>), Vec<&str>> = BTreeMap::new();
    for conflict in conflicts {
        let owner = (conflict.manager.as_str(), conflict.subresource.as_deref());
        by_owner.entry(owner).or_default().push(&conflict.field);
    }
    for (place, ((manager, subresource), fields)) in by_owner.iter().enumerate() {
        let separator = if place == 0 { "" } else { ", " };
        let verb = if fields.len() == 1 { "is" } else { "are" };
        write!(f, "{separator}{} {verb} owned by {manager:?}", fields.join(" and "))?;
        if let Some(subresource) = subresource {
            write!(f, " (subresource {subresource})")?;
        }
    }
    f.write_str("; leave it to the owner, or apply with force")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(causes: serde_json::Value) -> Error {
        let status = json!({ "status": "Failure", "reason": "Conflict", "code": 409,
            "message": "Apply failed with 2 conflicts: conflicts with \"a\":\n- .x\n- .y", "details": { "causes": causes } });
        Error::api(serde_json::from_value(status).expect("a status"), None)
    }

    fn cause(message: &str, field: &str) -> serde_json::Value {
        json!({ "reason": "FieldManagerConflict", "message": message, "field": field })
    }

    #[test]
    fn owners_are_read_from_the_causes() {
        let error = refused(json!([
            cause("conflict with \"kubectl\"", ".spec.replicas"),
            cause(
                "conflict with \"hpa\" with subresource \"scale\" using apps/v1 at 2026-01-01T00:00:00Z",
                ".spec.replicas"
            ),
            cause("conflict with \"a \\\"b\\\\\" using v1", ".data.x"),
        ]));
        assert!(error.is_conflict() && error.is_field_conflict());
        let conflicts = error.field_conflicts();
        assert_eq!(conflicts[0].manager, "kubectl");
        assert_eq!((conflicts[0].applied, &conflicts[0].subresource), (true, &None));
        assert_eq!(conflicts[1].manager, "hpa");
        assert_eq!((conflicts[1].applied, conflicts[1].subresource.as_deref()), (false, Some("scale")));
        assert_eq!(conflicts[2].manager, "a \"b\\");
        assert!(!Error::conflict("stale".to_owned()).is_field_conflict());
    }

    #[test]
    fn the_message_is_one_line_by_owner() {
        let error = refused(json!([
            cause("conflict with \"kubectl\"", ".data.b"),
            cause("conflict with \"kubectl\"", ".data.a"),
            cause("conflict with \"hpa\" with subresource \"scale\" using v1", ".spec.replicas"),
        ]));
        assert_eq!(
            error.while_doing("applying Deployment default/web").to_string(),
            "applying Deployment default/web: .spec.replicas is owned by \"hpa\" (subresource scale), .data.b and .data.a are \
             owned by \"kubectl\"; leave it to the owner, or apply with force (409)"
        );
    }
}
