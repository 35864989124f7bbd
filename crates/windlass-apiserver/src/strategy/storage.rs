//! Storage classes, volume attributes classes, and what CSI drivers publish.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_schema::FieldError;

use super::checks::immutable;
use super::core::node_label;
use super::place::{self, Errors, Place};
use super::{AdmissionPlugin, Facts, FactsOnly, Strategy, StrategyContext, Writes};
use crate::meta;
use crate::wire::{ApiError, names};

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "storageclasses" => &StorageClasses,
        "volumeattachments" => &FactsOnly(&ATTACHMENTS),
        "csidrivers" => &Drivers,
        "csinodes" => &FactsOnly(&DRIVERS),
        "volumeattributesclasses" => &AttributesClasses,
        "csistoragecapacities" => &FactsOnly(&CAPACITIES),
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const CLASSES: Facts = Facts {
    returns_deleted_object: true,
    unenforced: Some("no volumes are provisioned or changed, because there are no storage controllers"),
    ..Facts::DATA
};
const DRIVERS: Facts = Facts {
    unconditional_update: false,
    returns_deleted_object: true,
    unenforced: Some("no volumes are attached or mounted, because there are no storage controllers"),
    ..Facts::DATA
};
const ATTACHMENTS: Facts = Facts { writes: Writes::STATUS_ONLY, ..DRIVERS };
const CAPACITIES: Facts = Facts {
    unconditional_update: false,
    unenforced: Some("the scheduler does not look at the capacity of storage"),
    ..Facts::DATA
};

struct Drivers;

impl Strategy for Drivers {
    fn facts(&self) -> &'static Facts {
        &DRIVERS
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        drop_disabled(object);
        Ok(())
    }

    fn prepare_update(
        &self,
        _cx: &StrategyContext<'_>,
        object: &mut Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        drop_disabled(object);
        if object.get("spec") != old.get("spec") {
            let generation = meta::integer(old, "generation").unwrap_or_default() + 1;
            meta::set(object, "generation", Some(generation.into()));
        }
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        place::validate("spec", &object["spec"], validate_driver)
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for (field, shown) in
            [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")]
        {
            let (new, old) = (&object["spec"][field], &old["spec"][field]);
            if new != old {
                errors.push(FieldError::invalid(format!("spec.{shown}"), new.clone(), "field is immutable"));
            }
        }
        errors
    }

    fn warnings(&self, _cx: &StrategyContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        let requests =
            |object: &Value| object["spec"]["tokenRequests"].as_array().cloned().unwrap_or_default();
        let wanted = requests(object);
        let is_news = !wanted.is_empty() && old.is_none_or(|old| requests(old) != wanted);
        if !is_news || !object["spec"]["serviceAccountTokenInSecrets"].is_null() {
            return Vec::new();
        }
        vec![
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes"
                .to_owned(),
        ]
    }
}

/// Drops a field that is off by default.
fn drop_disabled(object: &mut Value) {
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("preventPodSchedulingIfMissing");
    }
}

fn validate_driver(spec: &Place<'_>, errors: &mut Errors) {
    for (field, shown) in [
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ] {
        if !spec.at(field).is_set() {
            errors.push(spec.at(shown).required(""));
        }
    }
    spec.at("fsGroupPolicy").one_of(&["File", "None", "ReadWriteOnceWithFSType"], errors);
    let mut audiences = BTreeSet::new();
    for request in spec.at("tokenRequests").items() {
        let (audience, seconds) = (request.at("audience"), request.at("expirationSeconds"));
        if !audiences.insert(audience.text()) {
            errors.push(audience.duplicate_as(audience.text()));
            continue;
        }
        if seconds.is_set() && seconds.int() < 600 {
            errors.push(seconds.invalid("may not specify a duration less than 10 minutes"));
        }
        if seconds.int() > 1 << 32 {
            errors.push(seconds.invalid("may not specify a duration larger than 2^32 seconds"));
        }
    }
    let modes = spec.at("volumeLifecycleModes");
    for mode in modes.items() {
        if !["Ephemeral", "Persistent"].contains(&mode.text()) {
            errors.push(modes.unsupported_as(mode.text(), &["Persistent", "Ephemeral"]));
        }
    }
    if !spec.at("seLinuxMount").is_set() {
        errors.push(spec.at("seLinuxMount").required(""));
    }
    let period = spec.at("nodeAllocatableUpdatePeriodSeconds");
    if period.is_set() && period.int() < 10 {
        errors.push(period.invalid("must be greater than or equal to 10 seconds"));
    }
    let in_secrets = spec.at("serviceAccountTokenInSecrets");
    if in_secrets.is_set() && spec.at("tokenRequests").is_empty() {
        errors.push(
            in_secrets.invalid("serviceAccountTokenInSecrets is set but no tokenRequests are specified"),
        );
    }
}

