//! `windlass create webhook`

use super::{Gvk, shown};
use crate::{Error, Project, Result, name};

/// A request for webhooks of a kind. Those that exist stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateWebhook {
    /// The kind.
    pub gvk: Gvk,
    /// A webhook that sets defaults.
    pub defaulting: bool,
    /// A webhook that validates.
    pub validation: bool,
    /// Conversion between this version, the hub, and the spokes.
    pub conversion: bool,
    /// The versions to convert; default: all others of the kind.
    pub spokes: Vec<String>,
}

impl CreateWebhook {
    /// Returns the project with the webhooks.
    ///
    /// # Errors
    /// The kind or a spoke is not in the project, nothing is asked for, or another version of the kind has such a webhook.
    pub fn apply(&self, project: &Project) -> Result<Project> {
        let at = self.gvk.position(project)?;
        if !self.defaulting && !self.validation && !self.conversion {
            return Error::refused(
                "name at least one of --defaulting, --programmatic-validation and --conversion",
            );
        }
        if !self.conversion && !self.spokes.is_empty() {
            return Error::refused("--spoke is for --conversion");
        }
        let mut made = project.clone();
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
        if self.conversion {
            self.convert(&mut made, at)?;
        }
        Ok(made)
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
