//! Named indexes.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use serde::de::DeserializeOwned;

use crate::{FieldPath, RawObject};

/// Computes the values that an object has in an index: none, one or many.
///
/// The function must be deterministic: the store calls it again to find the values of an object that goes. It may read the store
/// but must not call the informer of the index, which is locked: such a call panics. If the function panics, the object has no
/// value in the index, and [`Notice::IndexPanicked`](crate::Notice::IndexPanicked) reports it.
#[derive(Clone)]
pub struct IndexFn(Arc<Values>);

type Values = dyn Fn(&RawObject) -> Vec<String> + Send + Sync;

impl IndexFn {
    /// Creates an index from a function of the raw object.
    pub fn new(values: impl Fn(&RawObject) -> Vec<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(values))
    }

    /// Creates an index of the field at a path. Numbers and booleans are indexed as they are written in JSON. A path with `[*]`
    /// or `*` gives one value for each element.
    pub fn field(path: FieldPath) -> Self {
        Self::new(move |object| path.values(&object.json()))
    }

    /// Creates an index from a function of the decoded object. It decodes each object that changes, which is slower than
    /// [`Self::new`] and [`Self::field`]. An object that does not decode has no values.
    pub fn typed<K, I>(values: impl Fn(&K) -> I + Send + Sync + 'static) -> Self
    where
        K: DeserializeOwned,
        I: IntoIterator<Item = String>,
    {
        Self::new(move |object| match object.decode::<K>() {
            Ok(typed) => values(&typed).into_iter().collect(),
            Err(_) => Vec::new(),
        })
    }

    /// Returns the values of an object, sorted and without duplicates. If the function panics there are none.
    pub fn values(&self, object: &RawObject) -> Vec<String> {
        self.try_values(object).unwrap_or_default()
    }

    /// Returns the values of an object, sorted and without duplicates, or `None` if the function panics.
    pub(super) fn try_values(&self, object: &RawObject) -> Option<Vec<String>> {
        // The writer must complete its change.
        let mut values = catch_unwind(AssertUnwindSafe(|| (self.0)(object))).ok()?;
        values.sort_unstable();
        values.dedup();
        Some(values)
    }
}

impl fmt::Debug for IndexFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IndexFn")
    }
}

/// A read names an index that the cache does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no index `{name}`; add it where the watch is declared (known indexes: {known})")]
pub struct UnknownIndex {
    name: String,
    known: String,
}

impl UnknownIndex {
    pub(super) fn new(name: &str, known: Vec<String>) -> Self {
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Self { name: name.to_owned(), known }
    }
}
