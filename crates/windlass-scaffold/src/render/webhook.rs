//! The webhooks.

use super::Made;
use super::api::type_module;
use super::controller::{type_import, variable};
use super::line;
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
        // Without the version: the webhooks of a kind may move to another version.
        let id = format!("{}/{kind}", resource.group);
        let example = if resource.api {
            format!("{kind}::new(\"example\", Default::default())")
        } else {
            format!("{kind}::default()")
        };
        let webhooks = &resource.webhooks;
        let asked = [
            (webhooks.defaulting, "defaulting", DEFAULTING, defaulting(kind), &webhooks.defaulting_path),
            (webhooks.validation, "validation", VALIDATION, validation(kind), &webhooks.validation_path),
        ];
        for (_, what, template, signature, path) in asked.into_iter().filter(|(there, ..)| *there) {
            let values = [
                ("kind", kind),
                ("variable", variable(&module)),
                ("import", &import),
                ("example", &example),
                ("signature", &signature),
                ("webhook", &declaration(what, kind, path.as_deref())),
            ];
            let template = if resource.external.is_some() { without_test(template) } else { template };
            let file = made.rust(
                format!("{what}/{id}"),
                format!("src/webhooks/{folder}/{what}.rs"),
                &fill(template, &values),
            );
            file.types = Some(type_path(&import).to_owned());
        }
        for spoke in &resource.webhooks.spokes {
            conversion(project, resource, spoke, made);
        }
    }
}

/// Returns the module of a type.
fn type_path(import: &str) -> &str {
    import.rsplit_once("::").map_or(import, |(module, _)| module)
}

/// Returns the expression that makes an admission webhook.
fn declaration(what: &str, kind: &str, path: Option<&str>) -> String {
    let first = match what {
        "defaulting" => format!("AdmissionWebhook::defaulter::<{kind}>(default)"),
        _ => format!("AdmissionWebhook::validator::<{kind}>(validate)"),
    };
    line::chain(&first, &path.map(|path| format!(".path({path:?})")).unwrap_or_default())
}

/// Returns the head of the function that sets defaults.
fn defaulting(kind: &str) -> String {
    let parameters = [format!("object: {kind}"), "_: AdmissionContext".to_owned()];
    line::signature("pub async fn default", &parameters, &format!(" -> Result<{kind}, AdmissionDenial>"))
}

/// Returns the head of the function that validates.
fn validation(kind: &str) -> String {
    let parameters = [format!("change: AdmissionChange<{kind}>"), "cx: AdmissionContext".to_owned()];
    line::signature("pub async fn validate", &parameters, " -> Result<(), AdmissionDenial>")
}

/// Returns a file without tests: the required fields of an external type are not known.
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
    let convert = |name: &str, parameter: &str, from: &str, to: &str| {
        let parameters = [format!("{parameter}: {from}::{kind}")];
        line::signature(
            &format!("pub fn {name}"),
            &parameters,
            &format!(" -> Result<{to}::{kind}, BoxError>"),
        )
    };
    let values = [
        ("kind", kind.as_str()),
        ("a", article(kind)),
        ("imports", &line::import(base, &versions)),
        ("to_hub", &convert("to_hub", "object", spoke, version)),
        ("from_hub", &convert("from_hub", "hub", version, spoke)),
        ("object", &line::new_object(&format!("{spoke}::{kind}"))),
        ("hub", version),
        ("spoke", spoke),
    ];
    let path = format!("src/webhooks/{}/conversion_{spoke}.rs", folder(project, hub));
    let template = format!("{CONVERSION}{CONVERSION_TEST}");
    made.rust(format!("conversion/{group}/{kind}/{spoke}"), path, &fill(&template, &values));
}
