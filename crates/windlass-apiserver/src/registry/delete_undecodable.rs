//! `DELETE` with `ignoreStoreReadErrorWithClusterBreakingPotential`: removes an object that a conversion webhook does not
//! convert. Finalizers and admission do not hold the object, because no client can read the object.

use std::sync::Arc;

use http::{Response, StatusCode};

use super::delete_options::DeleteOptions;
use super::{Call, write};
use crate::auth::Attributes;
use crate::body::Body;
use crate::store::CommitError;
use crate::wire::{ApiError, Details, Status};

/// The verb that a user needs besides `delete`.
const VERB: &str = "unsafe-delete-ignore-read-errors";

pub(super) async fn delete(call: &mut Call<'_>, options: &DeleteOptions) -> Result<Response<Body>, ApiError> {
    authorize(call)?;
    let (resource, key) = (Arc::clone(&call.resource), call.key());
    loop {
        let view = call.state.store.view();
        let stored = view.get(&resource.storage, &key).ok_or_else(|| call.not_found())?;
        if resource.present_one(stored).await.is_ok() {
            return Err(decodable(call));
        }
        if options.dry_run {
            return reply(call).await;
        }
        match write::commit_draft(call.state, &resource, &key, Some(stored.rv), None, |_| Ok(())).await {
            Ok(_) => return reply(call).await,
            Err(CommitError::Refused(error)) => return Err(error),
            Err(CommitError::Conflict | CommitError::ClaimTaken | CommitError::QuotaConflict) => {}
        }
    }
}

fn authorize(call: &Call<'_>) -> Result<(), ApiError> {
    let (route, state) = (&call.route, call.state);
    let attributes = Attributes {
        verb: VERB,
        group: &route.group,
        resource: &route.resource,
        subresource: "",
        namespace: &route.namespace,
        name: &route.name,
        path: None,
    };
    state.authorizer.authorize(&state.store, call.identity, &attributes).map_err(|_| {
        let why = format!("not permitted to do {VERB:?}, reason: ");
        ApiError::forbidden(&call.resource.group_resource(), &route.name, why)
    })
}

fn decodable(call: &Call<'_>) -> ApiError {
    let key = call.resource.registry_key(&call.key());
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: unsafe deletion is \
         not allowed because the object is decodable from storage"
    );
    ApiError::conflict(&call.resource.group_resource(), &call.route.name, why)
}

async fn reply(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    let details =
        Details { name: call.route.name.clone(), kind: call.resource.kind.clone(), ..Details::default() };
    let mut status = Status::success(details);
    status.code = 200;
    let negotiated = call.negotiate()?;
    call.json(StatusCode::OK, status.to_json().into(), negotiated).await
}
