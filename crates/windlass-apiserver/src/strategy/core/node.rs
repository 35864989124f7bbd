//! Nodes.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use windlass_schema::FieldError;

use super::pod::validate_amount;
use crate::strategy::addresses::{address_range, parse_range};
use crate::strategy::fields::{object_mut, spec_mut, text};
use crate::strategy::place::{self, Errors, Place};
use crate::strategy::{AdmissionPlugin, Facts, Strategy, StrategyContext};
use crate::wire::{ApiError, names};

const NODES: Facts = Facts { selectable: &[("spec.unschedulable", "/spec/unschedulable")], ..Facts::DATA };

pub(super) struct Nodes;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Sets the allocatable resources to the capacity.
fn default_allocatable(object: &mut Value) {
    if let Some(status) = object_mut(object, "status")
        && !status.contains_key("allocatable")
        && let Some(capacity) = status.get("capacity").cloned()
    {
        status.insert("allocatable".to_owned(), capacity);
    }
}

/// Makes `podCIDR` the first of `podCIDRs`. Where the two differ, `podCIDR` wins.
fn mirror_range(spec: &mut Map<String, Value>) {
    let single = spec.get("podCIDR").and_then(Value::as_str).filter(|range| !range.is_empty());
    if let Some(single) = single.map(str::to_owned) {
        if spec.get("podCIDRs").and_then(|list| list.get(0)).is_none_or(|first| *first != *single) {
            spec.insert("podCIDRs".to_owned(), json!([single]));
        }
    } else if let Some(first) = spec.get("podCIDRs").and_then(|list| list.get(0)).cloned() {
        spec.insert("podCIDR".to_owned(), first);
    }
}

impl Strategy for Nodes {
    fn warnings(&self, cx: &StrategyContext<'_>, object: &Value, _old: Option<&Value>) -> Vec<String> {
        let spec = &object["spec"];
        let mut warnings = Vec::new();
        if !cx.subresource.is_empty() {
            return warnings;
        }
        if !spec["configSource"].is_null() {
            warnings.push("spec.configSource: the feature is removed".to_owned());
        }
        if !text(spec, "externalID").is_empty() {
            let text = "spec.externalID: this field is deprecated, and is unused by Kubernetes";
            warnings.push(text.to_owned());
        }
        warnings
    }

    fn facts(&self) -> &'static Facts {
        &NODES
    }

    fn default(&self, object: &mut Value) {
        mirror_range(spec_mut(object));
        default_allocatable(object);
    }

    fn admit(
        &self,
        cx: &StrategyContext<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        if old.is_some() || !cx.plugins.has(AdmissionPlugin::TaintNodesByCondition) {
            return Ok(());
        }
        let taints = spec_mut(object).entry("taints").or_insert_with(|| json!([]));
        if let Some(taints) = taints.as_array_mut()
            && !taints.iter().any(|taint| text(taint, "key") == NOT_READY)
        {
            // No pod is scheduled to a node before the node is ready.
            taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
        }
        Ok(())
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        spec_mut(object).remove("configSource");
        Ok(())
    }

    fn prepare_update(
        &self,
        _cx: &StrategyContext<'_>,
        object: &mut Value,
        _old: &Value,
    ) -> Result<(), ApiError> {
        spec_mut(object).remove("configSource");
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        place::validate("", object, validate)
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        place::validate("", object, |node, errors| validate_change(node, &node.with(old), errors))
    }

    fn validate_status(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        self.validate_change(object, old)
    }

    fn selectable_value(&self, object: &Value, field: &str) -> String {
        let value = NODES.selectable_value(object, field);
        if field == "spec.unschedulable" && value.is_empty() { "false".to_owned() } else { value }
    }
}

fn validate(node: &Place<'_>, errors: &mut Errors) {
    validate_taints(node, errors);
    validate_amounts(&node.at("status"), errors);
    let ranges = node.below("spec/podCIDRs");
    for range in ranges.items() {
        address_range(&range, &BTreeSet::new(), errors);
    }
    if ranges.len() > 1
        && let Some((index, bad)) =
            ranges.items().enumerate().find(|(_, range)| parse_range(range.text()).is_none())
    {
        let text = bad.text();
        let why = format!(
            "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{index}]: <nil> (invalid CIDR address: {text})"
        );
        errors.push(ranges.internal(&why));
    }
    let is_six = |range: &Place<'_>| range.text().contains(':');
    let sixes = ranges.items().filter(is_six).count();
    if ranges.len() > 1 && (ranges.len() > 2 || sixes != 1) {
        errors.push(ranges.invalid("may specify no more than one CIDR for each IP family"));
    }
}

fn validate_taints(node: &Place<'_>, errors: &mut Errors) {
    let taints = node.below("spec/taints").at_path_of(&node.below("metadata/taints"));
    let mut seen = BTreeSet::new();
    for taint in taints.items() {
        let (key, value, effect) = (taint.at("key"), taint.at("value"), taint.at("effect"));
        key.check(names::label_key, errors);
        let problems = names::label_value(value.text());
        if !problems.is_empty() {
            errors.push(value.invalid_as(value.text(), problems.join(";")));
        }
        effect.require_one_of(&["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
        if !seen.insert((key.text(), effect.text())) {
            let quote = windlass_schema::go_quote;
            let error = taint.duplicate_as(Value::Null);
            let shown = format!(
                "{{\"Key\":{},\"Value\":{},\"Effect\":{},\"TimeAdded\":{}}}",
                quote(key.text()),
                quote(value.text()),
                quote(effect.text()),
                windlass_schema::go_json(taint.at("timeAdded").value())
            );
            let detail = "taints must be unique by key and effect pair".to_owned();
            errors.push(FieldError { detail, ..error.showing(shown) });
        }
    }
}

fn validate_amounts(status: &Place<'_>, errors: &mut Errors) {
    for list in ["capacity", "allocatable"] {
        for (name, amount) in status.at(list).entries() {
            validate_amount(name, &amount.at_path_of(&status.at(list).at(name)), errors);
        }
    }
}

fn validate_change(node: &Place<'_>, old: &Place<'_>, errors: &mut Errors) {
    validate_amounts(&node.at("status"), errors);
    let mut seen = BTreeSet::new();
    for address in node.below("status/addresses").items() {
        let quote = windlass_schema::go_quote;
        let (kind, text) = (address.at("type").text(), address.at("address").text());
        if !seen.insert((kind, text)) {
            let shown = format!("{{\"Type\":{},\"Address\":{}}}", quote(kind), quote(text));
            errors.push(address.duplicate_as(Value::Null).showing(shown));
        }
    }
    let (ranges, before) = (node.below("spec/podCIDRs"), old.below("spec/podCIDRs"));
    let range_error = || ranges.forbidden("node updates may not change podCIDR except from \"\" to valid");
    if !before.is_empty() && before.len() != ranges.len() {
        errors.push(range_error());
    } else {
        let changed = before.items().zip(ranges.items()).filter(|(old, new)| old.text() != new.text());
        errors.extend(changed.map(|_| range_error()));
    }
    let (provider, before) = (node.below("spec/providerID"), old.below("spec/providerID"));
    if !before.text().is_empty() && provider.text() != before.text() {
        let detail = "node updates may not change providerID except from \"\" to valid";
        errors.push(provider.forbidden(detail));
    }
    validate_taints(node, errors);
    let external = node.below("spec/externalID");
    if external.text() != old.below("spec/externalID").text() {
        errors.push(external.forbidden("may not be updated"));
    }
}
