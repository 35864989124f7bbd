//! Questions to the authorizer: `authorizer.group('apps').resource('deployments').check('create').allowed()`.

use std::fmt;
use std::sync::Arc;

use super::{as_text, mismatch};
use crate::declare::Row;
use crate::error::Error;
use crate::value::{Library, Value};

/// Decides about requests.
pub trait Authorize: Send + Sync {
    /// Returns the decision about a request.
    fn authorize(&self, request: &AccessRequest) -> Decision;
}

/// A request that an expression submits for authorization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessRequest {
    /// The service account that would send the request: the namespace and the name. `None` is the current user.
    pub service_account: Option<(String, String)>,
    /// The path of a request that names no resource.
    pub path: Option<String>,
    /// The API group.
    pub group: String,
    /// The resource, in plural.
    pub resource: String,
    /// The subresource, or an empty text.
    pub subresource: String,
    /// The namespace, or an empty text.
    pub namespace: String,
    /// The name of the object, or an empty text.
    pub name: String,
    /// The field selector of a list.
    pub field_selector: Option<String>,
    /// The label selector of a list.
    pub label_selector: Option<String>,
    /// The verb, such as `create`.
    pub verb: String,
}

/// The answer of the authorizer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// True if the request is allowed.
    pub allowed: bool,
    /// The reason, for people.
    pub reason: String,
    /// The error of the authorizer.
    pub error: Option<String>,
}

/// A question that is being built, or its answer.
#[derive(Clone)]
pub struct Check {
    authorizer: Arc<dyn Authorize>,
    stage: Stage,
    request: AccessRequest,
    decision: Decision,
}

/// The type of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Authorizer,
    Path,
    Group,
    Resource,
    Decision,
}

impl Check {
    /// Returns the value of the variable `authorizer`.
    pub fn new(authorizer: Arc<dyn Authorize>) -> Self {
        let (request, decision) = Default::default();
        Self { authorizer, stage: Stage::Authorizer, request, decision }
    }

    /// Returns the value of a variable that stands for a resource or an object, such as `authorizer.requestResource`.
    pub fn of_resource(authorizer: Arc<dyn Authorize>, request: AccessRequest) -> Self {
        Self { authorizer, stage: Stage::Resource, request, decision: Decision::default() }
    }

    /// Returns the value for an evaluation.
    pub fn into_value<'a>(self) -> Value<'a> {
        Value::Library(Library::Check(Arc::new(self)))
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self.stage {
            Stage::Authorizer => "kubernetes.authorization.Authorizer",
            Stage::Path => "kubernetes.authorization.PathCheck",
            Stage::Group => "kubernetes.authorization.GroupCheck",
            Stage::Resource => "kubernetes.authorization.ResourceCheck",
            Stage::Decision => "kubernetes.authorization.Decision",
        }
    }
}

