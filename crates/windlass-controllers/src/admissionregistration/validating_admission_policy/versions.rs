//! The versions of groups that a server serves, and the kinds that the rules of policies name.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;
use serde_json::Value;

/// The number of kinds after which no more resources are looked up, for each rule.
pub(super) const MAX_KINDS: usize = 10;

/// The versions of all groups, in the order of the server.
#[derive(Default)]
pub(super) struct ServedVersions(Vec<ServedVersion>);

/// A version of a group.
struct ServedVersion {
    group: String,
    name: String,
    resources: Vec<Names>,
}

/// The names of a resource.
struct Names {
    plural: String,
    singular: String,
    kind: String,
}

impl ServedVersions {
    /// Adds the versions of a group in a discovery document.
    pub(super) fn add(&mut self, group: &Value) {
        let name = text(&group["metadata"], "name");
        let versions = group["versions"].as_array().into_iter().flatten();
        self.0.extend(versions.map(|version| ServedVersion::of(&name, version)));
    }

    /// Returns the versions that have one of the names in each list.
    fn with_any_of(
        &self,
        groups: &[String],
        versions: &[String],
        resources: &[String],
    ) -> Vec<&ServedVersion> {
        let set = |names| -> BTreeSet<&str> { <[String]>::iter(names).map(String::as_str).collect() };
        let (groups, versions, resources) = (set(groups), set(versions), set(resources));
        let is_wanted = |served: &&ServedVersion| {
            (groups.contains("") || groups.contains(served.group.as_str()))
                && versions.contains(served.name.as_str())
                && served.names().any(|name| resources.contains(name))
        };
        self.0.iter().filter(is_wanted).collect()
    }

    pub(super) fn has(&self, group: &str, version: &str) -> bool {
        self.0.iter().any(|served| served.group == group && served.name == version)
    }

    /// Returns the kinds of a rule, at most [`MAX_KINDS`], and as often as the rule names them. As in kube-controller-manager,
    /// the core group stands for all groups.
    pub(super) fn kinds_of(&self, rule: &NamedRuleWithOperations) -> Vec<(String, String, String)> {
        let mut kinds = Vec::new();
        let Some(wanted) = Wanted::of(rule, self) else { return kinds };
        for group in &wanted.groups {
            for version in &wanted.versions {
                let served = wanted.served(group, version);
                // A rule can have thousands of resources.
                if served.is_empty() {
                    continue;
                }
                for resource in &wanted.resources {
                    let named = served.iter().filter_map(|served| Some((served, served.kind_of(resource)?)));
                    for (served, kind) in named {
                        kinds.push((served.group.clone(), served.name.clone(), kind.to_owned()));
                        if kinds.len() == MAX_KINDS {
                            return kinds;
                        }
                    }
                }
            }
        }
        kinds
    }
}

/// The names of a rule, sorted, without names that lead to no kind: each pass over a group, and over a served version of
/// the group, finds a kind. The search ends after few passes, even if the rule repeats names.
struct Wanted<'a> {
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    /// The versions that have one of the resources, by group.
    served: BTreeMap<&'a str, Vec<&'a ServedVersion>>,
    /// All of `served`, in the order of the server.
    all: Vec<&'a ServedVersion>,
}

impl<'a> Wanted<'a> {
    /// Reads a rule. `None` if the rule has a wildcard, or names no kind that is served.
    fn of(rule: &NamedRuleWithOperations, served: &'a ServedVersions) -> Option<Self> {
        let sorted = |list: &Option<Vec<String>>| {
            let mut list = list.clone().unwrap_or_default();
            list.sort();
            list
        };
        let (mut groups, mut versions) = (sorted(&rule.api_groups), sorted(&rule.api_versions));
        if groups.iter().chain(&versions).any(|name| name.contains('*')) {
            return None;
        }
        let resources = sorted(&rule.resources).into_iter();
        let resources = resources.filter(|resource| !resource.contains(['*', '/']));
        let mut resources: Vec<String> = resources.map(|resource| resource.to_lowercase()).collect();
        let all = served.with_any_of(&groups, &versions, &resources);
        let names: BTreeSet<&str> = all.iter().flat_map(|version| version.names()).collect();
        resources.retain(|resource| names.contains(resource.as_str()));
        let names: BTreeSet<&str> = all.iter().map(|version| version.name.as_str()).collect();
        versions.retain(|version| names.contains(version.as_str()));
        let mut served = BTreeMap::<_, Vec<_>>::new();
        for version in &all {
            served.entry(version.group.as_str()).or_default().push(*version);
        }
        groups.retain(|group| group.is_empty() || served.contains_key(group.as_str()));
        (!all.is_empty()).then_some(Self { groups, versions, resources, served, all })
    }

    /// Returns the versions with a name that have one of the resources.
    fn served(&self, group: &str, version: &str) -> Vec<&'a ServedVersion> {
        let served = if group.is_empty() { Some(&self.all) } else { self.served.get(group) };
        let served = served.into_iter().flatten().filter(|served| served.name == version);
        served.copied().collect()
    }
}

