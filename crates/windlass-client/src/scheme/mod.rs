//! Kinds and resources: GV, GVK, GVR, and the mapping between them.
//!
//! A group version (GV) has kinds (GVK), the types of objects, and resources (GVR), the names in paths. A
//! [`Scheme`] lists the kinds that a program knows; generated modules `register` have the [`KnownType`]s of
//! kinds. A [`RestMapper`] maps a kind to a resource, with a scheme or the discovery of a server.
//!
//! ```
//! use windlass_client::scheme::{GroupVersionKind, KnownType, RestMapper, Scheme};
//!
//! const NETWORK: KnownType = KnownType {
//!     group: "samplecrd.k8s.io", version: "v1", kind: "Network", resource: "networks", singular: "network", namespaced: true,
//! };
//! let mapper = RestMapper::from(&Scheme::new().add_known_types(&[NETWORK]));
//! let mapping = mapper.rest_mapping("samplecrd.k8s.io", "Network", &[])?;
//! assert_eq!(mapping.resource.resource, "networks");
//! assert_eq!(mapper.kind_for_resource("network")?, GroupVersionKind::gvk("samplecrd.k8s.io", "v1", "Network"));
//! # Ok::<_, windlass_client::scheme::MappingError>(())
//! ```

mod known_type;
mod rest_mapper;

pub use kube_core::gvk::{GroupVersion, GroupVersionKind, GroupVersionResource};

pub use self::{
    known_type::{KnownType, Scheme},
    rest_mapper::{MappingError, RestMapper, RestMapping},
};
