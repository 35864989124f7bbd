//! Renders the functions that begin apply configurations.

use std::fmt::Write as _;

use super::render::{Render, imports, type_name};
use super::{GroupVersion, Kind};
use crate::{SourceFile, names};

pub(super) fn render(render: &Render<'_>, files: &mut Vec<SourceFile>) {
    let mut root = "//! Configurations for server-side apply: only fields that are set are sent, and owned by the field manager of the apply.\n\
                    //!\n//! The derive macro `ApplyConfiguration` has made the configurations beside the types.\n"
        .to_owned();
    root += &render.modules("Apply configurations");
    files.push(render.file("applyconfiguration/mod.rs", &root));
    for version in &render.api.versions {
        let path = format!("applyconfiguration/{}/{}.rs", version.module, version.version);
        files.push(render.file(path, &group_version(version)));
    }
}

fn group_version(version: &GroupVersion) -> String {
    let kinds = || version.kinds.iter().filter(|kind| kind.has_apply_configuration);
    let mut text = format!("//! Apply configurations of `{}`.\n\n", version.api_version());
    text += &imports(kinds());
    for kind in kinds() {
        let _ = writeln!(text, "pub use {}ApplyConfiguration;", kind.path);
    }
    kinds().for_each(|kind| text += &function(kind));
    text
}

fn function(kind: &Kind) -> String {
    let (name, function, object) = (&kind.name, names::snake(&kind.name), type_name(kind));
    let (parameters, arguments, doc) = if kind.namespaced {
        ("name: impl Into<String>, namespace: impl Into<String>", "name, namespace", "name and namespace")
    } else {
        ("name: impl Into<String>", "name", "name")
    };
    format!(
        "\n/// Makes a configuration of the `{name}` with this {doc} and no other fields.\npub fn {function}({parameters}) -> \
         {name}ApplyConfiguration {{\n    {object}::apply({arguments})\n}}\n"
    )
}
