//! Pods.

mod admission;
mod app_armor;
mod defaults;
mod generation;
mod label_keys;
mod pod_level;
mod resize;
mod status;
mod table;
mod tolerations;
mod update;
mod validate;

use serde_json::{Value, json};
use windlass_store::object_meta as meta;
use windlass_wire::ApiError;

use crate::admission_plugins::AdmissionPlugin;
use crate::json::{default, int_at, list_at, spec_mut, text_at};
use crate::kind::{Admission, Delete, Grace, IfEmpty, Kind, KindConfig, Prepare, WriteContext, Writes};
use crate::pod_template::defaults::qos_class;
use crate::subresource::Subresource;

pub(crate) static KIND: Kind = Kind {
    defaults: &Pods,
    prepare: &Pods,
    validate: &Pods,
    admission: &Pods,
    delete: &Pods,
    table: &table::TABLE,
    ..Kind::new(CONFIG)
};

const CONFIG: KindConfig = KindConfig {
    pod_spec: Some("/spec"),
    returns_deleted_object: true,
    writes: &[
        (Subresource::None, Writes::AllBut(&["status"])),
        (
            Subresource::Status,
            Writes::AllBut(&["spec", "metadata.ownerReferences", "metadata.deletionTimestamp"]),
        ),
        (Subresource::EphemeralContainers, Writes::Only(&["spec.ephemeralContainers"])),
        (
            Subresource::Resize,
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
    selectable_if_empty: &[("spec.hostNetwork", IfEmpty::Text("false"))],
    ..KindConfig::SPEC
};

struct Pods;

impl Admission for Pods {
    fn mutate(&self, cx: &WriteContext<'_>, object: &mut Value, old: Option<&Value>) -> Result<(), ApiError> {
        if cx.plugins.has(AdmissionPlugin::DefaultTolerationSeconds) {
            admission::add_tolerations(spec_mut(object));
        }
        if cx.plugins.has(AdmissionPlugin::Priority) {
            match old {
                Some(old) => admission::keep_priority(object, old),
                None => admission::set_priority(cx, object)?,
            }
        }
        if old.is_none() && cx.plugins.has(AdmissionPlugin::RuntimeClass) {
            admission::apply_runtime_class(cx, object)?;
        }
        Ok(())
    }

    fn validate_admission(
        &self,
        cx: &WriteContext<'_>,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        match old {
            Some(old) => admission::review_node(cx, object, old),
            None if cx.plugins.has(AdmissionPlugin::RuntimeClass) => admission::review_overhead(cx, object),
            None => Ok(()),
        }
    }
}

impl Prepare for Pods {
    fn warnings(&self, object: &Value) -> Vec<String> {
        app_armor::warnings(object)
    }

    fn prepare_create(&self, cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        label_keys::merge(object);
        app_armor::set_profiles(object);
        pod_level::set_defaults(object);
        let qos = qos_class(&object["spec"]);
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

    fn prepare_update(&self, cx: &WriteContext<'_>, object: &mut Value, old: &Value) -> Result<(), ApiError> {
        if matches!(cx.subresource, Subresource::None | Subresource::Resize) {
            pod_level::keep(object, old);
        }
        if *cx.subresource == Subresource::Resize {
            pod_level::set_defaults(object);
        }
        if *cx.subresource == Subresource::Status {
            let qos = text_at(old, "/status/qosClass").to_owned();
            let status = meta::entry_object(object, "status");
            default(status, "qosClass", if qos.is_empty() { "BestEffort" } else { &qos });
            generation::keep_observed(status, old);
        }
        Ok(())
    }

    fn is_restricted(&self, subresource: &Subresource, object: &Value, old: &Value) -> bool {
        // Validation refuses a resize with other containers.
        *subresource != Subresource::Resize || resize::same_containers(object, old)
    }
}

impl Delete for Pods {
    fn grace(&self, _cx: &WriteContext<'_>, object: &Value, requested: Option<i64>) -> Grace {
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
