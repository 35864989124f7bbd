//! Conflicts of an apply with other field managers.

use std::fmt;

use super::path_element::FieldPath;

/// A field that an apply changes although another manager owns it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// The identifier of the manager that owns the field.
    pub manager: String,
    /// The path of the field.
    pub path: FieldPath,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "conflict with {}: {}", crate::go::go_quote(&self.manager), self.path)
    }
}

/// The conflicts of an apply, sorted by manager; never empty.
///
/// ```
/// use windlass_schema::fields::{Conflict, Conflicts, FieldPath};
///
/// let conflict = |name| Conflict { manager: "kubectl".into(), path: FieldPath::of_fields(["spec", name]) };
/// let one = Conflicts(vec![conflict("replicas")]);
/// assert_eq!(one.to_string(), r#"conflict with "kubectl": .spec.replicas"#);
/// let two = Conflicts(vec![conflict("paused"), conflict("replicas")]);
/// assert_eq!(two.to_string(), "conflicts with \"kubectl\":\n- .spec.paused\n- .spec.replicas");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [conflict] = self.0.as_slice() {
            return conflict.fmt(f);
        }
        let managers = self.0.chunk_by(|left, right| left.manager == right.manager);
        for (index, conflicts) in managers.enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "conflicts with {}:", crate::go::go_quote(&conflicts[0].manager))?;
            conflicts.iter().try_for_each(|conflict| write!(f, "\n- {}", conflict.path))?;
        }
        Ok(())
    }
}

impl std::error::Error for Conflicts {}
