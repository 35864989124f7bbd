//! `PUT`: replaces an object.

use http::{Response, StatusCode};
use serde_json::Value;
use windlass_kinds::Subresource;

use super::options::WriteOptions;
use super::write::{self, Change, OwnerCheck};
use super::{Call, metadata};
use crate::body::Body;
use crate::meta;
use crate::wire::ApiError;

pub(super) async fn update(call: &mut Call<'_>) -> Result<Response<Body>, ApiError> {
    call.negotiate()?;
    let options = WriteOptions::parse(&call.query, "UpdateOptions")?;
    let mut object = call.decode(options)?;
    metadata::settle_namespace(call, &mut object)?;
    expect_name(call, &object)?;
    write::remove_duplicate_owners(call, &mut object, OwnerCheck::Decoded);
    // The real server creates services from a status, too.
    let may_create = matches!(call.route.subresource, Subresource::None | Subresource::Status)
        && call.resource.strategy.config.create_on_update;
    loop {
        let view = call.state.store.view();
        let creates = may_create && view.get(&call.resource.storage, &call.key()).is_none();
        if creates && !meta::uid(&object).is_empty() {
            return Err(metadata::other_uid(call, meta::uid(&object), ""));
        }
        let written = if creates {
            let mut object = object.clone();
            metadata::wipe_identity(&mut object);
            call.track(None, &mut object).await;
            write::create(call, object, options).await
        } else {
            write::update(call, options, Replacement(&object)).await
        };
        match written {
            Ok(stored) => {
                let code = if creates { StatusCode::CREATED } else { StatusCode::OK };
                return call.object(code, &stored).await;
            }
            // The object came or went in between. A webhook may refuse with the same reason.
            Err(error) if creates && error.reason() == "AlreadyExists" && call.is_there() => {}
            Err(error) if may_create && !creates && error.code() == 404 && !call.is_there() => {}
            Err(error) => return Err(error),
        }
    }
}

/// The object of the request replaces the present object.
struct Replacement<'a>(&'a Value);

impl Change for Replacement<'_> {
    async fn make(&mut self, call: &mut Call<'_>, old: &Value) -> Result<Value, ApiError> {
        let mut new = self.0.clone();
        call.track(Some(old), &mut new).await;
        Ok(new)
    }
}

/// Checks that an object has the name in the path.
pub(super) fn expect_name(call: &Call<'_>, object: &Value) -> Result<(), ApiError> {
    let name = meta::name(object);
    if name.is_empty() {
        return Err(undeterminable_name(call));
    }
    if name != call.route.name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.route.name
        )));
    }
    Ok(())
}

/// Returns 400 for an object without a name.
pub(super) fn undeterminable_name(call: &Call<'_>) -> ApiError {
    ApiError::bad_request(format!(
        "the name of the object ({} based on URL) was undeterminable: name must be provided",
        call.route.name
    ))
}
