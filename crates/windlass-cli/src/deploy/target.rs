//! Target: where a project is deployed.

use kube::ResourceExt;
use serde_json::{Value, json};

use super::{KINDS, NAMESPACE, PROJECT, kinds};

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

    /// Returns the target of objects that kustomize has built: the namespace of the operator's Deployment, else of another object.
    pub(crate) fn of_built(project: &str, objects: &[Value]) -> Self {
        let target = Self::new(project, None);
        let namespace = |object: &Value| object["metadata"]["namespace"].as_str().map(ToOwned::to_owned);
        let of_operator = target.position(objects).and_then(|at| namespace(&objects[at]));
        let found = of_operator.or_else(|| objects.iter().find_map(namespace));
        Self::new(project, found.as_deref())
    }

    /// Returns the index of the operator's Deployment: with the usual name, or with a prefix or a suffix of kustomize, else the only
    /// Deployment.
    fn position(&self, objects: &[Value]) -> Option<usize> {
        let usual = format!("{}-controller-manager", self.project);
        let deployments = || objects.iter().enumerate().filter(|(_, object)| object["kind"] == "Deployment");
        let only = |is_operator: &dyn Fn(&str) -> bool| {
            let mut found = deployments()
                .filter(|(_, object)| is_operator(object["metadata"]["name"].as_str().unwrap_or_default()));
            let (at, _) = found.next()?;
            found.next().is_none().then_some(at)
        };
        only(&|name| name == usual)
            .or_else(|| only(&|name| name.contains(&usual)))
            .or_else(|| only(&|_| true))
    }

    /// Returns the operator's Deployment.
    pub(super) fn deployment<'a>(&self, objects: &'a mut [Value]) -> Option<&'a mut Value> {
        let at = self.position(objects)?;
        objects.get_mut(at)
    }

    /// Returns the operator's container: the container `manager` of the operator's Deployment, else the only container.
    pub(crate) fn container<'a>(&self, objects: &'a mut [Value]) -> Option<&'a mut Value> {
        let deployment = self.deployment(objects)?;
        let containers = deployment.pointer_mut("/spec/template/spec/containers")?.as_array_mut()?;
        let named = containers.iter().position(|container| container["name"] == "manager");
        let at = named.or((containers.len() == 1).then_some(0))?;
        containers.get_mut(at)
    }

    /// Returns whether an object is the namespace of the operator.
    pub(super) fn is_namespace(&self, object: &Value) -> bool {
        object["kind"] == "Namespace" && object["metadata"]["name"] == *self.namespace
    }

    /// Adds the labels of the project and of the namespace to all objects but CRDs, because CRDs have the form of `windlass
    /// install`. The Deployment of the operator gets the list of all kinds.
    pub(crate) fn label(&self, objects: &mut [Value]) {
        let kinds = kinds::listed(objects);
        for object in objects.iter_mut().filter(|object| object["kind"] != "CustomResourceDefinition") {
            object["metadata"]["labels"][PROJECT] = json!(self.project);
            object["metadata"]["labels"][NAMESPACE] = json!(self.namespace);
        }
        if let Some(deployment) = self.deployment(objects) {
            deployment["metadata"]["annotations"][KINDS] = json!(kinds);
        }
    }

    /// Returns the selector of the project's objects.
    pub(super) fn selector(&self) -> String {
        format!("{PROJECT}={}", self.project)
    }

    /// Returns whether an object with the label of the project belongs to this deployment. Objects of an earlier release lack the label of
    /// the namespace, and belong to the deployment in the namespace of the object.
    pub(super) fn owns(&self, object: &impl ResourceExt) -> bool {
        let deployment = object.labels().get(NAMESPACE).cloned().or_else(|| object.namespace());
        deployment.as_ref() == Some(&self.namespace)
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
        assert_eq!(objects[1]["metadata"]["labels"], json!({ PROJECT: "web", NAMESPACE: "web-system" }));
        assert_eq!(objects[1]["metadata"]["annotations"][KINDS], "Deployment.v1.apps");
        assert!(!target.is_named && Target::new("web", Some("ops")).is_named);
    }

    #[test]
    fn the_operator_of_an_overlay_is_found_by_its_names() {
        let deployment = |name: &str, containers: &Value| {
            json!({
                "kind": "Deployment", "metadata": { "name": name, "namespace": "staging" },
                "spec": { "template": { "spec": { "containers": containers } } },
            })
        };
        let sidecar = json!([{ "name": "proxy" }, { "name": "manager" }]);
        let mut objects =
            [deployment("cache", &json!([{}])), deployment("a-web-controller-manager-b", &sidecar)];
        let target = Target::of_built("web", &objects);
        assert_eq!(target.namespace, "staging");
        assert_eq!(target.container(&mut objects), Some(&mut json!({ "name": "manager" })));
        let mut only = [deployment("operator", &json!([{ "name": "any" }]))];
        assert_eq!(target.container(&mut only), Some(&mut json!({ "name": "any" })));
        let mut unknown = [deployment("operator", &json!([{ "name": "a" }, { "name": "b" }]))];
        assert_eq!(target.container(&mut unknown), None);
        assert_eq!(
            target.container(&mut [deployment("a", &json!([{}])), deployment("b", &json!([{}]))]),
            None
        );
    }

    #[test]
    fn an_object_belongs_to_the_deployment_in_the_namespace_of_the_label_or_else_of_the_object() {
        let target = Target::new("web", Some("team-a"));
        let is_owned = |metadata: Value| {
            let object = json!({ "metadata": metadata });
            target.owns(&serde_json::from_value::<kube::api::DynamicObject>(object).expect("an object"))
        };
        assert!(is_owned(json!({ "labels": { NAMESPACE: "team-a" } })));
        assert!(is_owned(json!({ "labels": { NAMESPACE: "team-a" }, "namespace": "kube-system" })));
        assert!(!is_owned(json!({ "labels": { NAMESPACE: "team-b" }, "namespace": "team-a" })));
        assert!(is_owned(json!({ "namespace": "team-a" })) && !is_owned(json!({ "namespace": "team-b" })));
        assert!(!is_owned(json!({ "name": "of the cluster" })));
    }
}
