//! The differences between kinds: defaults, admission, preparation, validation, selectable fields, deletion.
//!
//! The registry treats all resources alike and calls a [`Strategy`] where kinds differ. [`Facts`] are the part of a
//! strategy that needs no code.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use windlass_schema::FieldError;

mod addresses;
mod admission_plugins;
mod checks;
mod facts;
mod fields;
mod metadata_checks;
mod place;
mod service_range;
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

pub use self::admission_plugins::AdmissionPlugin;
pub(crate) use self::admission_plugins::AdmissionPlugins;
pub(crate) use self::facts::{Facts, Generation};
pub(crate) use self::metadata_checks::MetadataChecks;
pub use self::service_range::{ServiceRange, ServiceRangeError};
pub(crate) use self::writes::Writes;
use crate::auth::{Authorizer, Identity};
use crate::env::Env;
use crate::meta;
use crate::store::{Derived, ResourceId, Store, View};
use crate::wire::ApiError;
use crate::wire::names::NameCheck;

/// The input of a strategy besides the object.
pub(crate) struct StrategyContext<'a> {
    /// The clock and the source of randomness.
    pub(crate) env: &'a Env,
    /// The state of the store when the write began.
    pub(crate) view: &'a View,
    /// State that is derived from other objects.
    pub(crate) lookups: &'a Lookups,
    /// The user of the request.
    pub(crate) identity: &'a Identity,
    /// Decides what users may do, by the roles in `store`.
    pub(crate) authorizer: &'a Authorizer,
    pub(crate) store: &'a Store,
    /// The name in the path of the request. Empty for a collection.
    pub(crate) name: &'a str,
    /// The API version of the request and the object, for example `v1`.
    pub(crate) version: &'a str,
    /// The admission plugins that run.
    pub(crate) plugins: AdmissionPlugins,
    /// True for a dry run.
    pub(crate) is_dry_run: bool,
    /// The range of the cluster addresses of services.
    pub(crate) service_range: ServiceRange,
    /// The subresource that is written. Empty for the object itself.
    pub(crate) subresource: &'a str,
}

/// State that strategies derive from other objects. The state is derived again only after a change.
pub(crate) struct Lookups {
    /// The PriorityClasses by name.
    pub(crate) priority_classes: Derived<BTreeMap<String, Value>>,
    /// The name of the IngressClass of ingresses that name none.
    pub(crate) default_ingress_class: Derived<Option<String>>,
    /// The name of the StorageClass of claims that name none.
    pub(crate) default_storage_class: Derived<Option<String>>,
}

impl Lookups {
    pub(crate) fn new() -> Self {
        let classes = ResourceId::new("scheduling.k8s.io", "priorityclasses");
        let ingress_classes = ResourceId::new("networking.k8s.io", "ingressclasses");
        let storage_classes = ResourceId::new("storage.k8s.io", "storageclasses");
        Self {
            priority_classes: Derived::new(classes, by_name),
            default_ingress_class: Derived::new(ingress_classes, default_class),
            default_storage_class: Derived::new(storage_classes, default_class),
        }
    }
}

/// Returns the name of the newest class that is marked as the default.
fn default_class(view: &View, resource: &ResourceId) -> Option<String> {
    const MARKS: [&str; 3] = [
        "ingressclass.kubernetes.io/is-default-class",
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ];
    let classes = view.range(resource, None).map(|(_, stored)| stored.value());
    let defaults = classes.filter(|class| {
        let annotations = class["metadata"].get("annotations");
        MARKS.iter().any(|mark| annotations.and_then(|all| all.get(mark)) == Some(&Value::from("true")))
    });
    let oldest_first = |class: &Value| {
        let created = meta::text(class, "creationTimestamp").to_owned();
        (created, Reverse(meta::name(class).to_owned()))
    };
    defaults.max_by_key(oldest_first).map(|class| meta::name(&class).to_owned())
}

fn by_name(view: &View, resource: &ResourceId) -> BTreeMap<String, Value> {
    view.range(resource, None).map(|(name, stored)| (name.to_string(), stored.value())).collect()
}

/// The grace period of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grace {
    /// The kind has no grace period: the object is deleted at once.
    Immediate,
    /// The object becomes terminating and is deleted by a second request with a grace period of zero.
    Seconds(i64),
}

