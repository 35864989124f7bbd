//! Ingresses, network policies, and the addresses of services.

mod ingress;
mod network_policy;

use serde_json::{Value, json};
use windlass_schema::FieldError;

pub(super) use self::ingress::validate_point;
use super::checks::immutable;
use super::fields::{default, entry_mut, map_at, spec_mut};
use super::{AdmissionPlugin, Facts, FactsOnly, Strategy, StrategyContext, Writes, addresses, place};
use crate::meta;
use crate::wire::ApiError;

/// The annotation that named the class of an ingress before there was a field.
const CLASS: &str = "kubernetes.io/ingress.class";

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "ingresses" => &Ingresses,
        "ingressclasses" => &IngressClasses,
        "networkpolicies" => &NetworkPolicies,
        "ipaddresses" => &FactsOnly(&ADDRESSES),
        "servicecidrs" => &FactsOnly(&RANGES),
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const INGRESSES: Facts =
    Facts { unenforced: Some("no traffic is routed, because there is no ingress controller"), ..Facts::SPEC };
const INGRESS_CLASSES: Facts = Facts {
    unenforced: Some("no ingress uses the class, because there is no ingress controller"),
    ..Facts::SPEC
};
const NETWORK_POLICIES: Facts =
    Facts { unenforced: Some("no traffic is restricted, because pods have no network"), ..Facts::SPEC };
const ADDRESSES: Facts = Facts {
    name: addresses::address_name,
    unenforced: Some("the address is not reserved for a service"),
    ..Facts::DATA
};
const RANGES: Facts = Facts {
    writes: Writes::STATUS_ONLY,
    unenforced: Some("services get no addresses from the range"),
    ..Facts::DATA
};

struct Ingresses;

/// Writes the group of a backend's resource even if it is absent: the field has no `omitempty`.
fn name_group(backend: &mut Value) {
    if let Some(Value::Object(resource)) = backend.get_mut("resource") {
        resource.entry("apiGroup").or_insert(Value::Null);
    }
}

impl Strategy for Ingresses {
    fn facts(&self) -> &'static Facts {
        &INGRESSES
    }

    fn default(&self, object: &mut Value) {
        let Some(spec) = object.get_mut("spec") else { return };
        if let Some(backend) = spec.get_mut("defaultBackend") {
            name_group(backend);
        }
        let lists = spec.get_mut("rules").and_then(Value::as_array_mut).into_iter().flatten();
        let paths = lists.filter_map(|rule| rule.pointer_mut("/http/paths")?.as_array_mut()).flatten();
        paths.filter_map(|path| path.get_mut("backend")).for_each(name_group);
    }

    fn admit(
        &self,
        cx: &StrategyContext<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        if old.is_none()
            && cx.plugins.has(AdmissionPlugin::DefaultIngressClass)
            && !meta::has_annotation(object, CLASS)
            && object["spec"].get("ingressClassName").is_none_or(Value::is_null)
            && let Some(class) = &*cx.lookups.default_ingress_class.get(cx.view)
        {
            spec_mut(object).insert("ingressClassName".to_owned(), class.as_str().into());
        }
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        place::validate("spec", &object["spec"], ingress::validate)
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        let mut errors = self.validate(object);
        let annotation = map_at(object, "/metadata/annotations").and_then(|all| all.get(CLASS));
        let class = object.pointer("/spec/ingressClassName").filter(|class| !class.is_null());
        if let (Some(annotation), Some(class)) = (annotation, class)
            && annotation != class
        {
            let detail = "must match `ingressClassName` when both are specified";
            errors.push(FieldError::invalid(format!("annotations.{CLASS}"), annotation.clone(), detail));
        }
        errors
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        object["status"] = json!({"loadBalancer": {}});
        Ok(())
    }

    fn validate_update(&self, cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        if cx.subresource != "status" {
            return self.validate(object);
        }
        place::validate("status.loadBalancer", &object["status"]["loadBalancer"], |status, errors| {
            ingress::validate_status(status, &status.with(&old["status"]["loadBalancer"]), errors);
        })
    }

    fn warnings(&self, cx: &StrategyContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        if !cx.subresource.is_empty() {
            return Vec::new();
        }
        let mut warnings: Vec<String> = INGRESSES.unenforced_warning().into_iter().collect();
        if old.is_none()
            && meta::has_annotation(object, CLASS)
            && object.pointer("/spec/ingressClassName").is_none()
        {
            warnings.push(format!(
                "annotation \"{CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"
            ));
        }
        warnings
    }
}

struct IngressClasses;

impl Strategy for IngressClasses {
    fn facts(&self) -> &'static Facts {
        &INGRESS_CLASSES
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        place::validate("spec", &object["spec"], ingress::validate_class)
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        immutable(object, old, "/spec/controller")
    }

    fn default(&self, object: &mut Value) {
        if let Some(parameters) = entry_mut(spec_mut(object), "parameters") {
            default(parameters, "scope", "Cluster");
        }
    }
}

struct NetworkPolicies;

impl Strategy for NetworkPolicies {
    fn facts(&self) -> &'static Facts {
        &NETWORK_POLICIES
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        network_policy::validate(object, &Value::Null)
    }

    fn validate_update(&self, _cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        network_policy::validate(object, old)
    }

    fn default(&self, object: &mut Value) {
        let spec = spec_mut(object);
        if !spec.contains_key("policyTypes") {
            let egress = spec.get("egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
            let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
            spec.insert("policyTypes".to_owned(), types);
        }
    }
}
