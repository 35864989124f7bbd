//! Declared rights: the reads and writes of an operator, as RBAC rules.
//!
//! A controller declares most rights with watches. The other rights, mostly writes, are
//! [declared](crate::Controller::needs) as [`Permission`]s.
//! [`Manager::permissions`](crate::Manager::permissions) merges all rights into the rules of a ClusterRole
//! and of Roles.
//!
//! ```
//! use k8s_openapi::api::{batch::v1::Job, core::v1::ConfigMap};
//! use windlass_runtime::{Action, Context, Controller, ObjectKey, Result, permission::{Permission, Verb}};
//!
//! async fn reconcile(_: ObjectKey, _: Context<ConfigMap>) -> Result<Action> { Ok(Action::done()) }
//!
//! let controller = Controller::of::<ConfigMap>(reconcile)
//!     .owns::<Job>()                                                    // list and watch both kinds
//!     .needs(Permission::to::<Job>([Verb::Create, Verb::Delete]));
//! # let _ = controller;
//! ```

mod access;
mod cluster_scoped;
mod forbidden;
mod permissions;
mod rules;
mod verb;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use kube_core::{ApiResource, Resource};

pub use self::{
    access::Access,
    forbidden::Forbidden,
    permissions::{Permissions, Right, RoleScope},
    verb::Verb,
};
use crate::{
    events::EventsApi,
    informer::CacheOptions,
    kind::{Kind, Object},
};

/// A right that an operator needs: verbs on a kind, a subresource, certain objects, or paths.
///
/// By default, a permission holds where the manager's caches look: in all namespaces, or in the namespaces of
/// [`Manager::namespaces`](crate::Manager::namespaces). Rights to cluster-scoped kinds hold in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    pub(crate) verbs: BTreeSet<Verb>,
    pub(crate) target: Target,
    pub(crate) scope: Scope,
    pub(crate) optional: bool,
    /// The further cluster of the manager in which the permission holds; `None` for the manager's own
    /// cluster.
    pub(crate) cluster: Option<String>,
}

/// The objects or paths that a permission is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Resource { group: String, resource: String, subresource: Option<String>, names: BTreeSet<String> },
    Url(String),
}

/// Where a permission holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// In the namespaces of the manager, or in all namespaces.
    Manager,
    Namespaces(Vec<String>),
    /// In the namespace that the operator runs in.
    Operator,
    Cluster,
}

impl Permission {
    /// Permits verbs on the kind `K`.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Secret;
    /// use windlass_runtime::permission::{Permission, Verb};
    ///
    /// let read_the_password = Permission::to::<Secret>([Verb::Get]).named("password").in_namespace("vault");
    /// # let _ = read_the_password;
    /// ```
    pub fn to<K>(verbs: impl IntoIterator<Item = Verb>) -> Self
    where
        K: Object + Resource<DynamicType = ()>,
    {
        let kind = Kind::of::<K>();
        let permission = Self::to_resource(&kind.resource, verbs);
        if kind.namespaced == Some(false) { permission.cluster_wide() } else { permission }
    }

    /// Works like [`to`](Self::to), for a kind that is known only at run time. If the kind is cluster-scoped,
    /// and neither a built-in kind nor a kind of the manager's CRDs, call
    /// [`cluster_wide`](Self::cluster_wide), too.
    pub fn to_resource(resource: &ApiResource, verbs: impl IntoIterator<Item = Verb>) -> Self {
        Self::to_plural(&resource.group, &resource.plural, verbs)
    }

    /// Works like [`to`](Self::to), for a resource without a Rust type, by the API group, empty for the core
    /// group, and the plural name. `*` stands for all groups or all resources. If the kind is cluster-scoped,
    /// call [`cluster_wide`](Self::cluster_wide), too.
    ///
    /// ```
    /// use windlass_runtime::permission::{Permission, Verb};
    ///
    /// let use_privileged =
    ///     Permission::to_plural("security.openshift.io", "securitycontextconstraints", [Verb::Use]).named("privileged").cluster_wide();
    /// # let _ = use_privileged;
    /// ```
    pub fn to_plural(group: &str, resource: &str, verbs: impl IntoIterator<Item = Verb>) -> Self {
        Self {
            verbs: verbs.into_iter().collect(),
            target: Target::Resource {
                group: group.to_owned(),
                resource: resource.to_owned(),
                subresource: None,
                names: BTreeSet::new(),
            },
            scope: Scope::Manager,
            optional: false,
            cluster: None,
        }
    }

