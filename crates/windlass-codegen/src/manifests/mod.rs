//! Manifests: from an [`Inventory`] to the files below `config/` and to `install.yaml`.
//!
//! [`Manifests`] is the model of all files: a folder for each part of `config/`, as in a project of
//! kubebuilder. `install.yaml` has the objects of the folders that `config/default` composes, exactly as
//! kustomize builds `config/default`.
//!
//! ```
//! use windlass_codegen::{Inventory, manifests::{Manifests, Options}};
//!
//! let inventory = Inventory { name: "web-operator".to_owned(), ..Inventory::default() };
//! let manifests = Manifests::new(&inventory, Options::new("web-operator")).unwrap();
//! let files = manifests.files();
//! assert!(files["config/manager/manager.yaml"].contains("name: web-operator-controller-manager"));
//! assert!(manifests.install().contains("namespace: web-operator-system"));
//! ```

mod coverage;
mod crd;
mod default;
mod error;
mod metrics;
mod network_policy;
mod operator;
mod options;
mod rbac;
mod tree;
mod webhook;
pub(crate) mod yaml;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;

use serde_json::Value;

pub use self::{
    coverage::MissingRight,
    default::listed_components,
    error::ManifestError,
    options::{Component, Options},
    yaml::{GENERATED, documents},
};
pub(crate) use self::{options::METRICS_ARGUMENT, webhook::CERTIFICATES};
use self::{options::Names, tree::Folder, yaml::to_text};
use crate::Inventory;

/// The manifests of an operator.
#[derive(Clone, Debug)]
pub struct Manifests {
    folders: Vec<Folder>,
    names: Names,
    /// The components that `config/default` lists, in the order of the list.
    components: Vec<Component>,
    options: Options,
}

impl Manifests {
    /// Makes the manifests for the declarations of an operator.
    ///
    /// # Errors
    ///
    /// Versions of a kind contradict each other in scope, names or the stored version; or a converted version
    /// has no definition.
    pub fn new(inventory: &Inventory, options: Options) -> Result<Self, ManifestError> {
        let names = options.names(inventory)?;
        let mut folders = vec![
            crd::folder(inventory, &options, &names)?,
            rbac::folder(inventory, &options, &names),
            operator::folder(inventory, &options, &names),
            metrics::folder(inventory, &names),
            metrics::prometheus_folder(inventory, &names),
            network_policy::folder(inventory, &names),
        ];
        if let Some(webhooks) = &inventory.webhooks {
            folders.push(webhook::folder(webhooks, &names));
            if webhook::needs_certificate(webhooks) {
                folders.push(webhook::certificate_folder(webhooks, &names));
            }
        }
        let components = default::components(inventory, &options, &folders);
        let mut manifests = Self { folders, names, components, options };
        manifests.use_own_files();
        Ok(manifests)
    }

    /// Replaces the objects of files that the user keeps by hand.
    fn use_own_files(&mut self) {
        for folder in &mut self.folders {
            let own = |path: &str| self.options.own_files.get(path).cloned();
            folder.replace_objects(own);
        }
    }

    /// Returns the files below `config/`, by path, without the files that the user keeps by hand.
    pub fn files(&self) -> BTreeMap<String, String> {
        let mut files: BTreeMap<String, String> = self.folders.iter().flat_map(Folder::files).collect();
        files.insert(default::PATH.to_owned(), default::kustomization(&self.components));
        files.retain(|path, _| !self.options.own_files.contains_key(path));
        files
    }

    /// Returns the objects that `config/default` composes, in kustomize's order.
    pub fn objects(&self) -> Vec<Value> {
        tree::compose(&self.folders, &self.components)
    }

    /// Returns `install.yaml`: all objects in one file.
    pub fn install(&self) -> String {
        to_text(&self.objects())
    }

    /// Returns the rights that the operator declares, and that no role of [`objects`](Self::objects) grants.
    /// Such rights are missing if the user removed the rights from a file that is kept by hand.
    pub fn missing_rights(&self, inventory: &Inventory) -> Vec<MissingRight> {
        coverage::missing(inventory, &self.names, &self.objects())
    }

    /// Returns the objects of each file of each folder, before components patch the objects.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&'static str, &str, &[Value])> {
        self.folders.iter().flat_map(|folder| {
            folder.files.iter().map(|(file, objects)| (folder.name, file.as_str(), objects.as_slice()))
        })
    }

    /// Returns the CustomResourceDefinitions, sorted by name.
    pub fn crds(&self) -> Vec<&Value> {
        self.folders
            .iter()
            .filter(|folder| folder.name == crd::FOLDER)
            .flat_map(|folder| folder.files.iter().flat_map(|(_, objects)| objects))
            .collect()
    }
}
