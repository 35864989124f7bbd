//! The controllers.

use super::Made;
use super::api::type_module;
use super::builtin;
use super::template::{article, fill};
use crate::{Project, Resource, name};

const OWN: &str = include_str!("../../templates/controller.rs.txt");
const FOREIGN: &str = include_str!("../../templates/foreign_controller.rs.txt");
const OWN_TEST: &str = include_str!("../../templates/controller_test.rs.txt");
const BUILTIN_TEST: &str = include_str!("../../templates/builtin_test.rs.txt");

pub(super) fn files(project: &Project, made: &mut Made<'_>) {
    for resource in project.resources.iter().filter(|resource| resource.controller) {
        let module = resource.module();
        let path = if project.multigroup {
            format!("src/controllers/{}/{module}.rs", name::module(&resource.group))
        } else {
            format!("src/controllers/{module}.rs")
        };
        made.rust(format!("controller/{}/{}", resource.group, resource.kind), path, &text(project, resource));
    }
}

fn text(project: &Project, resource: &Resource) -> String {
    let kind = resource.kind.as_str();
    let (module, import) = (resource.module(), type_import(project, resource));
    let namespaced = resource.namespaced;
    let values = [
        ("kind", kind),
        ("a", article(kind)),
        ("variable", &module),
        ("import", &import),
        ("types", &type_module(project, resource)),
        ("imports", &format!("{{{kind}, {kind}Status}}")),
        ("scope", if namespaced { "default_namespaced" } else { "all" }),
        ("key", if namespaced { "default/example" } else { "example" }),
        (
            "fake_key",
            if namespaced { "namespaced(\"default\", \"example\")" } else { "cluster(\"example\")" },
        ),
        (
            "fake_namespace",
            if namespaced {
                "        object.metadata.namespace = Some(\"default\".to_owned());\n"
            } else {
                ""
            },
        ),
    ];
    let (body, test) = match (resource.api, &resource.external) {
        (true, _) => (OWN, OWN_TEST),
        (false, None) => (FOREIGN, BUILTIN_TEST),
        // What an object of an unknown type must have is not known either.
        (false, Some(_)) => (FOREIGN, ""),
    };
    fill(&format!("{body}{test}"), &values)
}

/// Returns the path of the type of a kind.
pub(super) fn type_import(project: &Project, resource: &Resource) -> String {
    let kind = &resource.kind;
    match &resource.external {
        Some(external) => format!("{}::{kind}", external.path),
        None if resource.api => format!("{}::{kind}", type_module(project, resource)),
        None => {
            let module = builtin::module(&resource.group, &resource.version).unwrap_or_default();
            format!("k8s_openapi::api::{module}::{kind}")
        }
    }
}
