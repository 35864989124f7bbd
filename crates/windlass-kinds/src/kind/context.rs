//! The input of a kind besides the object.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::Value;
use windlass_store::{Authorizer, Derived, Env, Identity, ResourceId, Store, View, object_meta as meta};

use crate::admission_plugins::AdmissionPlugins;
use crate::service_range::ServiceClusterIpRange;
use crate::subresource::Subresource;

/// The input of a kind besides the object.
pub struct WriteContext<'a> {
    /// The clock and the source of randomness.
    pub env: &'a Env,
    /// The state of the store when the write began.
    pub view: &'a View,
    /// State that is derived from other objects.
    pub lookups: &'a Lookups,
    /// The user of the request.
    pub identity: &'a Identity,
    /// Decides what users may do, by the roles in `store`.
    pub authorizer: &'a Authorizer,
    /// The store, for the authoriser.
    pub store: &'a Store,
    /// The verb of the request, such as `update`.
    pub verb: &'a str,
    /// The name in the path of the request. Empty for a collection.
    pub name: &'a str,
    /// The API version of the request and the object, for example `v1`.
    pub version: &'a str,
    /// The admission plugins that run.
    pub plugins: AdmissionPlugins,
    /// True for a dry run.
    pub is_dry_run: bool,
    /// The range of the cluster addresses of services.
    pub service_range: ServiceClusterIpRange,
    /// The subresource that is written.
    pub subresource: &'a Subresource,
}

/// State that kinds derive from other objects. The state is derived again only after a change.
pub struct Lookups {
    /// The PriorityClasses by name.
    pub(crate) priority_classes: Derived<BTreeMap<String, Value>>,
    /// The name of the IngressClass of ingresses that name none.
    pub(crate) default_ingress_class: Derived<Option<String>>,
    /// The name of the StorageClass of claims that name none.
    pub(crate) default_storage_class: Derived<Option<String>>,
}

impl Default for Lookups {
    fn default() -> Self {
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
