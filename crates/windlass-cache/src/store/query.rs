//! Queries over a store.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use smallvec::{SmallVec, smallvec};
use tokio::sync::Notify;

use super::{
    UnknownIndex,
    postings::{Postings, Slot},
    state::{State, Term, TermKind},
};
use crate::{Operator, RawObject, Requirement, Selector};

/// A query for objects. An object matches if it matches every given part.
#[derive(Clone, Copy, Debug, Default)]
pub struct Query<'a> {
    namespace: Option<&'a str>,
    selector: Option<&'a Selector>,
    owner: Option<&'a str>,
    index: Option<(&'a str, &'a str)>,
}

impl<'a> Query<'a> {
    /// Creates a query that every object matches.
    pub fn new() -> Self {
        Self::default()
    }

    /// Restricts the query to a namespace.
    pub fn namespace(self, namespace: &'a str) -> Self {
        Self { namespace: Some(namespace), ..self }
    }

    /// Restricts the query to a label selector.
    pub fn selector(self, selector: &'a Selector) -> Self {
        Self { selector: Some(selector), ..self }
    }

    /// Restricts the query to objects with an owner reference to this uid.
    pub fn owner(self, uid: &'a str) -> Self {
        Self { owner: Some(uid), ..self }
    }

    /// Restricts the query to objects that have a value in a named index.
    pub fn index(self, index: &'a str, value: &'a str) -> Self {
        Self { index: Some((index, value)), ..self }
    }

    /// Returns the named index of the query, and the value that matching objects have in the index.
    pub fn named_index(&self) -> Option<(&'a str, &'a str)> {
        self.index
    }

    /// Returns the namespace of matching objects; `None` for all namespaces.
    pub fn in_namespace(&self) -> Option<&'a str> {
        self.namespace
    }

    /// Returns the uid of the owner of matching objects; `None` for all owners.
    pub fn owner_uid(&self) -> Option<&'a str> {
        self.owner
    }

    /// Returns whether an object matches all parts but the named index.
    pub fn matches(&self, object: &RawObject) -> bool {
        self.namespace.is_none_or(|namespace| object.namespace() == Some(namespace))
            && self.owner.is_none_or(|uid| object.owner_references().any(|owner| owner.uid == uid))
            && self.selector.is_none_or(|selector| selector.matches(object))
    }

    /// Runs the query. `missing` receives the terms whose index would have saved time.
    pub(super) fn run(
        &self,
        state: &State,
        missing: &mut Vec<Term<'a>>,
    ) -> Result<Vec<RawObject>, UnknownIndex> {
        let Some(plan) = self.plan(state, missing)? else {
            missing.clear();
            return Ok(Vec::new());
        };
        let wanted = |object: &&RawObject| self.matches(object);
        let narrowest = plan.iter().min_by_key(|choice| choice.len());
        if narrowest.map_or(state.len(), Choice::len) < MANY {
            missing.clear();
        }
        let Some(narrowest) = narrowest else {
            return Ok(state.iter().filter(wanted).cloned().collect());
        };
        let named = plan.iter().filter(|choice| choice.named).collect::<Vec<_>>();
        let slots = narrowest.slots().into_iter();
        let slots = slots.filter(|&slot| named.iter().all(|choice| choice.contains(slot)));
        Ok(slots.filter_map(|slot| state.at(slot)).filter(wanted).cloned().collect())
    }

    /// Returns sets of slots, each with every match, or `None` if some part matches no object.
    fn plan<'s>(
        &self,
        state: &'s State,
        missing: &mut Vec<Term<'a>>,
    ) -> Result<Option<Vec<Choice<'s>>>, UnknownIndex> {
        let mut plan = Vec::new();
        if let Some((index, value)) = self.index {
            match state.index(index)?.values.get(value) {
                Some(postings) => plan.push(Choice { named: true, union: vec![postings] }),
                None => return Ok(None),
            }
        }
        for terms in self.terms() {
            let Some(&first) = terms.first() else { return Ok(None) };
            if !state.has_index_of(first) {
                missing.push(first);
                continue;
            }
            let union: Vec<_> = terms.into_iter().filter_map(|term| state.term(term)).collect();
            if union.is_empty() {
                return Ok(None);
            }
            plan.push(Choice { named: false, union });
        }
        Ok(Some(plan))
    }

    /// Returns lists of terms of a kind. A matching object has a term of each list.
    fn terms(&self) -> impl Iterator<Item = SmallVec<[Term<'a>; 1]>> {
        let namespace = self.namespace.map(|namespace| smallvec![Term::Namespace(namespace.as_bytes())]);
        let owner = self.owner.map(|uid| smallvec![Term::Owner(uid.as_bytes())]);
        let requirements = self.selector.map_or(&[][..], Selector::requirements).iter();
        let labels = requirements.filter_map(|Requirement { key, operator }| {
            let values = match operator {
                Operator::Equals(value) => std::slice::from_ref(value),
                Operator::In(values) => values,
                _ => return None,
            };
            Some(values.iter().map(|value| Term::Label(key.as_bytes(), value.as_bytes())).collect())
        });
        namespace.into_iter().chain(owner).chain(labels)
    }
}

/// A query that checks fewer objects needs no further index.
const MANY: usize = 8;

/// The most labels with an index. A program that makes up label keys gets no index for each key.
const MOST_LABELS: usize = 16;

/// The indexes that queries have used or would have used. The next write adds those that the store lacks.
#[derive(Debug, Default)]
pub(super) struct WantedIndexes {
    kinds: Mutex<Vec<TermKind>>,
    count: AtomicUsize,
    added: Notify,
}

impl WantedIndexes {
    pub(super) fn add(&self, terms: Vec<Term<'_>>) {
        let mut kinds = self.kinds.lock();
        for kind in terms.into_iter().map(TermKind::of) {
            let labels = || kinds.iter().filter(|kind| matches!(kind, TermKind::Label(_))).count();
            let is_allowed = !matches!(kind, TermKind::Label(_)) || labels() < MOST_LABELS;
            if is_allowed && !kinds.contains(&kind) {
                kinds.push(kind);
                self.count.store(kinds.len(), Ordering::Release);
                self.added.notify_one();
            }
        }
    }

    /// Waits until a query has wanted a further index.
    pub(super) async fn added(&self) {
        self.added.notified().await;
    }

    /// Returns the wanted indexes that a state lacks.
    pub(super) fn missing_in(&self, state: &State) -> Vec<TermKind> {
        if self.count.load(Ordering::Acquire) == state.index_count() {
            return Vec::new();
        }
        self.kinds.lock().iter().filter(|kind| !state.has_index(kind)).cloned().collect()
    }
}

/// A union of sets of slots.
struct Choice<'s> {
    /// True for a named index: the values of a named index cannot be checked on the object.
    named: bool,
    union: Vec<&'s Postings>,
}

impl Choice<'_> {
    fn len(&self) -> usize {
        self.union.iter().map(|postings| postings.len()).sum()
    }

    fn contains(&self, slot: Slot) -> bool {
        self.union.iter().any(|postings| postings.contains(slot))
    }

    fn slots(&self) -> Vec<Slot> {
        let mut slots: Vec<_> = self.union.iter().flat_map(|postings| postings.iter()).collect();
        if self.union.len() > 1 {
            slots.sort_unstable();
            slots.dedup();
        }
        slots
    }
}
