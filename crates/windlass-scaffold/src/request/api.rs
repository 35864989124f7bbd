//! `windlass create api`

use super::{Gvk, shown};
use crate::{Error, External, Project, Resource, Result, Webhooks, builtin, name};

/// A request for a kind: the type, a controller, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateApi {
    /// The group, without the domain.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The plural; default: by the rules of English.
    pub plural: Option<String>,
    /// True to create the type; default: true, except for built-in and external kinds.
    pub resource: Option<bool>,
    /// True to create a controller; default: true, unless another version of the kind has a controller.
    pub controller: Option<bool>,
    /// The name of a further controller for the kind.
    pub controller_name: Option<String>,
    /// True for namespaced objects; default: true, or the scope of existing versions.
    pub namespaced: Option<bool>,
    /// The place of a type from another crate.
    pub external: Option<External>,
    /// Writes the files of a kind that exists again.
    pub force: bool,
}

impl CreateApi {
    /// Returns the project with the kind.
    ///
    /// A kind that exists with the requested settings is unchanged.
    ///
    /// # Errors
    /// A name is not valid, the kind exists with other settings, or the project has another group already and
    /// is not multigroup.
    pub fn apply(&self, project: &Project) -> Result<Project> {
        let wanted = self.wanted(project)?;
        let mut made = project.clone();
        let existing = made
            .resources
            .iter_mut()
            .find(|resource| resource.is(&wanted.group, &wanted.version, &wanted.kind));
        if let Some(existing) = existing {
            self.extend(existing, &wanted)?;
            return Ok(made);
        }
        Self::check_neighbours(project, &wanted)?;
        made.resources.push(wanted);
        Ok(made)
    }

    /// Returns the project without the files that `--force` writes again.
    pub fn forced(&self, project: &Project) -> Project {
        let mut project = project.clone();
        if self.force {
            project.resources.retain(|resource| !resource.is(&self.group, &self.version, &self.kind));
        }
        project
    }

    fn wanted(&self, project: &Project) -> Result<Resource> {
        let gvk = Gvk { group: self.group.clone(), version: self.version.clone(), kind: self.kind.clone() };
        gvk.check()?;
        let existing = project.resource(&self.group, &self.version, &self.kind);
        let of_kind = existing.or_else(|| project.versions(&self.group, &self.kind).next());
        let plural = self.plural.clone().or_else(|| of_kind.map(|kind| kind.plural.clone()));
        let plural = plural.unwrap_or_else(|| name::plural(&self.kind));
        name::check_plural(&plural)?;
        let external = self.external.clone().or_else(|| existing.and_then(|kind| kind.external.clone()));
        let foreign = external.is_some();
        // The type may exist already, and the request may add a controller.
        let has_type = existing.is_some_and(|kind| kind.api);
        let api = has_type || self.resource.unwrap_or(!foreign);
        if api && foreign {
            return Error::refused("the type of an external kind is in its own crate; leave out --resource");
        }
        if !api && !foreign && builtin::module(&self.group, &self.version).is_none() {
            let groups = builtin::groups().join(", ");
            return Error::refused(format!(
                "{}/{} is not a built-in group of Kubernetes ({groups}); create its type with --resource, or name its \
                 module with --external-api-path",
                self.group, self.version
            ));
        }
        if !api && !foreign {
            super::webhook::check_builtin_kind(&gvk)?;
        }
        let same =
            |other: &&Resource| other.group == self.group && other.kind == self.kind && other.controller;
        let other = project.resources.iter().filter(same).find(|other| other.version != self.version);
        let named = self.named_controllers()?;
        let controller = named.is_empty() && self.controller.unwrap_or(other.is_none());
        if let (true, Some(other)) = (controller, other) {
            return Error::refused(format!(
                "{} has a controller already; add --controller=false, or name a further one with --controller-name",
                shown(other)
            ));
        }
        if !api && !controller && named.is_empty() {
            return Error::refused(
                "neither a type nor a controller is asked for: leave out --resource=false or --controller=false",
            );
        }
        Ok(Resource {
            group: gvk.group,
            version: gvk.version,
            kind: gvk.kind,
            plural,
            namespaced: self.namespaced.unwrap_or(of_kind.is_none_or(|kind| kind.namespaced)),
            api,
            controller,
            named_controllers: named,
            storage: false,
            webhooks: Webhooks::default(),
            external,
        })
    }

    /// Returns the name of the requested controller, if the controller has a name.
    fn named_controllers(&self) -> Result<Vec<String>> {
        let Some(name) = &self.controller_name else { return Ok(Vec::new()) };
        if self.controller == Some(false) {
            return Error::refused("--controller-name is for a controller: leave out --controller=false");
        }
        name::check_controller(name)?;
        Ok(vec![name.clone()])
    }

    /// Adds a controller or type to a kind that exists.
    fn extend(&self, existing: &mut Resource, wanted: &Resource) -> Result<()> {
        let differs = [
            ("plural", existing.plural != wanted.plural && self.plural.is_some()),
            // Webhooks alone do not say where objects are.
            ("scope", existing.namespaced != wanted.namespaced && (existing.api || existing.controller)),
            ("type", existing.external != wanted.external || !existing.api && self.resource == Some(true)),
        ];
        match differs.iter().find(|(_, differs)| *differs) {
            Some((what, _)) if !self.force => {
                let text = "edit its type, or delete it with `windlass delete api` first";
                Error::refused(format!("{} exists already with another {what}; {text}", shown(existing)))
            }
            Some(_) => {
                *existing = Resource {
                    named_controllers: existing.named_controllers.clone(),
                    webhooks: existing.webhooks.clone(),
                    storage: existing.storage,
                    ..wanted.clone()
                };
                Ok(())
            }
            None => {
                existing.controller |= wanted.controller;
                existing.namespaced = wanted.namespaced;
                for name in &wanted.named_controllers {
                    if !existing.named_controllers.contains(name) {
                        existing.named_controllers.push(name.clone());
                    }
                }
                Ok(())
            }
        }
    }

    pub(super) fn check_neighbours(project: &Project, wanted: &Resource) -> Result<()> {
        let others = || project.resources.iter();
        if let Some(other) = others().find(|other| wanted.api && other.api && other.group != wanted.group)
            && !project.multigroup
        {
            return Error::refused(format!(
                "the project has the group {}, and its folders are for one group; change that with `windlass edit --multigroup`",
                other.group
            ));
        }
        let same_module = |other: &&Resource| {
            other.module() == wanted.module()
                && (if project.multigroup {
                    name::module(&other.group) == name::module(&wanted.group)
                } else {
                    true
                })
                && !other.is_kind(wanted)
        };
        if let Some(other) = others().find(same_module) {
            return Error::refused(format!(
                "{} has the module {} already; choose another kind",
                shown(other),
                wanted.module()
            ));
        }
        let other_plural = others().find(|other| {
            other.is_kind(wanted) && (other.plural != wanted.plural || other.namespaced != wanted.namespaced)
        });
        if let Some(other) = other_plural {
            let scope = if other.namespaced { "namespaced" } else { "cluster-scoped" };
            return Error::refused(format!(
                "{} has the plural {} and is {scope}; all versions of a kind have the same",
                shown(other),
                other.plural
            ));
        }
        Ok(())
    }
}
