//! Policy rules: what one allows, and whether rules cover others.

use serde_json::Value;
use windlass_schema::go_quote;

use crate::auth::Attributes;

/// A policy rule of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) verbs: Vec<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) resources: Vec<String>,
    /// The names of the objects that the rule is for. Empty for all.
    pub(crate) names: Vec<String>,
    /// Paths that are not resources; a final `*` stands for any end.
    pub(crate) urls: Vec<String>,
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
    pub(crate) fn read_all(role: &Value) -> Vec<Self> {
        role.get("rules").and_then(Value::as_array).into_iter().flatten().map(Self::read).collect()
    }

    /// The rules of a user who may do everything.
    pub(crate) fn everything() -> [Self; 2] {
        let all = || vec!["*".to_owned()];
        [
            Self { verbs: all(), groups: all(), resources: all(), ..Self::default() },
            Self { verbs: all(), urls: all(), ..Self::default() },
        ]
    }

    /// Whether the rule allows a request.
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

    /// Splits the rule into rules with one verb and one resource, name or path each.
    fn split(&self) -> Vec<Self> {
        let one = |text: &String| vec![text.clone()];
        let mut parts = Vec::new();
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let part = Self {
                        verbs: one(verb),
                        groups: one(group),
                        resources: one(resource),
                        ..Self::default()
                    };
                    if self.names.is_empty() {
                        parts.push(part);
                    } else {
                        parts.extend(self.names.iter().map(|name| Self { names: one(name), ..part.clone() }));
                    }
                }
            }
        }
        for url in &self.urls {
            parts.extend(self.verbs.iter().map(|verb| Self {
                verbs: one(verb),
                urls: one(url),
                ..Self::default()
            }));
        }
        parts
    }

    /// Whether the rule allows everything that `part`, a rule that was split, allows.
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

    /// Formats the rule as errors about escalation show it.
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

/// Whether a resource of a rule (`*`, `pods`, `pods/log` or `*/scale`) is that of a request.
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

/// Returns what `wanted` allows and `held` does not, formatted as in errors about escalation. Empty if nothing.
pub(super) fn not_covered(held: &[Rule], wanted: &[Rule]) -> Vec<String> {
    let parts = wanted.iter().flat_map(Rule::split);
    let missing: Vec<Rule> = parts.filter(|part| !held.iter().any(|rule| rule.covers(part))).collect();
    let mut shown: Vec<String> = compacted(missing).iter().map(Rule::compact).collect();
    shown.sort();
    shown.dedup();
    shown
}

/// Joins rules that differ in their verbs only.
fn compacted(rules: Vec<Rule>) -> Vec<Rule> {
    let mut joined: Vec<Rule> = Vec::new();
    for mut rule in rules {
        let same = |other: &&mut Rule| {
            rule.urls.is_empty()
                && other.groups == rule.groups
                && other.resources == rule.resources
                && other.names == rule.names
        };
        match joined.iter_mut().find(same) {
            Some(other) => other.verbs.append(&mut rule.verbs),
            None => joined.push(rule),
        }
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
