//! The controllers.

use super::Made;
use super::api::type_module;
use super::line;
use super::template::{article, fill};
use crate::{Project, Resource, builtin, name};

const OWN: &str = include_str!("../../templates/controller.rs.txt");
const FOREIGN: &str = include_str!("../../templates/foreign_controller.rs.txt");
const OWN_TEST: &str = include_str!("../../templates/controller_test.rs.txt");
const BUILTIN_TEST: &str = include_str!("../../templates/builtin_test.rs.txt");

pub(super) fn files(project: &Project, made: &mut Made<'_>) {
    for resource in &project.resources {
        for (module, name) in resource.controllers() {
            let path = if project.multigroup {
                format!("src/controllers/{}/{module}.rs", name::module(&resource.group))
            } else {
                format!("src/controllers/{module}.rs")
            };
            let id = format!("controller/{}/{}", resource.group, resource.kind);
            let id = name.map_or(id.clone(), |name| format!("{id}/{name}"));
            let file = made.rust(id, path, &text(project, resource, name));
            file.types = resource.api.then(|| type_module(project, resource));
        }
    }
}

/// Returns the text of a controller. The default name is the name of the kind.
fn text(project: &Project, resource: &Resource, name: Option<&str>) -> String {
    let kind = resource.kind.as_str();
    let (module, import) = (resource.module(), type_import(project, resource));
    let namespaced = resource.namespaced;
    let scope = if namespaced { "default_namespaced" } else { "all" };
    let types = type_module(project, resource);
    let parameters = ["key: ObjectKey".to_owned(), format!("cx: Context<{kind}>")];
    let values = [
        ("kind", kind),
        ("a", article(kind)),
        ("variable", variable(&module)),
        ("import", &import),
        ("types", &types),
        ("imports", &line::import(&types, &[kind, &format!("{kind}Status")])),
        ("controller", &own_controller(kind, name)),
        ("foreign_controller", &foreign_controller(kind, name)),
        ("signature", &line::signature("async fn reconcile", &parameters, " -> Result<Action>")),
        (
            "objects",
            &line::binding(&format!("objects: Api<{kind}>"), &format!("Api::{scope}(cluster.client())")),
        ),
        ("install", &line::install(kind)),
        ("object", &line::new_object(kind)),
        ("reconciled", &line::binding("reconciled", &format!("|object: &{kind}| object.status.is_some()"))),
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
        // The required fields of an unknown type are not known.
        (false, Some(_)) => (FOREIGN, ""),
    };
    fill(&format!("{body}{test}"), &values)
}

/// Returns the expression that makes a controller of a kind of the project.
fn own_controller(kind: &str, name: Option<&str>) -> String {
    let (first, needs) = (
        format!("Controller::of::<{kind}>(reconcile)"),
        format!(".needs(Permission::status_of::<{kind}>())"),
    );
    match name {
        None => line::chain(&first, &needs),
        Some(name) => format!("    {first}\n        .named({name:?})\n        {needs}"),
    }
}

/// Returns the expression that makes a controller of another kind.
fn foreign_controller(kind: &str, name: Option<&str>) -> String {
    let name = name.map(|name| format!(".named({name:?})")).unwrap_or_default();
    line::chain(&format!("Controller::of::<{kind}>(reconcile)"), &name)
}

/// The longest name of a variable. The lines of the templates have room for this length.
const LONGEST_VARIABLE: usize = 24;

/// Returns the name of a variable for an object of the kind with this module.
pub(super) fn variable(module: &str) -> &str {
    if module.len() <= LONGEST_VARIABLE { module } else { "object" }
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