    /// Permits verbs on a path without a resource, such as `/metrics`. A `*` at the end stands for all paths
    /// with this prefix.
    pub fn to_url(path: impl Into<String>, verbs: impl IntoIterator<Item = Verb>) -> Self {
        Self {
            verbs: verbs.into_iter().collect(),
            target: Target::Url(path.into()),
            scope: Scope::Cluster,
            optional: false,
            cluster: None,
        }
    }

    /// Permits to write the status of objects of kind `K`: `patch` on the subresource `status`, the request
    /// of [`Context::update_status`](crate::Context::update_status) and of server-side apply.
    pub fn status_of<K>() -> Self
    where
        K: Object + Resource<DynamicType = ()>,
    {
        Self::to::<K>([Verb::Patch]).subresource("status")
    }

    /// Permits to add and remove finalizers of objects of kind `K`: `patch` on the object, the request of
    /// [`finalizer::guard`](crate::finalizer::guard).
    pub fn finalizers_of<K>() -> Self
    where
        K: Object + Resource<DynamicType = ()>,
    {
        Self::to::<K>([Verb::Patch])
    }

    /// Permits to own objects by objects of kind `K` on clusters that run the admission plugin
    /// `OwnerReferencesPermissionEnforcement`, such as OpenShift: `update` on the subresource `finalizers`.
    /// No request needs the right by itself, and the right is therefore [optional](Self::optional).
    pub fn owner<K>() -> Self
    where
        K: Object + Resource<DynamicType = ()>,
    {
        Self::to::<K>([Verb::Update]).subresource("finalizers").optional()
    }

    /// Limits the permission to a subresource: `status`, `scale`, `log`. Has no effect on a path.
    pub fn subresource(mut self, name: impl Into<String>) -> Self {
        if let Target::Resource { subresource, .. } = &mut self.target {
            *subresource = Some(name.into());
        }
        self
    }

    /// Limits the permission to objects of this name; several calls add names. Has no effect on a path.
    ///
    /// RBAC does not know the name of an object that is created, nor the names in a list without a field selector: such requests are
    /// not permitted by a permission with names.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        if let Target::Resource { names, .. } = &mut self.target {
            names.insert(name.into());
        }
        self
    }

    /// Limits the permission to a namespace.
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.scope = Scope::Namespaces(vec![namespace.into()]);
        self
    }

    /// Limits the permission to the operator's own namespace.
    pub fn in_operator_namespace(mut self) -> Self {
        self.scope = Scope::Operator;
        self
    }

    /// Extends the permission to all namespaces and to cluster-scoped objects, regardless of the manager's
    /// namespaces.
    pub fn cluster_wide(mut self) -> Self {
        self.scope = Scope::Cluster;
        self
    }

    /// Moves the permission to a further [`Cluster`](crate::manager::Cluster) of the manager;
    /// [`Manager::permissions_in`](crate::Manager::permissions_in) returns the permission.
    pub fn in_cluster(mut self, name: impl Into<String>) -> Self {
        self.cluster = Some(name.into());
        self
    }

    /// Marks the permission as needed only sometimes: a test does not report the permission as unused.
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Returns the rights of a watch: `list` and `watch`. A server that streams lists is not asked to `list`.
    pub(crate) fn of_watch(kind: &Kind, options: &CacheOptions) -> [Self; 2] {
        [Self::of_watched(kind, options, Verb::List).optional(), Self::of_watched(kind, options, Verb::Watch)]
    }

    fn of_watched(kind: &Kind, options: &CacheOptions, verb: Verb) -> Self {
        let mut permission = Self::to_resource(&kind.resource, [verb]);
        if kind.namespaced == Some(false) {
            permission.scope = Scope::Cluster;
        } else if !options.namespaces.is_empty() {
            permission.scope = Scope::Namespaces(options.namespaces.clone());
        }
        permission
    }

    /// Returns the rights of the event recorder.
    pub(crate) fn of_events(api: EventsApi) -> Self {
        let group = match api {
            EventsApi::CoreV1 => "",
            EventsApi::EventsV1 => "events.k8s.io",
        };
        Self::to_plural(group, "events", [Verb::Create, Verb::Patch]).optional()
    }

    /// Returns whether the permission may include cluster-scoped objects.
    pub(crate) fn is_cluster_wide(&self) -> bool {
        self.scope == Scope::Cluster && matches!(self.target, Target::Resource { .. })
    }

    /// Returns the namespaces that the permission names.
    pub(crate) fn own_namespaces(&self) -> &[String] {
        match &self.scope {
            Scope::Namespaces(namespaces) => namespaces,
            _ => &[],
        }
    }
}
