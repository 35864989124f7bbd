//! The common parts of the generated files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::{Api, GroupVersion, Kind, Target};
use crate::SourceFile;

/// Names in generated files. A kind with such a name is imported under a different name.
const USED: &[&str] = &[
    "Arc",
    "Box",
    "Client",
    "Clientset",
    "Copy",
    "DynamicObject",
    "Debug",
    "Clone",
    "Err",
    "GroupInformers",
    "GroupVersion",
    "GroupVersionResource",
    "Interface",
    "Into",
    "KnownType",
    "Lister",
    "NamespacedLister",
    "None",
    "Objects",
    "Ok",
    "Option",
    "RestMapper",
    "Result",
    "Scheme",
    "Selector",
    "Self",
    "SharedInformer",
    "SharedInformerFactory",
    "Some",
    "String",
    "TypedClient",
    "Vec",
];

/// The input of all pieces.
pub(super) struct Render<'a> {
    pub(super) api: &'a Api,
    pub(super) target: &'a Target,
}

impl<'a> Render<'a> {
    pub(super) fn new(api: &'a Api, target: &'a Target) -> Self {
        Self { api, target }
    }

    /// Makes a file with the header, and replaces `{windlass_client}` by the path of that crate.
    pub(super) fn file(&self, path: impl Into<String>, body: &str) -> SourceFile {
        let note = self.target.note.as_ref().map(|note| format!("// {note}\n")).unwrap_or_default();
        SourceFile::new(path, note + &body.replace("{windlass_client}", &self.target.support))
    }

    /// Returns the modules of the versions, by group, inside of one file.
    pub(super) fn modules(&self, what: &str) -> String {
        let mut text = String::new();
        for group in self.api.groups() {
            let _ = write!(text, "\n/// {what} of the group {}.\n", group_name(group[0]));
            let _ = writeln!(text, "pub mod {} {{", group[0].module);
            for version in &group {
                text += &feature(&[version], "    ");
                let _ = writeln!(text, "    pub mod {};", version.version);
            }
            text += "}\n";
        }
        text
    }

    /// Returns the version and kind that examples use: the first that is in namespaces and has a cache.
    pub(super) fn example(&self) -> Option<(&GroupVersion, &Kind)> {
        let all = self
            .api
            .versions
            .iter()
            .flat_map(|version| version.kinds.iter().map(move |kind| (version, kind)));
        let cached = all.filter(|(_, kind)| kind.is_listed());
        let preferred = ["Deployment", "Pod"];
        cached.min_by_key(|(_, kind)| (!preferred.contains(&kind.name.as_str()), !kind.namespaced))
    }
}

/// Returns the attribute of an item that needs one of some versions.
pub(super) fn feature(versions: &[&GroupVersion], indent: &str) -> String {
    let features: Option<Vec<String>> =
        versions.iter().map(|version| Some(format!("feature = {:?}", version.feature.as_ref()?))).collect();
    match features.as_deref() {
        None | Some([]) => String::new(),
        Some([feature]) => format!("{indent}#[cfg({feature})]\n"),
        Some(features) => format!("{indent}#[cfg(any({}))]\n", features.join(", ")),
    }
}

/// Returns the imports of the types of some kinds, with one declaration for each module.
pub(super) fn imports<'k>(kinds: impl Iterator<Item = &'k Kind>) -> String {
    let mut modules: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for kind in kinds {
        let (module, last) = kind.path.rsplit_once("::").unwrap_or(("self", &kind.path));
        let name = type_name(kind);
        let item = if last == name { name } else { format!("{last} as {name}") };
        modules.entry(module).or_default().insert(item);
    }
    let mut text = String::new();
    for (module, items) in modules {
        let items: Vec<String> = items.into_iter().collect();
        let _ = match &items[..] {
            [item] => writeln!(text, "use {module}::{item};"),
            items => writeln!(text, "use {module}::{{{}}};", items.join(", ")),
        };
    }
    text
}

/// Returns an example for module documentation. The example compiles with the features of the version.
pub(super) fn module_example(version: &GroupVersion, code: &str) -> String {
    let mut text = "//!\n//! ```no_run\n".to_owned();
    let lines = code.trim_end().lines().map(|line| line.replace("{windlass_client}", "windlass_client"));
    match &version.feature {
        None => lines.for_each(|line| text += &doc_line(&line)),
        Some(feature) => {
            let _ = writeln!(text, "//! # #[cfg(feature = {feature:?})] mod example {{");
            lines.for_each(|line| text += &doc_line(&line));
            text += "//! # }\n";
        }
    }
    text + "//! ```\n"
}

fn doc_line(line: &str) -> String {
    if line.is_empty() { "//!\n".to_owned() } else { format!("//! {line}\n") }
}

/// Returns the name under which a kind is imported.
pub(super) fn type_name(kind: &Kind) -> String {
    if USED.contains(&kind.name.as_str()) { format!("{}Object", kind.name) } else { kind.name.clone() }
}

/// Returns a group in documentation.
pub(super) fn group_name(version: &GroupVersion) -> String {
    if version.group.is_empty() { "\"\" (core)".to_owned() } else { format!("`{}`", version.group) }
}

/// Returns `a` or `an`, by the sound of a kind's first letter.
pub(super) fn article(kind: &str) -> &'static str {
    if kind.starts_with(['A', 'E', 'I', 'O']) { "an" } else { "a" }
}
