//! The roles and bindings that every cluster begins with.
//!
//! The roles are data, in `policy.txt`. A line without indentation is an object, and the following indented
//! lines are the rules of the object:
//!
//! ```text
//! clusterrole NAME [to:ROLE] [from:ROLE]    label that aggregates it to a role, or the label it aggregates
//!   VERBS | GROUPS | RESOURCES [| NAMES]    the group `core` is the empty one
//!   VERBS | PATHS
//! clusterrolebinding NAME CLUSTERROLE SUBJECTS
//! role NAMESPACE/NAME
//! rolebinding NAMESPACE/NAME KIND:ROLE SUBJECTS
//! ```

use serde_json::{Map, Value, json};

const POLICY: &str = include_str!("policy.txt");
const GROUP: &str = "rbac.authorization.k8s.io";
const AGGREGATE_TO: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// Returns the roles and bindings, with the resource of each object.
pub(super) fn objects() -> Vec<(&'static str, Value)> {
    let mut objects: Vec<(&'static str, Value)> = Vec::new();
    for line in POLICY.lines() {
        match (line.strip_prefix("  "), objects.last_mut()) {
            (Some(rule), Some((_, role))) => {
                if let Some(rules) = role["rules"].as_array_mut() {
                    rules.push(read_rule(rule));
                }
            }
            _ => objects.extend(read_object(line)),
        }
    }
    objects
}

fn read_object(line: &str) -> Option<(&'static str, Value)> {
    let mut words = line.split(' ').filter(|word| !word.is_empty());
    let (kind, name) = (words.next()?, words.next()?);
    Some(match kind {
        "clusterrole" => ("clusterroles", read_cluster_role(name, words)),
        "role" => ("roles", object("Role", name, json!({"rules": []}))),
        "clusterrolebinding" => {
            let role = role_ref("ClusterRole", words.next()?);
            ("clusterrolebindings", binding("ClusterRoleBinding", name, role, words))
        }
        "rolebinding" => {
            let (kind, role) = words.next()?.split_once(':')?;
            let kind = if kind == "role" { "Role" } else { "ClusterRole" };
            ("rolebindings", binding("RoleBinding", name, role_ref(kind, role), words))
        }
        _ => return None,
    })
}

fn read_cluster_role<'a>(name: &str, aggregation: impl Iterator<Item = &'a str>) -> Value {
    let mut role = object("ClusterRole", name, json!({"rules": []}));
    for word in aggregation {
        let label = |role: &str| format!("{AGGREGATE_TO}{role}");
        if let Some(target) = word.strip_prefix("to:") {
            role["metadata"]["labels"][label(target)] = json!("true");
        }
        if let Some(source) = word.strip_prefix("from:") {
            let labels = Map::from_iter([(label(source), json!("true"))]);
            role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": labels}]});
        }
    }
    role
}

/// Makes an object from a `NAME` or `NAMESPACE/NAME`.
fn object(kind: &str, name: &str, mut object: Value) -> Value {
    let (namespace, name) = match name.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, name),
    };
    object["kind"] = json!(kind);
    object["apiVersion"] = json!("rbac.authorization.k8s.io/v1");
    object["metadata"] = json!({
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    });
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

fn role_ref(kind: &str, name: &str) -> Value {
    json!({"apiGroup": GROUP, "kind": kind, "name": name})
}

fn binding<'a>(kind: &str, name: &str, role: Value, subjects: impl Iterator<Item = &'a str>) -> Value {
    let mut binding = object(kind, name, json!({"roleRef": role}));
    let subjects: Vec<Value> = subjects.filter_map(read_subject).collect();
    if !subjects.is_empty() {
        binding["subjects"] = json!(subjects);
    }
    binding
}

fn read_subject(subject: &str) -> Option<Value> {
    let (kind, name) = subject.split_once(':')?;
    Some(match kind {
        "user" => json!({"apiGroup": GROUP, "kind": "User", "name": name}),
        "group" => json!({"apiGroup": GROUP, "kind": "Group", "name": name}),
        _ => {
            let (namespace, name) = name.split_once('/')?;
            json!({"kind": "ServiceAccount", "name": name, "namespace": namespace})
        }
    })
}

fn read_rule(line: &str) -> Value {
    let words = |part: &str| -> Vec<String> {
        let words = part.split_whitespace();
        words.map(|word| if word == "core" { String::new() } else { word.to_owned() }).collect()
    };
    let parts: Vec<Vec<String>> = line.split('|').map(words).collect();
    match parts.as_slice() {
        [verbs, urls] => json!({"verbs": verbs, "nonResourceURLs": urls}),
        [verbs, groups, resources] => json!({"verbs": verbs, "apiGroups": groups, "resources": resources}),
        [verbs, groups, resources, names] => {
            json!({"verbs": verbs, "apiGroups": groups, "resources": resources, "resourceNames": names})
        }
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_an_object_or_a_rule() {
        let objects = objects();
        let rules: usize =
            objects.iter().filter_map(|(_, object)| object["rules"].as_array()).map(Vec::len).sum();
        assert_eq!(objects.len() + rules, POLICY.lines().count());
        for (_, object) in &objects {
            let rules = object["rules"].as_array();
            assert!(rules.is_none_or(|rules| rules.iter().all(Value::is_object)), "{object}");
        }
        let count = |resource| objects.iter().filter(|(of, _)| *of == resource).count();
        assert_eq!(
            (count("clusterroles"), count("clusterrolebindings"), count("roles"), count("rolebindings")),
            (73, 54, 7, 7)
        );
    }
}
