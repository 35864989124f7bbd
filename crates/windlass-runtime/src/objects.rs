//! The result of a list.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_core::{Resource, ResourceExt};

use crate::error::{Error, Result};

/// The objects that a list found, and the errors of the objects that did not decode.
#[derive(Debug)]
pub struct Objects<K> {
    objects: Vec<Arc<K>>,
    errors: Vec<Error>,
}

impl<K> Objects<K> {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { objects: Vec::with_capacity(capacity), errors: Vec::new() }
    }

    pub(crate) fn new(objects: Vec<Arc<K>>, errors: Vec<Error>) -> Self {
        Self { objects, errors }
    }

    pub(crate) fn push(&mut self, object: Result<Arc<K>>) {
        match object {
            Ok(object) => self.objects.push(object),
            Err(error) => self.errors.push(error),
        }
    }

    /// Returns the number of objects that decoded.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns whether no object decoded.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Iterates over the objects that decoded.
    pub fn iter(&self) -> impl Iterator<Item = &K> {
        self.objects.iter().map(AsRef::as_ref)
    }

    /// Returns the errors of the objects that did not decode. Each has been logged, counted and recorded as
    /// an Event.
    pub fn errors(&self) -> &[Error] {
        &self.errors
    }

    /// Returns the list if every object decoded, and the first error otherwise.
    ///
    /// For a reconciler that creates missing objects: an object that does not decode is not missing.
    ///
    /// # Errors
    /// An object did not decode.
    pub fn complete(mut self) -> Result<Self> {
        if self.errors.is_empty() { Ok(self) } else { Err(self.errors.swap_remove(0)) }
    }

    /// Keeps the objects for which `keep` returns true.
    pub fn filter(mut self, keep: impl Fn(&K) -> bool) -> Self {
        self.objects.retain(|object| keep(object));
        self
    }
}

impl<K: Resource> Objects<K> {
    /// Keeps the objects that are not terminating.
    pub fn not_terminating(self) -> Self {
        self.filter(|object| object.meta().deletion_timestamp.is_none())
    }

    /// Returns the names, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.iter().map(ResourceExt::name_any).collect();
        names.sort();
        names
    }

    /// Iterates from the newest object to the oldest; among objects of the same second, from the last name to the first.
    pub fn newest_first(&self) -> impl Iterator<Item = &K> {
        let mut objects: Vec<&K> = self.iter().collect();
        objects.sort_by(|a, b| age_and_name(*b).cmp(&age_and_name(*a)));
        objects.into_iter()
    }

    /// Iterates from the oldest object to the newest; among objects of the same second, from the first name to the last.
    pub fn oldest_first(&self) -> impl Iterator<Item = &K> {
        let mut objects: Vec<&K> = self.iter().collect();
        objects.sort_by(|a, b| age_and_name(*a).cmp(&age_and_name(*b)));
        objects.into_iter()
    }
}

fn age_and_name<K: Resource>(object: &K) -> (Option<&Time>, Option<&str>) {
    let meta = object.meta();
    (meta.creation_timestamp.as_ref(), meta.name.as_deref())
}

impl<K> IntoIterator for Objects<K> {
    type Item = Arc<K>;
    type IntoIter = std::vec::IntoIter<Arc<K>>;

    fn into_iter(self) -> Self::IntoIter {
        self.objects.into_iter()
    }
}

impl<'a, K> IntoIterator for &'a Objects<K> {
    type Item = &'a K;
    type IntoIter = std::iter::Map<std::slice::Iter<'a, Arc<K>>, fn(&'a Arc<K>) -> &'a K>;

    fn into_iter(self) -> Self::IntoIter {
        self.objects.iter().map(AsRef::as_ref)
    }
}
