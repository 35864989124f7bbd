//! A request to a resource, and the request's state in the handlers of the verbs.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Uri, header};
use parking_lot::Mutex;
use serde_json::Value;
use windlass_schema::go_quote;

use crate::auth::Identity;
use crate::body::UnreadBody;
use crate::managed_fields::{self, FieldManager};
use crate::resource::{Resource, ServedResources};
use crate::route::{Query, Route};
use crate::state::State;
use crate::store::View;
use crate::wire::{ApiError, names};
use windlass_kinds::WriteContext;

/// A request to a resource.
pub(crate) struct Call<'a> {
    pub(crate) state: &'a Arc<State>,
    pub(crate) identity: &'a Identity,
    pub(crate) route: Route,
    pub(crate) resource: Arc<Resource>,
    pub(crate) query: Query,
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a Bytes,
    /// The unread body of a request to a `proxy`.
    pub(crate) unread: Mutex<Option<UnreadBody>>,
    /// Sentences for `Warning` headers.
    pub(crate) warnings: Vec<String>,
}

impl Call<'_> {
    pub(crate) fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(super) fn context<'a>(&'a self, view: &'a View) -> WriteContext<'a> {
        WriteContext {
            env: &self.state.env,
            view,
            lookups: &self.state.lookups,
            plugins: self.state.plugins,
            service_range: self.state.service_range,
            identity: self.identity,
            authorizer: &self.state.authorizer,
            store: &self.state.store,
            verb: self.route.verb.as_str(),
            name: &self.route.name,
            version: &self.resource.version,
            is_dry_run: self.is_dry_run(),
            subresource: &self.route.subresource,
        }
    }

    /// Returns whether the request is a dry run.
    pub(super) fn is_dry_run(&self) -> bool {
        self.query.get("dryRun").is_some_and(|value| !value.is_empty())
    }

    /// Records the changed fields of this request in `new`. `old` is `None` for a new object.
    pub(super) async fn track(&self, old: Option<&Value>, new: &mut Value) {
        let (served, manager) = (self.state.served.load_full(), self.manager());
        self.field_manager(&served, &manager).track(old, new).await;
    }

    pub(super) fn field_manager<'a>(
        &'a self,
        served: &'a ServedResources,
        name: &'a str,
    ) -> FieldManager<'a> {
        let (resource, subresource) = (&*self.resource, &self.route.subresource);
        FieldManager { resource, served, subresource, name, now: self.state.env.now() }
    }

    /// Returns the name of the field manager: `fieldManager`, or else the program that `User-Agent` begins
    /// with.
    pub(super) fn manager(&self) -> String {
        let given = self.query.text("fieldManager");
        if !given.is_empty() {
            return given.to_owned();
        }
        let program =
            self.header(header::USER_AGENT).unwrap_or_default().split('/').next().unwrap_or_default();
        let mut name = String::new();
        for character in program.chars().filter(|character| managed_fields::is_printable(*character)) {
            if name.len() + character.len_utf8() > managed_fields::MAX_NAME {
                break;
            }
            name.push(character);
        }
        name
    }

    /// Returns whether the object that the request names exists now.
    pub(super) fn is_there(&self) -> bool {
        self.state.store.view().get(&self.resource.storage, &self.key()).is_some()
    }

    /// Returns the key of the object that the request names.
    pub(super) fn key(&self) -> String {
        self.resource.key(&self.route.namespace, &self.route.name)
    }

    /// Returns 404 for the object in the path, or 400 or 500 if no object can have the name or the namespace.
    pub(super) fn not_found(&self) -> ApiError {
        let problems = names::path_segment_name(&self.route.name, false);
        if !problems.is_empty() {
            let name = go_quote(&self.route.name);
            return ApiError::bad_request(format!("Name parameter invalid: {name}: {}", problems.join(";")));
        }
        match self.expect_namespace() {
            Ok(()) => ApiError::not_found(&self.resource.group_resource(), &self.route.name),
            Err(error) => error,
        }
    }

    /// Checks that the namespace can be a part of a key in etcd, as the real server does.
    ///
    /// # Errors
    /// 500 for `.` and `..`.
    pub(super) fn expect_namespace(&self) -> Result<(), ApiError> {
        if ![".", ".."].contains(&self.route.namespace.as_str()) {
            return Ok(());
        }
        let key = self.resource.registry_key(&self.key());
        let key = key.trim_start_matches("/registry").trim_end_matches('/');
        Err(ApiError::unexplained(format!("invalid key: {}", go_quote(key))))
    }
}