struct AttributesClasses;

impl Strategy for AttributesClasses {
    fn facts(&self) -> &'static Facts {
        &CLASSES
    }

    fn admit(
        &self,
        cx: &StrategyContext<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        if old.is_none() && cx.plugins.has(AdmissionPlugin::StorageObjectInUseProtection) {
            meta::add_finalizer(object, "kubernetes.io/vac-protection");
        }
        Ok(())
    }
}

struct StorageClasses;

impl Strategy for StorageClasses {
    fn facts(&self) -> &'static Facts {
        &CLASSES
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        place::validate("", object, |class, errors| {
            let name = class.at("provisioner");
            if !name.require(errors) {
                let lower = name.text().to_lowercase();
                let problems = names::label_key(&lower).into_iter();
                errors.extend(problems.map(|problem| name.invalid_as(lower.as_str(), problem)));
            }
            validate_parameters(&class.at("parameters"), errors);
            let policy = class.at("reclaimPolicy");
            if !policy.text().is_empty() {
                policy.one_of(&["Delete", "Retain"], errors);
            }
            let mode = class.at("volumeBindingMode");
            if mode.is_set() {
                mode.one_of(&["Immediate", "WaitForFirstConsumer"], errors);
            } else {
                errors.push(mode.required(""));
            }
            validate_topologies(&class.at("allowedTopologies"), errors);
        })
    }

    fn warnings(&self, _cx: &StrategyContext<'_>, object: &Value, _old: Option<&Value>) -> Vec<String> {
        let mut warnings: Vec<String> = self.facts().unenforced_warning().into_iter().collect();
        warnings.extend(place::validate("", object, |class, warnings| {
            let topologies = class.at("allowedTopologies");
            let expressions = topologies
                .items()
                .flat_map(|topology| topology.at("matchLabelExpressions").items().collect::<Vec<_>>());
            for key in expressions.map(|expression| expression.at("key")) {
                warnings.extend(node_label(key.text()).map(|text| key.warning(text)));
            }
        }));
        warnings
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let pointers = ["/parameters", "/provisioner", "/reclaimPolicy", "/volumeBindingMode"];
        pointers.into_iter().flat_map(|pointer| immutable(object, old, pointer)).collect()
    }
}

fn validate_parameters(parameters: &Place<'_>, errors: &mut Errors) {
    let size: usize = parameters.entries().map(|(key, value)| key.len() + value.text().len()).sum();
    let Some(map) = parameters.map() else { return };
    if map.len() > 512 {
        errors.push(parameters.too_long(512));
        return;
    }
    if map.contains_key("") {
        errors.push(parameters.invalid_as("", "field can not be empty."));
    }
    if size > 256 * 1024 {
        errors.push(parameters.too_long(256 * 1024));
    }
}

fn validate_topologies(topologies: &Place<'_>, errors: &mut Errors) {
    let mut known: Vec<BTreeMap<&str, BTreeSet<&str>>> = vec![BTreeMap::new(); topologies.len()];
    for term in topologies.items() {
        let mut requirements = BTreeMap::new();
        let expressions = term.at("matchLabelExpressions");
        for expression in expressions.items() {
            let (key, values) = (expression.at("key"), expression.at("values"));
            if values.is_empty() {
                errors.push(values.required(""));
            }
            let mut set = BTreeSet::new();
            for value in values.items() {
                if !set.insert(value.text()) {
                    errors.push(value.duplicate());
                }
            }
            key.check(names::label_key, errors);
            if requirements.insert(key.text(), set).is_some() {
                errors.push(key.duplicate_as(key.text()));
            }
        }
        // An empty term equals the places that kube-apiserver reserves for the terms to come.
        let copies = known.iter().filter(|other| **other == requirements).count();
        errors.extend((0..copies).map(|_| expressions.duplicate_as("")));
        known.push(requirements);
    }
}
