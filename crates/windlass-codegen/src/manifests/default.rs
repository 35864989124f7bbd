//! `config/default`: the kustomization that composes the other folders.

use serde_json::json;

use super::{
    options::{Component, Options},
    tree::{Folder, ROOT},
    webhook,
    yaml::{documents, to_text},
};
use crate::Inventory;

/// The path of the kustomization that composes the other folders.
pub(super) const PATH: &str = "config/default/kustomization.yaml";

/// Returns the components that `config/default` lists.
pub(super) fn components(inventory: &Inventory, options: &Options, folders: &[Folder]) -> Vec<Component> {
    let webhooks = inventory.webhooks.as_ref();
    let needed = |component: &Component| match component {
        Component::Webhook => webhooks.is_some(),
        Component::CertManager => webhooks.is_some_and(webhook::needs_certificate),
        _ => false,
    };
    let wanted = |component: &Component| {
        options.components.contains(component) || !options.exactly_these_components && needed(component)
    };
    let exists = |component: &Component| folders.iter().any(|folder| folder.component == Some(*component));
    Component::ALL.into_iter().filter(wanted).filter(exists).collect()
}

pub(super) fn kustomization(components: &[Component]) -> String {
    let folders = ["crd", "rbac", "manager"].map(|folder| format!("../{folder}"));
    let components: Vec<String> =
        components.iter().map(|component| format!("../{}", component.folder())).collect();
    let text = to_text([&json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": folders,
        "components": components,
    })]);
    let mut lines = text.splitn(2, '\n');
    let (head, rest) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    format!("{head}\n{NOTE}{rest}")
}

const NOTE: &str = "\
# Components: add ../prometheus or ../network-policy, or remove ../metrics; `windlass manifests` keeps the choice.
# For anything else make an overlay, or remove the first line: this file is yours then.
";

/// Returns the components that the text of `config/default/kustomization.yaml` lists.
///
/// # Errors
///
/// The text is not YAML.
pub fn listed_components(text: &str) -> Result<Vec<Component>, String> {
    let kustomization = documents(text)?.into_iter().next().unwrap_or_default();
    let listed = kustomization["components"].as_array().cloned().unwrap_or_default();
    let is_listed = |component: &Component| {
        let folder = component.folder();
        listed.iter().filter_map(|path| path.as_str()).any(|path| {
            let path = path.trim_end_matches('/');
            path == format!("../{folder}") || path.ends_with(&format!("{ROOT}/{folder}"))
        })
    };
    Ok(Component::ALL.into_iter().filter(is_listed).collect())
}