/// The behaviour of a kind. Each method has a default without an effect, or a default that follows [`Facts`].
///
/// Objects are in the version of the request, defaulted and pruned by the schema. The registry sets the metadata that
/// the server owns: uid, resource version, generation and timestamps.
pub(crate) trait Strategy: Send + Sync {
    /// Returns the facts about the kind.
    fn facts(&self) -> &'static Facts {
        &Facts::CUSTOM
    }

    /// Returns the rule for names of objects.
    fn name_check(&self) -> NameCheck {
        self.facts().name
    }

    /// Validates an object. Runs at each write except of the status.
    fn validate(&self, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// Validates the change of an object from `old`. Runs at each update except of the status.
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

    /// Returns whether [`Strategy::allocate`] does anything.
    fn allocates(&self) -> bool {
        false
    }

    /// Allocates values that are unique in the cluster, such as addresses and ports. Runs after
    /// `prepare_create` and `prepare_update`, and again if another write took a claimed value.
    fn allocate(
        &self,
        _cx: &StrategyContext<'_>,
        _object: &mut Value,
        _old: Option<&Value>,
    ) -> Result<(), ApiError> {
        Ok(())
    }

    /// Returns the exclusive claims of the object within the resource, such as `ip/10.0.0.7`. If another
    /// object has a claim when the write is committed, the write begins again with `prepare_create` or
    /// `prepare_update`.
    fn claims(&self, _object: &Value) -> Vec<String> {
        Vec::new()
    }

    /// Returns the time after the last write at which an object is deleted. `None` keeps objects for ever.
    fn time_to_live(&self) -> Option<Duration> {
        self.facts().ttl
    }

    /// Sets what a client may not set in a new object, such as the status.
    fn prepare_create(&self, _cx: &StrategyContext<'_>, _object: &mut Value) -> Result<(), ApiError> {
        Ok(())
    }

    /// Validates a new object.
    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        self.validate(object)
    }

    /// Sets what a client may not set in an update of the object or of `cx.subresource`. Runs after `restrict`.
    fn prepare_update(
        &self,
        _cx: &StrategyContext<'_>,
        _object: &mut Value,
        _old: &Value,
    ) -> Result<(), ApiError> {
        Ok(())
    }

    /// Validates a write of the status.
    fn validate_status(&self, _object: &Value, _old: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// Validates an update.
    fn validate_update(&self, cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        if cx.subresource == "status" {
            return self.validate_status(object, old);
        }
        let mut errors = self.validate(object);
        errors.extend(self.validate_change(object, old));
        errors
    }

    /// Does what the validating admission plugins of kube-apiserver do for the kind: refuses a write of a valid object, or
    /// of `cx.subresource`, that the user may not make. `old` is `None` for a new object.
    fn review(
        &self,
        _cx: &StrategyContext<'_>,
        _object: &Value,
        _old: Option<&Value>,
    ) -> Result<(), ApiError> {
        Ok(())
    }

    /// Returns the texts of `Warning` headers for a write.
    fn warnings(&self, cx: &StrategyContext<'_>, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        if cx.subresource.is_empty() {
            self.facts().unenforced_warning().into_iter().collect()
        } else {
            Vec::new()
        }
    }

    /// Copies the parts that a write to `subresource` may not change from `old`. The empty name stands for
    /// the main resource.
    fn restrict(&self, subresource: &str, object: &mut Value, old: &Value) {
        if let Some(writes) = self.facts().writes(subresource) {
            writes.restrict(object, old);
        }
    }

    /// Returns the fields that the manager of a write to `subresource` does not own, including all fields
    /// below. Usually the fields that the write cannot change; some kinds differ, as in kube-apiserver.
    fn reset_fields(&self, subresource: &str) -> &'static [&'static str] {
        match self.facts().writes(subresource) {
            Some(Writes::AllBut(paths)) => paths,
            Some(Writes::Only(["status"])) => &["metadata", "spec"],
            Some(Writes::Only(_)) | None => &[],
        }
    }

    /// Returns whether an update of an absent object creates it.
    fn create_on_update(&self) -> bool {
        self.facts().create_on_update
    }

    /// Returns whether an update may omit the resource version.
    fn unconditional_update(&self) -> bool {
        self.facts().unconditional_update
    }

    /// Returns whether `metadata.generation` counts the change from `old`. Not called for writes of the
    /// status.
    fn generation_changes(&self, object: &Value, old: &Value) -> bool {
        self.facts().generation.changes(object, old)
    }

    /// Returns whether objects of the kind have a generation.
    fn has_generation(&self) -> bool {
        self.facts().generation != Generation::None
    }

    /// Converts an object to `version`. The caller sets `apiVersion`.
    fn convert(&self, _object: &mut Value, _version: &str) {}

    /// Completes an empty object for bookmarks, in Go's encoding of the internal type.
    fn complete_zero(&self, _object: &mut Value) {}

    /// Returns the fields that a field selector may use besides `metadata.name` and `metadata.namespace`.
    fn selectable_fields(&self) -> Vec<&'static str> {
        self.facts().selectable.iter().map(|(field, _)| *field).collect()
    }

    /// Returns the error for a selector by an unsupported field, if the kind has a text of its own.
    fn unsupported_field(&self, _field: &str) -> Option<String> {
        None
    }

    /// Returns the value of a selectable field, or an empty text.
    fn selectable_value(&self, object: &Value, field: &str) -> String {
        self.facts().selectable_value(object, field)
    }

    /// Returns the grace period of a deletion. `requested` is `gracePeriodSeconds` of the request.
    fn grace(&self, _cx: &StrategyContext<'_>, _object: &Value, _requested: Option<i64>) -> Grace {
        Grace::Immediate
    }

    /// Prepares an object for deletion, or refuses it. A namespace becomes `Terminating`.
    ///
    /// Returns whether the object must be kept, even without `metadata.finalizers`.
    fn prepare_delete(&self, _cx: &StrategyContext<'_>, _object: &mut Value) -> Result<bool, ApiError> {
        Ok(false)
    }

    /// Returns whether a terminating object without `metadata.finalizers` is deleted.
    fn may_go(&self, _object: &Value) -> bool {
        true
    }

    /// Returns whether a deletion without a propagation policy orphans the dependents of the object.
    fn orphans_by_default(&self) -> bool {
        self.facts().orphans_by_default
    }

    /// Returns the text of the `Warning` header for a deletion without a propagation policy.
    fn orphaning_warning(&self) -> Option<&'static str> {
        None
    }

    /// Returns whether the reply to a deletion is the deleted object instead of a `Status`.
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
