//! Named indexes.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use serde::de::DeserializeOwned;

use crate::{FieldPath, RawObject};

/// Computes the values of an object in an index: any number of values.
///
/// The function must be deterministic: the store calls it again to find the values of an object that goes. It may read the store
/// but must not call the informer of the index, which is locked: such a call panics. If the function panics, the object has no
/// value in the index, and [`ReflectorEvent::IndexPanicked`](crate::ReflectorEvent::IndexPanicked) reports it.
#[derive(Clone)]
pub struct IndexFn(Arc<Values>);

type Values = dyn Fn(&RawObject) -> Vec<String> + Send + Sync;

impl IndexFn {
    /// Creates an index from a function of the raw object.
    pub fn new(values: impl Fn(&RawObject) -> Vec<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(values))
    }

    /// Creates an index of the field at a path. Numbers and booleans are indexed as JSON text. A path with
    /// `[*]` or `*` gives a value for each element.
    pub fn field(path: FieldPath) -> Self {
        Self::new(move |object| path.values(&object.json()))
    }

    /// Creates an index from a function of the decoded object. The function returns a `String`, an `Option<String>`, or an iterator or
    /// a collection of `String`s. Each object that changes is decoded, so the index is slower than those of [`Self::new`] and
    /// [`Self::field`]. An object that does not decode has no values.
    ///
    /// ```
    /// use serde::Deserialize;
    /// use windlass_cache::{IndexFn, RawObject};
    ///
    /// #[derive(Deserialize)]
    /// struct Backup {
    ///     policy: String,
    ///     parent: Option<String>,
    ///     volumes: Vec<String>,
    /// }
    ///
    /// let by_policy = IndexFn::typed(|backup: &Backup| backup.policy.clone());
    /// let by_parent = IndexFn::typed(|backup: &Backup| backup.parent.clone());
    /// let by_volume = IndexFn::typed(|backup: &Backup| backup.volumes.clone());
    /// # let backup = RawObject::from_json(br#"{"metadata":{"name":"a"},"policy":"daily","volumes":["y","x"]}"#)?;
    /// # assert_eq!(by_policy.values(&backup), ["daily"]);
    /// # assert!(by_parent.values(&backup).is_empty());
    /// # assert_eq!(by_volume.values(&backup), ["x", "y"]);
    /// # Ok::<(), windlass_cache::scan::ScanError>(())
    /// ```
    pub fn typed<K, V, Count>(values: impl Fn(&K) -> V + Send + Sync + 'static) -> Self
    where
        K: DeserializeOwned,
        V: IndexValues<Count>,
    {
        Self::new(move |object| match object.decode::<K>() {
            Ok(typed) => values(&typed).into_values(),
            Err(_) => Vec::new(),
        })
    }

    /// Returns the values of an object, sorted and without duplicates. If the function panics there are none.
    pub fn values(&self, object: &RawObject) -> Vec<String> {
        self.try_values(object).unwrap_or_default()
    }

    /// Returns the values of an object, sorted and without duplicates, or `None` if the function panics.
    pub(super) fn try_values(&self, object: &RawObject) -> Option<Vec<String>> {
        // The writer must complete the change.
        let mut values = catch_unwind(AssertUnwindSafe(|| (self.0)(object))).ok()?;
        values.sort_unstable();
        values.dedup();
        Some(values)
    }
}

/// The values that an object has in an index: a single `String`, or an iterator or a collection of `String`s.
///
/// The compiler infers `Count`, which distinguishes the two cases.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a value of an index",
    note = "an index function returns a `String`, an `Option<String>`, or an iterator or a collection of `String`s"
)]
pub trait IndexValues<Count> {
    /// Returns the values.
    fn into_values(self) -> Vec<String>;
}

/// The count of a single value. See [`IndexValues`].
#[doc(hidden)]
#[derive(Debug)]
pub enum One {}

/// The count of any number of values. See [`IndexValues`].
#[doc(hidden)]
#[derive(Debug)]
pub enum Many {}

impl IndexValues<One> for String {
    fn into_values(self) -> Vec<String> {
        vec![self]
    }
}

impl<I: IntoIterator<Item = String>> IndexValues<Many> for I {
    fn into_values(self) -> Vec<String> {
        self.into_iter().collect()
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