impl PartialEq for Check {
    fn eq(&self, other: &Self) -> bool {
        self.stage == other.stage && self.request == other.request && self.decision == other.decision
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check")
            .field("stage", &self.stage)
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

#[rustfmt::skip]
pub(super) const FUNCTIONS: &[Row] = &[
    Row("path", "authorizer_path", ".kubernetes.authorization.Authorizer string", "kubernetes.authorization.PathCheck", |_, v| {
        let path = as_text(&v[1])?.to_owned();
        if path.is_empty() {
            return Err(Error::fixed("path must not be empty"));
        }
        build(v, Stage::Authorizer, Stage::Path, |request| request.path = Some(path))
    }),
    Row("group", "authorizer_group", ".kubernetes.authorization.Authorizer string", "kubernetes.authorization.GroupCheck", |_, v| {
        let group = as_text(&v[1])?.to_owned();
        build(v, Stage::Authorizer, Stage::Group, |request| request.group = group)
    }),
    Row("serviceAccount", "authorizer_serviceaccount", ".kubernetes.authorization.Authorizer string string", "kubernetes.authorization.Authorizer", |_, v| {
        let (namespace, name) = (as_text(&v[1])?.to_owned(), as_text(&v[2])?.to_owned());
        if !windlass_text::matches_format("k8s-long-name", &name) {
            return Err(Error::fixed("Invalid service account name"));
        }
        if !windlass_text::matches_format("k8s-short-name", &namespace) {
            return Err(Error::fixed("Invalid service account namespace"));
        }
        build(v, Stage::Authorizer, Stage::Authorizer, |request| request.service_account = Some((namespace, name)))
    }),
    Row("resource", "groupcheck_resource", ".kubernetes.authorization.GroupCheck string", "kubernetes.authorization.ResourceCheck", |_, v| {
        let resource = as_text(&v[1])?.to_owned();
        if resource.is_empty() {
            return Err(Error::fixed("resource must not be empty"));
        }
        build(v, Stage::Group, Stage::Resource, |request| request.resource = resource)
    }),
    Row("subresource", "resourcecheck_subresource", ".kubernetes.authorization.ResourceCheck string", "kubernetes.authorization.ResourceCheck", |_, v| {
        let subresource = as_text(&v[1])?.to_owned();
        build(v, Stage::Resource, Stage::Resource, |request| request.subresource = subresource)
    }),
    Row("namespace", "resourcecheck_namespace", ".kubernetes.authorization.ResourceCheck string", "kubernetes.authorization.ResourceCheck", |_, v| {
        let namespace = as_text(&v[1])?.to_owned();
        build(v, Stage::Resource, Stage::Resource, |request| request.namespace = namespace)
    }),
    Row("name", "resourcecheck_name", ".kubernetes.authorization.ResourceCheck string", "kubernetes.authorization.ResourceCheck", |_, v| {
        let name = as_text(&v[1])?.to_owned();
        build(v, Stage::Resource, Stage::Resource, |request| request.name = name)
    }),
    Row("fieldSelector", "authorizer_fieldselector", ".kubernetes.authorization.ResourceCheck string", "kubernetes.authorization.ResourceCheck", |_, v| {
        let selector = as_text(&v[1])?.to_owned();
        build(v, Stage::Resource, Stage::Resource, |request| request.field_selector = Some(selector))
    }),
    Row("labelSelector", "authorizer_labelselector", ".kubernetes.authorization.ResourceCheck string", "kubernetes.authorization.ResourceCheck", |_, v| {
        let selector = as_text(&v[1])?.to_owned();
        build(v, Stage::Resource, Stage::Resource, |request| request.label_selector = Some(selector))
    }),
    Row("check", "pathcheck_check", ".kubernetes.authorization.PathCheck string", "kubernetes.authorization.Decision", |_, v| decide(v)),
    Row("check", "resourcecheck_check", ".kubernetes.authorization.ResourceCheck string", "kubernetes.authorization.Decision", |_, v| decide(v)),
    Row("errored", "decision_errored", ".kubernetes.authorization.Decision", "bool", |_, v| {
        Ok(Value::Bool(decision(v)?.error.is_some()))
    }),
    Row("error", "decision_error", ".kubernetes.authorization.Decision", "string", |_, v| {
        Ok(Value::text(decision(v)?.error.clone().unwrap_or_default()))
    }),
    Row("allowed", "decision_allowed", ".kubernetes.authorization.Decision", "bool", |_, v| {
        Ok(Value::Bool(decision(v)?.allowed))
    }),
    Row("reason", "decision_reason", ".kubernetes.authorization.Decision", "string", |_, v| {
        Ok(Value::text(decision(v)?.reason.clone()))
    }),
];

fn as_check<'v>(arguments: &'v [Value<'_>]) -> Result<&'v Check, Error> {
    if let Value::Library(Library::Check(check)) = &arguments[0] { Ok(check) } else { mismatch() }
}

fn build<'a>(
    arguments: &[Value<'a>],
    from: Stage,
    to: Stage,
    change: impl FnOnce(&mut AccessRequest),
) -> Result<Value<'a>, Error> {
    let check = as_check(arguments)?;
    if check.stage != from {
        return mismatch();
    }
    let mut check = Check { stage: to, ..check.clone() };
    change(&mut check.request);
    Ok(check.into_value())
}

fn decide<'a>(arguments: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let check = as_check(arguments)?;
    if !matches!(check.stage, Stage::Path | Stage::Resource) {
        return mismatch();
    }
    let mut check = check.clone();
    as_text(&arguments[1])?.clone_into(&mut check.request.verb);
    check.decision = check.authorizer.authorize(&check.request);
    check.stage = Stage::Decision;
    Ok(check.into_value())
}

fn decision<'v>(arguments: &'v [Value<'_>]) -> Result<&'v Decision, Error> {
    let check = as_check(arguments)?;
    if check.stage == Stage::Decision { Ok(&check.decision) } else { mismatch() }
}
