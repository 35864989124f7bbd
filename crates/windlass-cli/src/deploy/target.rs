//! Target: where a project is deployed.

use serde_json::{Value, json};

use super::{KINDS, PROJECT, kinds};

/// The project, and the namespace of the operator.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) project: String,
    pub(crate) namespace: String,
    /// True if the user has named the namespace. The namespace may then have other users.
    pub(crate) is_named: bool,
}

impl Target {
    /// Returns the target of a project. Default namespace: `<project>-system`.
    pub(crate) fn new(project: &str, namespace: Option<&str>) -> Self {
        let usual = format!("{project}-system");
        let namespace = namespace.map_or_else(|| usual.clone(), ToOwned::to_owned);
        Self { project: project.to_owned(), is_named: namespace != usual, namespace }
    }

    /// Returns whether an object is the Deployment of the operator.
    pub(crate) fn is_manager(&self, object: &Value) -> bool {
        object["kind"] == "Deployment"
            && object["metadata"]["name"] == *format!("{}-controller-manager", self.project)
    }

    /// Returns whether an object is the namespace of the operator.
    pub(super) fn is_namespace(&self, object: &Value) -> bool {
        object["kind"] == "Namespace" && object["metadata"]["name"] == *self.namespace
    }

    /// Replaces the image of the operator.
    pub(crate) fn set_image(&self, image: &str, objects: &mut [Value]) {
        for object in objects.iter_mut().filter(|object| self.is_manager(object)) {
            object["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        }
    }

    /// Returns the image of the operator.
    pub(crate) fn image<'a>(&self, objects: &'a [Value]) -> Option<&'a str> {
        let manager = objects.iter().find(|object| self.is_manager(object))?;
        manager.pointer("/spec/template/spec/containers/0/image")?.as_str()
    }

    /// Adds the label of the project to all objects but CRDs, because CRDs have the form of `windlass
    /// install`. The Deployment of the operator gets the list of all kinds.
    pub(crate) fn label(&self, objects: &mut [Value]) {
        let kinds = kinds::listed(objects);
        for object in objects.iter_mut().filter(|object| object["kind"] != "CustomResourceDefinition") {
            object["metadata"]["labels"][PROJECT] = json!(self.project);
            if self.is_manager(object) {
                object["metadata"]["annotations"][KINDS] = json!(kinds);
            }
        }
    }

    /// Returns the selector of the project's objects.
    pub(super) fn selector(&self) -> String {
        format!("{PROJECT}={}", self.project)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_objects_but_definitions_get_the_label() {
        let mut objects = vec![
            json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {} }),
            json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web-controller-manager" } }),
        ];
        let target = Target::new("web", None);
        target.label(&mut objects);
        assert_eq!(objects[0]["metadata"], json!({}));
        assert_eq!(objects[1]["metadata"]["labels"][PROJECT], "web");
        assert_eq!(objects[1]["metadata"]["annotations"][KINDS], "Deployment.v1.apps");
        assert!(!target.is_named && Target::new("web", Some("ops")).is_named);
    }
}
