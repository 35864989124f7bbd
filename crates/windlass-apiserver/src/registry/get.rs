//! `GET` of an object.

use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};

use super::{Call, options, undecodable};
use crate::body::Body;
use crate::route::Query;
use crate::state::State;
use crate::store::View;
use crate::verb::Verb;
use crate::wire::ApiError;

/// How long a request waits for a resource version that the server has not reached.
const CATCH_UP: Duration = Duration::from_secs(3);

pub(super) async fn get(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    if !call.resource.allows(Verb::Get) {
        return Err(ApiError::method_not_allowed());
    }
    call.negotiate()?;
    refuse_export(&call.query)?;
    let revision = options::revision(call.query.text("resourceVersion")).map_err(|why| {
        // Events are not read from the cache, and the cache has other error messages.
        match call.resource.strategy.config.ttl {
            Some(_) => ApiError::bad_request(format!("invalid resource version: {why}")),
            None => ApiError::unexplained(why),
        }
    })?;
    let view = not_older_of(call, revision).await?;
    let stored = view.get(&call.resource.storage, &call.key()).ok_or_else(|| call.not_found())?;
    let shown = call.resource.present_one(stored).await;
    let shown = shown.map_err(|error| undecodable::at_read(call, stored, &error))?;
    call.object(StatusCode::OK, &shown).await
}

/// Refuses the parameter `export`, which is gone.
fn refuse_export(query: &Query) -> Result<(), ApiError> {
    if query.flag("export").unwrap_or(false) {
        let why = "the export parameter, deprecated since v1.14, is no longer supported";
        return Err(ApiError::bad_request(why));
    }
    Ok(())
}

/// Waits like [`not_older`] for kinds that the real server reads from a cache. Does not wait for other kinds.
pub(super) async fn not_older_of(call: &Call<'_>, revision: Option<u64>) -> Result<Arc<View>, ApiError> {
    if call.resource.strategy.config.ttl.is_none() {
        return not_older(call.state, revision).await;
    }
    let view = call.state.store.view();
    match revision.filter(|wanted| *wanted > view.revision()) {
        Some(wanted) => Err(ApiError::resource_version_too_large(wanted, view.revision(), 0)),
        None => Ok(view),
    }
}

/// Waits until the state is at `revision` or later, and returns the state.
pub(super) async fn not_older(state: &State, revision: Option<u64>) -> Result<Arc<View>, ApiError> {
    let view = state.store.view();
    let Some(wanted) = revision.filter(|wanted| *wanted > view.revision()) else { return Ok(view) };
    let deadline = tokio::time::Instant::now() + CATCH_UP;
    while tokio::time::Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let view = state.store.view();
        if view.revision() >= wanted {
            return Ok(view);
        }
    }
    Err(ApiError::resource_version_too_large(wanted, state.store.view().revision(), 1))
}
