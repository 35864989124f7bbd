//! The labels of requests in metrics.

use bytes::Bytes;
use http::{Method, Request, header};
use windlass_kinds::Subresource;

use crate::metrics::Labels;
use crate::registry::Call;
use crate::resource::Resource;
use crate::route::Route;
use crate::verb::Verb;

/// Returns the labels that a request to a resource is counted by.
pub(super) fn labels<'a>(call: &'a Call<'_>, request: &'a Request<Bytes>, is_for_one: bool) -> Labels<'a> {
    let content_type = call.header(header::CONTENT_TYPE).unwrap_or_default();
    let is_apply = content_type.starts_with("application/apply-patch");
    Labels {
        verb: shown_verb(&call.route, request.method(), is_apply),
        scope: scope(&call.route, is_for_one),
        dry_run: if call.query.text("dryRun") == "All" { "All" } else { "" },
        ..labels_of(&call.route)
    }
}

/// Returns the labels that a route alone has.
pub(super) fn labels_of(route: &Route) -> Labels<'_> {
    Labels {
        component: "apiserver",
        group: &route.group,
        version: &route.version,
        resource: &route.resource,
        subresource: &route.subresource,
        ..Labels::default()
    }
}

pub(super) fn shown_verb<'a>(route: &Route, method: &'a Method, is_apply: bool) -> &'a str {
    if route.subresource == Subresource::Log || route.subresource.is_connection() {
        return "CONNECT";
    }
    match route.verb {
        Verb::List => "LIST",
        Verb::Watch => "WATCH",
        Verb::Get => "GET",
        Verb::Patch if is_apply => "APPLY",
        _ if [Method::POST, Method::PUT, Method::PATCH, Method::DELETE].contains(method) => method.as_str(),
        // The method of a request is any text.
        _ => "other",
    }
}

/// Returns whether requests for a subresource of `resource` are counted: the name in a path is any text, and would be kept for ever.
pub(super) fn is_counted(route: &Route, resource: &Resource) -> bool {
    route.subresource.is_empty() || resource.subresource(&route.subresource).is_some()
}

pub(super) fn scope(route: &Route, is_for_one: bool) -> &'static str {
    match (is_for_one, route.namespace.is_empty()) {
        (true, _) => "resource",
        (false, false) => "namespace",
        (false, true) => "cluster",
    }
}
