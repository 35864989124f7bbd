//! The manifests of a project: from the operator to the files below `config/`.

mod base;
mod new_project;
mod project;
mod size;
mod words;

pub(crate) use self::base::base_definitions;
pub(crate) use self::new_project::new_project_files;
pub(crate) use self::project::{Choices, ProjectManifests, generated_files};
pub(crate) use self::size::size_warnings;
pub(crate) use self::words::{Part, Request, Target, parse};
