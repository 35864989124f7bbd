//! The routes of built-in resources. The router of kube-apiserver refuses a request without a route before
//! the handler: by path, method and media types, in this order.

use http::{Method, header};
use windlass_kinds::Subresource;

use super::{Call, patch};
use crate::verb::Verb;
use crate::wire::{self, ApiError, Target};

/// Checks that a route of the real server is for the request.
///
/// # Errors
/// 404 for an unknown path, 405 for a method, 415 for an unknown media type of a patch, and 406 for an
/// unknown media type of a reply.
pub(super) fn expect(call: &Call<'_>, method: &Method) -> Result<(), ApiError> {
    if !has_path(call) {
        return Err(ApiError::no_such_resource());
    }
    if !has_method(call, method) {
        return Err(ApiError::method_not_allowed());
    }
    let content_type = call.header(header::CONTENT_TYPE).unwrap_or_default();
    let (target, more): (_, &[&str]) = match (&call.route.subresource, call.route.verb) {
        // Requests that are passed on have any media types.
        (subresource, _) if subresource.is_connection() => return Ok(()),
        (Subresource::Log, _) => (Target::Object, &["text/plain"]),
        (Subresource::None, Verb::List | Verb::Watch) => (Target::List, &[]),
        _ => (Target::Object, &[]),
    };
    if method == Method::PATCH && !patch::has_route(content_type) {
        return Err(ApiError::no_media_type());
    }
    wire::expect_produced(call.header(header::ACCEPT), target, more)
}

fn has_path(call: &Call<'_>) -> bool {
    let (route, resource) = (&call.route, &call.resource);
    if route.has_more && route.subresource != Subresource::Proxy {
        return false;
    }
    if !route.subresource.is_empty() {
        return !route.has_verb && resource.subresource(&route.subresource).is_some();
    }
    if route.has_verb {
        return route.verb == Verb::Watch && resource.allows(Verb::Watch);
    }
    let verbs: &[Verb] = if !route.name.is_empty() {
        &[Verb::Get, Verb::Update, Verb::Patch, Verb::Delete]
    } else if resource.namespaced && route.namespace.is_empty() {
        &[Verb::List, Verb::Watch]
    } else {
        &[Verb::List, Verb::Watch, Verb::Create, Verb::DeleteCollection]
    };
    verbs.iter().copied().any(|verb| resource.allows(verb))
}

fn has_method(call: &Call<'_>, method: &Method) -> bool {
    let (route, resource) = (&call.route, &call.resource);
    if let Some(subresource) = resource.subresource(&route.subresource) {
        let verb = match *method {
            Method::GET => Verb::Get,
            Method::DELETE => Verb::Delete,
            // A HEAD has the verb of a GET, and no route.
            Method::HEAD => Verb::None,
            _ => route.verb,
        };
        let is_passed_on =
            route.subresource == Subresource::Proxy && [Method::HEAD, Method::OPTIONS].contains(method);
        return is_passed_on || subresource.verbs.iter().any(|allowed| allowed == verb.as_str());
    }
    let is_at_its_place = match route.verb {
        Verb::Create => route.name.is_empty(),
        Verb::Update | Verb::Patch => !route.name.is_empty(),
        // The query makes a list a watch, even for a resource without watches.
        Verb::Watch if !route.has_verb => return method == Method::GET && resource.allows(Verb::List),
        Verb::Watch => method == Method::GET,
        _ => method != Method::HEAD,
    };
    is_at_its_place && resource.allows(route.verb)
}
