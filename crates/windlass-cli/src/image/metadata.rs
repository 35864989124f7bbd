//! The packages of a project, from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::{Advice, Result};
use crate::project::Cargo;

/// The answer of `cargo metadata`.
#[derive(Deserialize)]
pub(super) struct Metadata {
    pub(super) packages: Vec<Package>,
    resolve: Option<Resolve>,
    pub(super) workspace_root: PathBuf,
}

/// A package.
#[derive(Deserialize)]
pub(super) struct Package {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) source: Option<String>,
    pub(super) license: Option<String>,
    pub(super) description: Option<String>,
    pub(super) repository: Option<String>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
    root: Option<String>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// `null` is a dependency of the program; `build` and `dev` are dependencies of the build and of tests.
    kind: Option<String>,
}

impl Metadata {
    /// Asks cargo for the packages in a folder, for a target.
    pub(super) async fn load(folder: &Path, target: &str) -> Result<Self> {
        let args = ["--format-version", "1", "--filter-platform", target];
        let printed = Cargo::new(folder, "metadata").args(args).printed().await?;
        Ok(serde_json::from_slice(&printed)?)
    }

    /// Returns the package and the name of the program: `wanted`, or the only program of the root package.
    pub(super) fn program(&self, wanted: Option<&str>) -> Result<(&Package, String)> {
        let root = self.resolve.as_ref().and_then(|resolve| resolve.root.as_ref());
        let packages = self.packages.iter().filter(|package| package.source.is_none());
        if let Some(wanted) = wanted {
            let mut packages = packages.filter(|package| package.programs().any(|name| name == wanted));
            let package =
                packages.next().ok_or_else(|| format!("no package of the project has a program {wanted}"))?;
            return Ok((package, wanted.to_owned()));
        }
        let package = packages.into_iter().find(|package| Some(&package.id) == root).ok_or_else(|| {
            Advice::new(
                "the folder has no package",
                "go to the folder of a package, or name a program with --bin",
            )
        })?;
        let programs: Vec<&str> = package.programs().collect();
        match programs[..] {
            [name] => Ok((package, name.to_owned())),
            _ => Err(Advice::new(
                format!("the package {} has {} programs", package.name, programs.len()),
                "name the program with --bin",
            )),
        }
    }

    /// Returns the packages in a program, with the packages that each depends on. Tools of the build and of tests are left out.
    pub(super) fn closure<'a>(&'a self, root: &'a Package) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
        let nodes: BTreeMap<&str, &Node> = self
            .resolve
            .iter()
            .flat_map(|resolve| &resolve.nodes)
            .map(|node| (node.id.as_str(), node))
            .collect();
        let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut waiting = vec![root.id.as_str()];
        while let Some(id) = waiting.pop() {
            if found.contains_key(id) {
                continue;
            }
            let dependencies = nodes.get(id).into_iter().flat_map(|node| &node.deps);
            let linked = dependencies.filter(|it| it.dep_kinds.iter().any(|kind| kind.kind.is_none()));
            let ids: BTreeSet<&str> = linked.map(|it| it.pkg.as_str()).collect();
            waiting.extend(&ids);
            found.insert(id, ids);
        }
        found
    }
}

impl Package {
    fn programs(&self) -> impl Iterator<Item = &str> {
        let programs = self.targets.iter().filter(|target| target.kind.iter().any(|kind| kind == "bin"));
        programs.map(|target| target.name.as_str())
    }
}
