//! The nodes that have access to the devices of a slice, or to a device.

use serde_json::Value;
use windlass_wire::names;

use crate::field::{Errors, Field};
use crate::pod_template::scheduling::validate_node_selector;

/// The rules for the fields that name the nodes, of which exactly one is set.
pub(super) struct NodeRules {
    /// The error about an empty name.
    pub(super) empty_name: &'static str,
    /// The selector has a single term.
    pub(super) has_single_term: bool,
    /// The fields that are true or absent, and the fields in quotes.
    pub(super) flags: &'static [(&'static str, &'static str)],
    /// The error if no field is set.
    pub(super) required: &'static str,
    /// The error if several fields are set.
    pub(super) several: &'static str,
}

impl NodeRules {
    /// Validates the fields of a slice or of a device.
    pub(super) fn check(&self, place: &Field<'_>, errors: &mut Errors) {
        let mut set = Vec::new();
        let (name, selector) = (place.at("nodeName"), place.at("nodeSelector"));
        if name.is_set() && name.text().is_empty() {
            errors.push(name.invalid(self.empty_name));
        } else if name.is_set() {
            set.push("`nodeName`");
            name.check(names::dns_1123_subdomain, errors);
        }
        if selector.is_set() {
            set.push("`nodeSelector`");
            validate_node_selector(&selector, errors);
            let terms = selector.at("nodeSelectorTerms");
            if self.has_single_term && terms.len() != 1 {
                errors.push(terms.invalid("must have exactly one node selector term"));
            }
        }
        for &(field, shown) in self.flags {
            let flag = place.at(field);
            if flag.flag() {
                set.push(shown);
            } else if flag.is_set() {
                errors.push(flag.invalid("must be either unset or set to true"));
            }
        }
        match set.len() {
            0 => errors.push(place.required(self.required)),
            1 => {}
            _ => errors.push(place.invalid_as(format!("{{{}}}", set.join(", ")), self.several)),
        }
    }
}

/// Reports the fields of a device, if the slice names the nodes.
pub(super) fn refuse(device: &Field<'_>, errors: &mut Errors) {
    if ["nodeName", "nodeSelector", "allNodes"].iter().any(|field| device.at(field).is_set()) {
        let detail = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
        errors.push(device.invalid_as(Value::Null, detail));
    }
}
