//! Pods and pod templates.

mod admission;
mod annotations;
mod container;
mod defaults;
mod disabled;
mod environment;
mod ephemeral;
mod mounts;
mod network;
mod operating_system;
mod probe;
mod projected;
mod references;
mod resize;
mod resources;
mod scheduling;
mod security;
mod status;
mod update;
mod validate;
mod volumes;
mod warnings;

use serde_json::{Value, json};
use windlass_schema::FieldError;

pub(in crate::strategy) use self::defaults::default_spec;
pub(in crate::strategy) use self::probe::port_number_or_name;
pub(in crate::strategy) use self::resources::{
    allows_overcommit, validate_amount, validate_container_name, validate_name,
};
pub(in crate::strategy) use self::scheduling::{validate_node_selector, validate_tolerations};
pub(in crate::strategy) use self::validate::validate_template;
pub(in crate::strategy) use self::warnings::{about_term, fraction, node_label, pod_template_warnings};
use crate::meta;
use crate::strategy::checks::dns_label_warning;
use crate::strategy::fields::{default, int_at, list_at, spec_mut, text_at};
use crate::strategy::place;
use crate::strategy::{AdmissionPlugin, Facts, Grace, Strategy, StrategyContext, Writes};
use crate::wire::ApiError;

const POD: Facts = Facts {
    returns_deleted_object: true,
    writes: &[
        ("", Writes::AllBut(&["status"])),
        ("status", Writes::AllBut(&["spec", "metadata.ownerReferences", "metadata.deletionTimestamp"])),
        ("ephemeralcontainers", Writes::Only(&["spec.ephemeralContainers"])),
        (
            "resize",
            Writes::Only(&[
                "spec.containers[*].resources",
                "spec.containers[*].resizePolicy",
                "spec.initContainers[*].resources",
                "spec.initContainers[*].resizePolicy",
                "spec.resources",
            ]),
        ),
    ],
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

    fn default(&self, object: &mut Value) {
        defaults::default_pod(spec_mut(object));
        if object.get("status").is_some() {
            mirror_pod_ip(object);
        }
    }

    fn admit(
        &self,
        cx: &StrategyContext<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        if cx.plugins.has(AdmissionPlugin::DefaultTolerationSeconds) {
            admission::add_tolerations(spec_mut(object));
        }
        if !cx.plugins.has(AdmissionPlugin::Priority) {
            return Ok(());
        }
        if let Some(old) = old {
            admission::keep_priority(object, old);
        } else {
            admission::set_priority(cx, object)?;
            admission::apply_runtime_class(cx, object)?;
        }
        Ok(())
    }

    fn review(&self, cx: &StrategyContext<'_>, object: &Value, old: Option<&Value>) -> Result<(), ApiError> {
        match old {
            Some(old) => admission::review_node(cx, object, old),
            None => admission::review_overhead(cx, object),
        }
    }

    fn prepare_create(&self, cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
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
        place::validate("", object, validate::validate_new_pod)
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
        }
        Ok(())
    }

    fn validate_update(&self, cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        let check = match cx.subresource {
            "" => update::validate_update,
            "ephemeralcontainers" => ephemeral::validate_update,
            "status" => status::validate_update,
            "resize" => return resize::validate_resize(object, old),
            _ => return Vec::new(),
        };
        place::validate("", object, |pod, errors| check(pod, &pod.with(old), errors))
    }

    fn warnings(&self, cx: &StrategyContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        if !cx.subresource.is_empty() || old.is_some() {
            return Vec::new();
        }
        let mut warnings: Vec<String> =
            dns_label_warning(object, "this is used in the Pod's hostname").into_iter().collect();
        warnings.extend(warnings::pod_warnings(object));
        warnings
    }

    fn restrict(&self, subresource: &str, object: &mut Value, old: &Value) {
        // Validation refuses a resize with other containers.
        if subresource == "resize" && !resize::same_containers(object, old) {
            return;
        }
        if let Some(writes) = POD.writes(subresource) {
            writes.restrict(object, old);
        }
    }

    fn reset_fields(&self, subresource: &str) -> &'static [&'static str] {
        match subresource {
            "" => &["status"],
            "status" => &["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"],
            // A writer of another subresource owns all sent fields, although the server stores only some
            // fields.
            _ => &[],
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

/// Makes `podIP` the first of `podIPs`. Where the two differ, `podIP` wins.
fn mirror_pod_ip(object: &mut Value) {
    let first = text_at(object, "/status/podIPs/0/ip").to_owned();
    let single = text_at(object, "/status/podIP").to_owned();
    let status = meta::entry_object(object, "status");
    if !single.is_empty() && single != first {
        status.insert("podIPs".to_owned(), json!([{"ip": single}]));
    } else if !first.is_empty() {
        status.insert("podIP".to_owned(), first.into());
    }
}

struct PodTemplates;

impl Strategy for PodTemplates {
    fn facts(&self) -> &'static Facts {
        &TEMPLATE
    }

    fn default(&self, object: &mut Value) {
        if let Some(spec) = object.pointer_mut("/template/spec").and_then(Value::as_object_mut) {
            default_spec(spec);
        }
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        place::validate("template", &object["template"], validate_template)
    }

    fn validate_update(&self, _cx: &StrategyContext<'_>, object: &Value, _old: &Value) -> Vec<FieldError> {
        place::validate("template", &object["template"], validate_template)
    }

    fn warnings(&self, _cx: &StrategyContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        if old.is_some_and(|old| old["template"] == object["template"]) {
            return Vec::new();
        }
        pod_template_warnings("template.", &object["template"])
    }
}
