//! The version of the server: the reply to `/version`, and the labels of a metric.

use serde::Serialize;
use serde_json::json;
use windlass_schema::Catalog;

/// Returns the version as the labels of a metric.
pub(crate) fn version_labels(catalog: &Catalog) -> String {
    let version = serde_json::to_value(version(catalog)).unwrap_or_default();
    let label = |(label, field): (&str, &str)| format!("{label}={}", version[field]);
    let labels = [
        ("build_date", "buildDate"),
        ("compiler", "compiler"),
        ("git_commit", "gitCommit"),
        ("git_tree_state", "gitTreeState"),
        ("git_version", "gitVersion"),
        ("go_version", "goVersion"),
        ("major", "major"),
        ("minor", "minor"),
        ("platform", "platform"),
    ];
    labels.map(label).join(",")
}

/// Returns the reply to `/version`. Numbers are facts about the wire; the rest names this project.
pub(super) fn version(catalog: &Catalog) -> impl Serialize {
    let (major, minor) = catalog.minor_version().split_once('.').unwrap_or_default();
    // A server keeps the data of the minor version before its own readable.
    let oldest = minor.parse::<u32>().unwrap_or_default().saturating_sub(1).to_string();
    json!({
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": oldest,
        "gitVersion": format!("v{}+windlass-{}", catalog.version(), env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, platform_architecture()),
    })
}

/// Returns the architecture in Go's words, because clients compare the architecture with node labels.
fn platform_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
