//! Folders of kustomizations, and the objects that kustomize builds.

use std::{cmp::Ordering, collections::BTreeMap};

use json_patch::PatchOperation;
use serde::Serialize;
use serde_json::{Value, json};

use super::{options::Component, yaml::to_text};

/// The folder with all kustomizations.
pub(super) const ROOT: &str = "config";

/// A folder below `config/` with a `kustomization.yaml`.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    pub(super) name: &'static str,
    /// `None` for a part that `config/default` always has.
    pub(super) component: Option<Component>,
    /// The names and objects of files.
    pub(super) files: Vec<(String, Vec<Value>)>,
    pub(super) patches: Vec<Patch>,
}

/// A component's patch of an object in another folder.
#[derive(Clone, Debug)]
pub(super) struct Patch {
    pub(super) file: String,
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) change: Change,
}

/// The change of a patch.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// A JSON patch.
    Operations(Vec<PatchOperation>),
    /// Annotations to add.
    Annotations(BTreeMap<String, String>),
}

impl Folder {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, component: None, files: Vec::new(), patches: Vec::new() }
    }

    pub(super) fn component(component: Component) -> Self {
        Self { component: Some(component), ..Self::new(component.folder()) }
    }

    /// Adds a file with at least one object.
    pub(super) fn file(mut self, name: impl Into<String>, objects: Vec<Value>) -> Self {
        if !objects.is_empty() {
            self.files.push((name.into(), objects));
        }
        self
    }

    pub(super) fn patch(mut self, patch: Patch) -> Self {
        self.patches.push(patch);
        self
    }

    /// Replaces the objects of the files that `own` returns objects for.
    pub(super) fn replace_objects(&mut self, own: impl Fn(&str) -> Option<Vec<Value>>) {
        for (name, objects) in &mut self.files {
            if let Some(others) = own(&format!("{ROOT}/{}/{name}", self.name)) {
                *objects = others;
            }
        }
    }

    /// Returns the paths and texts of the files.
    pub(super) fn files(&self) -> Vec<(String, String)> {
        let mut files: Vec<(String, String)> =
            self.files.iter().map(|(name, objects)| (name.clone(), to_text(objects))).collect();
        for patch in &self.patches {
            files.push((patch.file.clone(), to_text([&patch.document()])));
        }
        files.push(("kustomization.yaml".to_owned(), to_text([&self.kustomization()])));
        files.into_iter().map(|(name, text)| (format!("{ROOT}/{}/{name}", self.name), text)).collect()
    }

    fn kustomization(&self) -> Value {
        let resources: Vec<&String> = self.files.iter().map(|(name, _)| name).collect();
        let (version, kind) = match self.component {
            Some(_) => ("kustomize.config.k8s.io/v1alpha1", "Component"),
            None => ("kustomize.config.k8s.io/v1beta1", "Kustomization"),
        };
        let mut kustomization = json!({ "apiVersion": version, "kind": kind, "resources": resources });
        if !self.patches.is_empty() {
            let patch = |patch: &Patch| json!({ "path": patch.file, "target": { "kind": patch.kind, "name": patch.name } });
            kustomization["patches"] = self.patches.iter().map(patch).collect();
        }
        kustomization
    }
}

/// Returns the objects that kustomize builds from all folders except components, and from these components.
pub(super) fn compose(folders: &[Folder], components: &[Component]) -> Vec<Value> {
    let is_part = |folder: &&Folder| folder.component.is_none();
    let objects = |folder: &Folder| {
        folder.files.iter().flat_map(|(_, objects)| objects.iter().cloned()).collect::<Vec<_>>()
    };
    let mut composed: Vec<Value> = folders.iter().filter(is_part).flat_map(objects).collect();
    for component in components {
        let Some(folder) = folders.iter().find(|folder| folder.component == Some(*component)) else {
            continue;
        };
        composed.extend(objects(folder));
        for patch in &folder.patches {
            let targets = composed.iter_mut().filter(|object| patch.is_for(object));
            for target in targets {
                patch.apply(target);
            }
        }
    }
    composed.sort_by(kustomize_order);
    composed
}

impl Patch {
    /// Returns the content of the patch's file.
    fn document(&self) -> Value {
        match &self.change {
            Change::Operations(operations) => serde_json::to_value(operations).unwrap_or_default(),
            Change::Annotations(annotations) => json!({
                "apiVersion": api_version(self.kind),
                "kind": self.kind,
                "metadata": { "annotations": annotations, "name": self.name },
            }),
        }
    }

    fn apply(&self, target: &mut Value) {
        match &self.change {
            // A patch may not fit an object that the user has changed; kustomize reports the error.
            Change::Operations(operations) => drop(json_patch::patch(target, operations)),
            Change::Annotations(annotations) => {
                json_patch::merge(target, &json!({ "metadata": { "annotations": annotations } }));
            }
        }
    }

    fn is_for(&self, object: &Value) -> bool {
        object["kind"] == self.kind && object["metadata"]["name"] == *self.name
    }
}

/// Returns the API version of the kinds that get annotations.
fn api_version(kind: &str) -> &'static str {
    match kind {
        "CustomResourceDefinition" => "apiextensions.k8s.io/v1",
        _ => "admissionregistration.k8s.io/v1",
    }
}

/// The kinds that kustomize puts first and last, in kustomize's order.
const FIRST: [&str; 18] = [
    "Namespace",
    "ResourceQuota",
    "StorageClass",
    "CustomResourceDefinition",
    "ServiceAccount",
    "PodSecurityPolicy",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Endpoints",
    "Service",
    "LimitRange",
    "PriorityClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
];
const NEXT: [&str; 4] = ["Deployment", "StatefulSet", "CronJob", "PodDisruptionBudget"];
const LAST: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

fn rank(kind: &str) -> usize {
    let place = |kinds: &[&str]| kinds.iter().position(|other| *other == kind);
    let (first, next, last) = (place(&FIRST), place(&NEXT), place(&LAST));
    first
        .or_else(|| next.map(|index| FIRST.len() + index))
        .or_else(|| last.map(|index| FIRST.len() + NEXT.len() + 1 + index))
        .unwrap_or(FIRST.len() + NEXT.len())
}

fn kustomize_order(one: &Value, other: &Value) -> Ordering {
    let key = |object: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kind = text(&object["kind"]);
        let metadata = &object["metadata"];
        (
            rank(&kind),
            text(&object["apiVersion"]),
            kind,
            text(&metadata["namespace"]),
            text(&metadata["name"]),
        )
    };
    key(one).cmp(&key(other))
}

/// Returns an object of a built-in type.
pub(super) fn object(typed: &impl Serialize) -> Value {
    // Types of k8s-openapi have string keys only, and are always JSON.
    serde_json::to_value(typed).unwrap_or_default()
}

/// Returns the operation that puts a value at a path.
pub(super) fn add(path: &str, value: Value) -> PatchOperation {
    let operation = json!({ "op": "add", "path": path, "value": value });
    // The paths are pointers written in this crate.
    serde_json::from_value(operation).unwrap_or(PatchOperation::Test(json_patch::TestOperation {
        path: json_patch::jsonptr::PointerBuf::root(),
        value: Value::Null,
    }))
}
