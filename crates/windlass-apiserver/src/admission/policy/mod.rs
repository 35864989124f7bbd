//! Admission policies, as the plugins `ValidatingAdmissionPolicy` and `MutatingAdmissionPolicy` of kube-apiserver.

mod decisions;
mod definition;
mod mutating;
mod params;
mod patch;
mod source;
mod validating;

pub(crate) use self::decisions::Decisions;
use self::mutating::MutatingPolicy;
use self::source::Source;
use self::validating::ValidatingPolicy;
use super::trace::PolicyObserver;
use crate::resource::Resource;
use crate::store::{Store, View};
use windlass_kinds::AdmittedBy;
use windlass_kinds::resources::{
    MUTATING_BINDINGS, MUTATING_POLICIES, VALIDATING_BINDINGS, VALIDATING_POLICIES,
};

/// The result of the step [`Match`](super::trace::PolicyPart::Match) for a request that a policy or a binding does not match.
const UNMATCHED: &str = "does not match the request";

/// The admission policies of a server.
pub(crate) struct Policies {
    validating: Source<ValidatingPolicy>,
    mutating: Source<MutatingPolicy>,
    decisions: Decisions,
    /// Sees the steps of policies.
    observer: Option<PolicyObserver>,
}

impl Policies {
    /// Finds the policies in the store of each request.
    pub(crate) fn new(observer: Option<PolicyObserver>) -> Self {
        Self {
            validating: Source::new(&VALIDATING_POLICIES, &VALIDATING_BINDINGS, ValidatingPolicy::compile),
            mutating: Source::new(&MUTATING_POLICIES, &MUTATING_BINDINGS, MutatingPolicy::compile),
            decisions: Decisions::default(),
            observer,
        }
    }

    /// Returns the decisions until now, for metrics.
    pub(crate) fn decisions(&self) -> &Decisions {
        &self.decisions
    }

    /// Returns whether a policy may want to change a request to `resource`.
    pub(crate) fn may_mutate(&self, store: &Store, resource: &Resource) -> bool {
        sees(&store.view(), self.mutating.bindings(), resource)
    }

    /// Returns whether a policy may want to check a request to `resource`.
    pub(crate) fn may_validate(&self, store: &Store, resource: &Resource) -> bool {
        sees(&store.view(), self.validating.bindings(), resource)
    }
}

fn sees(view: &View, bindings: &crate::store::ResourceId, resource: &Resource) -> bool {
    if view.count(bindings) == 0 {
        return false;
    }
    resource.strategy.config.admitted_by != AdmittedBy::None
}
