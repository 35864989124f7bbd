//! The little of a kubeconfig that reaching a test server takes.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Where a real server is and who we are there.
pub(super) struct Kubeconfig {
    pub(super) server: String,
    pub(super) authority: Vec<u8>,
    pub(super) token: Option<String>,
    pub(super) certificate: Option<(Vec<u8>, Vec<u8>)>,
}

impl Kubeconfig {
    pub(super) fn read(path: &Path) -> Self {
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self::parse(&text, &path.parent().map(PathBuf::from).unwrap_or_default())
    }

    /// Parses a kubeconfig whose relative paths start at `folder`.
    pub(super) fn parse(text: &str, folder: &Path) -> Self {
        let config: Value = serde_saphyr::from_str(text).expect("a kubeconfig in YAML");
        let context = entry(&config, "contexts", &config["current-context"], "context");
        let cluster = entry(&config, "clusters", &context["cluster"], "cluster");
        let user = entry(&config, "users", &context["user"], "user");
        let certificate = data(user, "client-certificate", folder).zip(data(user, "client-key", folder));
        Kubeconfig {
            server: cluster["server"].as_str().expect("a server").to_owned(),
            authority: data(cluster, "certificate-authority", folder).expect("a certificate authority"),
            token: user["token"].as_str().map(str::to_owned),
            certificate,
        }
    }
}

fn entry<'a>(config: &'a Value, list: &str, name: &Value, field: &str) -> &'a Value {
    let entries = config[list].as_array().unwrap_or_else(|| panic!("no {list} in the kubeconfig"));
    let found = entries.iter().find(|entry| entry["name"] == *name);
    &found.unwrap_or_else(|| panic!("{list} has no {name}"))[field]
}

/// A PEM that is either inline (`field-data`) or in a file.
fn data(holder: &Value, field: &str, folder: &Path) -> Option<Vec<u8>> {
    if let Some(inline) = holder[format!("{field}-data")].as_str() {
        return Some(STANDARD.decode(inline).expect("base64"));
    }
    let path = folder.join(holder[field].as_str()?);
    Some(std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}
