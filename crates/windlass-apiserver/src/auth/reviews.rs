//! Access, token and self subject reviews.

mod selector;

use serde_json::{Map, Value, json};
use windlass_schema::FieldError;

use super::Identity;
use super::{Attributes, Authorizer, Rule};
use crate::store::{Decision, Store};
use crate::wire::ApiError;
use windlass_kinds::kind_names::{
    LOCAL_SUBJECT_ACCESS_REVIEW, SELF_SUBJECT_ACCESS_REVIEW, SELF_SUBJECT_REVIEW, SELF_SUBJECT_RULES_REVIEW,
    SUBJECT_ACCESS_REVIEW, TOKEN_REVIEW,
};

const AUTHORIZATION: &str = "authorization.k8s.io";

/// The user of a token, and the wanted audiences that the token has. The error is the reason of an invalid
/// token; empty for an unknown token.
pub(crate) type Authentication = Result<(Identity, Vec<String>), String>;

/// Answers reviews.
pub(crate) struct Reviewer<'a> {
    /// The user of the request.
    pub(crate) asker: &'a Identity,
    /// The namespace of the request; empty for cluster-scoped reviews.
    pub(crate) namespace: &'a str,
    pub(crate) authorizer: &'a Authorizer,
    pub(crate) store: &'a Store,
    /// The audiences of tokens for this server.
    pub(crate) own_audiences: &'a [String],
    /// Authenticates a token for audiences.
    pub(crate) authenticate: &'a dyn Fn(&str, &[String]) -> Authentication,
    /// The time, as in metadata.
    pub(crate) now: String,
}

impl Reviewer<'_> {
    /// Answers a review by setting the status. Returns `None` if `kind` is not a review.
    pub(crate) fn answer(&self, kind: &str, mut review: Value) -> Option<Result<Value, ApiError>> {
        let given = crate::meta::namespace(&review);
        if !given.is_empty() && given != self.namespace && kind == LOCAL_SUBJECT_ACCESS_REVIEW {
            let why = "the namespace of the provided object does not match the namespace sent on the request";
            return Some(Err(ApiError::bad_request(why)));
        }
        let metadata = crate::meta::metadata_mut(&mut review);
        if kind == LOCAL_SUBJECT_ACCESS_REVIEW {
            metadata.insert("namespace".to_owned(), self.namespace.into());
        } else {
            metadata.remove("namespace");
        }
        Some(match kind {
            SELF_SUBJECT_ACCESS_REVIEW => self.access(review, Some(self.asker)),
            SUBJECT_ACCESS_REVIEW | LOCAL_SUBJECT_ACCESS_REVIEW => self.access(review, None),
            SELF_SUBJECT_RULES_REVIEW => self.rules(review),
            SELF_SUBJECT_REVIEW => Ok(self.myself(review)),
            TOKEN_REVIEW => self.token(review),
            _ => return None,
        })
    }

    fn access(&self, mut review: Value, asker: Option<&Identity>) -> Result<Value, ApiError> {
        let errors = self.problems(&review, asker.is_some());
        if !errors.is_empty() {
            return Err(ApiError::invalid(AUTHORIZATION, "", "", &errors));
        }
        let spec = &review["spec"];
        let subject = asker.cloned().unwrap_or_else(|| named_subject(spec));
        let request = attributes(&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
        let Decision { allowed, reason } = self.authorizer.decide(self.store, &subject, &request);
        let mut status = json!({ "allowed": allowed });
        if !reason.is_empty() {
            status["reason"] = reason.into();
        }
        if let Some(error) = selector::evaluation_error(&spec["resourceAttributes"]) {
            status["evaluationError"] = error.into();
        }
        review["status"] = status;
        Ok(review)
    }

    /// Validates an access review.
    fn problems(&self, review: &Value, about_self: bool) -> Vec<FieldError> {
        let spec = &review["spec"];
        let (resource, other) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
        let mut errors = Vec::new();
        if resource.is_object() == other.is_object() {
            let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            let error = if other.is_object() {
                wrong_path(other, why)
            } else {
                FieldError::invalid("spec", Value::Null, why)
            };
            errors.push(FieldError { field: "spec".to_owned(), ..error });
        }
        let has_group = spec["groups"].as_array().is_some_and(|groups| !groups.is_empty());
        if !about_self && text(spec, "user").is_empty() && !has_group {
            let why = "at least one of user or group must be specified";
            errors.push(FieldError::invalid("spec.user", "", why));
        }
        errors.extend(selector::problems(resource));
        let local = !self.namespace.is_empty();
        let given = review["metadata"].as_object();
        let is_given = |(field, value): (&String, &Value)| {
            !(value.is_null() || field == "managedFields" || local && field == "namespace")
        };
        if given.is_some_and(|fields| fields.iter().any(is_given)) {
            let why = if local { "must be empty except for namespace" } else { "must be empty" };
            errors.push(FieldError::invalid("metadata", review["metadata"].clone(), why));
        }
        if local && resource.is_object() && text(resource, "namespace") != self.namespace {
            let why = "must match metadata.namespace";
            let field = "spec.resourceAttributes.namespace";
            errors.push(FieldError::invalid(field, text(resource, "namespace"), why));
        }
        if local && other.is_object() {
            errors.push(wrong_path(other, "disallowed on this kind of request"));
        }
        errors
    }

    fn rules(&self, mut review: Value) -> Result<Value, ApiError> {
        let namespace = text(&review["spec"], "namespace");
        if namespace.is_empty() {
            return Err(ApiError::bad_request("no namespace on request"));
        }
        let (rules, errors) = self.authorizer.rules_for(self.store, self.asker, namespace);
        let of_resources = rules.iter().filter(|rule| !rule.resources.is_empty()).map(resource_rule);
        let of_paths = rules
            .iter()
            .filter(|rule| !rule.urls.is_empty())
            .map(|rule| json!({ "verbs": rule.verbs, "nonResourceURLs": rule.urls }));
        let mut status = json!({
            "resourceRules": of_resources.collect::<Vec<_>>(),
            "nonResourceRules": of_paths.collect::<Vec<_>>(),
            "incomplete": false,
        });
        if !errors.is_empty() {
            status["evaluationError"] = errors.into();
        }
        review["metadata"] = json!({});
        review["spec"] = json!({});
        review["status"] = status;
        Ok(review)
    }

    fn myself(&self, mut review: Value) -> Value {
        // The reply has no field from the client.
        review["metadata"] = json!({ "creationTimestamp": self.now });
        review["status"] = json!({ "userInfo": user_info(self.asker) });
        review
    }

    fn token(&self, mut review: Value) -> Result<Value, ApiError> {
        let token = text(&review["spec"], "token");
        if token.is_empty() {
            return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
        }
        let mut audiences: Vec<String> = texts(&review["spec"]["audiences"]).map(str::to_owned).collect();
        if audiences.is_empty() {
            audiences.extend_from_slice(self.own_audiences);
        }
        review["status"] = match (self.authenticate)(token, &audiences) {
            Ok((user, audiences)) => json!({
                "authenticated": true,
                "user": user_info(&user),
                "audiences": audiences,
            }),
            Err(error) if error.is_empty() => json!({ "user": {}, "error": "invalid bearer token" }),
            Err(error) => json!({ "user": {}, "error": format!("[invalid bearer token, {error}]") }),
        };
        Ok(review)
    }
}

