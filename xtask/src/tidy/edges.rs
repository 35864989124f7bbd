//! Compares the dependencies between crates with the list in ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};

use super::Report;
use super::files::read;
use super::markdown::Page;
use crate::Result;
use crate::project::{self, Package};

const PAGE: &str = "ARCHITECTURE.md";

/// The marker before the list of the allowed dependencies.
const MARKER: &str = "edges";

/// The name of the row for all crates in `examples/`, which could be operators outside of this repository.
const EXAMPLES: &str = "examples";

/// A crate for tests. The crate depends on crates whose tests use it: these crates name it by path, without a version, because these crates
/// are released first.
const FOR_TESTS: &str = "windlass-test";

/// Crates that know no cluster and no network, and the third-party crates that are forbidden there.
const WITHOUT_CLUSTER: &[&str] = &[
    "windlass-cache",
    "windlass-derive",
    "windlass-kinds",
    "windlass-patience",
    "windlass-scaffold",
    "windlass-store",
    "windlass-wire",
    "windlass-workqueue",
];
const CLUSTER: &[&str] = &[
    "http",
    "hyper",
    "k8s-openapi",
    "kube",
    "kube-client",
    "kube-core",
    "kube-runtime",
    "rustls",
    "tokio-rustls",
];

/// Crates that know no network and no asynchronous work, and the third-party crates that are forbidden there besides [`CLUSTER`].
const SYNCHRONOUS: &[&str] = &["windlass-kinds"];
const RUNTIME: &[&str] = &["futures", "tokio", "tokio-util"];

/// Crates that know no client, and the third-party crates that are forbidden there.
const WITHOUT_CLIENT: &[&str] = &[
    "windlass-apiserver",
    "windlass-apply",
    "windlass-codegen",
    "windlass-image",
    "windlass-node",
    "windlass-opentelemetry",
    "windlass-schema",
    "windlass-webhook",
];
const CLIENT: &[&str] = &["kube", "kube-client", "kube-runtime"];

/// The list of ARCHITECTURE.md: the crates of the workspace that a crate may have as normal dependencies.
#[derive(Debug, Default, PartialEq, Eq)]
struct Edges(BTreeMap<String, Uses>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Uses {
    Anything,
    Only {
        crates: BTreeSet<String>,
        /// Optional dependencies, behind a feature. In brackets.
        optional: BTreeSet<String>,
    },
}

pub(super) fn check(packages: &[Package], report: &mut Report) -> Result {
    let text = read(&project::root().join(PAGE))?;
    check_with(&text, packages, report);
    Ok(())
}

/// Checks the packages by the list in `text`.
pub(super) fn check_with(text: &str, packages: &[Package], report: &mut Report) {
    let edges = match Edges::parse(text, packages) {
        Ok(edges) => edges,
        Err(error) => return report.errors.push(format!("{PAGE}: {error}")),
    };
    for package in packages {
        check_version_of_tests(&edges, package, report);
        let Some(Uses::Only { crates, optional }) = edges.of(package) else {
            if edges.of(package).is_none() {
                report.errors.push(format!("{}: add the crate to the list of {PAGE}", package.name));
            }
            continue;
        };
        for dependency in package.dependencies.iter().filter(|dependency| dependency.kind.is_none()) {
            let (from, to) = (&package.name, dependency.name.as_str());
            let is_ours = packages.iter().any(|package| package.name == to);
            let error = if to == FOR_TESTS {
                "must be a dev-dependency".to_owned()
            } else if forbidden(from).contains(&to)
                || SYNCHRONOUS.contains(&from.as_str()) && RUNTIME.contains(&to)
            {
                "forbidden by xtask/src/tidy/edges.rs".to_owned()
            } else if optional.contains(to) && !dependency.optional {
                "must be optional, behind a feature".to_owned()
            } else if is_ours && !crates.contains(to) && !optional.contains(to) {
                format!("not in the list of {PAGE}")
            } else {
                continue;
            };
            report.errors.push(format!("{from} → {to}: {error}"));
        }
        check_unused(package, crates.union(optional), report);
    }
}

/// Reports an edge of the list that does not exist.
fn check_unused<'a>(package: &Package, listed: impl Iterator<Item = &'a String>, report: &mut Report) {
    if is_example(package) {
        return;
    }
    for to in listed {
        let exists = |dependency: &project::Dependency| dependency.kind.is_none() && dependency.name == *to;
        if !package.dependencies.iter().any(exists) {
            report.errors.push(format!("{} → {to}: no such dependency; remove it from {PAGE}", package.name));
        }
    }
}

