//! The webhooks.

use super::Made;
use super::api::type_module;
use super::controller::type_import;
use super::template::{article, fill};
use crate::{Project, Resource, name};

const DEFAULTING: &str = include_str!("../../templates/defaulting.rs.txt");
const VALIDATION: &str = include_str!("../../templates/validation.rs.txt");
const CONVERSION: &str = include_str!("../../templates/conversion.rs.txt");
const CONVERSION_TEST: &str = include_str!("../../templates/conversion_test.rs.txt");

pub(super) fn files(project: &Project, made: &mut Made<'_>) {
    for resource in &project.resources {
        let (import, folder) = (type_import(project, resource), folder(project, resource));
        let kind = resource.kind.as_str();
        let module = resource.module();
        let id = format!("{}/{}/{kind}", resource.group, resource.version);
        let example = if resource.api {
            "{{kind}}::new(\"example\", Default::default())"
        } else {
            "Default::default()"
        };
        let signature = signature(kind);
        let example = fill(example, &[("kind", kind)]);
        let values = [
            ("kind", kind),
            ("variable", module.as_str()),
            ("import", &import),
            ("example", &example),
            ("signature", &signature),
        ];
        let mut add = |there: bool, what: &str, template: &str| {
            if there {
                let template = if resource.external.is_some() { without_test(template) } else { template };
                made.rust(
                    format!("{what}/{id}"),
                    format!("src/webhooks/{folder}/{what}.rs"),
                    &fill(template, &values),
                );
            }
        };
        add(resource.webhooks.defaulting, "defaulting", DEFAULTING);
        add(resource.webhooks.validation, "validation", VALIDATION);
        for spoke in &resource.webhooks.spokes {
            conversion(project, resource, spoke, made);
        }
    }
}

/// The width of a line, for rustfmt.
const LINE: usize = 100;

/// Returns the head of the function that sets defaults, in the format of rustfmt.
fn signature(kind: &str) -> String {
    let end = format!(") -> Result<{kind}, Denial> {{");
    let line = format!("pub async fn default(object: {kind}, _: AdmissionContext{end}");
    if line.len() <= LINE {
        return line;
    }
    format!("pub async fn default(\n    object: {kind},\n    _: AdmissionContext,\n{end}")
}

/// Returns a file without its tests: what an object of an external type must have is not known.
fn without_test(template: &str) -> &str {
    template.split_once("\n#[cfg(test)]").map_or(template, |(code, _)| code)
}

/// Returns the folder of a kind in `src/webhooks`: `bar`, or with folders for groups `foo/bar`.
pub(super) fn folder(project: &Project, resource: &Resource) -> String {
    let module = resource.module();
    if project.multigroup { format!("{}/{module}", name::module(&resource.group)) } else { module }
}

fn conversion(project: &Project, hub: &Resource, spoke: &str, made: &mut Made<'_>) {
    let Resource { group, version, kind, .. } = hub;
    let types = type_module(project, hub);
    let base = types.strip_suffix(&format!("::{version}")).unwrap_or(&types);
    let mut versions = [spoke, version];
    versions.sort_unstable();
    let values = [
        ("kind", kind.as_str()),
        ("a", article(kind)),
        ("base", base),
        ("hub", version),
        ("spoke", spoke),
        ("versions", &format!("{{{}, {}}}", versions[0], versions[1])),
    ];
    let path = format!("src/webhooks/{}/conversion_{spoke}.rs", folder(project, hub));
    let template = format!("{CONVERSION}{CONVERSION_TEST}");
    made.rust(format!("conversion/{group}/{kind}/{spoke}"), path, &fill(&template, &values));
}
