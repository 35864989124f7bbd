//! Policy rules: the allowed requests, and the coverage of rules by other rules.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use windlass_schema::go_quote;

use crate::access::Attributes;

/// The number of single verbs of resources that are checked when no single rule covers a granted rule.
const MAX_PARTS: usize = 20_000;
/// How often the granted rules, and then such parts, are compared with a rule that the user holds.
const MAX_COMPARED: usize = 5_000_000;

/// A policy rule of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The allowed verbs; `*` stands for all.
    pub verbs: Vec<String>,
    /// The API groups; `*` stands for all.
    pub groups: Vec<String>,
    /// The plural names, or `plural/subresource`; `*` stands for all.
    pub resources: Vec<String>,
    /// The names of the objects that the rule is for. Empty for all.
    pub names: Vec<String>,
    /// Paths that are not resources; a final `*` stands for any end.
    pub urls: Vec<String>,
}

impl Rule {
    /// Reads a `PolicyRule`.
    pub(super) fn read(rule: &Value) -> Self {
        let texts = |field: &str| {
            let values = rule.get(field).and_then(Value::as_array).into_iter().flatten();
            values.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self {
            verbs: texts("verbs"),
            groups: texts("apiGroups"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            urls: texts("nonResourceURLs"),
        }
    }

    /// Reads the rules of a role.
    pub fn read_all(role: &Value) -> Vec<Self> {
        role.get("rules").and_then(Value::as_array).into_iter().flatten().map(Self::read).collect()
    }

    /// Returns the rules of a user who may do everything.
    pub fn everything() -> [Self; 2] {
        let all = || vec!["*".to_owned()];
        [
            Self { verbs: all(), groups: all(), resources: all(), ..Self::default() },
            Self { verbs: all(), urls: all(), ..Self::default() },
        ]
    }

    /// Returns whether the rule allows a request.
    pub(super) fn allows(&self, request: &Attributes<'_>) -> bool {
        if !has_or_all(&self.verbs, request.verb) {
            return false;
        }
        match request.path {
            Some(path) => self.urls.iter().any(|url| url_covers(url, path)),
            None => {
                has_or_all(&self.groups, request.group)
                    && self.resources.iter().any(|resource| resource_matches(resource, request))
                    && (self.names.is_empty() || has(&self.names, request.name))
            }
        }
    }

    /// Splits the rule into rules with a single verb and a single resource, name or path. There may be very
    /// many such rules.
    fn split(&self) -> impl Iterator<Item = Self> {
        let one = |text: &String| vec![text.clone()];
        let no_name = self.names.is_empty().then(Vec::new);
        let of_resources = self.groups.iter().flat_map(move |group| {
            let no_name = no_name.clone();
            self.resources.iter().flat_map(move |resource| {
                let no_name = no_name.clone();
                self.verbs.iter().flat_map(move |verb| {
                    let names = self.names.iter().map(one).chain(no_name.clone());
                    names.map(move |names| Self {
                        verbs: one(verb),
                        groups: one(group),
                        resources: one(resource),
                        names,
                        urls: Vec::new(),
                    })
                })
            })
        });
        let of_urls = self.urls.iter().flat_map(move |url| {
            self.verbs.iter().map(move |verb| Self { verbs: one(verb), urls: one(url), ..Self::default() })
        });
        of_resources.chain(of_urls)
    }

    /// Returns whether the rule allows everything that `part` allows. `part` may be a rule that was split.
    fn covers(&self, part: &Self) -> bool {
        let all = |own: &[String], parts: &[String]| has(own, "*") || parts.iter().all(|text| has(own, text));
        let names = if part.names.is_empty() {
            self.names.is_empty()
        } else {
            self.names.is_empty() || part.names.iter().all(|name| has(&self.names, name))
        };
        names
            && all(&self.verbs, &part.verbs)
            && all(&self.groups, &part.groups)
            && part.resources.iter().all(|resource| self.covers_resource(resource))
            && part.urls.iter().all(|path| self.urls.iter().any(|url| url == path || url_covers(url, path)))
    }

    fn covers_resource(&self, resource: &str) -> bool {
        has_or_all(&self.resources, resource)
            || resource.split_once('/').is_some_and(|(_, subresource)| {
                self.resources.iter().any(|own| own.strip_prefix("*/") == Some(subresource))
            })
    }

    /// Formats the rule for errors about escalation.
    fn compact(&self) -> String {
        let fields = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.urls),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ];
        let shown = fields.iter().filter(|(_, values)| !values.is_empty());
        let shown: Vec<String> =
            shown.map(|(name, values)| format!("{name}:{}", quoted_list(values))).collect();
        format!("{{{}}}", shown.join(", "))
    }
}

