//! A request with a parsed head.

use std::time::{Duration, Instant};

use http::request;

use windlass_kinds::resources::NAMESPACES;

use crate::auth::{Attributes, Identity};
use crate::flow_control::Flow;
use crate::route::{Query, Route, percent_decode};
use crate::serve::{Deadline, is_long_running};
use crate::state::State;
use crate::verb::Verb;
use crate::wire::{ApiError, FieldOperator, FieldRequirement, FieldSelector, LabelSelector, names};

/// A request with a parsed head, and the user who the request runs as.
pub(super) struct Recognised {
    /// The user of the request, or the impersonated user.
    pub(super) identity: Identity,
    /// The method in lower case, for a path without a resource.
    verb: String,
    pub(super) path: String,
    /// `None` if the path is not that of a resource.
    pub(super) route: Option<Route>,
    /// The single name that a list or a watch selects.
    selected: Option<String>,
    pub(super) query: Query,
    pub(super) deadline: Deadline,
    pub(super) since: Instant,
}

impl Recognised {
    /// Parses the head of a request, and impersonates.
    ///
    /// # Errors
    /// The head has a malformed time limit, or the user may not impersonate the wanted user.
    pub(super) fn new(
        head: &request::Parts,
        identity: &Identity,
        state: &State,
        timeout: Duration,
    ) -> Result<Self, ApiError> {
        let since = Instant::now();
        let query = Query::parse(head.uri.query());
        let path = percent_decode(head.uri.path(), false).into_owned();
        let route = Route::parse(&head.method, &path, &query);
        let deadline = Deadline::new(timeout, route.as_ref(), &query)?;
        let verb = head.method.as_str().to_lowercase();
        let selected = route.as_ref().and_then(|route| selected_name(route, &query));
        let identity = identity.clone();
        let mut recognised = Self { identity, verb, path, route, selected, query, deadline, since };
        let State { authorizer, store, impersonation, .. } = state;
        let (asking, request) = (&recognised.identity, recognised.attributes());
        recognised.identity = impersonation.user_of(authorizer, store, asking, &head.headers, &request)?;
        Ok(recognised)
    }

    pub(super) fn attributes(&self) -> Attributes<'_> {
        match &self.route {
            Some(route) => attributes(route, self.selected.as_deref()),
            None => Attributes { verb: &self.verb, path: Some(&self.path), ..Attributes::default() },
        }
    }

    /// Returns whether the request is for objects with a single name.
    pub(super) fn is_for_one(&self) -> bool {
        let request = self.attributes();
        !request.name.is_empty() || request.verb == Verb::Create.as_str()
    }

    /// Classifies the request for the limits of requests in flight. Returns `None` for a long-running request without limits: watches
    /// are limited at the start, other long-running requests are not.
    pub(super) fn flow(&self, state: &State) -> Option<Flow> {
        let is_limited =
            self.route.as_ref().is_none_or(|route| route.verb == Verb::Watch || !is_long_running(route));
        is_limited.then(|| state.flow_control.classify(&state.store, &self.identity, &self.attributes()))
    }
}

fn attributes<'a>(route: &'a Route, selected: Option<&'a str>) -> Attributes<'a> {
    // The authoriser treats a Namespace object as inside of the namespace.
    let is_namespace = *route.resource == *NAMESPACES.resource && route.group == *NAMESPACES.group;
    Attributes {
        verb: route.verb.as_str(),
        group: &route.group,
        resource: &route.resource,
        subresource: &route.subresource,
        namespace: if is_namespace && !route.name.is_empty() { &route.name } else { &route.namespace },
        name: selected.unwrap_or(&route.name),
        path: None,
    }
}

/// Returns the single name that a list or a watch selects by `metadata.name`: rules for named objects apply
/// to the name.
fn selected_name(route: &Route, query: &Query) -> Option<String> {
    if !matches!(route.verb, Verb::List | Verb::Watch) || !route.name.is_empty() {
        return None;
    }
    // Malformed options select no name.
    LabelSelector::parse(query.text("labelSelector")).ok()?;
    if query.get("limit").is_some_and(|limit| limit.parse::<i64>().is_err() && !limit.is_empty()) {
        return None;
    }
    let selector = FieldSelector::parse(query.text("fieldSelector")).ok()?;
    let is_name = |requirement: &&FieldRequirement| {
        requirement.field == "metadata.name" && requirement.operator == FieldOperator::Equals
    };
    let name = &selector.requirements().iter().find(is_name)?.value;
    names::path_segment_name(name, false).is_empty().then(|| name.clone())
}
