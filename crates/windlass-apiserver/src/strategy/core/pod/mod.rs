//! Pods: born pending, and gone only when the node has let them go.

mod container;
mod defaults;
mod update;
mod validate;

use serde_json::{Value, json};
use windlass_schema::FieldError;

pub(in crate::strategy) use self::defaults::{default_claim_spec, default_spec, default_volume_source};
pub(in crate::strategy) use self::validate::validate_spec;
use crate::meta;
use crate::strategy::fields::{default, int_at, list_at, spec_mut, text_at};
use crate::strategy::{Facts, Grace, Strategy, StrategyContext};
use crate::wire::{ApiError, GroupResource};

const POD: Facts = Facts {
    returns_deleted_object: true,
    selectable: &[
        ("spec.nodeName", "/spec/nodeName"),
        ("spec.restartPolicy", "/spec/restartPolicy"),
        ("spec.schedulerName", "/spec/schedulerName"),
        ("spec.serviceAccountName", "/spec/serviceAccountName"),
        ("spec.hostNetwork", "/spec/hostNetwork"),
        ("status.phase", "/status/phase"),
        ("status.podIP", "/status/podIPs/0/ip"),
        ("status.podIPs", "/status/podIPs/0/ip"),
        ("status.nominatedNodeName", "/status/nominatedNodeName"),
    ],
    ..Facts::SPEC
};
const TEMPLATE: Facts =
    Facts { returns_deleted_object: true, generation: crate::strategy::Generation::All, ..Facts::SPEC };

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    if resource == "pods" { &Pods } else { &PodTemplates }
}

struct Pods;

impl Strategy for Pods {
    fn facts(&self) -> &'static Facts {
        &POD
    }

    fn prepare_create(&self, cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        let name = meta::name(object).to_owned();
        let spec = spec_mut(object);
        defaults::default_pod(spec);
        defaults::add_tolerations(spec);
        set_priority(cx, object, &name)?;
        let qos = defaults::qos_class(&object["spec"]);
        object["status"] = json!({"phase": "Pending", "qosClass": qos});
        if !list_at(object, "/spec/schedulingGates").is_empty() {
            object["status"]["conditions"] = json!([{
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": null,
                "lastTransitionTime": cx.env.now_rfc3339(),
            }]);
        }
        Ok(())
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        validate_spec(&object["spec"], "spec")
    }

    fn prepare_update(
        &self,
        cx: &StrategyContext<'_>,
        object: &mut Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        if cx.subresource == "status" {
            let qos = text_at(old, "/status/qosClass").to_owned();
            let status = meta::entry_object(object, "status");
            default(status, "qosClass", if qos.is_empty() { "BestEffort" } else { &qos });
            mirror_pod_ip(object);
        } else {
            defaults::default_pod(spec_mut(object));
            defaults::keep_tolerations(object, old);
        }
        Ok(())
    }

    fn validate_update(&self, cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        match cx.subresource {
            "" => update::validate_update(object, old),
            "ephemeralcontainers" => update::validate_ephemeral_update(object, old),
            _ => Vec::new(),
        }
    }

    fn selectable_value(&self, object: &Value, field: &str) -> String {
        let value = POD.selectable_value(object, field);
        if field == "spec.hostNetwork" && value.is_empty() { "false".to_owned() } else { value }
    }

    fn grace(&self, _cx: &StrategyContext<'_>, object: &Value, requested: Option<i64>) -> Grace {
        let ended = matches!(text_at(object, "/status/phase"), "Failed" | "Succeeded");
        if text_at(object, "/spec/nodeName").is_empty() || ended {
            return Grace::Seconds(0);
        }
        let own = || int_at(object, "/spec/terminationGracePeriodSeconds").unwrap_or(30);
        match requested.unwrap_or_else(own) {
            negative if negative < 0 => Grace::Seconds(1),
            seconds => Grace::Seconds(seconds),
        }
    }
}

/// `podIP` is the first of `podIPs`, whichever of the two is written.
fn mirror_pod_ip(object: &mut Value) {
    let first = text_at(object, "/status/podIPs/0/ip").to_owned();
    let single = text_at(object, "/status/podIP").to_owned();
    let status = meta::entry_object(object, "status");
    if first.is_empty() && !single.is_empty() {
        status.insert("podIPs".to_owned(), json!([{"ip": single}]));
    } else if !first.is_empty() {
        status.insert("podIP".to_owned(), first.into());
    }
}

/// Fills in the number behind the priority class that the pod names, or the cluster's default one.
fn set_priority(cx: &StrategyContext<'_>, object: &mut Value, name: &str) -> Result<(), ApiError> {
    let classes = cx.lookups.priority_classes.get(cx.view);
    let wanted = text_at(object, "/spec/priorityClassName").to_owned();
    let class = if wanted.is_empty() {
        let is_default = |class: &&Value| class.get("globalDefault").and_then(Value::as_bool) == Some(true);
        classes.values().filter(is_default).min_by_key(|class| int_at(class, "/value"))
    } else {
        let found = classes.get(&wanted);
        if found.is_none() {
            let why = format!("no PriorityClass with name {wanted} was found");
            return Err(ApiError::forbidden(&GroupResource::new("", "pods"), name, why));
        }
        found
    };
    let spec = spec_mut(object);
    let value = class.and_then(|class| int_at(class, "/value")).unwrap_or_default();
    if let Some(given) = spec.get("priority").and_then(Value::as_i64)
        && given != value
    {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name"
        );
        return Err(ApiError::forbidden(&GroupResource::new("", "pods"), name, why));
    }
    spec.insert("priority".to_owned(), value.into());
    let policy = class.map_or("", |class| text_at(class, "/preemptionPolicy"));
    default(spec, "preemptionPolicy", if policy.is_empty() { "PreemptLowerPriority" } else { policy });
    if let Some(class) = class {
        spec.insert("priorityClassName".to_owned(), meta::name(class).into());
    }
    Ok(())
}

struct PodTemplates;

impl Strategy for PodTemplates {
    fn facts(&self) -> &'static Facts {
        &TEMPLATE
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        let template = meta::entry_object(object, "template");
        if let Some(spec) = crate::strategy::fields::entry_mut(template, "spec") {
            default_spec(spec);
        }
        Ok(())
    }

    fn prepare_update(
        &self,
        cx: &StrategyContext<'_>,
        object: &mut Value,
        _old: &Value,
    ) -> Result<(), ApiError> {
        self.prepare_create(cx, object)
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        validate_spec(&object["template"]["spec"], "template.spec")
    }
}
