//! The kinds that a controller writes, with the parts that all requests of a kind share.

use std::{any::TypeId, borrow::Cow, sync::Arc};

use hashbrown::HashMap;
use kube_core::ApiResource;
use parking_lot::RwLock;

use crate::{
    client::{InvalidName, path::version_path, path_segment},
    kind::{Kind, Object},
};

/// A kind, and the parts that all requests of the kind share.
pub(crate) struct KnownKind {
    pub(crate) resource: ApiResource,
    /// `None`: not known before discovery is asked.
    pub(crate) namespaced: Option<bool>,
    version_path: String,
}

impl KnownKind {
    pub(crate) fn new(kind: Kind) -> Self {
        let version_path = version_path(&kind.resource);
        Self { resource: kind.resource, namespaced: kind.namespaced, version_path }
    }

    /// Returns the path of a collection, an object or a subresource, with a query. An empty part is left out.
    ///
    /// # Errors
    /// The namespace or the object has an invalid name.
    pub(crate) fn path(
        &self,
        namespace: Option<&str>,
        name: &str,
        subresource: &str,
        query: &[&str],
    ) -> Result<String, InvalidName> {
        const NAMESPACES: &str = "/namespaces/";
        let namespace = namespace.map(path_segment).transpose()?;
        let name = if name.is_empty() { Cow::default() } else { path_segment(name)? };
        let plural = &self.resource.plural;
        let parts = [plural.as_str(), &*name, subresource];
        let in_namespace = namespace.as_ref().map_or(0, |namespace| NAMESPACES.len() + namespace.len());
        let length = self.version_path.len()
            + in_namespace
            + parts.iter().map(|part| part.len() + 1).sum::<usize>()
            + query.iter().map(|part| part.len() + 1).sum::<usize>();
        let mut path = String::with_capacity(length);
        path.push_str(&self.version_path);
        if let Some(namespace) = namespace {
            path.push_str(NAMESPACES);
            path.push_str(&namespace);
        }
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            path.push('/');
            path.push_str(part);
        }
        for (number, part) in query.iter().filter(|part| !part.is_empty()).enumerate() {
            path.push(if number == 0 { '?' } else { '&' });
            path.push_str(part);
        }
        Ok(path)
    }
}

/// The kinds of Rust types that a controller has written.
#[derive(Default)]
pub(crate) struct KnownKinds(RwLock<HashMap<TypeId, Arc<KnownKind>, foldhash::fast::FixedState>>);

impl KnownKinds {
    /// Returns the kind of a type; `None` if each object of the type names its own.
    pub(super) fn of<C: Object>(&self) -> Option<Arc<KnownKind>> {
        let id = TypeId::of::<C>();
        if let Some(known) = self.0.read().get(&id) {
            return Some(known.clone());
        }
        let known = Arc::new(KnownKind::new(C::static_kind()?));
        self.0.write().insert(id, known.clone());
        Some(known)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{apps::v1::Deployment, core::v1::Node};

    use super::*;

    #[test]
    fn a_path_has_the_parts_that_are_given() {
        let deployments = KnownKinds::default().of::<Deployment>().expect("a typed kind");
        let path = deployments.path(Some("a"), "b", "status", &["fieldManager=c", "", "force=true"]);
        let path = path.expect("valid names");
        assert_eq!(path, "/apis/apps/v1/namespaces/a/deployments/b/status?fieldManager=c&force=true");
        assert_eq!(deployments.path(None, "", "", &[]).as_deref(), Ok("/apis/apps/v1/deployments"));
        let nodes = KnownKinds::default().of::<Node>().expect("a typed kind");
        assert_eq!(nodes.path(None, "n", "", &[""]).as_deref(), Ok("/api/v1/nodes/n"));
    }
}
