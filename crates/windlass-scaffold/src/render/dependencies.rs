//! The dependencies of a project.

use std::fmt::Write;

use crate::Project;

/// Crates, versions and features for every project. A test compares the versions with Windlass' own versions.
const CRATES: &[(&str, &str, &str)] = &[
    ("k8s-openapi", "0.29", "default-features = false, features = [\"schemars\"]"),
    ("kube", "5.0", "default-features = false, features = [\"derive\"]"),
    ("mimalloc", "0.1", "default-features = false, features = [\"no_thp\"]"),
    ("schemars", "1.2", ""),
    ("serde", "1.0", "features = [\"derive\"]"),
    ("serde_json", "1.0", ""),
    ("tokio", "1.54", "features = [\"macros\", \"rt-multi-thread\"]"),
    ("tracing", "0.1", ""),
];

/// Returns the table `[workspace.dependencies]`, without the head.
pub(super) fn table(project: &Project) -> String {
    let mut table = format!("{} = {{ path = \"api\", version = \"0.1.0\" }}\n", project.api_package());
    for name in ["windlass", "windlass-client", "windlass-derive", "windlass-test"] {
        table += &windlass(project, name);
    }
    for (name, version, rest) in CRATES {
        let _ = match *rest {
            "" => writeln!(table, "{name} = \"{version}\""),
            rest => writeln!(table, "{name} = {{ version = \"{version}\", {rest} }}"),
        };
    }
    table
}

fn windlass(project: &Project, name: &str) -> String {
    match &project.path {
        None => format!("{name} = \"{}\"\n", project.windlass),
        Some(checkout) => {
            let path = checkout.join("crates").join(name).to_string_lossy().into_owned();
            format!("{name} = {{ path = {} }}\n", toml::Value::String(path))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::CRATES;

    #[test]
    fn projects_depend_on_the_versions_that_windlass_is_built_with() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
        // Outside of the repository, there is no manifest to compare with.
        let Ok(text) = std::fs::read_to_string(manifest) else { return };
        let workspace: toml::Table = text.parse().expect("TOML");
        let dependencies = &workspace["workspace"]["dependencies"];
        for (name, version, _) in CRATES {
            let ours = &dependencies[*name];
            let ours = ours.as_str().or_else(|| ours["version"].as_str()).expect("a version");
            assert_eq!(*version, ours, "{name}");
        }
    }
}
