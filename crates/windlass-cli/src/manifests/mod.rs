//! The manifests of a project: from the operator to the files below `config/`.

mod arguments;
mod base;
mod new_project;
mod project;
mod size;

pub(crate) use self::arguments::{Part, Request, Target, parse};
pub(crate) use self::base::base_definitions;
pub(crate) use self::new_project::new_project_files;
pub(crate) use self::project::{Choices, ProjectManifests, generated_files};
pub(crate) use self::size::size_warnings;
