//! `windlass delete`

use super::{Gvk, shown};
use crate::{Error, Project, Resource, Result};

/// A request to remove a version of a kind, together with the controller and webhooks of the version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteApi {
    /// The kind.
    pub gvk: Gvk,
}

impl DeleteApi {
    /// Returns the project without the kind.
    ///
    /// # Errors
    /// The project does not have the version, or a conversion is between the version and another version.
    pub fn apply(&self, project: &Project) -> Result<Project> {
        let at = self.gvk.position(project)?;
        let removed = &project.resources[at];
        if removed.webhooks.converts() {
            return Error::refused(format!(
                "{} is the hub of the conversions of {}; {}",
                shown(removed),
                removed.webhooks.spokes.join(", "),
                conversion_first(removed)
            ));
        }
        let hub = project
            .versions(&removed.group, &removed.kind)
            .find(|other| other.webhooks.spokes.contains(&removed.version));
        if let Some(hub) = hub {
            let (removed, remedy) = (shown(removed), conversion_first(hub));
            return Error::refused(format!("{removed} is converted to {}; {remedy}", shown(hub)));
        }
        let mut made = project.clone();
        made.resources.remove(at);
        Ok(made)
    }
}

/// Returns the command that removes the conversions of a hub.
fn conversion_first(hub: &Resource) -> String {
    format!(
        "remove the conversion first: windlass delete webhook --group {} --version {} --kind {} --conversion",
        hub.group, hub.version, hub.kind
    )
}

/// A request to remove webhooks of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteWebhook {
    /// The kind.
    pub gvk: Gvk,
    /// The webhook that sets defaults.
    pub defaulting: bool,
    /// The webhook that validates.
    pub validation: bool,
    /// The conversion.
    pub conversion: bool,
}

impl DeleteWebhook {
    /// Returns the project without the webhooks; without any of the three, all of the kind.
    ///
    /// # Errors
    /// The project does not have the webhooks.
    pub fn apply(&self, project: &Project) -> Result<Project> {
        let at = self.gvk.position(project)?;
        let mut made = project.clone();
        let webhooks = &mut made.resources[at].webhooks;
        let all = !self.defaulting && !self.validation && !self.conversion;
        if all && webhooks.is_empty() {
            return Error::refused(format!("{} has no webhooks", shown(&project.resources[at])));
        }
        let asked = [
            (self.defaulting, webhooks.defaulting, "defaulting"),
            (self.validation, webhooks.validation, "validating"),
            (self.conversion, webhooks.converts(), "converting"),
        ];
        if let Some((_, _, what)) = asked.iter().find(|(asked, there, _)| *asked && !there) {
            return Error::refused(format!("{} has no {what} webhook", shown(&project.resources[at])));
        }
        webhooks.defaulting &= !(all || self.defaulting);
        webhooks.validation &= !(all || self.validation);
        webhooks.defaulting_path = webhooks.defaulting_path.take().filter(|_| webhooks.defaulting);
        webhooks.validation_path = webhooks.validation_path.take().filter(|_| webhooks.validation);
        if all || self.conversion {
            webhooks.spokes.clear();
        }
        made.resources.retain(Resource::is_used);
        Ok(made)
    }
}
