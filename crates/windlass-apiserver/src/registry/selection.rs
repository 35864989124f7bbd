//! The selected objects of a request.

use std::sync::Arc;

use crate::resource::Resource;
use crate::store::{ResourceId, Store, Stored, View};
use crate::wire::selector::LabelOperator;
use crate::wire::{FieldOperator, FieldSelector, LabelSelector};

/// Objects and keys, in the order of the keys.
type Candidates<'a> = Box<dyn Iterator<Item = (&'a Arc<str>, &'a Arc<Stored>)> + Send + 'a>;

/// A label selector and a field selector, ready to be asked about stored objects.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    labels: LabelSelector,
    fields: Vec<FieldTest>,
    namespaced: bool,
}

#[derive(Clone, Debug)]
struct FieldTest {
    place: Place,
    is_equal: bool,
    value: String,
}

/// Where the value of a selectable field is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Name,
    Namespace,
    /// A position in the attrs of the object.
    Facet(usize),
}

impl Selection {
    /// Returns a selection by selectors. The fields were checked for the resource.
    pub(super) fn new(resource: &Resource, labels: LabelSelector, fields: &FieldSelector) -> Self {
        let selectable = resource.selectable_fields();
        let test = |requirement: &crate::wire::FieldRequirement| {
            let place = match requirement.field.as_str() {
                "metadata.name" => Place::Name,
                "metadata.namespace" => Place::Namespace,
                field => Place::Facet(selectable.iter().position(|known| *known == field)?),
            };
            let is_equal = requirement.operator == FieldOperator::Equals;
            Some(FieldTest { place, is_equal, value: requirement.value.clone() })
        };
        let fields = fields.requirements().iter().filter_map(test).collect();
        Self { labels, fields, namespaced: resource.namespaced }
    }

    /// Selects the object with a name if there is no condition on fields.
    pub(super) fn or_name(mut self, name: &str) -> Self {
        if self.fields.is_empty() {
            self.fields.push(FieldTest { place: Place::Name, is_equal: true, value: name.to_owned() });
        }
        self
    }

    /// Returns whether every object is selected.
    pub(super) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Leaves other tasks their turn between two objects: long selectors and many objects take long together.
    pub(super) async fn pause(&self) {
        /// The number of comparisons that count as much as an object.
        const COMPARISONS: usize = 64;
        for _ in 0..=self.labels.requirements().len() / COMPARISONS {
            tokio::task::consume_budget().await;
        }
    }

    /// Returns whether objects have to be shown in the version of the request to be selected.
    pub(super) fn reads_fields(&self) -> bool {
        self.fields.iter().any(|test| matches!(test.place, Place::Facet(_)))
    }

    /// Returns the candidates, found by name or by an index of labels where possible: objects of a namespace
    /// or of all, from the key `start` on. Check each candidate with [`Selection::may_match`].
    pub(super) fn candidates<'a>(
        &self,
        store: &Store,
        view: &'a View,
        id: &'a ResourceId,
        namespace: Option<&'a str>,
        start: Option<&'a str>,
    ) -> Candidates<'a> {
        let is_inside = move |key: &str| {
            start.is_none_or(|start| key >= start)
                && namespace.is_none_or(|namespace| {
                    key.strip_prefix(namespace).is_some_and(|rest| rest.starts_with('/'))
                })
        };
        if let Some(key) = self.only_key(namespace) {
            return Box::new(view.entry(id, &key).into_iter().filter(move |(key, _)| is_inside(key)));
        }
        let choices: Vec<(&str, &[String])> = self
            .labels
            .requirements()
            .iter()
            .filter(|requirement| requirement.operator == LabelOperator::In)
            .map(|requirement| (requirement.key.as_str(), requirement.values.as_slice()))
            .collect();
        if !choices.is_empty()
            && let Some(keys) = store.keys_by_label(view, id, &choices)
        {
            let keys = keys.into_iter().filter(move |key| is_inside(key));
            return Box::new(keys.filter_map(move |key| view.entry(id, &key)));
        }
        Box::new(view.range_from(id, namespace, start))
    }

    /// Returns the key of the only object that can be selected, if the selection names an object.
    pub(super) fn only_key(&self, namespace: Option<&str>) -> Option<String> {
        let is_name = |test: &&FieldTest| test.place == Place::Name && test.is_equal;
        let name = &self.fields.iter().find(is_name)?.value;
        match namespace {
            Some(namespace) => Some(format!("{namespace}/{name}")),
            None if self.namespaced => None,
            None => Some(name.clone()),
        }
    }

    /// Returns whether an object may be selected, by the properties that are the same in all versions: the
    /// key and the labels.
    pub(super) fn may_match(&self, key: &str, stored: &Stored) -> bool {
        self.fields
            .iter()
            .filter(|test| !matches!(test.place, Place::Facet(_)))
            .all(|test| self.passes(test, key, stored))
            && self.labels.matches_by(|label| stored.labels().get(label))
    }

    /// Returns whether an object is selected. `shown` is the object in the version of the request.
    pub(super) fn matches(&self, key: &str, shown: &Stored) -> bool {
        self.fields.iter().all(|test| self.passes(test, key, shown))
            && self.labels.matches_by(|label| shown.labels().get(label))
    }

    fn passes(&self, test: &FieldTest, key: &str, shown: &Stored) -> bool {
        let (namespace, name) = match key.split_once('/') {
            Some(parts) if self.namespaced => parts,
            _ => ("", key),
        };
        let found = match test.place {
            Place::Name => name,
            Place::Namespace => namespace,
            Place::Facet(at) => shown.attrs().selectable.get(at).map_or("", |value| value),
        };
        (found == test.value) == test.is_equal
    }
}
