//! Renders the listers.

use super::render::{Render, article, imports, type_name};
use super::{GroupVersion, Kind};
use crate::SourceFile;

pub(super) fn render(render: &Render<'_>, files: &mut Vec<SourceFile>) {
    let mut root =
        "//! Typed reads from the caches of informers. A lister never sends a request.\n".to_owned();
    root += &render.modules("Listers");
    files.push(render.file("listers/mod.rs", &root));
    for version in &render.api.versions {
        let path = format!("listers/{}/{}.rs", version.module, version.version);
        files.push(render.file(path, &group_version(version)));
    }
}

fn group_version(version: &GroupVersion) -> String {
    let mut text = format!("//! Listers of `{}`.\n\n", version.api_version());
    text += &imports(version.kinds.iter());
    text += "\n{windlass_client}::listers! {\n";
    version.kinds.iter().for_each(|kind| text += &row(kind));
    text + "}\n"
}

fn row(kind: &Kind) -> String {
    let (name, object, a) = (&kind.name, type_name(kind), article(&kind.name));
    let method = match kind.method() {
        _ if !kind.namespaced => "get(name)".to_owned(),
        // `list` and `new` are methods already.
        method if matches!(method.as_str(), "list" | "new") => "namespaced(namespace)".to_owned(),
        method => format!("{method}(namespace)"),
    };
    format!("    {a} {name}Lister of {object}: {method};\n")
}
