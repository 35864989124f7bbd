//! The work of kube-apiserver's admission plugins on pods: `DefaultTolerationSeconds`, `Priority` and `RuntimeClass`.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use windlass_schema::go_quote;
use windlass_store::{ResourceId, object_meta as meta};
use windlass_wire::names::path_segment_name;
use windlass_wire::{ApiError, GroupResource};

use super::tolerations;
use crate::json::{default, int_at, list_at, spec_mut, text_at};
use crate::kind::WriteContext;
use crate::scheduling::priority_class::is_default;
use crate::subresource::Subresource;

static RUNTIME_CLASSES: LazyLock<ResourceId> =
    LazyLock::new(|| ResourceId::new("node.k8s.io", "runtimeclasses"));

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
pub(super) fn set_priority(cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
    let name = name_of(object);
    let refuse = |why: String| Err(ApiError::forbidden(&GroupResource::new("", "pods"), &name, why));
    let classes = cx.lookups.priority_classes.get(cx.view);
    let wanted = text_at(object, "/spec/priorityClassName").to_owned();
    let class = if wanted.is_empty() {
        classes.values().filter(|class| is_default(class)).min_by_key(|class| int_at(class, "/value"))
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
    for field in ["priority", "preemptionPolicy"] {
        if let Some(value) = old.pointer(&format!("/spec/{field}")) {
            default(spec, field, value.clone());
        }
    }
}

/// Returns the name by which a new pod is refused.
fn name_of(object: &Value) -> String {
    let names = [meta::name(object), meta::text(object, "generateName"), "Unknown"];
    names.into_iter().find(|name| !name.is_empty()).unwrap_or_default().to_owned()
}

/// Returns the runtime class of a pod with a runtime class.
fn runtime_class(cx: &WriteContext<'_>, object: &Value) -> Result<Option<Value>, ApiError> {
    let Some(class) = object.pointer("/spec/runtimeClassName").and_then(Value::as_str) else {
        return Ok(None);
    };
    if class.is_empty() {
        return Err(ApiError::unexplained("resource name may not be empty"));
    }
    let problems = path_segment_name(class, false);
    if !problems.is_empty() {
        // The real server requests the class over HTTP, and the HTTP client refuses the name.
        let why = format!("invalid resource name {}: [{}]", go_quote(class), problems.join(" "));
        return Err(ApiError::unexplained(why));
    }
    let found = cx.view.get(&RUNTIME_CLASSES, class).map(|found| found.value());
    let missing = || reject(object, &format!("RuntimeClass {} not found", go_quote(class)));
    found.map(Some).ok_or_else(missing)
}

fn reject(object: &Value, why: &str) -> ApiError {
    let pods = GroupResource::new("", "pods");
    ApiError::forbidden(&pods, &name_of(object), format!("pod rejected: {why}"))
}

/// Sets the overhead, the node selector and the tolerations of the runtime class of a pod.
pub(super) fn apply_runtime_class(cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
    let Some(class) = runtime_class(cx, object)? else { return Ok(()) };
    if let Some(overhead) = class.get("overhead").filter(|overhead| overhead.is_object()) {
        let fixed = overhead.get("podFixed").cloned().unwrap_or_default();
        let own = object.pointer("/spec/overhead").and_then(Value::as_object);
        if own.is_some_and(|own| !own.is_empty()) && own != fixed.as_object() {
            return Err(reject(object, "Pod's Overhead doesn't match RuntimeClass's defined Overhead"));
        }
        spec_mut(object).insert("overhead".to_owned(), fixed);
    }
    let wanted = class.pointer("/scheduling/nodeSelector").and_then(Value::as_object);
    for (key, value) in wanted.into_iter().flatten() {
        let own = object.pointer("/spec/nodeSelector").and_then(|labels| labels.get(key));
        if let Some(own) = own.filter(|own| *own != value) {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let why = format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                text(value),
                text(own)
            );
            return Err(ApiError::forbidden(&GroupResource::new("", "pods"), &name_of(object), why));
        }
        let selector = spec_mut(object).entry("nodeSelector").or_insert_with(|| json!({}));
        selector[key] = value.clone();
    }
    if class.get("scheduling").is_some_and(Value::is_object) {
        tolerations::merge(spec_mut(object), list_at(&class, "/scheduling/tolerations"));
    }
    Ok(())
}

/// Checks that the overhead of a pod is that of its runtime class.
pub(super) fn review_overhead(cx: &WriteContext<'_>, object: &Value) -> Result<(), ApiError> {
    let class = runtime_class(cx, object)?;
    let overhead = object.pointer("/spec/overhead").filter(|overhead| !overhead.is_null());
    let defined = class.as_ref().and_then(|class| class.get("overhead")).filter(|found| found.is_object());
    match (defined, overhead) {
        (None, None) => Ok(()),
        (None, Some(_)) => {
            Err(reject(object, "Pod Overhead set without corresponding RuntimeClass defined Overhead"))
        }
        (Some(defined), overhead) if defined.get("podFixed").filter(|fixed| !fixed.is_null()) == overhead => {
            Ok(())
        }
        (Some(_), _) => Err(reject(object, "Pod's Overhead doesn't match RuntimeClass's defined Overhead")),
    }
}

/// Refuses to resize a pod that is bound to a node that does not exist.
pub(super) fn review_node(cx: &WriteContext<'_>, pod: &Value, old: &Value) -> Result<(), ApiError> {
    let node = text_at(pod, "/spec/nodeName");
    if *cx.subresource != Subresource::Resize || node.is_empty() || pod["spec"] == old["spec"] {
        return Ok(());
    }
    if cx.view.get(&ResourceId::new("", "nodes"), node).is_some() {
        return Ok(());
    }
    let why = format!("node {} not found", go_quote(node));
    Err(ApiError::forbidden(&GroupResource::new("", "pods"), meta::name(pod), why))
}
