//! The verbs of resources. The verbs are the same for every kind; a [`Kind`](windlass_kinds::Kind)
//! has the differences.

mod call;
mod reply;

mod admission;
mod custom;
mod decode;
mod metadata;
mod options;
mod privileged;
mod selection;
mod undecodable;
mod write;

mod create;
mod event;
mod get;
mod list;
mod pieces;
mod protobuf_list;
mod text_list;
mod watch;

mod apply;
mod patch;
mod update;

mod delete;
mod delete_undecodable;

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
use windlass_kinds::Subresource;

pub(crate) use self::call::Call;
pub(crate) use self::proxy::{headers as forwarded, upgraded};
use crate::body::Body;
use crate::verb::Verb;
use crate::wire::ApiError;
use windlass_kinds::resources::BINDINGS;

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
    if custom && !named && matches!(verb, Verb::Update | Verb::Patch) {
        if verb == Verb::Patch {
            patch::media_type(call)?;
        }
        return Err(ApiError::bad_request("name must be provided"));
    }
    if component_status::is_asked(call) && verb.is_read() {
        call.warnings.extend(call.resource.strategy.config.deprecation.map(str::to_owned));
        return component_status::answer(call).await;
    }
    if custom && !call.resource.allows(verb) {
        // The router serves any path of a definition with any verb, and checks the verb afterwards.
        return Err(ApiError::verb_not_supported(&call.resource.group_resource(), verb.as_str()));
    }
    call.warnings.extend(call.resource.strategy.config.deprecation.map(str::to_owned));
    if reviews::is_review(call) {
        return reviews::answer(call).await;
    }
    match verb {
        Verb::Create if call.resource.storage == *BINDINGS => binding::bind(call).await,
        Verb::Create => create::create(call).await,
        Verb::Get => get::get(call).await,
        Verb::List => list::list(call).await,
        Verb::Watch => watch::watch(call).await,
        Verb::Update => update::update(call).await,
        Verb::Patch => patch::patch(call).await,
        Verb::Delete => delete::delete(call).await,
        Verb::DeleteCollection => delete::delete_collection(call).await,
        Verb::Proxy | Verb::None => Err(ApiError::method_not_allowed()),
    }
}

async fn subresource(call: &mut Call<'_>, method: &Method) -> Result<Response<Body>, ApiError> {
    let Some(subresource) = call.resource.subresource(&call.route.subresource) else {
        return Err(ApiError::not_found(&call.resource.group_resource(), &call.route.name));
    };
    if call.resource.is_custom() && !subresource.verbs.iter().any(|verb| verb == call.route.verb.as_str()) {
        return Err(ApiError::verb_not_supported(&call.resource.group_resource(), call.route.verb.as_str()));
    }
    if call.route.name.is_empty() {
        return Err(ApiError::bad_request("name must be provided"));
    }
    match (&call.route.subresource, call.route.verb) {
        (part, Verb::Get) if part.is_part() => get::get(call).await,
        (part, Verb::Update) if part.is_part() => update::update(call).await,
        (part, Verb::Patch) if part.is_part() => patch::patch(call).await,
        (Subresource::Scale, Verb::Get) => scale::get(call).await,
        (Subresource::Scale, Verb::Update) => Box::pin(scale::update(call)).await,
        (Subresource::Scale, Verb::Patch) => Box::pin(scale::patch(call)).await,
        (Subresource::Binding, Verb::Create) => binding::bind(call).await,
        (Subresource::Log, Verb::Get) => Box::pin(log::read(call)).await,
        (Subresource::Token, Verb::Create) => Box::pin(token::request(call)).await,
        (Subresource::Eviction, Verb::Create) => Box::pin(eviction::evict(call)).await,
        (connection, _) if connection.is_connection() => Box::pin(connect::connect(call, method)).await,
        (other, _) => Err(ApiError::not_served(&call.resource.group_resource(), other)),
    }
}
