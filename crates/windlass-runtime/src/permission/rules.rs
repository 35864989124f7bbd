//! Rights as the rules of a role.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::rbac::v1::PolicyRule;

use super::{
    Verb,
    permissions::{Right, RightObject},
};

type Verbs = BTreeSet<Verb>;

/// Makes rules of rights, as few as possible: resources with equal names and verbs share a rule.
pub(super) fn rules<'a>(rights: impl Iterator<Item = &'a Right>) -> Vec<PolicyRule> {
    let mut urls: BTreeMap<&str, Verbs> = BTreeMap::new();
    let mut objects: BTreeMap<(&str, &str, Option<&str>), Verbs> = BTreeMap::new();
    for right in rights {
        let verbs = match &right.object {
            RightObject::Url(path) => urls.entry(path),
            RightObject::Resource { group, resource, name } => {
                objects.entry((group, resource, name.as_deref())).or_default().insert(right.verb);
                continue;
            }
        };
        verbs.or_default().insert(right.verb);
    }
    let mut rules = resource_rules(objects);
    rules.extend(url_rules(urls));
    rules
}

fn resource_rules(objects: BTreeMap<(&str, &str, Option<&str>), Verbs>) -> Vec<PolicyRule> {
    let mut named: BTreeMap<(&str, &str, bool, Verbs), Vec<String>> = BTreeMap::new();
    for ((group, resource, name), verbs) in objects {
        let names = named.entry((group, resource, name.is_some(), verbs)).or_default();
        names.extend(name.map(ToOwned::to_owned));
    }
    let mut merged: BTreeMap<(&str, Vec<String>, Verbs), Vec<String>> = BTreeMap::new();
    for ((group, resource, _, verbs), names) in named {
        merged.entry((group, names, verbs)).or_default().push(resource.to_owned());
    }
    let mut rules: Vec<_> = merged
        .into_iter()
        .map(|((group, names, verbs), resources)| PolicyRule {
            api_groups: Some(vec![group.to_owned()]),
            resources: Some(resources),
            resource_names: (!names.is_empty()).then_some(names),
            verbs: texts(&verbs),
            ..PolicyRule::default()
        })
        .collect();
    rules.sort_by(|a, b| {
        let key = |rule: &PolicyRule| {
            (rule.api_groups.clone(), rule.resources.clone(), rule.resource_names.clone(), rule.verbs.clone())
        };
        key(a).cmp(&key(b))
    });
    rules
}

fn url_rules(urls: BTreeMap<&str, Verbs>) -> Vec<PolicyRule> {
    let mut merged: BTreeMap<Verbs, Vec<String>> = BTreeMap::new();
    for (path, verbs) in urls {
        merged.entry(verbs).or_default().push(path.to_owned());
    }
    merged
        .into_iter()
        .map(|(verbs, paths)| PolicyRule {
            non_resource_urls: Some(paths),
            verbs: texts(&verbs),
            ..PolicyRule::default()
        })
        .collect()
}

fn texts(verbs: &Verbs) -> Vec<String> {
    verbs.iter().map(ToString::to_string).collect()
}
