//! `windlass init`

use std::path::PathBuf;

use crate::{License, Project, Result, name};

/// The domain of a project that names none.
const DOMAIN: &str = "my.domain";

/// A request for a new project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Init {
    /// The domain; empty: `my.domain`.
    pub domain: String,
    /// The name of the project; default: the name of the folder, in lower case.
    pub name: Option<String>,
    /// The address of the repository, with or without a scheme.
    pub repo: Option<String>,
    /// The owner of the copyright.
    pub owner: Option<String>,
    /// The license.
    pub license: License,
    /// A folder for each group.
    pub multigroup: bool,
    /// True to watch a single namespace.
    pub namespaced: bool,
    /// A checkout of Windlass to depend on.
    pub path: Option<PathBuf>,
}

impl Init {
    /// Returns the new project. `folder` is the name of the project's folder.
    ///
    /// # Errors
    /// The name or the domain is not valid.
    pub fn project(&self, folder: &str) -> Result<Project> {
        let name = self.name.clone().unwrap_or_else(|| folder.to_lowercase());
        let domain = if self.domain.is_empty() { DOMAIN } else { &self.domain };
        name::check_project(&name)?;
        name::check_domain(domain)?;
        Ok(Project {
            repo: self.repo.clone(),
            owner: self.owner.clone(),
            license: self.license,
            multigroup: self.multigroup,
            namespaced: self.namespaced,
            path: self.path.clone(),
            ..Project::new(name, domain, env!("CARGO_PKG_VERSION"))
        })
    }
}
