//! What differs from kind to kind: preparation before a write, validation, selectable fields, deletion.
//!
//! The registry treats every resource alike and asks a [`Strategy`] at the few points where kinds differ. A kind
//! without a strategy of its own is described by its [`Facts`].

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use windlass_schema::FieldError;

mod checks;
mod facts;
mod fields;
mod writes;

mod admissionregistration;
mod apiextensions;
mod apiregistration;
mod apps;
mod autoscaling;
mod batch;
mod certificates;
mod coordination;
mod core;
mod discovery;
mod flowcontrol;
mod networking;
mod node;
mod policy;
mod rbac;
mod resource;
mod scheduling;
mod storage;

pub(crate) use self::facts::{Facts, Generation};
pub(crate) use self::writes::Writes;
use crate::env::Env;
use crate::store::{Derived, ResourceId, View};
use crate::wire::ApiError;
use crate::wire::names::NameCheck;

/// What a strategy may look at besides the object itself.
pub(crate) struct StrategyContext<'a> {
    /// Clock and randomness.
    pub(crate) env: &'a Env,
    /// The state of the store when the request is handled: other objects, for look-ups.
    pub(crate) view: &'a View,
    /// What is looked up at every write.
    pub(crate) lookups: &'a Lookups,
    /// The name of the user who asks.
    pub(crate) user: &'a str,
    /// The API version the request is made in, for example `v1`: the object is in this version.
    pub(crate) version: &'a str,
    /// The subresource written, or the empty string for the object itself.
    pub(crate) subresource: &'a str,
}

/// What strategies look up in other objects at every write, kept up to date with them.
pub(crate) struct Lookups {
    /// The PriorityClasses, by name.
    pub(crate) priority_classes: Derived<BTreeMap<String, Value>>,
}

impl Lookups {
    pub(crate) fn new() -> Self {
        let classes = ResourceId::new("scheduling.k8s.io", "priorityclasses");
        Self { priority_classes: Derived::new(classes, by_name) }
    }
}

