//! What differs from kind to kind: preparation before a write, validation, selectable fields, deletion.
//!
//! The registry treats every resource alike and asks a [`Strategy`] at the few points where kinds differ. A kind
//! without a strategy of its own behaves as [`Generic`] says.

use serde_json::Value;
use windlass_schema::FieldError;

use crate::env::Env;
use crate::store::View;
use crate::wire::ApiError;
use crate::wire::names::{self, NameCheck};

/// What a strategy may look at besides the object itself.
pub(crate) struct StrategyContext<'a> {
    /// Clock and randomness.
    pub(crate) env: &'a Env,
    /// The state of the store when the request is handled: other objects, for look-ups.
    pub(crate) view: &'a View,
    /// The name of the user who asks.
    pub(crate) user: &'a str,
    /// The API version the request is made in, for example `v1`: the object is in this version.
    pub(crate) version: &'a str,
    /// The subresource written, or the empty string for the object itself.
    pub(crate) subresource: &'a str,
}

/// How a deletion that nothing else holds back proceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grace {
    /// The object goes at once.
    Immediate,
    /// The object is marked and stays for so many seconds, until somebody deletes it with zero.
    Seconds(i64),
}

/// How a kind differs from the generic one. All methods have defaults.
///
/// Objects come in the version of the request, defaulted and pruned by the schema. Metadata that the server owns
/// (uid, resourceVersion, generation, timestamps) is handled before and after, not here.
pub(crate) trait Strategy: Send + Sync {
    /// Completes an object that is created: defaults beyond the schema, allocated values, a cleared status.
    fn prepare_create(&self, _cx: &StrategyContext<'_>, _object: &mut Value) -> Result<(), ApiError> {
        Ok(())
    }

    /// Refuses an object that is created, with all that is wrong with it.
    fn validate_create(&self, _cx: &StrategyContext<'_>, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// Completes an object that is written over another, by the main resource or by `cx.subresource`.
    ///
    /// Called after the registry has applied the rule of the subresource (`/status` writes touch only the status,
    /// others never the status).
    fn prepare_update(
        &self,
        _cx: &StrategyContext<'_>,
        _object: &mut Value,
        _old: &Value,
    ) -> Result<(), ApiError> {
        Ok(())
    }

    /// Refuses an object that is written over another, with all that is wrong with it.
    fn validate_update(&self, _cx: &StrategyContext<'_>, _object: &Value, _old: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// Sentences for `Warning` headers.
    fn warnings(&self, _cx: &StrategyContext<'_>, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    /// For a write to `/status`: whether labels, annotations and finalizers may change along with it.
    fn status_writes_metadata(&self) -> bool {
        false
    }

    /// Whether a PUT to an absent name creates.
    fn create_on_update(&self) -> bool {
        false
    }

    /// Whether an update may come without a resourceVersion.
    fn unconditional_update(&self) -> bool {
        true
    }

    /// Whether two versions of the object differ in what `metadata.generation` counts. Asked only on writes to the
    /// main resource.
    fn generation_changes(&self, object: &Value, old: &Value) -> bool {
        object.get("spec") != old.get("spec")
    }

    /// Whether objects of the kind carry a generation at all.
    fn has_generation(&self) -> bool {
        true
    }

    /// What names are well-formed.
    fn name_check(&self) -> NameCheck {
        names::subdomain_name
    }

    /// Turns an object of another version of the kind into one of `version`; its apiVersion is set by the caller.
    fn convert(&self, _object: &mut Value, _version: &str) {}

    /// Names of the fields that a field selector may use besides `metadata.name` and `metadata.namespace`.
    fn selectable_fields(&self) -> &[&str] {
        &[]
    }

    /// The value of a selectable field, the empty string where it is absent.
    fn selectable_value(&self, _object: &Value, _field: &str) -> String {
        String::new()
    }

    /// How long a deletion takes; `requested` is `gracePeriodSeconds` of the request.
    fn grace(&self, _cx: &StrategyContext<'_>, _object: &Value, _requested: Option<i64>) -> Grace {
        Grace::Immediate
    }

    /// Refuses a deletion, or marks the object first (a namespace goes Terminating).
    ///
    /// Returns whether the object must stay after it has been marked, whatever its metadata.finalizers say.
    fn prepare_delete(&self, _cx: &StrategyContext<'_>, _object: &mut Value) -> Result<bool, ApiError> {
        Ok(false)
    }

    /// Whether nothing but `metadata.finalizers` can hold an object that is being deleted.
    fn may_go(&self, _object: &Value) -> bool {
        true
    }

    /// Whether a deletion answers with the deleted object instead of a `Status`.
    fn returns_deleted_object(&self) -> bool {
        false
    }
}

/// The strategy of kinds without one of their own.
pub(crate) struct Generic;

impl Strategy for Generic {}

/// The strategy of a built-in resource.
pub(crate) fn of(group: &str, resource: &str) -> &'static dyn Strategy {
    match (group, resource) {
        ("apiextensions.k8s.io", "customresourcedefinitions") => &crate::crd::Definition,
        _ => &Generic,
    }
}
