//! The requests of a flow schema.

use serde_json::Value;

use super::subject::Subject;
use crate::auth::{Attributes, Identity};

/// A rule with the subjects of the rule.
#[derive(Debug)]
pub(super) struct Rule {
    subjects: Vec<Subject>,
    resources: Vec<ResourceRule>,
    paths: Vec<PathRule>,
}

impl Rule {
    pub(super) fn read(rule: &Value) -> Self {
        let all = |field: &str| rule[field].as_array().into_iter().flatten();
        Self {
            subjects: all("subjects").filter_map(Subject::read).collect(),
            resources: all("resourceRules").map(ResourceRule::read).collect(),
            paths: all("nonResourceRules").map(PathRule::read).collect(),
        }
    }

    pub(super) fn matches(&self, identity: &Identity, request: &Attributes<'_>) -> bool {
        let is_for = || match request.path {
            Some(path) => self.paths.iter().any(|rule| rule.matches(request.verb, path)),
            None => self.resources.iter().any(|rule| rule.matches(request)),
        };
        self.subjects.iter().any(|subject| subject.matches(identity)) && is_for()
    }
}

/// Texts that a request may have. The list `["*"]` stands for all texts.
#[derive(Debug)]
enum Texts {
    All,
    Of(Vec<String>),
}

impl Texts {
    fn read(list: &Value) -> Self {
        let texts: Vec<String> =
            list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        if texts == ["*"] { Self::All } else { Self::Of(texts) }
    }

    fn has(&self, text: &str) -> bool {
        self.any(|one| one == text)
    }

    fn any(&self, is_wanted: impl Fn(&str) -> bool) -> bool {
        match self {
            Self::All => true,
            Self::Of(texts) => texts.iter().any(|text| is_wanted(text)),
        }
    }
}

#[derive(Debug)]
struct ResourceRule {
    verbs: Texts,
    groups: Texts,
    /// Plural names, or `plural/subresource`.
    resources: Texts,
    namespaces: Texts,
    /// True if the rule is for requests without a namespace too.
    cluster_scope: bool,
}

impl ResourceRule {
    fn read(rule: &Value) -> Self {
        Self {
            verbs: Texts::read(&rule["verbs"]),
            groups: Texts::read(&rule["apiGroups"]),
            resources: Texts::read(&rule["resources"]),
            namespaces: Texts::read(&rule["namespaces"]),
            cluster_scope: rule["clusterScope"] == true,
        }
    }

    fn matches(&self, request: &Attributes<'_>) -> bool {
        let is_resource = |text: &str| match text.strip_prefix(request.resource) {
            Some("") => request.subresource.is_empty(),
            Some(rest) => {
                !request.subresource.is_empty() && rest.strip_prefix('/') == Some(request.subresource)
            }
            None => false,
        };
        self.verbs.has(request.verb)
            && self.resources.any(is_resource)
            && self.groups.has(request.group)
            && match request.namespace {
                "" => self.cluster_scope,
                namespace => self.namespaces.has(namespace),
            }
    }
}

#[derive(Debug)]
struct PathRule {
    verbs: Texts,
    /// Paths. A path stands for all paths below, with or without a final `*`.
    paths: Texts,
}

impl PathRule {
    fn read(rule: &Value) -> Self {
        Self { verbs: Texts::read(&rule["verbs"]), paths: Texts::read(&rule["nonResourceURLs"]) }
    }

    fn matches(&self, verb: &str, path: &str) -> bool {
        let is_covered = |own: &str| {
            let folder = own.strip_suffix('*').unwrap_or(own);
            let folder = folder.strip_suffix('/').unwrap_or(folder);
            own == "*" || own == path || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
        };
        self.verbs.has(verb) && self.paths.any(is_covered)
    }
}