fn by_name(view: &View, resource: &ResourceId) -> BTreeMap<String, Value> {
    view.range(resource, None).map(|(name, stored)| (name.to_string(), stored.value())).collect()
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
    /// What can be said about the kind without code.
    fn facts(&self) -> &'static Facts {
        &Facts::CUSTOM
    }

    /// The rule for names of objects.
    fn name_check(&self) -> NameCheck {
        self.facts().name
    }

    /// What is wrong with an object by itself, asked for each write but those of the status.
    fn validate(&self, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// What of an object may not change from `old`, asked for each write over another but those of the status.
    fn validate_change(&self, _object: &Value, _old: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// Sets the defaults that the catalog does not know. Runs whenever an object is decoded, before admission.
    fn default(&self, _object: &mut Value) {}

    /// Does what the admission plugins of kube-apiserver do for the kind. Runs before an object is created (`old` is
    /// `None`) and before an update of the main resource.
    fn admit(
        &self,
        _cx: &StrategyContext<'_>,
        _object: &mut Value,
        _old: Option<&Value>,
    ) -> Result<(), ApiError> {
        Ok(())
    }

    /// Whether [`Strategy::allocate`] does anything.
    fn allocates(&self) -> bool {
        false
    }

    /// Gives out what is unique in the cluster, such as addresses and ports. Runs after `prepare_create` and
    /// `prepare_update`, and again if another write took what this object claims.
    fn allocate(
        &self,
        _cx: &StrategyContext<'_>,
        _object: &mut Value,
        _old: Option<&Value>,
    ) -> Result<(), ApiError> {
        Ok(())
    }

    /// What an object claims for itself alone within its resource, such as `ip/10.0.0.7`: the store refuses a second
    /// claimant, and the write begins again with `prepare_create` or `prepare_update`.
    fn claims(&self, _object: &Value) -> Vec<String> {
        Vec::new()
    }

    /// How long after its last write an object is removed; `None`: it stays.
    fn time_to_live(&self) -> Option<Duration> {
        self.facts().ttl
    }

    /// Completes an object that is created: defaults beyond the schema, allocated values, a cleared status.
    fn prepare_create(&self, _cx: &StrategyContext<'_>, _object: &mut Value) -> Result<(), ApiError> {
        Ok(())
    }

    /// Refuses an object that is created, with all that is wrong with it.
    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        self.validate(object)
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
    fn validate_update(&self, cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        if cx.subresource == "status" {
            return Vec::new();
        }
        let mut errors = self.validate(object);
        errors.extend(self.validate_change(object, old));
        errors
    }

    /// Returns the texts of `Warning` headers for a write.
    fn warnings(&self, cx: &StrategyContext<'_>, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        if cx.subresource.is_empty() {
            self.facts().unenforced_warning().into_iter().collect()
        } else {
            Vec::new()
        }
    }

    /// Takes from `old` what a write to `subresource` may not change. The empty name stands for the object itself.
    fn restrict(&self, subresource: &str, object: &mut Value, old: &Value) {
        if let Some(writes) = self.facts().writes(subresource) {
            writes.restrict(object, old);
        }
    }

    /// Whether a PUT to an absent name creates.
    fn create_on_update(&self) -> bool {
        self.facts().create_on_update
    }

    /// Whether an update may come without a resourceVersion.
    fn unconditional_update(&self) -> bool {
        self.facts().unconditional_update
    }

    /// Whether two versions of the object differ in what `metadata.generation` counts. Asked only on writes to the
    /// main resource.
    fn generation_changes(&self, object: &Value, old: &Value) -> bool {
        self.facts().generation.changes(object, old)
    }

    /// Whether objects of the kind carry a generation at all.
    fn has_generation(&self) -> bool {
        self.facts().generation != Generation::None
    }

    /// Turns an object of another version of the kind into one of `version`; its apiVersion is set by the caller.
    fn convert(&self, _object: &mut Value, _version: &str) {}

    /// Names of the fields that a field selector may use besides `metadata.name` and `metadata.namespace`.
    fn selectable_fields(&self) -> Vec<&'static str> {
        self.facts().selectable.iter().map(|(field, _)| *field).collect()
    }

    /// The value of a selectable field, the empty string where it is absent.
    fn selectable_value(&self, object: &Value, field: &str) -> String {
        self.facts().selectable_value(object, field)
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
        self.facts().returns_deleted_object
    }
}

/// The strategy of custom resources.
pub(crate) struct CustomResources;

impl Strategy for CustomResources {}

/// The strategy of a built-in kind that [`Facts`] describe completely.
struct FactsOnly(&'static Facts);

impl Strategy for FactsOnly {
    fn facts(&self) -> &'static Facts {
        self.0
    }
}

/// Returns the strategy of a built-in resource.
pub(crate) fn of(group: &str, resource: &str) -> &'static dyn Strategy {
    match group {
        "" => core::of(resource),
        "admissionregistration.k8s.io" => admissionregistration::of(resource),
        "apiextensions.k8s.io" => apiextensions::of(resource),
        "apiregistration.k8s.io" => apiregistration::of(resource),
        "apps" => apps::of(resource),
        "autoscaling" => autoscaling::of(resource),
        "batch" => batch::of(resource),
        "certificates.k8s.io" => certificates::of(resource),
        "coordination.k8s.io" => coordination::of(resource),
        "discovery.k8s.io" => discovery::of(resource),
        "events.k8s.io" => core::event_of(group),
        "flowcontrol.apiserver.k8s.io" => flowcontrol::of(resource),
        "networking.k8s.io" => networking::of(resource),
        "node.k8s.io" => node::of(resource),
        "policy" => policy::of(resource),
        "rbac.authorization.k8s.io" => rbac::of(resource),
        "resource.k8s.io" => resource::of(resource),
        "scheduling.k8s.io" => scheduling::of(resource),
        "storage.k8s.io" => storage::of(resource),
        _ => &FactsOnly(&Facts::SPEC),
    }
}

#[cfg(test)]
mod tests;
