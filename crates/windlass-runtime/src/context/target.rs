//! Where an object is, for requests and messages.

use kube_core::{ApiResource, ObjectMeta, TypeMeta};
use windlass_cache::ObjectKey;

use super::Context;
use crate::{
    client::path::collection_path,
    error::{Error, Result},
    kind::{Kind, Object},
    reader::Reader,
};

/// Where an object is, for requests and messages.
pub(crate) struct Target {
    pub(crate) resource: ApiResource,
    pub(crate) name: String,
    namespace: Option<String>,
    collection: String,
    namespace_missing: bool,
}

impl Target {
    pub(crate) fn new(kind: &Kind, namespace: Option<&str>, name: &str) -> Self {
        let Kind { resource, namespaced } = kind;
        let namespace = namespace.filter(|_| *namespaced != Some(false));
        Self {
            name: name.to_owned(),
            collection: collection_path(resource, namespace),
            resource: resource.clone(),
            namespace_missing: *namespaced == Some(true) && namespace.is_none(),
            namespace: namespace.map(str::to_owned),
        }
    }

    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace.as_deref(), &self.name)
    }

    /// The path of the object's collection.
    pub(crate) fn collection(&self) -> Result<&str> {
        if self.namespace_missing {
            return Err(Error::setup(format!("{self}: metadata.namespace is not set")));
        }
        Ok(&self.collection)
    }

    /// The path of the object.
    pub(crate) fn path(&self) -> Result<String> {
        if self.name.is_empty() {
            return Err(Error::setup(format!("{self}: metadata.name is not set")));
        }
        Ok(format!("{}/{}", self.collection()?, self.name))
    }
}

/// The object's name, or the prefix of a name that the server completes.
fn name_of(meta: &ObjectMeta) -> String {
    meta.name.clone().or_else(|| meta.generate_name.clone()).unwrap_or_default()
}

impl<K> Context<K> {
    /// Returns the target of an object. A dynamic object must name its kind, and the controller must know the
    /// kind.
    pub(crate) fn target<C: Object>(&self, object: &C) -> Result<Target> {
        self.target_of_types::<C>(object.type_meta(), object.meta())
    }

    /// The target of an object of kind `C` with this metadata. `types` is what a dynamic one names.
    pub(crate) fn target_of_types<C: Object>(
        &self,
        types: Option<TypeMeta>,
        meta: &ObjectMeta,
    ) -> Result<Target> {
        let name = name_of(meta);
        let kind = match C::static_kind() {
            Some(kind) => kind,
            None => self.dynamic_kind(types, &name)?,
        };
        Ok(Target::new(&kind, meta.namespace.as_deref(), &name))
    }

    /// Returns the target of the object of kind `C` under a key.
    pub(crate) fn target_of_key<C: Object>(&self, key: &ObjectKey) -> Result<Target> {
        let kind = C::static_kind().or_else(|| self.shared.primary.clone().map(Kind::dynamic));
        let kind = kind.ok_or_else(|| {
            Error::setup(format!(
                "{key}: a `DynamicObject` may be of any kind, and the controller has none of its own"
            ))
        })?;
        Ok(Target::new(&kind, key.namespace(), key.name()))
    }

    fn dynamic_kind(&self, types: Option<TypeMeta>, name: &str) -> Result<Kind> {
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
        resource
            .map(Kind::dynamic)
            .ok_or_else(|| Error::not_declared(Reader::Controller(shared.controller.clone()), &types.kind))
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.resource.kind, self.name),
            None => write!(f, "{} {}", self.resource.kind, self.name),
        }
    }
}
