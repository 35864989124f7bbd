//! A request of the runtime itself.

use bytes::Bytes;
use http::{HeaderValue, Method, uri::PathAndQuery};
use serde::Serialize;
use windlass_http::Message;

use super::detached::OnUnknownOutcome;
use crate::error::{Error, Result};

/// A request of the runtime itself, with a complete body.
pub(crate) struct Call {
    pub(super) message: Message,
    pub(super) no_retry: bool,
    pub(super) on_unknown: Option<OnUnknownOutcome>,
}

pub(crate) const JSON: &str = "application/json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";
pub(crate) const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// Accepts objects without `metadata.managedFields` (KEP-5958), which the caches drop. Servers that do not know the parameter ignore the
/// parameter; a server that refuses the first media type takes the second.
pub(crate) const OBJECTS: &str = "application/json;drop=metadata.managedFields,application/json";

/// As [`OBJECTS`], and accepts the metadata of an object in place of the object. Servers without this form send the object.
pub(crate) const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1;drop=metadata.managedFields,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// As [`OBJECTS`], and accepts the metadata of objects in place of a list.
pub(crate) const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1;drop=metadata.managedFields,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// Room for the JSON of most objects.
const BODY: usize = 1024;

impl Call {
    /// Returns a request without a body.
    ///
    /// # Errors
    /// The path contains characters that a path cannot.
    pub(crate) fn read(path: String) -> Result<Self> {
        Self::new(Method::GET, path, None, Bytes::new())
    }

    /// Returns a write with a body.
    ///
    /// # Errors
    /// The path contains characters that a path cannot, or the body does not serialize.
    pub(crate) fn write(
        method: Method,
        path: String,
        content_type: &'static str,
        body: &impl Serialize,
    ) -> Result<Self> {
        let mut json = Vec::with_capacity(BODY);
        serde_json::to_writer(&mut json, body)?;
        Self::new(method, path, Some(HeaderValue::from_static(content_type)), json.into())
    }

    fn new(method: Method, path: String, content_type: Option<HeaderValue>, body: Bytes) -> Result<Self> {
        let path = PathAndQuery::try_from(path).map_err(Error::other)?;
        let accept = HeaderValue::from_static(OBJECTS);
        let message = Message { method, path, accept, content_type, body };
        Ok(Self { message, no_retry: false, on_unknown: None })
    }

    /// Sets the header `Accept`. Default: [`OBJECTS`].
    pub(crate) fn accept(mut self, accept: &'static str) -> Self {
        self.message.accept = HeaderValue::from_static(accept);
        self
    }

    /// Sends the request once, outside of the limit of requests in progress: the caller repeats the request.
    pub(crate) fn no_retry(mut self) -> Self {
        self.no_retry = true;
        self
    }

    /// Sets the function that is called if the outcome of the write is unknown.
    pub(crate) fn on_unknown(mut self, report: Option<OnUnknownOutcome>) -> Self {
        self.on_unknown = report;
        self
    }
}