/// Reports a versioned dependency on the crate for tests of a crate below.
fn check_version_of_tests(edges: &Edges, package: &Package, report: &mut Report) {
    let Some(Uses::Only { crates, .. }) = edges.0.get(FOR_TESTS) else { return };
    let is_versioned =
        |dependency: &project::Dependency| dependency.name == FOR_TESTS && dependency.req != "*";
    if crates.contains(&package.name) && package.dependencies.iter().any(is_versioned) {
        report.errors.push(format!(
            "{} → {FOR_TESTS}: must have a path and no version, or neither can be released",
            package.name
        ));
    }
}

/// Returns the third-party crates that a crate must not use.
fn forbidden(package: &str) -> &'static [&'static str] {
    if WITHOUT_CLUSTER.contains(&package) {
        CLUSTER
    } else if WITHOUT_CLIENT.contains(&package) {
        CLIENT
    } else {
        &["kube-runtime"]
    }
}

fn is_example(package: &Package) -> bool {
    package.folder().parent().is_some_and(|folder| folder.ends_with(EXAMPLES))
}

impl Edges {
    /// Reads the list: a line for one or more crates, `a, b → c, [d]`.
    fn parse(text: &str, packages: &[Package]) -> Result<Self> {
        let page = Page::parse(text);
        let block = page.blocks.iter().find(|block| block.marker == Some(MARKER));
        let block = block.ok_or(format!("there is no block after `<!-- {MARKER} -->`"))?;
        let mut edges = Self::default();
        for line in block.lines.iter().filter(|line| !line.trim().is_empty()) {
            let (from, to) = line.split_once('→').ok_or(format!("{line:?} has no arrow"))?;
            let uses = Uses::parse(to, packages)?;
            for name in from.split(',').map(str::trim) {
                let package = if name == EXAMPLES { name.to_owned() } else { package_name(name, packages)? };
                if edges.0.insert(package, uses.clone()).is_some() {
                    return Err(format!("{name} is listed twice").into());
                }
            }
        }
        Ok(edges)
    }

    fn of(&self, package: &Package) -> Option<&Uses> {
        let name = if is_example(package) { EXAMPLES } else { package.name.as_str() };
        self.0.get(name)
    }
}

impl Uses {
    fn parse(text: &str, packages: &[Package]) -> Result<Self> {
        let (mut crates, mut optional) = (BTreeSet::new(), BTreeSet::new());
        match text.trim() {
            "anything" => return Ok(Self::Anything),
            "(none)" => {}
            names => {
                for name in names.split(',').map(str::trim) {
                    match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
                        Some(name) => optional.insert(package_name(name, packages)?),
                        None => crates.insert(package_name(name, packages)?),
                    };
                }
            }
        }
        Ok(Self::Only { crates, optional })
    }
}

/// Returns the package of a name in the list, where the prefix `windlass-` is left out.
fn package_name(name: &str, packages: &[Package]) -> Result<String> {
    let candidates = [format!("windlass-{name}"), name.to_owned()];
    let exists = |candidate: &&String| packages.iter().any(|package| package.name == **candidate);
    let found = candidates.iter().find(exists);
    found.cloned().ok_or_else(|| format!("the list of crates names {name:?}, which does not exist").into())
}