/// Formats texts as Go's `%q` does: `["a" "b"]`.
pub(super) fn quoted_list(values: &[String]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| go_quote(value)).collect();
    format!("[{}]", quoted.join(" "))
}

fn has(texts: &[String], wanted: &str) -> bool {
    texts.iter().any(|text| text == wanted)
}

fn has_or_all(texts: &[String], wanted: &str) -> bool {
    texts.iter().any(|text| text == "*" || text == wanted)
}

/// Returns whether a resource of a rule (`*`, `pods`, `pods/log` or `*/scale`) is that of a request.
fn resource_matches(resource: &str, request: &Attributes<'_>) -> bool {
    if resource == "*" {
        return true;
    }
    if request.subresource.is_empty() {
        return resource == request.resource;
    }
    resource.split_once('/').is_some_and(|(name, subresource)| {
        subresource == request.subresource && (name == "*" || name == request.resource)
    })
}

fn url_covers(url: &str, path: &str) -> bool {
    url == path || url.ends_with('*') && path.starts_with(url.trim_end_matches('*'))
}

/// Returns the rules of `wanted` that `held` does not cover, formatted for errors about escalation. Empty if
/// all are covered.
pub(super) fn not_covered(held: &[Rule], wanted: &[Rule]) -> Vec<String> {
    let held = HeldRules::new(held);
    let mut left = MAX_COMPARED;
    let open: Vec<&Rule> = wanted.iter().filter(|rule| !held.cover(rule, &mut left)).collect();
    left = MAX_COMPARED;
    let mut missing = Vec::new();
    for (index, part) in open.into_iter().flat_map(Rule::split).enumerate() {
        // Past the limits, rules count as not granted.
        let is_last = index == MAX_PARTS || left == 0;
        if is_last || !held.cover(&part, &mut left) {
            missing.push(part);
        }
        if is_last {
            break;
        }
    }
    let mut shown: Vec<String> = compacted(missing).iter().map(Rule::compact).collect();
    shown.sort();
    shown.dedup();
    shown
}

/// The rules that a user holds. A role may have 20,000 rules, and the rules of a new role are compared with all rules for the same resource.
struct HeldRules<'a> {
    all: HashSet<&'a Rule>,
    by_resource: HashMap<&'a str, Vec<&'a Rule>>,
    /// Rules for all resources or for a subresource of all resources, and rules for paths.
    wide: Vec<&'a Rule>,
}

impl<'a> HeldRules<'a> {
    fn new(rules: &'a [Rule]) -> Self {
        let mut held = Self { all: rules.iter().collect(), by_resource: HashMap::new(), wide: Vec::new() };
        for rule in rules {
            let is_wide = rule.resources.is_empty() || !rule.urls.is_empty();
            if is_wide || rule.resources.iter().any(|resource| resource.starts_with('*')) {
                held.wide.push(rule);
                continue;
            }
            for resource in &rule.resources {
                held.by_resource.entry(resource).or_default().push(rule);
            }
        }
        held
    }

    /// Returns whether a single rule covers `wanted`. Each comparison takes one of the comparisons that are `left`; without any, no rule
    /// covers.
    fn cover(&self, wanted: &Rule, left: &mut usize) -> bool {
        if self.all.contains(wanted) {
            return true;
        }
        let mut covers = |own: &&&Rule| {
            let may_compare = *left > 0;
            *left = left.saturating_sub(1);
            may_compare && own.covers(wanted)
        };
        // A rule that covers all resources covers the first resource.
        let same = wanted.resources.first().and_then(|resource| self.by_resource.get(resource.as_str()));
        let same = same.into_iter().flatten();
        self.wide.iter().chain(same).any(|own| covers(&own))
    }
}

