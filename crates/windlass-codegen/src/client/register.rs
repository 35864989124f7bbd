//! Renders the kinds and resources.

use std::fmt::Write as _;

use super::render::{Render, feature, group_name, module_example};
use super::{GroupVersion, Kind};
use crate::{SourceFile, names};

pub(super) fn render(render: &Render<'_>) -> SourceFile {
    let mut text = "//! The kinds and resources: `register.go` and the scheme in Go.\n".to_owned();
    if let Some((version, kind)) = render.example() {
        let code = format!(
            "# fn main() -> Result<(), {{windlass_client}}::scheme::MappingError> {{\nlet mapping = \
             {}::register::rest_mapper().rest_mapping({:?}, {:?}, &[])?;\nassert_eq!(mapping.resource.resource, {:?});\n# Ok(()) }}\n",
            render.target.public, version.group, kind.name, kind.resource
        );
        let example = module_example(version, &code);
        let main = "# fn main() -> Result<(), windlass_client::scheme::MappingError> {";
        // Inside of a module, the function is not the program's own.
        text += &match &version.feature {
            Some(_) => example
                .replace(main, "# pub fn example() -> Result<(), windlass_client::scheme::MappingError> {"),
            None => example.replace("no_run", ""),
        };
    }
    text += "\nuse {windlass_client}::scheme::{KnownType, RestMapper, Scheme};\n";
    text += "\n/// The kinds of all groups and versions.\npub const KNOWN_TYPES: &[KnownType] = &[\n";
    for version in &render.api.versions {
        for kind in &version.kinds {
            text += &feature(&[version], "    ");
            let _ = writeln!(text, "    {}::{}::{},", version.module, version.version, constant(kind));
        }
    }
    text += "];\n";
    text += FUNCTIONS;
    for group in render.api.groups() {
        text += &group_module(&group);
    }
    render.file("register.rs", &text)
}

const FUNCTIONS: &str = "
/// Returns a scheme with the kinds of all groups and versions: `AddToScheme` in Go.
pub fn scheme() -> Scheme {
    Scheme::new().add_known_types(KNOWN_TYPES)
}

/// Returns the mapping between kinds and resources at the time when this file was generated.
pub fn rest_mapper() -> RestMapper {
    RestMapper::from(&scheme())
}
";

fn group_module(group: &[&GroupVersion]) -> String {
    let mut text = format!("\n/// The group {}.\n", group_name(group[0]));
    let _ = writeln!(text, "pub mod {} {{", group[0].module);
    let _ = writeln!(
        text,
        "    /// The name of the group.\n    pub const GROUP_NAME: &str = {:?};",
        group[0].group
    );
    for version in group {
        let _ = write!(text, "\n    /// The version `{}`.\n", version.version);
        text += &feature(&[version], "    ");
        let _ = writeln!(text, "    pub mod {} {{", version.version);
        let _ = writeln!(
            text,
            "        {{windlass_client}}::known_types! {{ {:?} {:?}:",
            version.group, version.version
        );
        version.kinds.iter().for_each(|kind| text += &row(kind));
        text += "        }\n    }\n";
    }
    text + "}\n"
}

fn constant(kind: &Kind) -> String {
    names::snake(&kind.name).to_ascii_uppercase()
}

fn row(kind: &Kind) -> String {
    let Kind { name, resource, singular, namespaced, .. } = kind;
    format!("            {} {name:?}: {resource:?} {singular:?} namespaced {namespaced};\n", constant(kind))
}
