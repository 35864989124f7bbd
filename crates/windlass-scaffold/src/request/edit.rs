//! `windlass edit`

use super::shown;
use crate::{Error, License, Project, Resource, Result, name};

/// A request to change settings of the project. `None` keeps a setting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// A folder for each group.
    pub multigroup: Option<bool>,
    /// True to watch a single namespace.
    pub namespaced: Option<bool>,
    /// The license.
    pub license: Option<License>,
    /// The owner of the copyright.
    pub owner: Option<String>,
    /// The version that controllers, webhooks and conversions use.
    pub hub: Option<Hub>,
}

/// A version that becomes the hub of a kind: the API server stores objects in the hub, conversions go through the hub, and the
/// controllers and webhooks of the kind use the hub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hub {
    /// The version.
    pub version: String,
    /// The kind; default: every kind that has the version.
    pub kind: Option<String>,
    /// The group; default: every group.
    pub group: Option<String>,
}

impl Edit {
    /// Returns the changed project.
    ///
    /// # Errors
    /// The request changes no setting, or the project has several groups and should have folders for one
    /// group.
    pub fn apply(&self, project: &Project) -> Result<Project> {
        if *self == Self::default() {
            return Error::refused(
                "nothing is to be changed; name at least one of --multigroup, --namespaced, --license, --owner and --hub",
            );
        }
        let mut made = project.clone();
        if self.multigroup == Some(false) {
            let mut groups: Vec<&str> =
                project.resources.iter().filter(|r| r.api).map(|r| r.group.as_str()).collect();
            groups.sort_unstable();
            groups.dedup();
            if groups.len() > 1 {
                return Error::refused(format!(
                    "the project has several groups ({}), which need folders of their own",
                    groups.join(", ")
                ));
            }
        }
        made.multigroup = self.multigroup.unwrap_or(made.multigroup);
        made.namespaced = self.namespaced.unwrap_or(made.namespaced);
        made.license = self.license.unwrap_or(made.license);
        made.owner = self.owner.clone().or(made.owner);
        if let Some(hub) = &self.hub {
            hub.apply(&mut made)?;
        }
        Ok(made)
    }
}

impl Hub {
    fn apply(&self, project: &mut Project) -> Result<()> {
        name::check_version(&self.version)?;
        let asked = |resource: &Resource| {
            resource.api
                && self.kind.as_ref().is_none_or(|kind| *kind == resource.kind)
                && self.group.as_ref().is_none_or(|group| *group == resource.group)
        };
        let mut hubs = Vec::new();
        for (at, resource) in project.resources.iter().enumerate() {
            if asked(resource) && resource.version == self.version {
                hubs.push(at);
            }
        }
        if hubs.is_empty() {
            let kind = self.kind.as_deref().unwrap_or("kind");
            let there: Vec<String> =
                project.resources.iter().filter(|resource| resource.api).map(shown).collect();
            return Error::refused(format!(
                "the project has no {kind} with version {}; it has {}. Create the version first: windlass create api",
                self.version,
                if there.is_empty() { "none".to_owned() } else { there.join(", ") }
            ));
        }
        hubs.into_iter().try_for_each(|hub| move_to(project, hub))
    }
}

/// Moves the controllers, webhooks and conversions of a kind to the version at index `hub`.
fn move_to(project: &mut Project, hub: usize) -> Result<()> {
    let kind = project.resources[hub].clone();
    let others: Vec<usize> = (0..project.resources.len())
        .filter(|&at| at != hub && project.resources[at].is_kind(&kind))
        .collect();
    if let Some(&other) = others.iter().find(|&&at| project.resources[at].webhooks.converts()) {
        let other = &project.resources[other];
        return Error::refused(format!(
            "the conversions of {} go through {}, and their functions have to be written again for another hub; remove them first, and \
             commit: windlass delete webhook --group {} --version {} --kind {} --conversion",
            kind.kind, other.version, other.group, other.version, other.kind
        ));
    }
    for &at in &others {
        let other = &mut project.resources[at];
        let controller = std::mem::take(&mut other.controller);
        let named = std::mem::take(&mut other.named_controllers);
        let webhooks = std::mem::take(&mut other.webhooks);
        let hub = &mut project.resources[hub];
        hub.controller |= controller;
        hub.named_controllers.extend(named);
        hub.webhooks.defaulting |= webhooks.defaulting;
        hub.webhooks.validation |= webhooks.validation;
        hub.webhooks.defaulting_path = hub.webhooks.defaulting_path.take().or(webhooks.defaulting_path);
        hub.webhooks.validation_path = hub.webhooks.validation_path.take().or(webhooks.validation_path);
    }
    let spokes: Vec<String> = others.iter().map(|&at| project.resources[at].version.clone()).collect();
    for &at in &others {
        project.resources[at].storage = false;
    }
    let hub = &mut project.resources[hub];
    hub.storage = !spokes.is_empty();
    for spoke in spokes {
        if !hub.webhooks.spokes.contains(&spoke) {
            hub.webhooks.spokes.push(spoke);
        }
    }
    Ok(())
}
