//! Requests about admission policies.

use serde_json::{Value, json};

use super::{Episode, NAMESPACES, pick, samples};
use crate::op::MERGE_PATCH;

const GROUP: &str = "admissionregistration.k8s.io/v1";

impl Episode {
    /// Creates, changes or removes a policy. There is at most one policy of each kind with one binding: the real server
    /// evaluates several policies, and several bindings, in random order.
    pub(super) fn change_policies(&mut self) {
        let is_mutating = self.random.bool();
        let (policies, name) = collection(is_mutating);
        if !self.policies.contains(&is_mutating) {
            self.add_policy(is_mutating);
            return;
        }
        let bindings = format!("{}ybindings", policies.trim_end_matches("ies"));
        match self.random.u32(..4) {
            0 => {
                self.push(format!("DELETE {bindings}/{name}"));
                self.push(format!("DELETE {policies}/{name}"));
                self.policies.retain(|known| *known != is_mutating);
            }
            1 => {
                let spec = self.binding_spec(is_mutating);
                self.merge(format!("PATCH {bindings}/{name}"), spec);
            }
            _ => {
                let spec = self.policy_spec(is_mutating);
                self.merge(format!("PATCH {policies}/{name}"), spec);
            }
        }
    }

    /// Creates a policy and a binding for the objects in the namespaces of this run.
    pub(super) fn add_policy(&mut self, is_mutating: bool) {
        let (policies, name) = collection(is_mutating);
        let kind = if is_mutating { "MutatingAdmissionPolicy" } else { "ValidatingAdmissionPolicy" };
        let spec = self.policy_spec(is_mutating);
        let metadata = json!({"name": name, "labels": {"run": "twin00"}});
        self.push(format!("POST {policies}")).body =
            Some(json!({"apiVersion": GROUP, "kind": kind, "metadata": metadata, "spec": spec}));
        let spec = self.binding_spec(is_mutating);
        let bindings = format!("{}ybindings", policies.trim_end_matches("ies"));
        self.push(format!("POST {bindings}")).body = Some(
            json!({"apiVersion": GROUP, "kind": format!("{kind}Binding"), "metadata": metadata, "spec": spec}),
        );
        self.policies.push(is_mutating);
    }

    fn merge(&mut self, run: String, spec: Value) {
        let op = self.push(run);
        op.media = Some(MERGE_PATCH.to_owned());
        op.body = Some(json!({"spec": spec}));
    }

    fn policy_spec(&mut self, is_mutating: bool) -> Value {
        let mut rule = self.webhook_rule();
        while is_mutating && rule["apiGroups"][0].as_str().is_some_and(|group| group.contains("example.com"))
        {
            // The real server learns the schemas of new kinds seconds later.
            self.kinds.retain(|kind| !kind.custom);
            if self.kinds.is_empty() {
                self.kinds = crate::kind::builtin();
            }
            rule = self.webhook_rule();
        }
        if is_mutating {
            rule["operations"] =
                pick(&mut self.random, &[json!(["CREATE"]), json!(["CREATE", "UPDATE"])]).clone();
        }
        let random = &mut self.random;
        let selector = json!({"matchLabels": {"run": "twin00"}});
        let mut spec = json!({"matchConstraints": {"resourceRules": [rule], "namespaceSelector": selector}});
        if is_mutating {
            spec["reinvocationPolicy"] = pick(random, &["Never", "IfNeeded"]).to_owned().into();
            let mutations: Vec<Value> = (0..random.usize(1..3)).map(|_| mutation(random)).collect();
            spec["mutations"] = mutations.into();
        } else {
            let validations: Vec<Value> = (0..random.usize(1..3)).map(|_| validation(random)).collect();
            spec["validations"] = validations.into();
        }
        if random.u32(..3) == 0 {
            spec["failurePolicy"] = pick(random, &["Ignore", "Ignore", "Fail"]).to_owned().into();
        }
        if random.u32(..4) == 0 {
            spec["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
        }
        if random.u32(..3) > 0 {
            spec["variables"] = json!([samples::any(random, "variables"), samples::any(random, "variables")]);
        }
        if random.u32(..4) == 0 {
            let expression = samples::text(random, "validations");
            spec["matchConditions"] = json!([{"name": "c", "expression": expression}]);
        }
        if !is_mutating && random.u32(..4) == 0 {
            let expression = samples::text(random, "messages");
            spec["auditAnnotations"] = json!([{"key": "a", "valueExpression": expression}]);
        }
        spec
    }

    fn binding_spec(&mut self, is_mutating: bool) -> Value {
        let random = &mut self.random;
        let mut spec = json!({"policyName": collection(is_mutating).1});
        if !is_mutating {
            let actions = [
                json!(["Deny"]),
                json!(["Deny"]),
                json!(["Warn"]),
                json!(["Audit", "Warn"]),
                json!(["Deny", "Audit"]),
            ];
            spec["validationActions"] = pick(random, &actions).clone();
        }
        if random.u32(..2) == 0 {
            let absent = *pick(random, &["Allow", "Deny"]);
            let mut reference = json!({"parameterNotFoundAction": absent});
            match random.u32(..4) {
                0 => reference["selector"] = json!({"matchLabels": {"app": "a"}}),
                _ => reference["name"] = pick(random, &["x", "y"]).to_owned().into(),
            }
            if random.bool() {
                reference["namespace"] = NAMESPACES[0].into();
            }
            spec["paramRef"] = reference;
        }
        if random.u32(..4) == 0 {
            spec["matchResources"] = json!({"objectSelector": {"matchLabels": {"app": "a"}}});
        }
        spec
    }
}

/// Returns the path of the policies, and the name of the policy and the binding.
fn collection(is_mutating: bool) -> (String, &'static str) {
    let (prefix, name) =
        if is_mutating { ("mutating", "twin00-mutates") } else { ("validating", "twin00-validates") };
    (format!("/apis/{GROUP}/{prefix}admissionpolicies"), name)
}

fn validation(random: &mut fastrand::Rng) -> Value {
    let mut validation = json!({"expression": samples::text(random, "validations")});
    if random.u32(..3) == 0 {
        validation["messageExpression"] = samples::text(random, "messages").into();
    }
    if random.u32(..3) == 0 {
        validation["message"] = pick(random, &["not so", " not so ", "a\nb"]).to_owned().into();
    }
    if random.u32(..4) == 0 {
        validation["reason"] =
            pick(random, &["Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized"])
                .to_owned()
                .into();
    }
    validation
}

fn mutation(random: &mut fastrand::Rng) -> Value {
    let (patch_type, field, list) = match random.u32(..5) {
        0..3 => ("ApplyConfiguration", "applyConfiguration", "configurations"),
        _ => ("JSONPatch", "jsonPatch", "computed patches"),
    };
    json!({"patchType": patch_type, field: {"expression": samples::text(random, list)}})
}
