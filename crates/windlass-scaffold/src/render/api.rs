//! The api crate: the types.

use std::collections::BTreeSet;

use super::root::inherited;
use super::template::{article, fill};
use super::{CopyOf, Made};
use crate::{Project, Resource, name};

const CARGO: &str = include_str!("../../templates/api.Cargo.toml.txt");
const LIB: &str = include_str!("../../templates/api.lib.rs.txt");
const KIND: &str = include_str!("../../templates/kind.rs.txt");
const SAMPLE: &str = include_str!("../../templates/sample.yaml.txt");

/// The width up to which rustfmt keeps the arguments of an attribute on one line.
const ATTRIBUTE_WIDTH: usize = 70;

pub(super) fn files(project: &Project, made: &mut Made<'_>) {
    let (api, inherited) = (project.api_package(), inherited(project));
    let modules = modules(project);
    let values = [
        ("name", project.project_name.as_str()),
        ("api", &api),
        ("inherited", &inherited),
        ("modules", &modules),
    ];
    made.user("api/cargo", "api/Cargo.toml", fill(CARGO, &values));
    made.rust("api/lib", "api/src/lib.rs", &fill(LIB, &values));
    for resource in project.resources.iter().filter(|resource| resource.api) {
        kind(project, resource, made);
    }
}

/// Returns the module lines of `lib.rs`: a line for each version, or for each group.
fn modules(project: &Project) -> String {
    let own = project.resources.iter().filter(|resource| resource.api);
    let mut modules: BTreeSet<String> = own
        .map(|resource| {
            let folder = folder(project, resource);
            let first = folder.split('/').next().unwrap_or_default();
            format!("pub mod {first};\n")
        })
        .collect();
    modules.extend(
        project.generate.iter().map(|made| format!("#[cfg(feature = \"{made}\")]\npub mod {made};\n")),
    );
    let lines: String = modules.into_iter().collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

fn kind(project: &Project, resource: &Resource, made: &mut Made<'_>) {
    let Resource { group, version, kind, .. } = resource;
    let (api_group, attribute) = (project.api_group(resource), attribute(project, resource));
    let values = [
        ("kind", kind.as_str()),
        ("a", article(kind)),
        ("attribute", &attribute),
        ("group", &api_group),
        ("version", version),
        ("lower", &kind.to_ascii_lowercase()),
    ];
    let id = format!("{group}/{version}/{kind}");
    let folder = folder(project, resource);
    let file = made.rust(
        format!("api/{id}"),
        format!("api/src/{folder}/{}.rs", resource.module()),
        &fill(KIND, &values),
    );
    let earlier = project
        .versions(group, kind)
        .take_while(|other| other.version != *version)
        .filter(|other| other.api)
        .last();
    let copy = |path: String, written: &dyn Fn(&str) -> String| {
        earlier.map(|other| CopyOf { path, from: written(&other.version), to: written(version) })
    };
    let folder = earlier.map(|other| self::folder(project, other)).unwrap_or_default();
    file.copy = copy(format!("api/src/{folder}/{}.rs", resource.module()), &|version| {
        format!("version = \"{version}\"")
    });
    let sample = made.user(format!("sample/{id}"), resource.sample_path(), fill(SAMPLE, &values));
    let path = earlier.map(Resource::sample_path).unwrap_or_default();
    sample.copy = copy(path, &|version| format!("apiVersion: {api_group}/{version}"));
}

/// Returns the folder of a version in `api/src`: `v1`, or with folders for groups `foo/v1`.
pub(super) fn folder(project: &Project, resource: &Resource) -> String {
    if project.multigroup {
        format!("{}/{}", name::module(&resource.group), resource.version)
    } else {
        resource.version.clone()
    }
}

/// Returns the attribute `#[kube(..)]`, in the format of rustfmt.
fn attribute(project: &Project, resource: &Resource) -> String {
    let Resource { version, kind, plural, .. } = resource;
    let mut arguments = vec![
        format!("group = \"{}\"", project.api_group(resource)),
        format!("version = \"{version}\""),
        format!("kind = \"{kind}\""),
    ];
    if *plural != name::plural(kind) {
        arguments.push(format!("plural = \"{plural}\""));
    }
    arguments.push(format!("doc = \"{} {kind}\"", capitalized(article(kind))));
    arguments.push(format!("status = \"{kind}Status\""));
    if resource.namespaced {
        arguments.push("namespaced".to_owned());
    }
    let line = arguments.join(", ");
    if line.len() <= ATTRIBUTE_WIDTH {
        return format!("#[kube({line})]");
    }
    format!("#[kube(\n    {}\n)]", arguments.join(",\n    "))
}

fn capitalized(article: &str) -> &'static str {
    if article == "an" { "An" } else { "A" }
}

/// Returns the path of a type in the operator's crate: `operator_demo_api::v1::Bar`.
pub(super) fn type_module(project: &Project, resource: &Resource) -> String {
    let api = project.api_package().replace('-', "_");
    format!("{api}::{}", folder(project, resource).replace('/', "::"))
}
