//! Generated code: the lists of modules, and the registry.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Made;
use super::api::folder as api_folder;
use super::controller::type_import;
use super::line;
use super::webhook::folder as webhook_folder;
use crate::{Project, Resource, name};

pub(super) fn files(project: &Project, made: &mut Made<'_>) {
    let mut lists = Lists::default();
    for resource in &project.resources {
        if resource.api {
            lists.reexported("api/src", &format!("{}/{}", api_folder(project, resource), resource.module()));
        }
        for (module, _) in resource.controllers() {
            let group = if project.multigroup {
                format!("{}/", name::module(&resource.group))
            } else {
                String::new()
            };
            let path = format!("{group}{module}");
            lists.public("src/controllers", &path);
            lists.leave_alone("src/controllers", &path, &resource.kind);
        }
        let folder = webhook_folder(project, resource);
        for module in webhook_modules(resource) {
            lists.public("src/webhooks", &format!("{folder}/{module}"));
            lists.leave_alone("src/webhooks", &folder, &resource.kind);
        }
    }
    for (folder, lines) in lists.0 {
        // The user's: see `api`.
        if folder != "api/src" {
            let text: String = lines.into_values().collect();
            made.generated(&format!("{folder}/mod.rs"), &text);
        }
    }
    made.generated(
        "src/generated/mod.rs",
        "#[rustfmt::skip]\nmod registry;\n\npub use self::registry::register;\n",
    );
    made.generated("src/generated/registry.rs", &registry(project));
}

fn webhook_modules(resource: &Resource) -> Vec<String> {
    let webhooks = &resource.webhooks;
    let fixed = [(webhooks.defaulting, "defaulting"), (webhooks.validation, "validation")];
    let fixed = fixed.into_iter().filter(|(there, _)| *there).map(|(_, module)| module.to_owned());
    fixed.chain(webhooks.spokes.iter().map(|spoke| format!("conversion_{spoke}"))).collect()
}

/// The lines of each folder's list of modules, sorted by key.
#[derive(Default)]
struct Lists(BTreeMap<String, BTreeMap<String, String>>);

impl Lists {
    /// Adds a public module, and the folders above the module.
    fn public(&mut self, root: &str, path: &str) {
        let mut folder = root.to_owned();
        for module in path.split('/') {
            self.line(&folder, &format!("pub mod {module};\n"));
            folder = format!("{folder}/{module}");
        }
    }

    /// Like `public`, but re-exports the content of the module in the folder.
    fn reexported(&mut self, root: &str, path: &str) {
        let (folders, module) = path.rsplit_once('/').unwrap_or(("", path));
        self.public(root, folders);
        let folder = format!("{root}/{folders}");
        self.line(&folder, &format!("mod {module};\n"));
        // Behind the modules.
        self.line(&folder, &format!("pub use self::{module}::*;\n"));
    }

    fn line(&mut self, folder: &str, line: &str) {
        self.0
            .entry(folder.to_owned())
            .or_default()
            .entry(line.to_owned())
            .or_insert_with(|| line.to_owned());
    }

    /// Keeps rustfmt away from the files of a module, if the kind is too long for the lines of the templates.
    fn leave_alone(&mut self, root: &str, path: &str, kind: &str) {
        if !line::is_too_long(kind) {
            return;
        }
        let (folder, module) = match path.rsplit_once('/') {
            Some((folders, module)) => (format!("{root}/{folders}"), module),
            None => (root.to_owned(), path),
        };
        let line = format!("pub mod {module};\n");
        let marked = format!("#[rustfmt::skip]\n{line}");
        self.0.entry(folder).or_default().insert(line, marked);
    }
}

