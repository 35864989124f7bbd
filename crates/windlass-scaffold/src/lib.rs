//! The life of an operator's project: the files that `windlass init`, `create`, `delete`, `edit` and `update`
//! write.
//!
//! A [`Project`] is the content of `windlass.toml`. A request, such as [`CreateApi`], turns a project into
//! the wanted project; a [`Plan`] compares the files of both projects with the folder and returns [`Writes`],
//! which can be shown, compared and applied:
//!
//! ```
//! use windlass_scaffold::{CreateApi, Disk, Folder, Init, License, Plan, Project};
//!
//! # fn example() -> Result<(), windlass_scaffold::Error> {
//! let folder = tempfile::tempdir().unwrap();
//! let folder = Folder::new(folder.path());
//! let project = Init { domain: "abc.com".into(), name: Some("operator-demo".into()), ..Init::default() }.project("demo")?;
//! let init = Plan::create(None, &project).header(License::Apache2.header(None, 2026, None)).run(&folder)?;
//! init.writes.apply(&folder)?;
//!
//! // The file also has the digests of what was scaffolded, without which no file of the user is touched again.
//! let project = Project::parse(&folder.read("windlass.toml")?.expect("written"))?;
//! let request = CreateApi { group: "foo".into(), version: "v1".into(), kind: "Bar".into(), ..CreateApi::default() };
//! let create = Plan::create(Some(&project), &request.apply(&project)?).run(&folder)?;
//! assert!(create.writes.paths().any(|path| path == "api/src/v1/bar.rs"));
//! assert_eq!(create.unmerged, [""; 0]);
//! # Ok(()) }
//! # example().unwrap();
//! ```
//!
//! Everything is a function of the project, the request and the texts in the folder; only [`Folder`] reads and writes.
#![forbid(unsafe_code)]

// From the surface down: a module uses only modules further down.
mod plan;
mod request;

mod merge;
mod writes;

mod folder;
mod render;

mod project;

mod api_name;
mod builtin;
mod header;
pub mod name;

mod error;

pub use self::{
    error::{Error, Result},
    folder::{Disk, Folder},
    header::License,
    plan::{Outcome, Plan},
    project::{External, ImageSettings, Project, Resource, STATE, Webhooks},
    render::GENERATED,
    request::{CreateApi, CreateWebhook, DeleteApi, DeleteWebhook, Edit, Gvk, Hub, Init},
    writes::{Action, Writes},
};