impl ServedVersion {
    /// Reads a version in a discovery document.
    fn of(group: &str, version: &Value) -> Self {
        let resources = version["resources"].as_array().into_iter().flatten();
        let names = |resource: &Value| Names {
            plural: text(resource, "resource"),
            singular: text(resource, "singularResource"),
            kind: text(&resource["responseKind"], "kind"),
        };
        Self {
            group: group.to_owned(),
            name: text(version, "version"),
            resources: resources.map(names).collect(),
        }
    }

    /// Returns the plural and singular names of the resources.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.resources.iter().flat_map(|names| [names.plural.as_str(), &names.singular])
    }

    /// Returns the kind of the resource with a plural or singular name.
    fn kind_of(&self, resource: &str) -> Option<&str> {
        let is_named = |names: &&Names| names.plural == resource || names.singular == resource;
        self.resources.iter().find(is_named).map(|names| names.kind.as_str())
    }
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The core group with pods, and `apps` with `count` resources: `r0` with the kind `R0`, and so on.
    fn served(count: usize) -> ServedVersions {
        let resource = |plural: &str, kind: &str| {
            json!({
                "resource": plural, "singularResource": kind.to_lowercase(), "responseKind": {"kind": kind},
            })
        };
        let apps: Vec<Value> = (0..count).map(|n| resource(&format!("r{n}s"), &format!("R{n}"))).collect();
        let mut served = ServedVersions::default();
        served.add(&json!({"metadata": {}, "versions": [
            {"version": "v1", "resources": [resource("pods", "Pod"), resource("bindings", "Binding")]},
        ]}));
        served.add(&json!({"metadata": {"name": "apps"}, "versions": [
            {"version": "v1", "resources": apps}, {"version": "v1beta1", "resources": apps},
        ]}));
        served
    }

    fn owned(names: &[impl AsRef<str>]) -> Vec<String> {
        names.iter().map(|name| name.as_ref().to_owned()).collect()
    }

    fn kinds(
        served: &ServedVersions,
        groups: &[impl AsRef<str>],
        versions: &[impl AsRef<str>],
        resources: &[impl AsRef<str>],
    ) -> Vec<String> {
        let rule = NamedRuleWithOperations {
            api_groups: Some(owned(groups)),
            api_versions: Some(owned(versions)),
            resources: Some(owned(resources)),
            ..NamedRuleWithOperations::default()
        };
        let kinds = served.kinds_of(&rule).into_iter();
        kinds.map(|(group, version, kind)| format!("{group}/{version} {kind}")).collect()
    }

    #[test]
    fn the_kinds_of_a_rule_come_in_the_order_of_its_sorted_names() {
        let served = served(12);
        assert_eq!(
            kinds(&served, &["apps", ""], &["v1beta1", "v1"], &["r1s", "Pods", "pods/exec", "pod", "r0s"]),
            [
                "/v1 Pod",
                "/v1 Pod",
                "apps/v1 R0",
                "apps/v1 R1",
                "apps/v1beta1 R0",
                "apps/v1beta1 R1",
                "apps/v1 R0",
                "apps/v1 R1",
                "apps/v1beta1 R0",
                "apps/v1beta1 R1",
            ]
        );
        assert_eq!(kinds(&served, &["apps"], &["v1", "v2"], &["pods", "r3"]), ["apps/v1 R3"]);
        assert!(kinds(&served, &["apps", "*"], &["v1"], &["r3s"]).is_empty());
        assert!(kinds(&served, &["apps"], &["*"], &["r3s"]).is_empty());
        assert!(kinds(&served, &["apps"], &["v1"], &["*"]).is_empty());
        assert!(kinds(&served, &["apps"], &["v1"], &[""; 0]).is_empty());
    }

    #[test]
    fn the_search_ends_after_ten_kinds_and_counts_repeated_kinds() {
        let served = served(12);
        let names: Vec<String> = (0..12).map(|n| format!("r{n}s")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let found = kinds(&served, &["apps"], &["v1"], &names);
        assert_eq!((found.len(), found.last().unwrap().as_str()), (10, "apps/v1 R7"));
        assert_eq!(
            kinds(&served, &["", "apps"], &["v1"], &[&["pod"; 10][..], &["r0"]].concat()),
            ["/v1 Pod"; 10]
        );
    }

    #[test]
    fn a_rule_with_thousands_of_names_is_read_at_once() {
        let served = served(12);
        let many = |last: &str| -> Vec<String> {
            let unknown = (0..3000).map(|n| format!("a{n}"));
            unknown.chain(std::iter::repeat_n(last.to_owned(), 3000)).collect()
        };
        // Nothing is served; each name is served, but not together; everything is served.
        let unknown = kinds(&served, &many("b"), &many("b"), &many("b"));
        assert!(unknown.is_empty(), "{unknown:?}");
        let elsewhere = kinds(&served, &many("apps"), &many("v1"), &many("pods"));
        assert!(elsewhere.is_empty(), "{elsewhere:?}");
        let found = kinds(&served, &vec![""; 3000], &vec!["v1"; 3000], &vec!["pods"; 3000]);
        assert_eq!(found, ["/v1 Pod"; 10]);
        let found = kinds(&served, &many("apps"), &many("v1beta1"), &many("r3s"));
        assert_eq!(found, ["apps/v1beta1 R3"; 10]);
    }
}
