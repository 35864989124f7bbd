//! What admission plugins of kube-apiserver do with pods: `DefaultTolerationSeconds` and `Priority`.

use serde_json::{Map, Value, json};

use crate::meta;
use crate::strategy::StrategyContext;
use crate::strategy::fields::{default, int_at, spec_mut, text_at};
use crate::wire::{ApiError, GroupResource};

const TOLERATED: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// Adds the tolerations that keep a pod for five minutes on a node that is not ready, unless the pod has its own.
pub(super) fn add_tolerations(spec: &mut Map<String, Value>) {
    let mut tolerations = spec.get("tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
    for key in TOLERATED {
        let covers = |toleration: &Value| {
            let field = |name: &str| toleration.get(name).and_then(Value::as_str).unwrap_or_default();
            (field("key") == key || field("key").is_empty()) && matches!(field("effect"), "NoExecute" | "")
        };
        if !tolerations.iter().any(covers) {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            }));
        }
    }
    spec.insert("tolerations".to_owned(), tolerations.into());
}

/// Sets the priority of the class that the pod names, or of the default class.
pub(super) fn set_priority(cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
    let name = meta::name(object).to_owned();
    let refuse = |why: String| Err(ApiError::forbidden(&GroupResource::new("", "pods"), &name, why));
    let classes = cx.lookups.priority_classes.get(cx.view);
    let wanted = text_at(object, "/spec/priorityClassName").to_owned();
    let class = if wanted.is_empty() {
        let is_default = |class: &&Value| class.get("globalDefault").and_then(Value::as_bool) == Some(true);
        classes.values().filter(is_default).min_by_key(|class| int_at(class, "/value"))
    } else {
        let found = classes.get(&wanted);
        if found.is_none() {
            return refuse(format!("no PriorityClass with name {wanted} was found"));
        }
        found
    };
    let spec = spec_mut(object);
    let value = class.and_then(|class| int_at(class, "/value")).unwrap_or_default();
    if let Some(given) = spec.get("priority").and_then(Value::as_i64)
        && given != value
    {
        return refuse(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name"
        ));
    }
    spec.insert("priority".to_owned(), value.into());
    let policy = class.map_or("", |class| text_at(class, "/preemptionPolicy"));
    let policy = if policy.is_empty() { "PreemptLowerPriority" } else { policy };
    if let Some(given) = spec.get("preemptionPolicy").and_then(Value::as_str)
        && given != policy
    {
        return refuse(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
        ));
    }
    spec.insert("preemptionPolicy".to_owned(), policy.into());
    if let Some(class) = class {
        spec.insert("priorityClassName".to_owned(), meta::name(class).into());
    }
    Ok(())
}

/// Keeps the priority that an update leaves out.
pub(super) fn keep_priority(object: &mut Value, old: &Value) {
    let spec = spec_mut(object);
    for field in ["priority", "preemptionPolicy", "priorityClassName"] {
        if let Some(value) = old.pointer(&format!("/spec/{field}")) {
            default(spec, field, value.clone());
        }
    }
}
