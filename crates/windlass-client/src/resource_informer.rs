//! Informers of resources by name.

use kube_core::{DynamicObject, GroupVersionResource};
use windlass_runtime::{
    Error, KindRef, Result,
    informer::{SharedInformer, SharedInformerFactory},
};

use crate::scheme::Scheme;

/// Returns the informer of a resource of a scheme: client-go's `ForResource`. Generated code calls the function with the scheme of the
/// generated kinds.
///
/// # Errors
/// The scheme does not have the resource, the factory has been shut down, or another user of the same watch set an option differently.
pub fn informer_for_resource(
    factory: &SharedInformerFactory,
    scheme: &Scheme,
    resource: &GroupVersionResource,
) -> Result<SharedInformer<DynamicObject>> {
    let found = scheme.known_types().find(|known| known.group_version_resource() == *resource);
    let Some(known) = found else {
        let (group, version, name) = (&resource.group, &resource.version, &resource.resource);
        return Err(Error::other(format!("no informer found for {group}/{version}, Resource={name}")));
    };
    let kind = KindRef::dynamic(&known.api_resource());
    Ok(factory.informer_for(if known.namespaced { kind.namespaced() } else { kind.cluster_scoped() })?)
}