/// Returns an error about `spec.nonResourceAttributes`, with Go's names of the fields.
fn wrong_path(attributes: &Value, why: &str) -> FieldError {
    let shown = json!({ "Path": text(attributes, "path"), "Verb": text(attributes, "verb") });
    FieldError::invalid("spec.nonResourceAttributes", attributes.clone(), why).showing(shown.to_string())
}

fn resource_rule(rule: &Rule) -> Value {
    let mut shown = Map::new();
    let fields =
        [("apiGroups", &rule.groups), ("resources", &rule.resources), ("resourceNames", &rule.names)];
    shown.insert("verbs".to_owned(), json!(rule.verbs));
    for (field, values) in fields.into_iter().filter(|(_, values)| !values.is_empty()) {
        shown.insert(field.to_owned(), json!(values));
    }
    Value::Object(shown)
}

/// Returns the user that a SubjectAccessReview names.
fn named_subject(spec: &Value) -> Identity {
    let mut subject = Identity::unverified(text(spec, "user"));
    if !text(spec, "uid").is_empty() {
        subject = subject.with_uid(text(spec, "uid"));
    }
    subject = subject.with_groups(texts(&spec["groups"]).map(str::to_owned));
    for (key, values) in spec["extra"].as_object().into_iter().flatten() {
        subject = texts(values).fold(subject, |subject, value| subject.with_extra(&**key, value));
    }
    subject
}

fn attributes<'a>(resource: &'a Value, other: &'a Value) -> Attributes<'a> {
    if !resource.is_object() {
        let path = Some(text(other, "path"));
        return Attributes { verb: text(other, "verb"), path, ..Attributes::default() };
    }
    Attributes {
        verb: text(resource, "verb"),
        group: text(resource, "group"),
        resource: text(resource, "resource"),
        subresource: text(resource, "subresource"),
        namespace: text(resource, "namespace"),
        name: text(resource, "name"),
        path: None,
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn texts(values: &Value) -> impl Iterator<Item = &str> {
    values.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn user_info(identity: &Identity) -> Value {
    let mut info = Map::new();
    info.insert("username".to_owned(), json!(identity.name()));
    if let Some(uid) = identity.uid() {
        info.insert("uid".to_owned(), json!(uid));
    }
    if !identity.groups().is_empty() {
        info.insert("groups".to_owned(), json!(identity.groups()));
    }
    if !identity.extra().is_empty() {
        info.insert("extra".to_owned(), json!(identity.extra()));
    }
    Value::Object(info)
}
