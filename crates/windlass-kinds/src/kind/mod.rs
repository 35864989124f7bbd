//! A kind: the data and the code by which the kind differs from other kinds.
//!
//! The registry of the API server treats all resources alike, and asks the [`Kind`] where kinds differ.

mod config;
mod context;
mod metadata_checks;
mod traits;
mod writes;

use serde_json::Value;
use windlass_wire::ApiError;

pub(crate) use self::config::not_enforced;
pub use self::config::{AdmittedBy, Generation, IfEmpty, KindConfig};
pub use self::context::{Lookups, WriteContext};
pub use self::metadata_checks::MetadataChecks;
pub use self::traits::{Admission, Allocate, Defaults, Delete, Grace, Prepare, Validate};
pub use self::writes::{Writes, WritesOf};
use crate::subresource::Subresource;
use crate::table::Table;

/// The behaviour of a kind.
///
/// Objects are in the version of the request, defaulted and pruned by the schema. The registry sets the metadata that
/// the server owns: uid, resource version, generation and timestamps.
#[derive(Clone, Copy)]
pub struct Kind {
    /// The part of the behaviour that needs no code.
    pub config: KindConfig,
    /// The defaults that the schema does not have.
    pub defaults: &'static dyn Defaults,
    /// The fields that a client may not set.
    pub prepare: &'static dyn Prepare,
    /// The values that are unique in the cluster, for a kind with such values.
    pub allocate: Option<&'static dyn Allocate>,
    /// The built-in admission plugins for the kind.
    pub admission: &'static dyn Admission,
    /// The rules for objects.
    pub validate: &'static dyn Validate,
    /// The deletion of objects.
    pub delete: &'static dyn Delete,
    /// Converts an object to a version. The caller sets `apiVersion`.
    pub convert: fn(&mut Value, version: &str),
    /// The columns of `kubectl get`.
    pub table: &'static Table,
}

/// A kind without code.
struct Plain;

impl Defaults for Plain {}
impl Prepare for Plain {}
impl Admission for Plain {}
impl Validate for Plain {}
impl Delete for Plain {}

impl Kind {
    /// The kind of custom resources.
    pub const CUSTOM: Self = Self::new(KindConfig::CUSTOM);

    /// Creates a kind that `config` describes completely.
    pub const fn new(config: KindConfig) -> Self {
        Self {
            config,
            defaults: &Plain,
            prepare: &Plain,
            allocate: None,
            admission: &Plain,
            validate: &Plain,
            delete: &Plain,
            convert: |_, _| {},
            table: &crate::table::PLAIN,
        }
    }

    /// Copies the parts that a write to `subresource` may not change from `old`.
    pub fn restrict(&self, subresource: &Subresource, object: &mut Value, old: &Value) {
        if let Some(writes) = self.config.writes(subresource)
            && self.prepare.is_restricted(subresource, object, old)
        {
            writes.restrict(object, old);
        }
    }

    /// Allocates the values of an object that are unique in the cluster. Does nothing for most kinds.
    ///
    /// # Errors
    /// No value is left, or the wanted value is taken.
    pub fn allocate(
        &self,
        cx: &WriteContext<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        self.allocate.map_or(Ok(()), |kind| kind.allocate(cx, object, old))
    }

    /// Returns the exclusive claims of an object. See [`Allocate::claims`].
    pub fn claims(&self, object: &Value) -> Vec<String> {
        self.allocate.map(|kind| kind.claims(object)).unwrap_or_default()
    }

    /// Returns the texts of `Warning` headers for a write.
    pub fn warnings(&self, cx: &WriteContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        let is_whole = cx.subresource.is_empty();
        let unsupported = is_whole.then(|| self.config.unsupported_warning()).flatten();
        unsupported.into_iter().chain(self.validate.warnings(cx, object, old)).collect()
    }
}
