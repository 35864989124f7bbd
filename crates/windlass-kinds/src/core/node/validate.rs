//! Validation and warnings.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::names;

use super::Nodes;
use crate::addresses::{address_range, parse_range};
use crate::field::{self, Errors, Field};
use crate::json::text;
use crate::kind::{Validate, WriteContext};
use crate::pod_template::resources::validate_amount;

impl Validate for Nodes {
    fn warnings(&self, cx: &WriteContext<'_>, object: &Value, _old: Option<&Value>) -> Vec<String> {
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

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        field::validate("", object, validate)
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        field::validate("", object, |node, errors| validate_change(node, &node.with(old), errors))
    }

    fn validate_status(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        self.validate_change(object, old)
    }
}

fn validate(node: &Field<'_>, errors: &mut Errors) {
    validate_taints(node, errors);
    validate_amounts(&node.at("status"), errors);
    let ranges = node.at_path("spec/podCIDRs");
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
    let is_six = |range: &Field<'_>| range.text().contains(':');
    let sixes = ranges.items().filter(is_six).count();
    if ranges.len() > 1 && (ranges.len() > 2 || sixes != 1) {
        errors.push(ranges.invalid("may specify no more than one CIDR for each IP family"));
    }
}

fn validate_taints(node: &Field<'_>, errors: &mut Errors) {
    let taints = node.at_path("spec/taints").at_path_of(&node.at_path("metadata/taints"));
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

fn validate_amounts(status: &Field<'_>, errors: &mut Errors) {
    for list in ["capacity", "allocatable"] {
        for (name, amount) in status.at(list).entries() {
            validate_amount(name, &amount.at_path_of(&status.at(list).at(name)), errors);
        }
    }
}

fn validate_change(node: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    validate_amounts(&node.at("status"), errors);
    let mut seen = BTreeSet::new();
    for address in node.at_path("status/addresses").items() {
        let quote = windlass_schema::go_quote;
        let (kind, text) = (address.at("type").text(), address.at("address").text());
        if !seen.insert((kind, text)) {
            let shown = format!("{{\"Type\":{},\"Address\":{}}}", quote(kind), quote(text));
            errors.push(address.duplicate_as(Value::Null).showing(shown));
        }
    }
    let (ranges, before) = (node.at_path("spec/podCIDRs"), old.at_path("spec/podCIDRs"));
    let range_error = || ranges.forbidden("node updates may not change podCIDR except from \"\" to valid");
    if !before.is_empty() && before.len() != ranges.len() {
        errors.push(range_error());
    } else {
        let changed = before.items().zip(ranges.items()).filter(|(old, new)| old.text() != new.text());
        errors.extend(changed.map(|_| range_error()));
    }
    let (provider, before) = (node.at_path("spec/providerID"), old.at_path("spec/providerID"));
    if !before.text().is_empty() && provider.text() != before.text() {
        let change = if provider.text().is_empty() { "cleared" } else { "modified" };
        errors.push(provider.invalid_as(Value::Null, format!("field cannot be {change} once set")));
    }
    validate_taints(node, errors);
    let external = node.at_path("spec/externalID");
    if external.text() != old.at_path("spec/externalID").text() {
        errors.push(external.forbidden("may not be updated"));
    }
}
