//! The requests of a reflector.

use http::{Request, header};
use kube_client::client::Body;
use kube_core::ApiResource;
use windlass_cache::ListWatch;

use super::CacheOptions;
use crate::client::{InvalidName, JSON, METADATA, METADATA_LIST, NoRetry, OBJECTS, path::collection_path};

/// The common part of all requests of a reflector.
#[derive(Clone, Debug)]
pub(super) struct Collection {
    path: String,
    label_selector: Option<String>,
    field_selector: Option<String>,
    metadata_only: bool,
    keeps_managed_fields: bool,
}

/// Accepts metadata with `managedFields`.
const WHOLE_METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const WHOLE_METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

impl Collection {
    /// Returns the collection of a resource in one namespace, or in all.
    ///
    /// # Errors
    /// The namespace has an invalid name.
    pub(super) fn new(
        resource: &ApiResource,
        namespace: Option<&str>,
        options: &CacheOptions,
    ) -> Result<Self, InvalidName> {
        let selector = &options.label_selector;
        Ok(Self {
            path: collection_path(resource, namespace)?,
            label_selector: (!selector.is_everything()).then(|| selector.to_string()),
            field_selector: options.field_selector.clone(),
            metadata_only: options.metadata_only,
            keeps_managed_fields: options.keep_managed_fields,
        })
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Builds a request.
    ///
    /// # Errors
    /// The kind contains characters that a path cannot.
    pub(super) fn request(&self, wanted: &ListWatch) -> http::Result<Request<Body>> {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(wanted.parameters());
        query.extend_pairs(self.label_selector.iter().map(|selector| ("labelSelector", selector)));
        query.extend_pairs(self.field_selector.iter().map(|selector| ("fieldSelector", selector)));
        Request::get(format!("{}?{}", self.path, query.finish()))
            .header(header::ACCEPT, self.accept(wanted.watch))
            .header(header::ACCEPT_ENCODING, "identity")
            .extension(NoRetry)
            .body(Body::empty())
    }

    fn accept(&self, watch: bool) -> &'static str {
        match (self.keeps_managed_fields, self.metadata_only, watch) {
            (false, false, _) => OBJECTS,
            (false, true, true) => METADATA,
            (false, true, false) => METADATA_LIST,
            (true, false, _) => JSON,
            (true, true, true) => WHOLE_METADATA,
            (true, true, false) => WHOLE_METADATA_LIST,
        }
    }
}
