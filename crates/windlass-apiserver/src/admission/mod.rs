//! Admission webhooks, as the plugins `MutatingAdmissionWebhook` and `ValidatingAdmissionWebhook` of kube-apiserver, and
//! [admission policies](policy).

mod attributes;
mod calls;
mod conditions;
mod configuration;
mod criteria;
mod failure;
mod matching;
mod mutate;
pub(crate) mod plugins;
mod policy;
mod reinvocation;
mod request;
mod response_types;
mod review;
mod scene;
pub(crate) mod trace;
mod validate;
mod versions;

use std::sync::Arc;

use serde_json::Value;

pub(crate) use self::attributes::{Attributes, Operation};
pub(crate) use self::calls::Calls;
use self::configuration::Hook;
pub(crate) use self::policy::Policies;
pub(crate) use self::reinvocation::Reinvocation;
use crate::resource::ServedResources;
use crate::store::Env;
use crate::store::{Derived, ResourceId, Store, View};
use crate::webhook::Clients;
use crate::wire::ApiError;
use windlass_store::Authorizer;

const GROUP: &str = "admissionregistration.k8s.io";
/// The kinds that configure admission. Webhooks do not see writes of these kinds, so that a broken webhook
/// can be removed.
const EXEMPT: [&str; 6] = [
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
];

/// The reviews that webhooks do not see: to refuse reviews may break the cluster.
const REVIEWS: [(&str, &str); 6] = [
    ("authentication.k8s.io", "SelfSubjectReview"),
    ("authentication.k8s.io", "TokenReview"),
    ("authorization.k8s.io", "LocalSubjectAccessReview"),
    ("authorization.k8s.io", "SelfSubjectAccessReview"),
    ("authorization.k8s.io", "SelfSubjectRulesReview"),
    ("authorization.k8s.io", "SubjectAccessReview"),
];

/// The admission webhooks of a server.
pub(crate) struct Webhooks {
    mutating: Derived<Vec<Hook>>,
    validating: Derived<Vec<Hook>>,
    clients: Arc<Clients>,
    calls: Calls,
}

/// The input of webhooks and policies besides the request.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) env: &'a Env,
    pub(crate) view: &'a View,
    pub(crate) served: &'a ServedResources,
    /// The store, for the authorizer.
    pub(crate) store: &'a Arc<Store>,
    pub(crate) authorizer: &'a Arc<Authorizer>,
}

impl Webhooks {
    /// Finds the webhooks in the configurations of `store`.
    pub(crate) fn new(clients: Arc<Clients>) -> Self {
        let configurations = |plural| ResourceId::new(GROUP, plural);
        Self {
            mutating: Derived::new(configurations("mutatingwebhookconfigurations"), configuration::hooks),
            validating: Derived::new(configurations("validatingwebhookconfigurations"), configuration::hooks),
            clients,
            calls: Calls::default(),
        }
    }

    /// Returns the calls until now, for metrics.
    pub(crate) fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Returns whether some webhook may want to see a write of this group and kind.
    pub(crate) fn may_mutate(&self, store: &Store, kind: (&str, &str)) -> bool {
        Self::may_call(&self.mutating, store, kind)
    }

    /// Returns whether some webhook may want to check a write of this group and kind.
    pub(crate) fn may_validate(&self, store: &Store, kind: (&str, &str)) -> bool {
        Self::may_call(&self.validating, store, kind)
    }

    fn may_call(hooks: &Derived<Vec<Hook>>, store: &Store, (group, kind): (&str, &str)) -> bool {
        let is_exempt = group == GROUP && EXEMPT.contains(&kind) || REVIEWS.contains(&(group, kind));
        !is_exempt && !hooks.get(&store.view()).is_empty()
    }
}

/// The objects of a write. Each is in the version of the request.
#[derive(Clone, Copy)]
pub(crate) struct Objects<'a> {
    /// `None` for a deletion.
    pub(crate) new: Option<&'a Value>,
    /// `None` for a creation.
    pub(crate) old: Option<&'a Value>,
}

/// A call that did not end in leave to go on.
enum CallError {
    /// The webhook could not be called, or the response was not usable: the failure policy decides. The code
    /// is for metrics.
    Failed { why: String, code: u16 },
    /// The webhook refuses the request.
    Denied(ApiError),
    /// The server refuses the request.
    Refused(ApiError),
}

impl CallError {
    /// Returns the error of a webhook that was not called, or did not reply.
    fn not_called(why: impl std::fmt::Display) -> Self {
        Self::Failed { why: format!("failed to call webhook: {why}"), code: 500 }
    }

    /// Returns the error for an unusable reply.
    fn unusable(why: String) -> Self {
        Self::Failed { why, code: 503 }
    }
}
