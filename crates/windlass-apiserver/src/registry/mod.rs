//! The verbs of resources. The verbs are the same for every kind; a [`Strategy`](crate::strategy::Strategy)
//! has the differences.

mod call;
mod charge;
mod commit;
mod reply;

mod admission;
mod custom;
mod decode;
mod endpoints;
mod metadata;
mod options;
mod privileged;
mod selection;
mod validate;
mod write;

mod create;
mod get;
mod list;
mod watch;

mod apply;
mod patch;
mod update;

mod delete;
mod delete_options;

mod binding;
mod component_status;
mod connect;
mod connect_options;
mod eviction;
mod log;
mod proxy;
mod reviews;
mod routes;
mod scale;
mod token;

use http::{Method, Response};

pub(crate) use self::call::Call;
use crate::body::Body;
use crate::resource::Resource;
use crate::wire::ApiError;

/// Calls the verb that a request asks for.
pub(crate) async fn dispatch(call: &mut Call<'_>, method: &Method) -> Result<Response<Body>, ApiError> {
    let custom = call.resource.is_custom();
    if !custom {
        routes::expect(call, method)?;
    }
    if !call.route.subresource.is_empty() {
        return subresource(call, method).await;
    }
    let (verb, named) = (call.route.verb, !call.route.name.is_empty());
    if custom && !named && matches!(verb, "update" | "patch") {
        if verb == "patch" {
            patch::media_type(call)?;
        }
        return Err(ApiError::bad_request("name must be provided"));
    }
    if component_status::is_asked(call) && matches!(verb, "get" | "list" | "watch") {
        call.warnings.extend(deprecation(&call.resource).map(str::to_owned));
        return component_status::answer(call).await;
    }
    if custom && !call.resource.allows(verb) {
        // The router serves any path of a definition with any verb, and checks the verb afterwards.
        return Err(ApiError::verb_not_supported(&call.resource.group_resource(), verb));
    }
    call.warnings.extend(deprecation(&call.resource).map(str::to_owned));
    if reviews::is_review(call) {
        return reviews::answer(call).await;
    }
    match verb {
        "create" if call.resource.group.is_empty() && call.resource.plural == "bindings" => {
            binding::bind(call).await
        }
        "create" => create::create(call).await,
        "get" => get::get(call).await,
        "list" => list::list(call).await,
        "watch" => watch::watch(call).await,
        "update" => update::update(call).await,
        "patch" => patch::patch(call).await,
        "delete" => delete::delete(call).await,
        "deletecollection" => delete::delete_collection(call).await,
        _ => Err(ApiError::method_not_allowed()),
    }
}

/// Returns the warning of every reply about a built-in resource that is deprecated.
fn deprecation(resource: &Resource) -> Option<&'static str> {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "endpoints") => {
            Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
        }
        ("", "componentstatuses") => Some("v1 ComponentStatus is deprecated in v1.19+"),
        _ => None,
    }
}

async fn subresource(call: &mut Call<'_>, method: &Method) -> Result<Response<Body>, ApiError> {
    let Some(subresource) = call.resource.subresource(&call.route.subresource) else {
        return Err(ApiError::not_found(&call.resource.group_resource(), &call.route.name));
    };
    if call.resource.is_custom() && !subresource.verbs.iter().any(|verb| verb == call.route.verb) {
        return Err(ApiError::verb_not_supported(&call.resource.group_resource(), call.route.verb));
    }
    if call.route.name.is_empty() {
        return Err(ApiError::bad_request("name must be provided"));
    }
    match (call.route.subresource.as_str(), call.route.verb) {
        ("status" | "finalize" | "ephemeralcontainers" | "resize" | "approval", "get") => {
            get::get(call).await
        }
        ("status" | "finalize" | "ephemeralcontainers" | "resize" | "approval", "update") => {
            update::update(call).await
        }
        ("status" | "finalize" | "ephemeralcontainers" | "resize" | "approval", "patch") => {
            patch::patch(call).await
        }
        ("scale", "get") => scale::get(call).await,
        ("scale", "update") => Box::pin(scale::update(call)).await,
        ("scale", "patch") => Box::pin(scale::patch(call)).await,
        ("binding", "create") => binding::bind(call).await,
        ("log", "get") => Box::pin(log::read(call)).await,
        ("token", "create") => Box::pin(token::request(call)).await,
        ("eviction", "create") => Box::pin(eviction::evict(call)).await,
        ("exec" | "attach" | "portforward" | "proxy", _) => Box::pin(connect::connect(call, method)).await,
        (name, _) => Err(ApiError::not_served(&call.resource.group_resource(), name)),
    }
}
