//! Access, token and self subject reviews.

use serde_json::{Map, Value, json};
use windlass_schema::FieldError;

use super::Identity;
use super::authorize::{Attributes, DISCOVERY_PATHS, PUBLIC_PATHS, SELF_REVIEWS, allowed};
use crate::wire::ApiError;

const AUTHORIZATION: &str = "authorization.k8s.io";
const AUDIENCE: &str = "https://kubernetes.default.svc";

/// Answers reviews.
pub(crate) struct Reviewer<'a> {
    /// The user of the request.
    pub(crate) asker: &'a Identity,
    /// The namespace of the request; empty for cluster-scoped reviews.
    pub(crate) namespace: &'a str,
    /// Returns the user of a token.
    pub(crate) identity_of: &'a dyn Fn(&str) -> Option<Identity>,
    /// The time, as in metadata.
    pub(crate) now: String,
}

impl Reviewer<'_> {
    /// Answers a review by setting its status. Returns `None` if `kind` is not a review.
    pub(crate) fn answer(&self, kind: &str, review: Value) -> Option<Result<Value, ApiError>> {
        Some(match kind {
            "SelfSubjectAccessReview" => self.access(review, Some(self.asker.clone())),
            "SubjectAccessReview" | "LocalSubjectAccessReview" => self.access(review, None),
            "SelfSubjectRulesReview" => self.rules(review),
            "SelfSubjectReview" => Ok(self.myself(review)),
            "TokenReview" => self.token(review),
            _ => return None,
        })
    }

    fn access(&self, mut review: Value, subject: Option<Identity>) -> Result<Value, ApiError> {
        let spec = &review["spec"];
        let mut errors = Vec::new();
        let (resource, other) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
        if resource.is_object() == other.is_object() {
            let detail = if resource.is_object() {
                FieldError::invalid(
                    "spec.nonResourceAttributes",
                    other.clone(),
                    "cannot be specified in combination with resourceAttributes",
                )
            } else {
                FieldError::invalid(
                    "spec.resourceAttributes",
                    Value::Null,
                    "exactly one of nonResourceAttributes or resourceAttributes must be specified",
                )
            };
            errors.push(detail);
        }
        let subject = subject.or_else(|| named_subject(spec));
        if subject.is_none() {
            let detail = "at least one of user or group must be specified";
            errors.push(FieldError::invalid("spec.user", "", detail));
        }
        if !self.namespace.is_empty() && resource.is_object() && text(resource, "namespace") != self.namespace
        {
            errors.push(FieldError::invalid(
                "spec.resourceAttributes.namespace",
                text(resource, "namespace"),
                "must match metadata.namespace",
            ));
        }
        let Some(subject) = subject.filter(|_| errors.is_empty()) else {
            return Err(ApiError::invalid(AUTHORIZATION, "", "", &errors));
        };
        let allowed = allowed(&subject, &attributes(resource, other));
        review["status"] = json!({ "allowed": allowed });
        Ok(review)
    }

    fn rules(&self, mut review: Value) -> Result<Value, ApiError> {
        if text(&review["spec"], "namespace").is_empty() {
            return Err(ApiError::bad_request("no namespace on request"));
        }
        let mut resource_rules = Vec::new();
        let mut path_rules = Vec::new();
        if self.asker.is_in(Identity::MASTERS) {
            resource_rules.push(json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }));
            path_rules.push(json!({ "verbs": ["*"], "nonResourceURLs": ["*"] }));
        }
        if !self.asker.is_anonymous() {
            resource_rules.extend(SELF_REVIEWS.iter().map(|(group, resources)| {
                json!({ "verbs": ["create"], "apiGroups": [group], "resources": resources })
            }));
            path_rules.push(json!({ "verbs": ["get"], "nonResourceURLs": DISCOVERY_PATHS }));
        }
        path_rules.push(json!({ "verbs": ["get"], "nonResourceURLs": PUBLIC_PATHS }));
        review["spec"] = json!({});
        review["status"] =
            json!({ "resourceRules": resource_rules, "nonResourceRules": path_rules, "incomplete": false });
        Ok(review)
    }

    fn myself(&self, mut review: Value) -> Value {
        review["metadata"]["creationTimestamp"] = json!(self.now);
        review["status"] = json!({ "userInfo": user_info(self.asker) });
        review
    }

    fn token(&self, mut review: Value) -> Result<Value, ApiError> {
        let token = text(&review["spec"], "token");
        if token.is_empty() {
            return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
        }
        review["status"] = match (self.identity_of)(token) {
            Some(user) => json!({
                "authenticated": true,
                "user": user_info(&user),
                "audiences": [AUDIENCE],
            }),
            None => json!({ "user": {}, "error": "invalid bearer token" }),
        };
        Ok(review)
    }
}

fn named_subject(spec: &Value) -> Option<Identity> {
    let user = text(spec, "user");
    let groups: Vec<&str> =
        spec["groups"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if user.is_empty() && groups.is_empty() {
        return None;
    }
    Some(groups.into_iter().fold(Identity::unverified(user), Identity::with_group))
}

fn attributes<'a>(resource: &'a Value, other: &'a Value) -> Attributes<'a> {
    if other.is_object() {
        return Attributes { verb: text(other, "verb"), path: text(other, "path"), ..Attributes::default() };
    }
    Attributes {
        verb: text(resource, "verb"),
        group: text(resource, "group"),
        resource: text(resource, "resource"),
        subresource: text(resource, "subresource"),
        namespace: text(resource, "namespace"),
        name: text(resource, "name"),
        path: "",
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn user_info(identity: &Identity) -> Value {
    let mut info = Map::new();
    info.insert("username".to_owned(), json!(identity.name()));
    if let Some(uid) = identity.uid() {
        info.insert("uid".to_owned(), json!(uid));
    }
    info.insert("groups".to_owned(), json!(identity.groups()));
    Value::Object(info)
}

#[cfg(test)]
mod tests;
