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
use windlass_kinds::AdmittedBy;
use windlass_kinds::resources::{MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS};

pub(crate) use self::attributes::{Attributes, Operation};
pub(crate) use self::calls::Calls;
use self::configuration::Hook;
pub(crate) use self::policy::Policies;
pub(crate) use self::reinvocation::Reinvocation;
use crate::resource::{Resource, ServedResources};
use crate::store::Env;
use crate::store::{Derived, Store, View};
use crate::webhook::Clients;
use crate::wire::ApiError;
use windlass_store::Authorizer;

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
        Self {
            mutating: Derived::new(MUTATING_WEBHOOKS.clone(), configuration::hooks),
            validating: Derived::new(VALIDATING_WEBHOOKS.clone(), configuration::hooks),
            clients,
            calls: Calls::default(),
        }
    }

    /// Returns the calls until now, for metrics.
    pub(crate) fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Returns whether some webhook may want to see a write of `resource`.
    pub(crate) fn may_mutate(&self, store: &Store, resource: &Resource) -> bool {
        Self::may_call(&self.mutating, store, resource)
    }

    /// Returns whether some webhook may want to check a write of `resource`.
    pub(crate) fn may_validate(&self, store: &Store, resource: &Resource) -> bool {
        Self::may_call(&self.validating, store, resource)
    }

    fn may_call(hooks: &Derived<Vec<Hook>>, store: &Store, resource: &Resource) -> bool {
        let sees = resource.strategy.config.admitted_by == AdmittedBy::All;
        sees && !hooks.get(&store.view()).is_empty()
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
