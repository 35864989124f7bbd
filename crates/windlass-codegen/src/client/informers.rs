//! Renders the shared informer factory.

use std::fmt::Write as _;

use super::render::{Render, article, feature, group_name, imports, module_example, type_name};
use super::{GroupVersion, Kind};
use crate::{SourceFile, names};

pub(super) fn render(render: &Render<'_>, files: &mut Vec<SourceFile>) {
    files.push(render.file("informers/mod.rs", &root(render)));
    for group in render.api.groups() {
        files.push(render.file(format!("informers/{}/mod.rs", group[0].module), &group_module(&group)));
        for version in &group {
            let path = format!("informers/{}/{}.rs", version.module, version.version);
            files.push(render.file(path, &group_version(render, version)));
        }
    }
}

fn root(render: &Render<'_>) -> String {
    let mut text = "//! Caches with event handlers: `NewSharedInformerFactory` in Go.\n".to_owned();
    if let Some((version, kind)) = render.example() {
        let code = format!(
            "use std::time::Duration;\n\nuse {{windlass_client}}::{{\n    ObjectKey, ObjectKeyExt as _, ResourceEventHandlerFuncs, Result, Selector,\n}};\nuse \
             {}::informers::{{GroupInformers as _, SharedInformerFactory}};\n\n# pub async fn example(client: {{windlass_client}}::Client) -> Result<()> {{\nlet \
             factory = SharedInformerFactory::new(client, Duration::from_secs(30));\nlet {method} = \
             factory.{}().{}().{method}();\n{method}.informer()?.add_event_handler(\n    \
             ResourceEventHandlerFuncs::new().add_func(|object| println!(\"{{}}\", \
             ObjectKey::of(&**object))),\n);\nfactory.start();\nfactory.wait_for_cache_sync(Duration::from_secs(30)).await?;\nprintln!(\"{{}} \
             {}\", {method}.lister()?.list(&Selector::everything())?.len());\nfactory.shutdown().await;\n# Ok(()) }}\n",
            render.target.public,
            version.module,
            version.version,
            kind.resource,
            method = kind.method(),
        );
        text += &module_example(version, &code);
    }
    text += "\nuse {windlass_client}::scheme::GroupVersionResource;\n";
    text += "pub use {windlass_client}::SharedInformerFactory;\n";
    text += "use {windlass_client}::{DynamicObject, Result, SharedInformer};\n";
    for group in render.api.groups() {
        let _ = write!(text, "\n/// Informers of the group {}.\n", group_name(group[0]));
        text += &feature(&group, "");
        let _ = writeln!(text, "pub mod {};", group[0].module);
    }
    text += "\n/// The groups of these informers, as methods of a [`SharedInformerFactory`].\npub trait GroupInformers {\n";
    for (place, group) in render.api.groups().iter().enumerate() {
        let module = &group[0].module;
        text += if place == 0 { "" } else { "\n" };
        let _ = writeln!(text, "    /// Returns the informers of the group {}.", group_name(group[0]));
        text += &feature(group, "    ");
        let _ = writeln!(text, "    fn {module}(&self) -> {module}::Interface;");
    }
    text += "}\n\nimpl GroupInformers for SharedInformerFactory {\n";
    for (place, group) in render.api.groups().iter().enumerate() {
        let module = &group[0].module;
        text += if place == 0 { "" } else { "\n" };
        text += &feature(group, "    ");
        let _ = writeln!(text, "    fn {module}(&self) -> {module}::Interface {{");
        let _ = writeln!(text, "        {module}::Interface::new(self.clone())\n    }}");
    }
    text += "}\n";
    text += &FOR_RESOURCE.replace("{module}", &render.target.module);
    text
}

const FOR_RESOURCE: &str = "
/// Returns the informer of a resource of these groups, with objects of no particular type: `ForResource` in Go.
///
/// # Errors
/// The resource is unknown, or the factory has been shut down.
pub fn for_resource(factory: &SharedInformerFactory, resource: &GroupVersionResource) -> Result<SharedInformer<DynamicObject>> {
    {windlass_client}::informer_for_resource(factory, &{module}::register::scheme(), resource)
}
";

fn group_module(group: &[&GroupVersion]) -> String {
    let name = group_name(group[0]);
    let mut text =
        format!("//! Informers of the group {name}.\n\nuse {{windlass_client}}::SharedInformerFactory;\n");
    for version in group {
        let _ = write!(text, "\n/// Informers of `{}`.\n", version.api_version());
        text += &feature(&[version], "");
        let _ = writeln!(text, "pub mod {};", version.version);
    }
    let _ = write!(
        text,
        "\n/// The informers of the versions of the group {name}.\n#[derive(Clone, Debug)]\npub struct Interface {{\n    \
         factory: SharedInformerFactory,\n}}\n\nimpl Interface {{\n    pub(crate) fn new(factory: SharedInformerFactory) -> Self {{\n        \
         Self {{ factory }}\n    }}\n"
    );
    for version in group {
        let module = &version.version;
        let _ = write!(text, "\n    /// Returns the informers of `{}`.\n", version.api_version());
        text += &feature(&[version], "    ");
        let _ = writeln!(text, "    pub fn {module}(&self) -> {module}::Interface {{");
        let _ = writeln!(text, "        {module}::Interface::new(self.factory.clone())\n    }}");
    }
    text + "}\n"
}

fn group_version(render: &Render<'_>, version: &GroupVersion) -> String {
    let api_version = version.api_version();
    let mut text = format!("//! Informers of `{api_version}`.\n\n");
    text += &imports(version.kinds.iter());
    let listers: Vec<String> = version.kinds.iter().map(|kind| format!("{}Lister", kind.name)).collect();
    let lister_module = format!("{}::listers::{}::{}", render.target.module, version.module, version.version);
    match &listers[..] {
        [lister] => writeln!(text, "use {lister_module}::{lister};"),
        listers => writeln!(text, "use {lister_module}::{{{}}};", listers.join(", ")),
    }
    .unwrap_or_default();
    let _ = write!(text, "\n{{windlass_client}}::informers! {{ {api_version:?}:\n");
    version.kinds.iter().for_each(|kind| text += &row(kind));
    text + "}\n"
}

fn row(kind: &Kind) -> String {
    let (name, method, object, a) = (&kind.name, kind.method(), type_name(kind), article(&kind.name));
    let objects = names::snake(&kind.plural()).trim_end_matches('_').replace('_', " ");
    format!("    {method}() -> {a} {name}Informer of {object}, {name}Lister, {objects:?};\n")
}
