//! The kind of a Rust type, for reads and writes of objects.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_core::{ApiResource, DynamicObject, Resource, ResourceExt, TypeMeta, metadata::PartialObjectMeta};
use serde::de::DeserializeOwned;
use windlass_cache::ObjectKey;

/// A type of objects that a [`Context`](crate::Context) reads and writes: every kind of `k8s-openapi`, every
/// `#[derive(CustomResource)]`, and [`DynamicObject`] for a kind that is known only at run time.
///
/// No implementation is needed: each [`Resource`] with `DynamicType = ()` is an `Object`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kind of Kubernetes objects",
    note = "derive `CustomResource`, use a type of `k8s_openapi`, or `DynamicObject` for a kind known only at run time",
    note = "of an `Arc<K>`, pass the object: `&*object`"
)]
pub trait Object: Resource + DeserializeOwned + Send + Sync + 'static {
    /// Returns the kind of all objects of this type; `None` if each object names a kind.
    #[doc(hidden)]
    fn static_kind() -> Option<Kind>;

    /// Returns the API version and kind that this object names.
    #[doc(hidden)]
    fn type_meta(&self) -> Option<TypeMeta>;
}

/// An object, or an `Arc` of an object, as [`Context::get`](crate::Context::get) returns.
///
/// The compiler infers `Form`, which distinguishes the two cases.
///
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use windlass_runtime::{Context, ObjectKey, ObjectKeyExt, Result, owner::Owned};
///
/// async fn replace(cx: &Context<ConfigMap>, config: Arc<ConfigMap>, old: Arc<Secret>) -> Result<()> {
///     cx.delete(&old).await?;
///     let mut secret = Secret::default();
///     secret.metadata.generate_name = Some("password-".to_owned());
///     secret.metadata.namespace = config.metadata.namespace.clone();
///     cx.create(secret.controlled_by(&config)?).await?;
///     cx.recorder().normal(&config, "Replaced", "made a new password");
///     tracing::info!(key = %ObjectKey::of(&config), "replaced");
///     Ok(())
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kind of Kubernetes objects, or an `Arc` of one",
    note = "derive `CustomResource`, use a type of `k8s_openapi`, or `DynamicObject` for a kind known only at run time"
)]
pub trait AsObject<Form> {
    /// The type of the object.
    type Object: Resource + 'static;

    /// Returns the object.
    fn as_object(&self) -> &Self::Object;
}

/// The form of an object that is passed without an `Arc`. See [`AsObject`].
#[doc(hidden)]
#[derive(Debug)]
pub enum Plain {}

/// The form of an object that is passed in an `Arc`. See [`AsObject`].
#[doc(hidden)]
#[derive(Debug)]
pub enum Shared {}

impl<K: Resource + 'static> AsObject<Plain> for K {
    type Object = K;

    fn as_object(&self) -> &K {
        self
    }
}

impl<K: Resource + 'static> AsObject<Shared> for Arc<K> {
    type Object = K;

    fn as_object(&self) -> &K {
        self
    }
}

/// A kind, with the scope.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Kind {
    #[doc(hidden)]
    pub resource: ApiResource,
    /// `None`: not known before discovery is asked.
    pub(crate) namespaced: Option<bool>,
}

impl<K> Object for K
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: DynamicTypeOf<K>,
{
    fn static_kind() -> Option<Kind> {
        K::DynamicType::static_kind()
    }

    fn type_meta(&self) -> Option<TypeMeta> {
        K::DynamicType::type_meta(self)
    }
}

/// The source of the kind of an object: `()` for a kind with a Rust type, [`ApiResource`] for an object that names a kind.
#[doc(hidden)]
pub trait DynamicTypeOf<K> {
    /// Returns the kind of all objects of the type.
    fn static_kind() -> Option<Kind>;

    /// Returns the API version and kind that an object names.
    fn type_meta(object: &K) -> Option<TypeMeta>;
}

impl<K: Resource<DynamicType = ()> + 'static> DynamicTypeOf<K> for () {
    fn static_kind() -> Option<Kind> {
        Some(Kind::of::<K>())
    }

    fn type_meta(_: &K) -> Option<TypeMeta> {
        Some(TypeMeta { api_version: K::api_version(&()).into_owned(), kind: K::kind(&()).into_owned() })
    }
}

impl DynamicTypeOf<DynamicObject> for ApiResource {
    fn static_kind() -> Option<Kind> {
        None
    }

    fn type_meta(object: &DynamicObject) -> Option<TypeMeta> {
        object.types.clone()
    }
}

impl DynamicTypeOf<PartialObjectMeta<DynamicObject>> for ApiResource {
    fn static_kind() -> Option<Kind> {
        None
    }

    // A cache and an `ApiReader` replace the kind `PartialObjectMetadata`, which a server writes.
    fn type_meta(object: &PartialObjectMeta<DynamicObject>) -> Option<TypeMeta> {
        object.types.clone().filter(|types| types.kind != "PartialObjectMetadata")
    }
}

impl Kind {
    /// Returns the kind of a typed object.
    pub(crate) fn of<K: Resource<DynamicType = ()> + 'static>() -> Self {
        Self { resource: ApiResource::erase::<K>(&()), namespaced: Some(is_namespaced::<K>()) }
    }

    /// Returns a kind that is known only at run time.
    pub(crate) fn dynamic(resource: ApiResource) -> Self {
        Self { resource, namespaced: None }
    }
}

/// Returns whether objects of a type are in namespaces.
fn is_namespaced<K: Resource + 'static>() -> bool {
    std::any::TypeId::of::<K::Scope>() == std::any::TypeId::of::<k8s_openapi::NamespaceResourceScope>()
}

/// Returns the owner reference to an object for dependents; `None` if the object has no uid, or is dynamic and names no kind.
pub(crate) fn owner_reference<K: Object>(owner: &K) -> Option<OwnerReference> {
    let TypeMeta { api_version, kind } = owner.type_meta()?;
    Some(OwnerReference {
        api_version,
        kind,
        name: owner.name_any(),
        uid: owner.uid()?,
        ..Default::default()
    })
}

/// Makes the key of an object: `ObjectKey::of(&object)`.
pub trait ObjectKeyExt {
    /// Returns the key of an object, from the namespace and the name. An object without a name has a key with an empty name.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use windlass_runtime::{ObjectKey, ObjectKeyExt};
    ///
    /// let mut config = ConfigMap::default();
    /// config.metadata.namespace = Some("default".to_owned());
    /// config.metadata.name = Some("web".to_owned());
    /// assert_eq!(ObjectKey::of(&config).to_string(), "default/web");
    /// ```
    fn of<Form>(object: &impl AsObject<Form>) -> Self;
}

impl ObjectKeyExt for ObjectKey {
    fn of<Form>(object: &impl AsObject<Form>) -> Self {
        let meta = object.as_object().meta();
        Self::new(meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default())
    }
}
