//! Named indexes.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use serde::de::DeserializeOwned;

use crate::{FieldPath, RawObject};

/// Computes the values under which an index has an object: none, one or many.
#[derive(Clone)]
pub struct IndexFn(Arc<Values>);

type Values = dyn Fn(&RawObject) -> Vec<String> + Send + Sync;

impl IndexFn {
    /// An index by a closure over the object's index and JSON.
    pub fn new(values: impl Fn(&RawObject) -> Vec<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(values))
    }

    /// An index by the field at a path: strings as they are, numbers and booleans as they are written. A path
    /// through `[*]` or `*` gives many values.
    pub fn field(path: FieldPath) -> Self {
        Self::new(move |object| path.values(&object.json()))
    }

    /// An index by a closure over the decoded object. It decodes each object that changes: the slow way.
    /// An object that does not decode has no values.
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

    /// The values of an object, in order and without repetition. A function that panics gives none.
    pub fn values(&self, object: &RawObject) -> Vec<String> {
        self.try_values(object).unwrap_or_default()
    }

    /// The values of an object, in order and without repetition; `None` when the function panics.
    pub(super) fn try_values(&self, object: &RawObject) -> Option<Vec<String>> {
        // The writer is in the middle of a change, which has to be carried through.
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

/// A read names an index that was not added to the cache.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no index `{name}`; add it where the watch is declared (there are: {known})")]
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
