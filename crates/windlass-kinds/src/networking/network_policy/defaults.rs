//! Defaults.

use serde_json::{Value, json};

use super::NetworkPolicies;
use crate::json::spec_mut;
use crate::kind::Defaults;

impl Defaults for NetworkPolicies {
    fn default(&self, object: &mut Value) {
        let spec = spec_mut(object);
        if !spec.contains_key("policyTypes") {
            let egress = spec.get("egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
            let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
            spec.insert("policyTypes".to_owned(), types);
        }
    }
}
