//! The second round of mutating admission: policies and webhooks that are run again, because the object changed after they
//! had seen the object.

use serde_json::Value;

use super::configuration::HookId;

/// The rounds of mutating admission of a request.
#[derive(Default)]
pub(crate) struct Reinvocation {
    rounds: usize,
    /// True if a policy or a webhook changed the object.
    is_needed: bool,
    /// The policies, by policy, binding and parameters.
    pub(super) policies: Invoked<PolicyKey>,
    /// The webhooks, by their identities: the configurations may change between the rounds.
    pub(super) webhooks: Invoked<HookId>,
}

/// The identity of an evaluation of a policy: the names of the policy and the binding, and the namespace and the name of the
/// parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PolicyKey {
    pub(super) policy: String,
    pub(super) binding: String,
    pub(super) params: (String, String),
}

/// The policies or webhooks that want to run again if a later change comes.
pub(super) struct Invoked<K> {
    /// True in the second round.
    is_second: bool,
    /// The entries that ran and want to run again.
    called: Vec<K>,
    /// The entries of the first round that saw an older object.
    outdated: Vec<K>,
    /// The object after the first round.
    output: Option<Value>,
}

impl<K> Default for Invoked<K> {
    fn default() -> Self {
        Self { is_second: false, called: Vec::new(), outdated: Vec::new(), output: None }
    }
}

impl Reinvocation {
    /// Begins a round.
    pub(crate) fn begin(&mut self) {
        self.rounds += 1;
        let is_second = self.rounds > 1;
        self.policies.is_second = is_second;
        self.webhooks.is_second = is_second;
    }

    /// Returns whether admission runs a second time.
    pub(crate) fn is_needed(&self) -> bool {
        self.is_needed
    }

    /// Marks the object as changed.
    pub(super) fn require(&mut self) {
        self.is_needed = true;
    }
}

impl<K: PartialEq> Invoked<K> {
    /// Begins the part of a round. If the object differs from the object after the first round, all entries that want to run
    /// again run again.
    pub(super) fn begin(&mut self, object: Option<&Value>) {
        if self.is_second && self.output.as_ref() != object {
            self.outdate();
        }
    }

    /// Returns whether an entry does not run in this round.
    pub(super) fn skips(&self, entry: &K) -> bool {
        self.is_second && !self.outdated.contains(entry)
    }

    /// Marks all entries that want to run again: the object changed.
    pub(super) fn outdate(&mut self) {
        self.outdated.append(&mut self.called);
    }

    /// Adds an entry that ran, and wants to run again after a later change.
    pub(super) fn add(&mut self, entry: K) {
        self.called.push(entry);
    }

    /// Ends the part of a round with this object.
    pub(super) fn end(&mut self, object: Option<&Value>) {
        if !self.is_second {
            self.output = object.cloned();
        }
    }
}
