//! `windlass edit`

use crate::{Error, License, Project, Result};

/// A request to change settings of the project. `None` leaves a setting as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// A folder for each group.
    pub multigroup: Option<bool>,
    /// One namespace instead of all.
    pub namespaced: Option<bool>,
    /// The license.
    pub license: Option<License>,
    /// The owner of the copyright.
    pub owner: Option<String>,
}

impl Edit {
    /// Returns the changed project.
    ///
    /// # Errors
    /// Nothing is to be changed, or the project has several groups and should have folders for one.
    pub fn apply(&self, project: &Project) -> Result<Project> {
        if *self == Self::default() {
            return Error::refused(
                "nothing is to be changed; name at least one of --multigroup, --namespaced, --license and --owner",
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
        Ok(made)
    }
}
