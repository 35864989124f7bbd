//! `windlass create webhook`

use windlass_schema::Catalog;

use super::{CreateApi, Gvk, shown};
use crate::{Error, External, Project, Resource, Result, Webhooks, builtin, name};

/// A request for webhooks of a kind. Existing webhooks stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateWebhook {
    /// The kind.
    pub gvk: Gvk,
    /// A webhook that sets defaults.
    pub defaulting: bool,
    /// The path; default: `/mutate-<group>-<version>-<kind>`.
    pub defaulting_path: Option<String>,
    /// A webhook that validates.
    pub validation: bool,
    /// The path; default: `/validate-<group>-<version>-<kind>`.
    pub validation_path: Option<String>,
    /// Conversion between this version, the hub, and the spokes.
    pub conversion: bool,
    /// The versions to convert; default: all other versions of the kind.
    pub spokes: Vec<String>,
    /// The place of a type from another crate, for a kind that the project does not have yet.
    pub external: Option<External>,
}

impl CreateWebhook {
    /// Returns the project with the webhooks.
    ///
    /// # Errors
    /// The kind or a spoke is not in the project, a path is not valid, the request names no webhook, or
    /// another version of the kind has such a webhook.
    pub fn apply(&self, project: &Project) -> Result<Project> {
        let mut made = project.clone();
        let at = self.find_or_add(&mut made)?;
        if !self.defaulting && !self.validation && !self.conversion {
            return Error::refused(
                "name at least one of --defaulting, --programmatic-validation and --conversion",
            );
        }
        if !self.conversion && !self.spokes.is_empty() {
            return Error::refused("--spoke is for --conversion");
        }
        if self.defaulting_path.is_some() && !self.defaulting {
            return Error::refused("--defaulting-path is for --defaulting");
        }
        if self.validation_path.is_some() && !self.validation {
            return Error::refused("--validation-path is for --programmatic-validation");
        }
        let asked = [
            (self.defaulting, "defaulting"),
            (self.validation, "validating"),
            (self.conversion, "converting"),
        ];
        let others = project
            .versions(&self.gvk.group, &self.gvk.kind)
            .filter(|other| other.version != self.gvk.version);
        for other in others {
            let there = [other.webhooks.defaulting, other.webhooks.validation, other.webhooks.converts()];
            if let Some(((_, what), _)) = asked.iter().zip(there).find(|((asked, _), there)| *asked && *there)
            {
                return Error::refused(format!(
                    "{} has a {what} webhook already; the API server converts objects of other versions for it",
                    shown(other)
                ));
            }
        }
        let webhooks = &mut made.resources[at].webhooks;
        webhooks.defaulting |= self.defaulting;
        webhooks.validation |= self.validation;
        set(&mut webhooks.defaulting_path, self.defaulting_path.as_ref())?;
        set(&mut webhooks.validation_path, self.validation_path.as_ref())?;
        if self.conversion {
            self.convert(&mut made, at)?;
        }
        Ok(made)
    }

    /// Returns the index of the kind in the project's list. Adds a missing built-in or external kind.
    fn find_or_add(&self, project: &mut Project) -> Result<usize> {
        let Gvk { group, version, kind } = &self.gvk;
        let found = self.gvk.position(project);
        let is_own = project.resources.iter().any(|resource| resource.api && resource.group == *group);
        let is_builtin = !is_own && builtin::module(group, version).is_some();
        if found.is_ok() || !is_builtin && self.external.is_none() {
            return found;
        }
        self.gvk.check()?;
        if is_builtin && self.external.is_none() {
            check_builtin_kind(&self.gvk)?;
        }
        let resource = Resource {
            group: group.clone(),
            version: version.clone(),
            kind: kind.clone(),
            plural: name::plural(kind),
            namespaced: true,
            api: false,
            controller: false,
            named_controllers: Vec::new(),
            storage: false,
            webhooks: Webhooks::default(),
            external: self.external.clone(),
        };
        CreateApi::check_neighbours(project, &resource)?;
        project.resources.push(resource);
        Ok(project.resources.len() - 1)
    }

    fn convert(&self, project: &mut Project, hub: usize) -> Result<()> {
        let Gvk { group, version, kind } = &self.gvk;
        if !project.resources[hub].api {
            return Error::refused(format!(
                "{} is not a kind of this project, so it is not converted here",
                shown(&project.resources[hub])
            ));
        }
        let others: Vec<String> = project
            .versions(group, kind)
            .filter(|other| other.version != *version)
            .map(|other| other.version.clone())
            .collect();
        let spokes = if self.spokes.is_empty() { others.clone() } else { self.spokes.clone() };
        if spokes.is_empty() {
            return Error::refused(format!(
                "{kind} has one version, {version}; create another one first: windlass create api --group {group} --version v2 --kind {kind}"
            ));
        }
        for spoke in &spokes {
            name::check_version(spoke)?;
            if !others.contains(spoke) {
                return Error::refused(format!(
                    "{kind} has no version {spoke} beside {version}; it has {}",
                    others.join(", ")
                ));
            }
        }
        let is_kind: Vec<usize> = (0..project.resources.len())
            .filter(|&at| project.resources[at].is_kind(&project.resources[hub]))
            .collect();
        for at in is_kind {
            project.resources[at].storage = at == hub;
        }
        let known = &mut project.resources[hub].webhooks.spokes;
        let new: Vec<String> = spokes.into_iter().filter(|spoke| !known.contains(spoke)).collect();
        known.extend(new);
        Ok(())
    }
}

/// Refuses a kind that a built-in group of Kubernetes does not have, with the most similar kind.
pub(super) fn check_builtin_kind(gvk: &Gvk) -> Result<()> {
    let Gvk { group, version, kind } = gvk;
    let catalog = Catalog::builtin();
    let Some(served) = catalog.group_version(builtin::group(group), version) else { return Ok(()) };
    let own = served.resources.iter().filter(|resource| *resource.kind.group == *served.group);
    let mut kinds: Vec<&str> = own.map(|resource| &*resource.kind.kind).collect();
    if kinds.contains(&kind.as_str()) {
        return Ok(());
    }
    kinds.sort_unstable();
    let closest = kinds.iter().min_by_key(|known| distance(known, kind));
    let closest = closest.filter(|known| distance(known, kind) <= kind.len().div_ceil(2));
    let suggestion = closest.map(|known| format!("did you mean {known}? ")).unwrap_or_default();
    let kinds = kinds.join(", ");
    Error::refused(format!(
        "Kubernetes has no kind {kind} in {group}/{version}: {suggestion}The kinds are {kinds}"
    ))
}

/// Returns the edit distance of two names: the number of characters to insert, to delete or to replace. Upper and lower case are equal.
fn distance(one: &str, other: &str) -> usize {
    let (one, other) = (one.to_lowercase(), other.to_lowercase());
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (index, left) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, right) in other.chars().enumerate() {
            let replaced = diagonal + usize::from(left != right);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[row.len() - 1]
}

/// Sets the path of a webhook, if a path is given.
fn set(path: &mut Option<String>, given: Option<&String>) -> Result<()> {
    if let Some(given) = given {
        name::check_path(given)?;
        *path = Some(given.clone());
    }
    Ok(())
}
