//! Renders the typed clients.

use std::fmt::Write as _;

use super::render::{Render, feature, imports, module_example, type_name};
use super::{GroupVersion, Kind};
use crate::SourceFile;

pub(super) fn render(render: &Render<'_>, files: &mut Vec<SourceFile>) {
    files.push(render.file("clientset/mod.rs", &root(render)));
    for version in &render.api.versions {
        let path = format!("clientset/{}/{}.rs", version.module, version.version);
        files.push(render.file(path, &group_version(version)));
    }
}

fn root(render: &Render<'_>) -> String {
    let mut text = "//! A typed client for each kind: `Clientset` in Go.\n".to_owned();
    if let Some((version, kind)) = render.example() {
        let argument = if kind.namespaced { "\"default\"" } else { "" };
        let code = format!(
            "use {{windlass_client}}::{{ListOptions, Result}};\nuse {}::clientset::Clientset;\n\n# pub async fn example(client: \
             {{windlass_client}}::Client) -> Result<()> {{\nlet clientset = Clientset::new(client);\nlet found = \
             clientset.{}().{}({argument}).list(&ListOptions::default()).await?;\nprintln!(\"{{}} {}\", \
             found.items.len());\n# Ok(()) }}\n",
            render.target.public,
            accessor(version),
            kind.method(),
            kind.resource
        );
        text += &module_example(version, &code);
    }
    text += "\nuse {windlass_client}::Client;\n";
    text += &render.modules("Clients");
    text += CLIENTSET;
    for version in &render.api.versions {
        let (module, name) = (&version.module, version.type_name());
        let path = format!("{module}::{}::{name}Client", version.version);
        let _ = write!(text, "\n    /// Returns the clients of `{}`.\n", version.api_version());
        text += &feature(&[version], "    ");
        let _ = writeln!(text, "    pub fn {}(&self) -> {path} {{", accessor(version));
        let _ = writeln!(text, "        {path}::new(self.client.clone())\n    }}");
    }
    text + "}\n\n" + DEBUG
}

/// Returns the method of a version: `samplecrd_v1`.
fn accessor(version: &GroupVersion) -> String {
    format!("{}_{}", version.module.trim_end_matches('_'), version.version)
}

const CLIENTSET: &str = "
/// The clients of all groups and versions. Cheap to clone.
#[derive(Clone)]
pub struct Clientset {
    client: Client,
}

impl Clientset {
    /// Makes the clients of all groups and versions: `NewForConfig` in Go.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Returns the connection that the clients share.
    pub fn client(&self) -> &Client {
        &self.client
    }
";

const DEBUG: &str = "impl std::fmt::Debug for Clientset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct(\"Clientset\").finish_non_exhaustive()
    }
}
";

fn group_version(version: &GroupVersion) -> String {
    let (api_version, client) = (version.api_version(), format!("{}Client", version.type_name()));
    let mut text = format!("//! Clients of `{api_version}`.\n\n");
    text += &imports(version.kinds.iter());
    let _ = write!(text, "\n{{windlass_client}}::clients! {{ {client} of {api_version:?}:\n");
    version.kinds.iter().for_each(|kind| text += &row(kind));
    text + "}\n"
}

fn row(kind: &Kind) -> String {
    let (name, method, object) = (&kind.name, kind.method(), type_name(kind));
    let scope = if kind.namespaced { "namespace" } else { "" };
    let verbs: Vec<String> = kind.verbs.iter().map(|verb| verb.trait_name()).collect();
    format!("    {method}({scope}) -> {name}Interface of {object}, {name}Verbs: {};\n", verbs.join(", "))
}
