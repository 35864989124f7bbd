//! Settings: changes of the operator's Deployment for a deployment, with the names of the chart's values.

use std::str::FromStr;

use serde_json::{Value, json};

use super::target::Target;

/// The help about the keys.
pub(crate) const KEYS: &str = "manager.replicas, manager.args (adds an argument), manager.env.NAME, manager.nodeSelector.LABEL, \
     manager.resources.limits.RESOURCE, manager.resources.requests.RESOURCE, manager.image.pullPolicy, manager.priorityClassName";

/// A setting `KEY=VALUE` of `windlass deploy --set`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    key: Key,
    value: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Key {
    Replicas,
    Argument,
    Variable(String),
    NodeSelector(String),
    Resource { list: &'static str, name: String },
    PullPolicy,
    PriorityClass,
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) =
            text.split_once('=').ok_or_else(|| format!("expected KEY=VALUE; keys are {KEYS}"))?;
        let key = Key::parse(name).ok_or_else(|| format!("there is no key {name:?}; keys are {KEYS}"))?;
        if key == Key::Replicas && value.parse::<u16>().is_err() {
            return Err(format!("manager.replicas is a number from 0 to {}, not {value:?}", u16::MAX));
        }
        if key == Key::PullPolicy && !["Always", "IfNotPresent", "Never"].contains(&value) {
            return Err(format!("manager.image.pullPolicy is Always, IfNotPresent or Never, not {value:?}"));
        }
        Ok(Self { key, value: value.to_owned() })
    }
}

impl Key {
    fn parse(name: &str) -> Option<Self> {
        let name = name.strip_prefix("manager.")?;
        let rest =
            |prefix: &str| name.strip_prefix(prefix).filter(|rest| !rest.is_empty()).map(ToOwned::to_owned);
        Some(match name {
            "replicas" => Self::Replicas,
            "args" => Self::Argument,
            "image.pullPolicy" => Self::PullPolicy,
            "priorityClassName" => Self::PriorityClass,
            _ => {
                let resource = |list| move |name| Self::Resource { list, name };
                rest("env.")
                    .map(Self::Variable)
                    .or_else(|| rest("envOverrides.").map(Self::Variable))
                    .or_else(|| rest("nodeSelector.").map(Self::NodeSelector))
                    .or_else(|| rest("resources.limits.").map(resource("limits")))
                    .or_else(|| rest("resources.requests.").map(resource("requests")))?
            }
        })
    }
}

impl Setting {
    /// Changes the operator's Deployment among the objects. Without a Deployment or a container of the operator, the objects stay unchanged.
    pub(crate) fn apply(&self, target: &Target, objects: &mut [Value]) {
        let value = self.value.clone();
        if let Some(container) = target.container(objects) {
            Self::apply_to_container(&self.key, &value, container);
        }
        let Some(deployment) = target.deployment(objects) else { return };
        let spec = &mut deployment["spec"];
        match &self.key {
            Key::Replicas => spec["replicas"] = json!(value.parse::<u16>().unwrap_or(1)),
            Key::NodeSelector(label) => spec["template"]["spec"]["nodeSelector"][label] = json!(value),
            Key::PriorityClass => spec["template"]["spec"]["priorityClassName"] = json!(value),
            _ => {}
        }
    }

    fn apply_to_container(key: &Key, value: &str, container: &mut Value) {
        match key {
            Key::Argument => push(&mut container["args"], json!(value)),
            Key::Variable(name) => {
                if let Some(variables) = container["env"].as_array_mut() {
                    variables.retain(|variable| variable["name"] != **name);
                }
                push(&mut container["env"], json!({ "name": name, "value": value }));
            }
            Key::Resource { list, name } => container["resources"][*list][name] = json!(value),
            Key::PullPolicy => container["imagePullPolicy"] = json!(value),
            Key::Replicas | Key::NodeSelector(_) | Key::PriorityClass => {}
        }
    }
}

fn push(list: &mut Value, item: Value) {
    match list.as_array_mut() {
        Some(items) => items.push(item),
        None => *list = json!([item]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_change_the_deployment() {
        let container = json!({ "name": "manager", "args": ["--a"], "env": [{ "name": "A", "value": "1" }] });
        let deployment = json!({
            "kind": "Deployment", "metadata": { "name": "web-controller-manager" },
            "spec": { "template": { "spec": { "containers": [container] } } },
        });
        let mut objects = vec![json!({ "kind": "Service" }), deployment];
        let target = Target::new("web", None);
        for text in [
            "manager.replicas=2",
            "manager.args=--log-level=debug",
            "manager.env.A=2",
            "manager.nodeSelector.disk=ssd",
            "manager.resources.limits.memory=1Gi",
            "manager.image.pullPolicy=Always",
        ] {
            text.parse::<Setting>().expect("a setting").apply(&target, &mut objects);
        }
        let spec = &objects[1]["spec"];
        let pod = &spec["template"]["spec"];
        assert_eq!(spec["replicas"], 2);
        assert_eq!(pod["nodeSelector"], json!({ "disk": "ssd" }));
        assert_eq!(
            pod["containers"][0],
            json!({
                "name": "manager", "args": ["--a", "--log-level=debug"], "env": [{ "name": "A", "value": "2" }],
                "resources": { "limits": { "memory": "1Gi" } }, "imagePullPolicy": "Always",
            })
        );
    }

    #[test]
    fn a_wrong_setting_is_named() {
        let error = |text: &str| text.parse::<Setting>().expect_err("refused");
        assert!(error("manager.replicas").starts_with("expected KEY=VALUE"));
        assert!(error("replicas=2").starts_with("there is no key \"replicas\""));
        assert!(error("manager.replicas=many").contains("not \"many\""));
        assert!(error("manager.env.=1").contains("there is no key"));
        assert!(error("manager.image.pullPolicy=Sometimes").contains("Always, IfNotPresent or Never"));
    }
}
