//! Queries over a store.

use super::{
    UnknownIndex,
    postings::{Postings, Slot},
    state::{State, Term},
};
use crate::{Operator, RawObject, Selector};

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

    pub(super) fn run(&self, state: &State) -> Result<Vec<RawObject>, UnknownIndex> {
        let Some(plan) = self.plan(state)? else { return Ok(Vec::new()) };
        let wanted = |object: &&RawObject| self.matches(object);
        let Some(narrowest) = plan.iter().min_by_key(|choice| choice.len()) else {
            return Ok(state.iter().filter(wanted).cloned().collect());
        };
        let named = plan.iter().filter(|choice| choice.named).collect::<Vec<_>>();
        let slots = narrowest.slots().into_iter();
        let slots = slots.filter(|&slot| named.iter().all(|choice| choice.contains(slot)));
        Ok(slots.filter_map(|slot| state.at(slot)).filter(wanted).cloned().collect())
    }

    /// Returns sets of slots, each with every match, or `None` if some part matches no object.
    fn plan<'s>(&self, state: &'s State) -> Result<Option<Vec<Choice<'s>>>, UnknownIndex> {
        let mut plan = Vec::new();
        if let Some((index, value)) = self.index {
            match state.index(index)?.values.get(value) {
                Some(postings) => plan.push(Choice { named: true, union: vec![postings] }),
                None => return Ok(None),
            }
        }
        let namespace = self.namespace.map(|namespace| Term::Namespace(namespace.as_bytes()));
        let owner = self.owner.map(|uid| Term::Owner(uid.as_bytes()));
        let terms = namespace.into_iter().chain(owner);
        for term in terms {
            match state.term(term) {
                Some(postings) => plan.push(Choice { named: false, union: vec![postings] }),
                None => return Ok(None),
            }
        }
        for requirement in self.selector.map_or(&[][..], Selector::requirements) {
            let values = match &requirement.operator {
                Operator::Equals(value) => std::slice::from_ref(value),
                Operator::In(values) => values,
                _ => continue,
            };
            let key = requirement.key.as_bytes();
            let term = |value: &String| state.term(Term::Label(key, value.as_bytes()));
            let union: Vec<_> = values.iter().filter_map(term).collect();
            if union.is_empty() {
                return Ok(None);
            }
            plan.push(Choice { named: false, union });
        }
        Ok(Some(plan))
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