/// Returns the function that adds everything to a manager.
fn registry(project: &Project) -> String {
    let mut body = String::new();
    for kind in project.own_kinds() {
        crd(project, kind, &mut body);
    }
    for resource in &project.resources {
        let group =
            if project.multigroup { format!("{}::", name::module(&resource.group)) } else { String::new() };
        for (module, _) in resource.controllers() {
            let _ = writeln!(
                body,
                "    let manager = manager.controller(controllers::{group}{module}::controller(setup));"
            );
        }
    }
    let webhooks = webhooks(project);
    body += &webhooks;

    let mut imports = String::new();
    if body.contains("merge_crds(") {
        imports += "use windlass::kube::core::crd::merge_crds;\n";
    }
    imports += "use windlass::prelude::*;\n";
    if !webhooks.is_empty() {
        let names = ["Converter", "Webhooks"];
        let used = names.into_iter().filter(|name| webhooks.contains(&format!("{name}::")));
        let used: Vec<&str> = used.collect();
        let used = match used[..] {
            [one] => one.to_owned(),
            _ => format!("{{{}}}", used.join(", ")),
        };
        let _ = writeln!(imports, "use windlass::webhook::{used};");
    }
    let modules =
        ["controllers", "webhooks"].into_iter().filter(|module| body.contains(&format!("{module}::")));
    let ours: Vec<&str> = std::iter::once("Setup").chain(modules).collect();
    let ours = match ours[..] {
        [one] => one.to_owned(),
        _ => format!("{{{}}}", ours.join(", ")),
    };
    let _ = write!(imports, "\nuse crate::{ours};\n");
    format!(
        "{imports}\n/// Adds the kinds, controllers and webhooks that windlass.toml lists to a manager, and what `setup` configures.\n///\n/// # Errors\n\
         /// The versions of a kind do not fit together.\npub fn register(manager: Manager, setup: &Setup) -> Result<Manager> {{\n{body}    Ok(setup.configure(manager))\n}}\n"
    )
}

fn crd(project: &Project, kind: &Resource, body: &mut String) {
    let versions: Vec<&Resource> =
        project.versions(&kind.group, &kind.kind).filter(|resource| resource.api).collect();
    if let [one] = versions[..] {
        let _ = writeln!(body, "    let manager = manager.crd({}::crd());", type_import(project, one));
        return;
    }
    for version in &versions {
        let _ = writeln!(body, "    let {} = {}::crd();", version.version, type_import(project, version));
    }
    let names: Vec<&str> = versions.iter().map(|version| version.version.as_str()).collect();
    let storage = project.storage_version(kind);
    let _ = writeln!(
        body,
        "    let crd = merge_crds(vec![{}], \"{storage}\").map_err(Error::other)?;",
        names.join(", ")
    );
    body.push_str("    let manager = manager.crd(crd);\n");
}

fn webhooks(project: &Project) -> String {
    let mut body = String::new();
    for resource in &project.resources {
        let module = webhook_folder(project, resource).replace('/', "::");
        let import = type_import(project, resource);
        let admission =
            [(resource.webhooks.defaulting, "defaulting"), (resource.webhooks.validation, "validation")];
        for (_, what) in admission.into_iter().filter(|(there, _)| *there) {
            let _ = writeln!(
                body,
                "    let hooks = hooks.admission(webhooks::{module}::{what}::webhook(setup));"
            );
        }
        if resource.webhooks.converts() {
            let _ = writeln!(body, "    let converter = Converter::hub::<{import}>().lossless();");
            for spoke in &resource.webhooks.spokes {
                let _ = writeln!(body, "    let {spoke} = (");
                let _ = writeln!(body, "        webhooks::{module}::conversion_{spoke}::to_hub,");
                let _ = writeln!(body, "        webhooks::{module}::conversion_{spoke}::from_hub,");
                let _ = writeln!(body, "    );");
                let _ = writeln!(body, "    let converter = converter.spoke_with({spoke}.0, {spoke}.1);");
            }
            let _ = writeln!(body, "    let hooks = hooks.converter(converter);");
        }
    }
    if body.is_empty() {
        return body;
    }
    format!(
        "    let hooks = Webhooks::new();\n{body}    let manager = manager.webhooks(setup.webhook_server(hooks));\n"
    )
}
