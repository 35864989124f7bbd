//! One request to a resource, on its way through the verbs.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, header};

use crate::auth::Identity;
use crate::resource::Resource;
use crate::route::{Query, Route};
use crate::state::State;
use crate::store::View;
use crate::strategy::StrategyContext;
use crate::wire::ApiError;

/// One request to a resource.
pub(crate) struct Call<'a> {
    pub(crate) state: &'a Arc<State>,
    pub(crate) identity: &'a Identity,
    pub(crate) route: Route,
    pub(crate) resource: Arc<Resource>,
    pub(crate) query: Query,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a Bytes,
    /// Sentences for `Warning` headers.
    pub(crate) warnings: Vec<String>,
}

impl Call<'_> {
    pub(crate) fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(super) fn context<'a>(&'a self, view: &'a View) -> StrategyContext<'a> {
        StrategyContext {
            env: &self.state.env,
            view,
            lookups: &self.state.lookups,
            user: self.identity.name(),
            version: &self.resource.version,
            subresource: &self.route.subresource,
        }
    }

    /// The key of the object that the request names.
    pub(super) fn key(&self) -> String {
        self.resource.key(&self.route.namespace, &self.route.name)
    }

    pub(super) fn not_found(&self) -> ApiError {
        ApiError::not_found(&self.resource.group_resource(), &self.route.name)
    }
}
