//! Renders the listers.

use std::fmt::Write as _;

use super::render::{Render, article, imports, type_name};
use super::{GroupVersion, Kind};
use crate::SourceFile;

pub(super) fn render(render: &Render<'_>, files: &mut Vec<SourceFile>) {
    let mut root = "//! Typed reads from the caches of informers. They never ask the server.\n".to_owned();
    root += &render.modules("Listers");
    files.push(render.file("listers/mod.rs", &root));
    for version in &render.api.versions {
        let path = format!("listers/{}/{}.rs", version.module, version.version);
        files.push(render.file(path, &group_version(version)));
    }
}

fn group_version(version: &GroupVersion) -> String {
    let kinds = &version.kinds;
    let mut text = format!("//! Listers of `{}`.\n\n", version.api_version());
    if kinds.iter().any(|kind| !kind.namespaced) {
        text += "use std::sync::Arc;\n\n";
    }
    let namespaced = if kinds.iter().any(|kind| kind.namespaced) { "NamespacedLister, " } else { "" };
    let _ = writeln!(text, "use {{windlass_client}}::{{Lister, {namespaced}Objects, Result, Selector}};");
    text += &imports(kinds.iter());
    kinds.iter().for_each(|kind| text += &lister(kind));
    text
}

fn lister(kind: &Kind) -> String {
    let (name, object, a) = (&kind.name, type_name(kind), article(&kind.name));
    let mut text = format!(
        "\n/// Reads `{name}` objects from the cache of an informer. Cheap to clone.\n#[derive(Clone, Debug)]\npub struct \
         {name}Lister {{\n    lister: Lister<{object}>,\n}}\n\nimpl {name}Lister {{\n    /// Makes {a} `{name}` lister of a \
         cache.\n    pub fn new(lister: Lister<{object}>) -> Self {{\n        Self {{ lister }}\n    }}\n\n    /// Returns the objects \
         with matching labels{}.\n    pub fn list(&self, selector: &Selector) -> Result<Objects<{object}>> {{\n        \
         self.lister.list(selector)\n    }}\n",
        if kind.namespaced { ", of all namespaces" } else { "" }
    );
    if kind.namespaced {
        let method = kind.method();
        // `list` and `new` are methods already.
        let method = if matches!(method.as_str(), "list" | "new") { "namespaced".to_owned() } else { method };
        let _ = write!(
            text,
            "\n    /// Returns a lister of one namespace, which has `list` and `get`.\n    pub fn {method}(&self, namespace: &str) -> \
             NamespacedLister<{object}> {{\n        NamespacedLister::new(&self.lister, namespace)\n    }}\n"
        );
    } else {
        let _ = write!(
            text,
            "\n    /// Returns an object, or `None` where Go returns a \"not found\" error.\n    pub fn get(&self, name: &str) -> \
             Result<Option<Arc<{object}>>> {{\n        self.lister.get(&{{windlass_client}}::ObjectKey::cluster(name))\n    }}\n"
        );
    }
    text + "}\n"
}
