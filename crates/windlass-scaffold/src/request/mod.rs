//! Requests: functions from a project to the project that is wanted.

mod api;
mod delete;
mod edit;
mod init;
mod webhook;

pub use self::{
    api::CreateApi,
    delete::{DeleteApi, DeleteWebhook},
    edit::{Edit, Hub},
    init::Init,
    webhook::CreateWebhook,
};
use crate::{Error, Project, Resource, Result};

/// A version of a kind, in the user's form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gvk {
    /// The group, without the domain.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

impl Gvk {
    fn check(&self) -> Result<()> {
        crate::name::check_group(&self.group)?;
        crate::name::check_version(&self.version)?;
        crate::name::check_kind(&self.kind)
    }

    /// Returns the place of this kind in the project's list.
    fn position(&self, project: &Project) -> Result<usize> {
        self.check()?;
        let is_it = |resource: &Resource| resource.is(&self.group, &self.version, &self.kind);
        project.resources.iter().position(is_it).ok_or_else(|| {
            let Self { group, version, kind } = self;
            let list: Vec<String> = project.resources.iter().map(shown).collect();
            let there = if list.is_empty() { "none".to_owned() } else { list.join(", ") };
            Error::Refused(format!("the project has no {kind} ({group}/{version}); it has {there}"))
        })
    }
}

fn shown(resource: &Resource) -> String {
    format!("{} ({}/{})", resource.kind, resource.group, resource.version)
}
