//! Where an object is, for requests and messages.

use std::sync::Arc;

use http::Method;
use kube_core::{ApiResource, ObjectMeta, TypeMeta};
use serde::Serialize;
use windlass_cache::ObjectKey;

use super::{Context, known_kinds::KnownKind};
use crate::{
    client::Call,
    error::{Error, Result},
    kind::{Kind, Object},
    reader::Reader,
};

/// Where an object is, for requests and messages.
pub(crate) struct Target {
    kind: Arc<KnownKind>,
    pub(crate) name: String,
    namespace: Option<String>,
}

impl Target {
    pub(crate) fn new(kind: Arc<KnownKind>, namespace: Option<&str>, name: &str) -> Self {
        let namespace = namespace.filter(|_| kind.namespaced != Some(false));
        Self { name: name.to_owned(), namespace: namespace.map(str::to_owned), kind }
    }

    /// The target of an object of a kind that no Rust type names.
    pub(crate) fn of_kind(kind: Kind, namespace: Option<&str>, name: &str) -> Self {
        Self::new(Arc::new(KnownKind::new(kind)), namespace, name)
    }

    pub(crate) fn resource(&self) -> &ApiResource {
        &self.kind.resource
    }

    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace.as_deref(), &self.name)
    }

    /// The path of the object's collection, with a query.
    pub(crate) fn collection(&self, query: &[&str]) -> Result<String> {
        self.path_of("", "", query)
    }

    /// The path of the object or of a subresource, with a query.
    pub(crate) fn path(&self, subresource: &str, query: &[&str]) -> Result<String> {
        if self.name.is_empty() {
            return Err(Error::setup(format!("{self}: metadata.name is not set")));
        }
        self.path_of(&self.name, subresource, query)
    }

    fn path_of(&self, name: &str, subresource: &str, query: &[&str]) -> Result<String> {
        if self.kind.namespaced == Some(true) && self.namespace.is_none() {
            return Err(Error::setup(format!("{self}: metadata.namespace is not set")));
        }
        let path = self.kind.path(self.namespace.as_deref(), name, subresource, query);
        path.map_err(|invalid| Error::from(invalid).while_doing(self))
    }

    /// Refuses to replace the object by the metadata of an object, which would remove all other fields.
    pub(crate) fn check_is_whole<C: Object>(&self) -> Result<()> {
        if !C::metadata_api() {
            return Ok(());
        }
        Err(Error::setup(format!(
            "{self}: a `PartialObjectMeta` has only the metadata, and an update would remove all other fields; use `patch` or `apply`"
        )))
    }

    /// Returns a patch of the object or of a subresource.
    pub(crate) fn patch(
        &self,
        subresource: &str,
        query: &[&str],
        content_type: &'static str,
        patch: &impl Serialize,
    ) -> Result<Call> {
        Call::write(Method::PATCH, self.path(subresource, query)?, content_type, patch)
    }
}

/// Returns the object's name, or the prefix of a name that the server completes.
fn name_of(meta: &ObjectMeta) -> &str {
    meta.name.as_deref().or(meta.generate_name.as_deref()).unwrap_or_default()
}

fn dynamic(resource: &ApiResource) -> Arc<KnownKind> {
    Arc::new(KnownKind::new(Kind::dynamic(resource.clone())))
}

impl<K> Context<K> {
    /// Returns the target of an object. A dynamic object must name its kind, and the controller must know the
    /// kind.
    pub(crate) fn target<C: Object>(&self, object: &C) -> Result<Target> {
        self.target_of_types::<C>(|| object.type_meta(), object.meta())
    }

    /// The target of an object of kind `C` with this metadata. `types` returns the types that a dynamic object names.
    pub(crate) fn target_of_types<C: Object>(
        &self,
        types: impl FnOnce() -> Option<TypeMeta>,
        meta: &ObjectMeta,
    ) -> Result<Target> {
        let name = name_of(meta);
        let kind = match self.shared.kinds.of::<C>() {
            Some(kind) => kind,
            None => self.dynamic_kind(types(), name)?,
        };
        Ok(Target::new(kind, meta.namespace.as_deref(), name))
    }

    /// Returns the target of the object of kind `C` under a key.
    pub(crate) fn target_of_key<C: Object>(&self, key: &ObjectKey) -> Result<Target> {
        let primary = || Some(dynamic(self.shared.primary.as_ref()?));
        let kind = self.shared.kinds.of::<C>().or_else(primary);
        let kind = kind.ok_or_else(|| {
            Error::setup(format!(
                "{key}: a `DynamicObject` may be of any kind, and the controller has none of its own"
            ))
        })?;
        Ok(Target::new(kind, key.namespace(), key.name()))
    }

    fn dynamic_kind(&self, types: Option<TypeMeta>, name: &str) -> Result<Arc<KnownKind>> {
        let types = types.ok_or_else(|| {
            Error::setup(format!(
                "{name}: has no apiVersion and kind; make it with `DynamicObject::new(name, &resource)`"
            ))
        })?;
        let shared = &self.shared;
        let is_primary =
            |primary: &&ApiResource| primary.api_version == types.api_version && primary.kind == types.kind;
        let declared = || shared.caches.resource_of_kind(&types.api_version, &types.kind);
        let resource = shared.primary.as_ref().filter(is_primary).cloned().or_else(declared);
        let resource = resource.ok_or_else(|| {
            let reader = Reader::Controller(shared.controller.clone());
            shared.caches.undeclared(Error::not_declared(reader, types.kind.as_str()))
        })?;
        Ok(dynamic(&resource))
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind.resource.kind, self.name),
            None => write!(f, "{} {}", self.kind.resource.kind, self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    /// A name may come from a field that a stranger wrote.
    #[test]
    fn a_name_reaches_no_other_object_and_no_subresource() {
        let path = |namespace: &str, name: &str| {
            let kind = Kind { namespaced: Some(true), resource: ApiResource::erase::<ConfigMap>(&()) };
            Target::of_kind(kind, Some(namespace), name).path("", &["fieldManager=m"])
        };
        assert_eq!(
            path("a", "system:b.c").expect("a path"),
            "/api/v1/namespaces/a/configmaps/system:b.c?fieldManager=m"
        );
        assert_eq!(
            path("a", "b?dryRun=All#c d").expect("a path"),
            "/api/v1/namespaces/a/configmaps/b%3FdryRun=All%23c%20d?fieldManager=m"
        );
        for name in ["b/status", "..", ".", "../../b", "b%2fc"] {
            let error = path("a", name).expect_err(name).to_string();
            assert_eq!(
                error,
                format!(
                    "ConfigMap a/{name}: {name:?} cannot be a name: a name is not empty, `.` or `..`, and has no `/` or `%`"
                )
            );
        }
        path("a/secrets", "b").expect_err("a namespace is a name");
    }
}
