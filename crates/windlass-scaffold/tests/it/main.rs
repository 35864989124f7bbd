//! The files that requests write.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stderr, reason = "a test that is skipped says why")]

mod golden;
mod memory;
mod requests;
mod shell;
mod update;
#[cfg(unix)]
mod workflows;
#[cfg(unix)]
mod writing;

use windlass_scaffold::{CreateApi, CreateWebhook, Gvk, Init, License, Plan, Project, Result};

use self::memory::Memory;

/// A project in memory.
pub(crate) struct Sandbox {
    pub(crate) disk: Memory,
    pub(crate) project: Project,
}

impl Sandbox {
    /// The project that article 003 begins with.
    pub(crate) fn init() -> Self {
        Self::of(&Init { domain: "abc.com".into(), owner: Some("zhangsan".into()), ..Init::default() })
    }

    pub(crate) fn of(init: &Init) -> Self {
        let project = init.project("operator-demo").unwrap();
        let header = project.license.header(project.owner.as_deref(), 2026, None);
        let disk = Memory::default();
        let outcome = Plan::create(None, &project).header(header).run(&disk).unwrap();
        let mut made = Self { disk, project };
        made.apply(&outcome.writes);
        made
    }

    pub(crate) fn apply(&mut self, writes: &windlass_scaffold::Writes) {
        self.disk.apply(writes);
        self.project = Project::parse(&self.disk.text("windlass.toml")).unwrap();
    }

    /// Applies a request to the project.
    pub(crate) fn become_(&mut self, after: Result<Project>) -> Result<()> {
        let outcome = Plan::create(Some(&self.project), &after?).run(&self.disk)?;
        self.apply(&outcome.writes);
        Ok(())
    }

    pub(crate) fn create(&mut self, request: &CreateApi) -> Result<()> {
        self.become_(request.apply(&self.project))
    }

    pub(crate) fn webhook(&mut self, request: &CreateWebhook) -> Result<()> {
        self.become_(request.apply(&self.project))
    }
}

pub(crate) fn api(group: &str, version: &str, kind: &str) -> CreateApi {
    CreateApi { group: group.into(), version: version.into(), kind: kind.into(), ..CreateApi::default() }
}

pub(crate) fn bar() -> CreateApi {
    api("foo", "v1", "Bar")
}

pub(crate) fn gvk(group: &str, version: &str, kind: &str) -> Gvk {
    Gvk { group: group.into(), version: version.into(), kind: kind.into() }
}

pub(crate) const NO_LICENSE: License = License::None;