/// Joins rules that differ only in verbs.
fn compacted(rules: Vec<Rule>) -> Vec<Rule> {
    let mut joined: Vec<Rule> = Vec::new();
    let mut places: HashMap<[Vec<String>; 3], usize> = HashMap::new();
    for mut rule in rules {
        if rule.urls.is_empty() {
            let target = [rule.groups.clone(), rule.resources.clone(), rule.names.clone()];
            let place = *places.entry(target).or_insert(joined.len());
            if let Some(other) = joined.get_mut(place) {
                other.verbs.append(&mut rule.verbs);
                continue;
            }
        }
        joined.push(rule);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(words: &str) -> Vec<String> {
        words
            .split_whitespace()
            .map(|word| if word == "-" { String::new() } else { word.to_owned() })
            .collect()
    }

    fn rule(verbs: &str, groups: &str, resources: &str, names: &str) -> Rule {
        Rule {
            verbs: texts(verbs),
            groups: texts(groups),
            resources: texts(resources),
            names: texts(names),
            urls: Vec::new(),
        }
    }

    fn request<'a>(verb: &'a str, resource: &'a str, subresource: &'a str, name: &'a str) -> Attributes<'a> {
        Attributes { verb, resource, subresource, name, ..Attributes::default() }
    }

    #[test]
    fn subresources_are_resources_of_their_own() {
        let pods = rule("get", "-", "pods", "");
        assert!(pods.allows(&request("get", "pods", "", "a")));
        assert!(!pods.allows(&request("get", "pods", "log", "a")));
        let scales = rule("get", "-", "*/scale", "");
        assert!(scales.allows(&request("get", "deployments", "scale", "a")));
        assert!(!scales.allows(&request("get", "deployments", "rescale", "a")));
        assert!(!scales.allows(&request("get", "deployments", "", "a")));
        assert!(rule("*", "*", "*", "").allows(&request("get", "pods", "log", "a")));
    }

    #[test]
    fn names_limit_a_rule() {
        let one = rule("get list", "-", "pods", "a");
        assert!(one.allows(&request("list", "pods", "", "a")));
        assert!(!one.allows(&request("list", "pods", "", "")));
    }

    #[test]
    fn a_star_ends_a_path() {
        let paths = Rule { verbs: texts("get"), urls: texts("/api/* /me*"), ..Rule::default() };
        let at = |path| Attributes { verb: "get", path: Some(path), ..Attributes::default() };
        assert!(paths.allows(&at("/api/v1")));
        assert!(paths.allows(&at("/metrics")));
        assert!(!paths.allows(&at("/api")));
    }

    #[test]
    fn of_very_many_combinations_the_rest_is_missing() {
        let many = |letter: &str| (0..5_000).map(|number| format!("{letter}{number}")).collect();
        let huge = Rule { verbs: many("v"), groups: many("g"), resources: many("r"), ..Rule::default() };
        assert!(!not_covered(&[], std::slice::from_ref(&huge)).is_empty());
        let held =
            Rule { verbs: many("v"), groups: many("g"), resources: vec!["r0".to_owned()], ..huge.clone() };
        assert!(!not_covered(&[held], std::slice::from_ref(&huge)).is_empty());
        assert!(not_covered(std::slice::from_ref(&huge), std::slice::from_ref(&huge)).is_empty());
        assert!(not_covered(&Rule::everything(), &[huge]).is_empty());
    }

    #[test]
    fn thousands_of_rules_are_compared_with_the_rules_for_the_same_resource() {
        let rules = |verbs: &str| -> Vec<Rule> {
            (0..20_000).map(|number| rule(verbs, "-", &format!("r{number}"), "")).collect()
        };
        let (held, wanted) = (rules("get list"), rules("list"));
        // Compared with all rules, the rules take more comparisons than the limit.
        assert!(not_covered(&held, &wanted).is_empty());
        assert_eq!(not_covered(&wanted, &[rule("get", "-", "r7", "")]).len(), 1);
    }

    #[test]
    fn equal_rules_are_covered_whatever_their_number() {
        let held: Vec<Rule> =
            (0..20_000).map(|number| rule("get", "-", "pods", &number.to_string())).collect();
        assert!(not_covered(&held, &held).is_empty());
        let mut one_more = held.clone();
        one_more.push(rule("get", "-", "pods", "another"));
        assert_eq!(not_covered(&held, &one_more).len(), 1);
    }

    #[test]
    fn what_is_missing_is_shown_by_resource() {
        let held = [rule("get", "-", "pods", "")];
        let wanted = [rule("get delete watch", "-", "pods", ""), rule("get", "apps", "*", "x")];
        assert_eq!(
            not_covered(&held, &wanted),
            [
                r#"{APIGroups:[""], Resources:["pods"], Verbs:["delete" "watch"]}"#,
                r#"{APIGroups:["apps"], Resources:["*"], ResourceNames:["x"], Verbs:["get"]}"#,
            ]
        );
        assert!(not_covered(&Rule::everything(), &wanted).is_empty());
        assert!(!not_covered(&wanted, &Rule::everything()).is_empty());
    }
}
