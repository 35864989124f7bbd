//! Compares the roles in `config/` with the rights that the operator declares.

use std::fmt;

use k8s_openapi::api::rbac::v1::{PolicyRule, RoleRef, Subject};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{options::Names, rbac::account_name};
use crate::{Inventory, Rights};

/// A right that the operator declares and that no role grants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct MissingRight {
    /// The verb.
    pub verb: String,
    /// The resource with its group, such as `deployments.apps/status`, or the path.
    pub target: String,
    /// The name of the object, for a right on a single object.
    pub name: Option<String>,
    /// The namespace; `None` for all.
    pub namespace: Option<String>,
}

impl fmt::Display for MissingRight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.target)?;
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}

/// Returns the declared rights that the roles among `objects` do not grant to the operator's service account, sorted.
pub(super) fn missing(inventory: &Inventory, names: &Names, objects: &[Value]) -> Vec<MissingRight> {
    let election = inventory.election.as_ref().map(|election| &election.rights);
    let metrics = inventory.metrics.as_ref().map(|metrics| &metrics.rights);
    let grants = Grants::of(names, objects);
    let mut missing = Vec::new();
    for rights in [Some(&inventory.rights), election, metrics].into_iter().flatten() {
        for (namespace, rules) in places(rights, names) {
            let needed = rules.iter().flat_map(Single::of);
            let lacking = needed.filter(|single| !grants.has(single, namespace));
            missing.extend(lacking.map(|single| single.missing(namespace)));
        }
    }
    missing.sort();
    missing.dedup();
    missing
}

fn places<'a>(
    rights: &'a Rights,
    names: &'a Names,
) -> impl Iterator<Item = (Option<&'a str>, &'a [PolicyRule])> {
    let named = rights.namespaces.iter().map(|(name, rules)| (Some(name.as_str()), rules.as_slice()));
    [(None, rights.cluster.as_slice()), (Some(names.namespace.as_str()), rights.operator.as_slice())]
        .into_iter()
        .chain(named)
}

/// A single verb on a single resource, object or path.
struct Single<'a> {
    verb: &'a str,
    object: Object<'a>,
}

enum Object<'a> {
    Resource { group: &'a str, resource: &'a str, name: Option<&'a str> },
    Url(&'a str),
}

impl<'a> Single<'a> {
    fn of(rule: &'a PolicyRule) -> Vec<Self> {
        let list = |texts: &'a Option<Vec<String>>| texts.as_deref().unwrap_or_default();
        let names: Vec<Option<&str>> = match list(&rule.resource_names) {
            [] => vec![None],
            names => names.iter().map(|name| Some(name.as_str())).collect(),
        };
        let mut singles = Vec::new();
        for verb in &rule.verbs {
            let urls = list(&rule.non_resource_urls).iter();
            singles.extend(urls.map(|url| Self { verb, object: Object::Url(url) }));
            for group in list(&rule.api_groups) {
                for resource in list(&rule.resources) {
                    let object = |name| Object::Resource { group, resource, name };
                    singles.extend(names.iter().map(|name| Self { verb, object: object(*name) }));
                }
            }
        }
        singles
    }

    /// Returns whether a rule grants the verb.
    fn is_granted_by(&self, rule: &PolicyRule) -> bool {
        let has = |texts: &Option<Vec<String>>, text: &str| {
            texts.iter().flatten().any(|other| other == "*" || other == text)
        };
        if !rule.verbs.iter().any(|verb| verb == "*" || verb == self.verb) {
            return false;
        }
        match &self.object {
            Object::Url(url) => rule.non_resource_urls.iter().flatten().any(|other| {
                other == url || other.strip_suffix('*').is_some_and(|start| url.starts_with(start))
            }),
            Object::Resource { group, resource, name } => {
                let subresource = resource.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
                let has_resource = has(&rule.resources, resource)
                    || subresource.is_some_and(|any| rule.resources.iter().flatten().any(|r| *r == any));
                let limited = rule.resource_names.as_deref().unwrap_or_default();
                let has_name =
                    limited.is_empty() || name.is_some_and(|name| limited.iter().any(|n| n == name));
                has(&rule.api_groups, group) && has_resource && has_name
            }
        }
    }

    fn missing(&self, namespace: Option<&str>) -> MissingRight {
        let (target, name) = match &self.object {
            Object::Url(url) => ((*url).to_owned(), None),
            Object::Resource { group, resource, name } => (in_group(group, resource), *name),
        };
        MissingRight {
            verb: self.verb.to_owned(),
            target,
            name: name.map(ToOwned::to_owned),
            namespace: namespace.map(ToOwned::to_owned),
        }
    }
}

/// Returns a resource with the group, in the syntax of `kubectl`.
fn in_group(group: &str, resource: &str) -> String {
    match (group, resource.split_once('/')) {
        ("", _) => resource.to_owned(),
        (group, None) => format!("{resource}.{group}"),
        (group, Some((resource, subresource))) => format!("{resource}.{group}/{subresource}"),
    }
}

/// The rules that are bound to the service account, with the namespace of the binding.
struct Grants(Vec<(Option<String>, Vec<PolicyRule>)>);

impl Grants {
    fn of(names: &Names, objects: &[Value]) -> Self {
        let account = account_name(names);
        let bindings = objects.iter().filter(|object| {
            let subjects: Vec<Subject> = read(&object["subjects"]).unwrap_or_default();
            matches!(object["kind"].as_str(), Some("ClusterRoleBinding" | "RoleBinding"))
                && subjects.iter().any(|subject| subject.kind == "ServiceAccount" && subject.name == account)
        });
        let grant = |binding: &Value| {
            let namespace = binding["metadata"]["namespace"].as_str();
            let role: RoleRef = read(&binding["roleRef"])?;
            let is_role = |object: &&Value| {
                object["kind"] == *role.kind
                    && object["metadata"]["name"] == *role.name
                    && (role.kind == "ClusterRole" || object["metadata"]["namespace"].as_str() == namespace)
            };
            let rules = read(&objects.iter().find(is_role)?["rules"])?;
            let everywhere = binding["kind"] == "ClusterRoleBinding";
            Some((namespace.filter(|_| !everywhere).map(ToOwned::to_owned), rules))
        };
        Self(bindings.filter_map(grant).collect())
    }

    fn has(&self, single: &Single<'_>, namespace: Option<&str>) -> bool {
        self.0
            .iter()
            .filter(|(place, _)| place.is_none() || place.as_deref() == namespace)
            .any(|(_, rules)| rules.iter().any(|rule| single.is_granted_by(rule)))
    }
}

fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    T::deserialize(value).ok()
}
