//! Details: the facts of a bundle that the manifests do not have.

use serde_json::{Value, json};

use crate::manifests::{documents, yaml::document_text};

/// The facts of a bundle that the manifests do not have.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Details {
    /// The version of the operator: a semantic version without `v`.
    pub version: String,
    /// The channels of the bundle. Default: `alpha`.
    pub channels: Vec<String>,
    /// The channel of installations that name no channel. Default: OLM chooses.
    pub default_channel: Option<String>,
    /// The time in `createdAt`, such as `2026-01-02T03:04:05Z`.
    pub created_at: String,
    /// The name of the bundle that the new bundle replaces, such as `web.v1.0.0`.
    pub replaces: Option<String>,
    /// The sample objects, for `alm-examples`.
    pub samples: Vec<Value>,
    /// The base of the ClusterServiceVersion: an object with the texts for people.
    pub base: Value,
}

impl Default for Details {
    fn default() -> Self {
        Self {
            version: "0.0.1".to_owned(),
            channels: vec!["alpha".to_owned()],
            default_channel: None,
            created_at: "1970-01-01T00:00:00Z".to_owned(),
            replaces: None,
            samples: Vec::new(),
            base: Value::Null,
        }
    }
}

/// Returns the first text of the base. The user edits the base afterwards.
pub fn base(project: &str, display_name: &str) -> String {
    let base = json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "annotations": { "capabilities": "Basic Install" },
            "name": format!("{project}.v0.0.0"),
        },
        "spec": {
            "description": format!("The operator {project}. Describe here, in Markdown, what people use the operator for."),
            "displayName": display_name,
            "keywords": [project],
            "links": [{ "name": display_name, "url": format!("https://{project}.example.com") }],
            "maintainers": [{ "email": "your@email.com", "name": "Maintainer Name" }],
            "maturity": "alpha",
            "provider": { "name": "Provider Name", "url": "https://your.domain" },
        },
    });
    format!(
        "# The texts for people, the icon, skips and minKubeVersion of the bundle. `windlass bundle` adds everything else. The file is yours.\n{}",
        document_text(&base)
    )
}

/// Returns the name of the bundle that a new version replaces: the earlier bundle, or the bundle that the earlier bundle of the same version
/// replaces. `earlier` is the text of the present ClusterServiceVersion.
pub fn replaced(earlier: &str, project: &str, version: &str) -> Option<String> {
    let earlier = documents(earlier).ok()?.into_iter().next()?;
    let name = earlier["metadata"]["name"].as_str()?;
    if name == format!("{project}.v{version}") {
        return earlier["spec"]["replaces"].as_str().map(ToOwned::to_owned);
    }
    Some(name.to_owned())
}

/// Returns the new text of the ClusterServiceVersion with the time of the earlier text, if the texts are
/// otherwise equal. Otherwise returns `None`.
pub fn keep_created_at(earlier: &str, new: &str) -> Option<String> {
    let line = |text: &str| {
        text.lines().find(|line| line.trim_start().starts_with("createdAt:")).map(ToOwned::to_owned)
    };
    let kept = new.replacen(&line(new)?, &line(earlier)?, 1);
    (kept == earlier).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_replaces_the_bundle_of_the_version_before() {
        let earlier = "metadata: { name: web.v1.0.0 }\nspec: { replaces: web.v0.9.0 }\n";
        assert_eq!(replaced(earlier, "web", "1.1.0").as_deref(), Some("web.v1.0.0"));
        assert_eq!(replaced(earlier, "web", "1.0.0").as_deref(), Some("web.v0.9.0"));
        assert_eq!(replaced("metadata: { name: web.v1.0.0 }\n", "web", "1.0.0"), None);
    }

    #[test]
    fn the_time_changes_with_another_change_only() {
        let text = |time: &str, rest: &str| format!("a:\n  createdAt: {time}\n{rest}\n");
        assert_eq!(keep_created_at(&text("1", "x"), &text("2", "x")), Some(text("1", "x")));
        assert_eq!(keep_created_at(&text("1", "x"), &text("2", "y")), None);
    }
}
