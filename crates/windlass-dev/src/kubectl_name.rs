//! The name of a resource in kubectl commands.

use windlass_schema::Catalog;

/// Returns the shortest name by which kubectl finds a resource of the control plane: the plural, with the
/// group if a built-in resource of another group has the same plural.
///
/// ```
/// use windlass_dev::kubectl_name;
///
/// assert_eq!(kubectl_name("stable.example.com", "crontabs"), "crontabs");
/// assert_eq!(kubectl_name("stable.example.com", "ipaddresses"), "ipaddresses.stable.example.com");
/// ```
pub fn kubectl_name(group: &str, plural: &str) -> String {
    let catalog = Catalog::builtin();
    let is_ambiguous = catalog.group_versions().iter().any(|version| {
        *version.group != *group && version.resources.iter().any(|resource| *resource.name == *plural)
    });
    if is_ambiguous && !group.is_empty() { format!("{plural}.{group}") } else { plural.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::kubectl_name;

    #[test]
    fn a_built_in_resource_has_its_plural_unless_an_older_group_has_it() {
        assert_eq!(kubectl_name("", "pods"), "pods");
        assert_eq!(kubectl_name("apps", "deployments"), "deployments");
        assert_eq!(kubectl_name("", "events"), "events");
        assert_eq!(kubectl_name("events.k8s.io", "events"), "events.events.k8s.io");
    }
}
