//! The policies of a server with their bindings, compiled again only after a change.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::definition::Binding;
use crate::store::{ResourceId, View};

/// A policy with its bindings.
pub(super) struct Bound<P> {
    pub(super) policy: Arc<P>,
    /// The bindings in the order of their names.
    pub(super) bindings: Vec<Binding>,
}

/// The policies of a kind, found in the store.
pub(super) struct Source<P> {
    policies: ResourceId,
    bindings: ResourceId,
    compile: fn(&Value) -> P,
    known: Mutex<Known<P>>,
}

/// The policies at a moment.
struct Known<P> {
    /// The revisions of the policies and the bindings.
    revisions: (u64, u64),
    bound: Arc<Vec<Bound<P>>>,
    /// The compiled policies by name, with the resource version of each.
    compiled: HashMap<String, (u64, Arc<P>)>,
}

impl<P> Source<P> {
    pub(super) fn new(policies: &ResourceId, bindings: &ResourceId, compile: fn(&Value) -> P) -> Self {
        let known = Known { revisions: (0, 0), bound: Arc::default(), compiled: HashMap::new() };
        Self { policies: policies.clone(), bindings: bindings.clone(), compile, known: Mutex::new(known) }
    }

    /// Returns the resource of the bindings.
    pub(super) fn bindings(&self) -> &ResourceId {
        &self.bindings
    }

    /// Returns the policies that have bindings, in the order of their names.
    pub(super) fn get(&self, view: &View) -> Arc<Vec<Bound<P>>> {
        let revisions = (view.changed(&self.policies), view.changed(&self.bindings));
        // The lock is held while policies are compiled: concurrent requests would compile the same policies.
        let mut known = self.known.lock();
        if known.revisions == revisions {
            return Arc::clone(&known.bound);
        }
        let mut bindings: BTreeMap<String, Vec<Binding>> = BTreeMap::new();
        for (_, stored) in view.range(&self.bindings, None) {
            let binding = Binding::read(&stored.value());
            bindings.entry(binding.policy.clone()).or_default().push(binding);
        }
        let mut compiled = HashMap::new();
        let mut bound = Vec::new();
        for (name, bindings) in bindings {
            let Some(stored) = view.get(&self.policies, &name) else { continue };
            let policy = match known.compiled.get(&name) {
                Some((version, policy)) if *version == stored.rv => Arc::clone(policy),
                _ => Arc::new((self.compile)(&stored.value())),
            };
            compiled.insert(name, (stored.rv, Arc::clone(&policy)));
            bound.push(Bound { policy, bindings });
        }
        let bound = Arc::new(bound);
        // A request on an old view must not replace the policies of a newer view.
        if known.revisions.0 <= revisions.0 && known.revisions.1 <= revisions.1 {
            *known = Known { revisions, bound: Arc::clone(&bound), compiled };
        }
        bound
    }
}
