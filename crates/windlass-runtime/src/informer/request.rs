//! The requests of a reflector.

use http::{Request, header};
use kube_client::client::Body;
use kube_core::ApiResource;
use windlass_cache::ListWatch;

use super::CacheOptions;
use crate::client::{JSON, METADATA, METADATA_LIST, NoRetry, path::collection_path};

/// The common part of all requests of a reflector.
#[derive(Clone, Debug)]
pub(super) struct Collection {
    path: String,
    label_selector: Option<String>,
    field_selector: Option<String>,
    metadata_only: bool,
}

impl Collection {
    /// Returns the collection of a resource in one namespace, or in all.
    pub(super) fn new(resource: &ApiResource, namespace: Option<&str>, options: &CacheOptions) -> Self {
        let selector = &options.label_selector;
        Self {
            path: collection_path(resource, namespace),
            label_selector: (!selector.is_everything()).then(|| selector.to_string()),
            field_selector: options.field_selector.clone(),
            metadata_only: options.metadata_only,
        }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Builds a request.
    ///
    /// # Errors
    /// The kind or the namespace contains characters that a path cannot.
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
        match (self.metadata_only, watch) {
            (false, _) => JSON,
            (true, true) => METADATA,
            (true, false) => METADATA_LIST,
        }
    }
}
