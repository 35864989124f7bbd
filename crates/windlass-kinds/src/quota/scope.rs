//! Scopes: the properties of an object that decide if a quota counts the object.

use serde_json::Value;

use super::pod;

/// A requirement of a quota's scopes.
#[derive(Clone, Debug)]
pub(crate) struct ScopeRequirement {
    scope: String,
    operator: String,
    values: Vec<String>,
}

impl ScopeRequirement {
    /// Reads `scopes` and `scopeSelector` of a quota's spec.
    pub(crate) fn all_of(spec: &Value) -> Vec<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
        let scopes = list(&spec["scopes"]);
        let plain = scopes.iter().map(|scope| Self {
            scope: text(scope),
            operator: "Exists".to_owned(),
            values: Vec::new(),
        });
        let expressions = list(&spec["scopeSelector"]["matchExpressions"]);
        let selected = expressions.iter().map(|expression| Self {
            scope: text(&expression["scopeName"]),
            operator: text(&expression["operator"]),
            values: list(&expression["values"]).iter().map(text).collect(),
        });
        plain.chain(selected).collect()
    }

    /// Returns whether a pod has the scope.
    pub(crate) fn matches_pod(&self, pod: &Value) -> bool {
        match self.scope.as_str() {
            "Terminating" => pod::has_deadline(pod),
            "NotTerminating" => !pod::has_deadline(pod),
            "BestEffort" => pod::is_best_effort(pod),
            "NotBestEffort" => !pod::is_best_effort(pod),
            "PriorityClass" => {
                let class = pod["spec"]["priorityClassName"].as_str().filter(|name| !name.is_empty());
                self.matches_names(class.as_slice())
            }
            "CrossNamespacePodAffinity" => pod::uses_cross_namespace_affinity(pod),
            _ => false,
        }
    }

    /// Returns whether a volume claim has the scope.
    pub(crate) fn matches_claim(&self, claim: &Value) -> bool {
        if self.scope != "VolumeAttributesClass" {
            return false;
        }
        let (spec, status) = (&claim["spec"], &claim["status"]);
        let names = [
            &spec["volumeAttributesClassName"],
            &status["currentVolumeAttributesClassName"],
            &status["modifyVolumeStatus"]["targetVolumeAttributesClassName"],
        ];
        let names: Vec<&str> =
            names.into_iter().filter_map(Value::as_str).filter(|name| !name.is_empty()).collect();
        self.matches_names(&names)
    }

    /// Returns whether a class of an object is selected. `names` is empty for an object without a class.
    fn matches_names(&self, names: &[&str]) -> bool {
        let is_listed = |name: &&str| self.values.iter().any(|value| value == name);
        match self.operator.as_str() {
            "Exists" => !names.is_empty(),
            "DoesNotExist" => names.is_empty(),
            "In" => names.iter().any(is_listed),
            "NotIn" => names.is_empty() || !names.iter().all(is_listed),
            _ => false,
        }
    }
}
