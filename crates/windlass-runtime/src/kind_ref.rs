//! The argument of methods that take a kind.

use std::{fmt, marker::PhantomData};

use kube_core::{ApiResource, DynamicObject, Resource, metadata::PartialObjectMeta};

use crate::kind::{Kind, Object};

/// A kind, together with the type that its objects are read as. Methods that take a kind take a `KindRef`, or an [`ApiResource`].
///
/// | the kind | the argument | the objects |
/// |---|---|---|
/// | has a Rust type | [`kind::<Pod>()`](kind) | `Pod` |
/// | has a Rust type; only the metadata | [`kind::<PartialObjectMeta<Pod>>()`](kind) | `PartialObjectMeta<Pod>` |
/// | is known only at run time | `&resource`, an [`ApiResource`] | [`DynamicObject`] |
/// | is known only at run time; only the metadata | [`KindRef::dynamic(&resource)`](KindRef::dynamic)[`.metadata()`](KindRef::metadata) | `PartialObjectMeta<DynamicObject>` |
/// | is watched more than once | [`kind::<Pod>()`](kind)[`.named("failed")`](KindRef::named) | `Pod` |
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
/// use windlass_runtime::{Action, Context, Controller, KindRef, ObjectKey, Result, Watch, informer::CacheOptions, kind};
///
/// fn failed_pods() -> KindRef<Pod> {
///     kind::<Pod>().named("failed")
/// }
///
/// async fn reconcile(_: ObjectKey, cx: Context<ConfigMap>) -> Result<Action> {
///     let all = cx.lister::<Pod>()?.all()?;
///     let failed = cx.lister_of(failed_pods())?.all()?;
///     tracing::info!(all = all.len(), failed = failed.len());
///     Ok(Action::done())
/// }
///
/// let failed = CacheOptions::new().field_selector("status.phase=Failed");
/// let controller = Controller::of::<ConfigMap>(reconcile)
///     .owns::<Pod>()
///     .watch(Watch::owned(failed_pods()).options(failed));
/// # let _ = controller;
/// ```
#[must_use]
pub struct KindRef<K> {
    pub(crate) kind: Kind,
    pub(crate) metadata_only: bool,
    /// The name of the watch.
    pub(crate) name: Option<String>,
    object: PhantomData<fn() -> K>,
}

/// Returns the kind of a Rust type: of `k8s_openapi`, of `#[derive(CustomResource)]`, or a [`PartialObjectMeta`] of such a type.
pub fn kind<K>() -> KindRef<K>
where
    K: Object + Resource<DynamicType = ()>,
{
    KindRef::new(Kind::of::<K>(), K::metadata_api())
}

impl KindRef<DynamicObject> {
    /// Returns a kind that is known only at run time. `&resource` is an equal argument, without further options.
    pub fn dynamic(resource: &ApiResource) -> Self {
        Self::new(Kind::dynamic(resource.clone()), false)
    }
}

impl<K> KindRef<K> {
    fn new(kind: Kind, metadata_only: bool) -> Self {
        Self { kind, metadata_only, name: None, object: PhantomData }
    }

    /// Names the watch. A controller that watches one kind with several selectors names every watch but the
    /// first. The same argument declares the watch and reads the cache of the watch.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Marks a kind that is known only at run time as cluster-scoped. Without a mark, a controller that is limited to namespaces, and a watch
    /// of objects that the kind owns, ask the server, and wait until the server has the kind.
    pub fn cluster_scoped(mut self) -> Self {
        self.kind.namespaced = Some(false);
        self
    }

    /// Marks a kind that is known only at run time as namespaced. See [`cluster_scoped`](Self::cluster_scoped).
    pub fn namespaced(mut self) -> Self {
        self.kind.namespaced = Some(true);
        self
    }

    /// Limits the objects to the metadata: a watch receives and keeps only the metadata. A read finds the metadata in a watch of the
    /// metadata or in a watch of whole objects.
    pub fn metadata(self) -> KindRef<PartialObjectMeta<K>> {
        KindRef { metadata_only: true, ..self.read_as() }
    }

    /// Changes the type that objects are read as, for instance to a struct with the few fields that a reconciler needs.
    pub fn read_as<T>(self) -> KindRef<T> {
        KindRef { kind: self.kind, metadata_only: self.metadata_only, name: self.name, object: PhantomData }
    }

    /// Returns the resource of the kind.
    pub fn resource(&self) -> &ApiResource {
        &self.kind.resource
    }
}

impl<K> Clone for KindRef<K> {
    fn clone(&self) -> Self {
        let Self { kind, metadata_only, name, object } = self;
        Self { kind: kind.clone(), metadata_only: *metadata_only, name: name.clone(), object: *object }
    }
}

impl<K> fmt::Debug for KindRef<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KindRef")
            .field("resource", &self.kind.resource.plural)
            .field("metadata_only", &self.metadata_only)
            .field("name", &self.name)
            .finish()
    }
}

/// The arguments that name a kind: a [`KindRef`], or an [`ApiResource`] for a kind that is known only at run time.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name a kind",
    note = "pass `kind::<Pod>()` for a kind with a Rust type, or `&resource`, an `ApiResource`, for a kind known only at run time"
)]
pub trait IntoKind {
    /// The type that objects of the kind are read as.
    type Object;

    /// Converts the argument.
    fn into_kind(self) -> KindRef<Self::Object>;
}

impl<K> IntoKind for KindRef<K> {
    type Object = K;

    fn into_kind(self) -> KindRef<K> {
        self
    }
}

impl<K> IntoKind for &KindRef<K> {
    type Object = K;

    fn into_kind(self) -> KindRef<K> {
        self.clone()
    }
}

impl IntoKind for ApiResource {
    type Object = DynamicObject;

    fn into_kind(self) -> KindRef<DynamicObject> {
        KindRef::new(Kind::dynamic(self), false)
    }
}

impl IntoKind for &ApiResource {
    type Object = DynamicObject;

    fn into_kind(self) -> KindRef<DynamicObject> {
        KindRef::dynamic(self)
    }
}
