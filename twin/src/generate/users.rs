//! Requests as a user with a part of all rights.

use serde_json::{Value, json};

use super::{Episode, NAMESPACES, pick};
use crate::op;

/// The impersonated user. A user without a role has almost no rights.
const USER: &str = "twin00-user";
const RBAC: &str = "apis/rbac.authorization.k8s.io/v1";

impl Episode {
    /// Grants the user some rights, in a namespace or in all namespaces.
    pub(super) fn grant(&mut self) {
        self.has_user = true;
        let rules: Vec<Value> = (0..self.random.usize(1..4)).map(|_| self.rule()).collect();
        let subject = match self.random.u32(..3) {
            0 => json!({"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": op::STAFF}),
            _ => json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": USER}),
        };
        let is_everywhere = self.random.u32(..3) == 0;
        let (prefix, place, name) = if is_everywhere {
            ("Cluster", format!("/{RBAC}/cluster"), "twin00-granted")
        } else {
            ("", format!("/{RBAC}/namespaces/{}/", NAMESPACES[0]), "granted")
        };
        let metadata = json!({"name": name, "labels": {"run": "twin00"}});
        let version = "rbac.authorization.k8s.io/v1";
        self.push(format!("POST {place}roles")).body = Some(json!({
            "apiVersion": version, "kind": format!("{prefix}Role"), "metadata": metadata, "rules": rules
        }));
        self.push(format!("POST {place}rolebindings")).body = Some(json!({
            "apiVersion": version, "kind": format!("{prefix}RoleBinding"), "metadata": metadata, "subjects": [subject],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": format!("{prefix}Role"), "name": name}
        }));
    }

    fn rule(&mut self) -> Value {
        let kind = self.kind();
        let random = &mut self.random;
        let group = kind.api_version().split_once('/').map_or("", |(group, _)| group).to_owned();
        let verbs = match random.u32(..4) {
            0 => json!(["*"]),
            1 => json!(["get", "list", "watch"]),
            2 => json!(["create", "update", "patch"]),
            _ => json!(["get", "patch", "delete", "deletecollection"]),
        };
        let resource = match random.u32(..6) {
            0 => "*".to_owned(),
            1 => format!("{}/status", kind.plural),
            2 => "*/scale".to_owned(),
            _ => kind.plural.clone(),
        };
        let mut rule = json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
        if random.u32(..4) == 0 {
            rule["resourceNames"] = json!([pick(random, &["x", "y", "twin00-x"])]);
        }
        rule
    }

    /// Lets the user make some of the steps from `start` on.
    pub(super) fn impersonate(&mut self, start: usize) {
        if !self.has_user || self.random.u32(..4) > 0 {
            return;
        }
        for step in &mut self.ops[start..] {
            if ![op::DRAIN, op::AWAIT, op::GONE].contains(&step.parts().0) {
                step.user = Some(USER.to_owned());
            }
        }
    }

    /// Asks for the rights of the user.
    pub(super) fn ask(&mut self) {
        let kind = self.kind();
        let namespace = self.namespace();
        let random = &mut self.random;
        let group = kind.api_version().split_once('/').map_or("", |(group, _)| group).to_owned();
        let verb = *pick(random, &["get", "list", "create", "delete", "escalate", "*"]);
        let attributes = json!({
            "group": group, "resource": kind.plural, "verb": verb, "namespace": pick(random, &[namespace, ""])
        });
        let group = "authorization.k8s.io/v1";
        let (plural, name, spec, as_user) = match random.u32(..4) {
            0 => (
                "subjectaccessreviews",
                "SubjectAccessReview",
                json!({"user": USER, "resourceAttributes": attributes}),
                false,
            ),
            1 => (
                "selfsubjectrulesreviews",
                "SelfSubjectRulesReview",
                json!({"namespace": NAMESPACES[0]}),
                true,
            ),
            _ => (
                "selfsubjectaccessreviews",
                "SelfSubjectAccessReview",
                json!({"resourceAttributes": attributes}),
                true,
            ),
        };
        let op = self.push(format!("POST /apis/{group}/{plural}"));
        op.body = Some(json!({"apiVersion": group, "kind": name, "spec": spec}));
        op.user = as_user.then(|| USER.to_owned());
    }
}
