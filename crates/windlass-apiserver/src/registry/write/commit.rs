//! The commit of a write: the object in the storage version, together with the charged quotas.

use std::sync::Arc;

use serde_json::Value;

use super::charge::{QuotaCheck, QuotaUpdate};
use super::followers::Followers;
use super::guard::may_create;
use super::{Change, WriteOptions};
use crate::meta;
use crate::object_size::{MAX_STORED, fits};
use crate::registry::{Call, patch};
use crate::resource::Resource;
use crate::state::State;
use crate::store::{CommitError, Draft, Stored, View, Write};
use crate::verb::Verb;
use crate::wire::ApiError;

/// The size of a request whose object is measured before the object is written for the store, in bytes.
const LARGE: usize = 256 << 10;
/// The size of an object that the store does not take in any form, in bytes: an object may be stored without some defaults.
const MAX_UNSTORED: usize = MAX_STORED + (4 << 10);

/// The result of a commit of a new object.
pub(super) enum Creation {
    Created(Arc<Stored>),
    /// Another object has the name.
    Exists(ApiError),
    /// Another write took a claimed value.
    ClaimTaken,
}

/// Commits a new object of the request's version. `given_version` is the resource version that the client sent.
pub(super) async fn commit_create(
    call: &Call<'_>,
    view: &View,
    mut new: Value,
    given_version: &str,
    options: WriteOptions,
) -> Result<Creation, ApiError> {
    let resource = &call.resource;
    resource.to_storage(&mut new).await?;
    let name = meta::name(&new);
    // An apply or an update stores at the path of the request, even if a webhook has changed the name of
    // the object.
    let at_path = call.route.verb != Verb::Create;
    let key = if at_path { call.key() } else { resource.key(meta::namespace(&new), name) };
    let charges = call.charges(&new, None).await?;
    if options.dry_run {
        if view.get(&resource.storage, &key).is_some() {
            return Ok(Creation::Exists(exists(call, &key, &new)));
        }
        let version = (!given_version.is_empty()).then(|| given_version.into());
        meta::set(&mut new, "resourceVersion", version);
        return Ok(Creation::Created(Arc::new(resource.dry(&new, call.state.store.labels()))));
    }
    // A version that is not a number does not count, and a dry run stores no object.
    let is_versioned = given_version.parse().is_ok_and(|version: u64| version > 0);
    if is_versioned && !at_path {
        return Err(ApiError::unexplained("resourceVersion should not be set on objects to be created"));
    }
    let (namespace, name) = (meta::namespace(&new).to_owned(), name.to_owned());
    let committed = commit_fitting(call, (&key, None), (&mut new, None), false, charges, |view| {
        may_create(view, resource, &namespace, [&name, ""])
    });
    match committed.await {
        Ok(stored) => Ok(Creation::Created(stored)),
        Err(CommitError::Conflict) => Ok(Creation::Exists(exists(call, &key, &new))),
        Err(CommitError::Refused(error)) => Err(error),
        Err(CommitError::ClaimTaken | CommitError::QuotaConflict) => Ok(Creation::ClaimTaken),
    }
}

/// Commits `new`, a change of `old` that is stored as `current`. Removes the object if the change removed the last
/// finalizer of a terminating object. Stores nothing without a change.
///
/// Returns `None` if another write came first.
pub(super) async fn commit_update(
    call: &Call<'_>,
    options: WriteOptions,
    change: &mut impl Change,
    current: &Arc<Stored>,
    (mut new, old): (Value, &Value),
) -> Result<Option<Arc<Stored>>, ApiError> {
    let resource = &call.resource;
    let charges = if change.is_charged() { call.charges(&new, Some(old)).await? } else { Vec::new() };
    let link = take_self_link(call, &mut new);
    let is_same = new == *old;
    change.complete(call, &mut new);
    let is_removed = delete_during_update(resource, &new, old);
    if is_same && !is_removed && !resource.rewrites(current) {
        return Ok(Some(Arc::clone(current)));
    }
    resource.to_storage_over(&mut new, current, &call.route.subresource).await?;
    // An update without a change is still a write if the definition now stores the object in another
    // form.
    let is_encoded = !resource.is_custom() && *resource.storage_version != *resource.api_version();
    if (is_same || is_encoded) && !is_removed && new == current.value() {
        return Ok(Some(Arc::clone(current)));
    }
    if options.dry_run {
        return Ok(Some(Arc::new(resource.dry(&new, call.state.store.labels()))));
    }
    let key = call.key();
    let (at, objects) = ((&*key, Some(current.rv)), (&mut new, Some(old)));
    match commit_fitting(call, at, objects, is_removed, charges, |_| Ok(())).await {
        Ok(_) if is_removed => {
            // The reply shows the last write, although the write removes the object.
            if link.is_some() {
                meta::set(&mut new, "selfLink", link);
            }
            Ok(Some(Arc::new(resource.dry(&new, call.state.store.labels()))))
        }
        Ok(stored) => Ok(Some(stored)),
        Err(CommitError::Conflict | CommitError::ClaimTaken | CommitError::QuotaConflict) => Ok(None),
        Err(CommitError::Refused(error)) => Err(error),
    }
}

/// Commits `new`, or its removal, over `old` at a key with an expected revision. If the object is too large, tries again
/// without the managers of fields; the object of an apply keeps the managers.
async fn commit_fitting(
    call: &Call<'_>,
    (key, expected): (&str, Option<u64>),
    (new, old): (&mut Value, Option<&Value>),
    is_removed: bool,
    mut charges: Vec<QuotaUpdate>,
    guard: impl Fn(&View) -> Result<(), ApiError>,
) -> Result<Arc<Stored>, CommitError> {
    let is_charged = !charges.is_empty();
    loop {
        let draft = (!is_removed).then_some(&*new);
        let mut charged = QuotaCheck { object: &*new, old, charges };
        let committed = match draft.map_or(Ok(()), |new| refuse_too_large(call, new)) {
            Ok(()) => commit_charged(call, key, expected, draft, &mut charged, &guard).await,
            Err(error) => Err(CommitError::Refused(error)),
        };
        match committed {
            Err(CommitError::Refused(error))
                if error.is_storage_too_large() && !patch::is_apply(call) && drop_managers(new) => {}
            other => return other,
        }
        charges =
            if is_charged { call.charges(new, old).await.map_err(CommitError::Refused)? } else { Vec::new() };
    }
}

/// Removes the managers of fields. Returns whether there were managers.
fn drop_managers(object: &mut Value) -> bool {
    let has_managers = meta::at(object, "/metadata/managedFields").is_some();
    meta::set(object, "managedFields", None);
    has_managers
}

/// Refuses a large object that the store does not take. The JSON of such an object takes memory beside the object.
fn refuse_too_large(call: &Call<'_>, new: &Value) -> Result<(), ApiError> {
    if call.body.len() > LARGE && !fits(new, MAX_UNSTORED) {
        return Err(ApiError::storage_too_large());
    }
    Ok(())
}

/// Takes the link that no object is stored with. A dry run shows the link.
fn take_self_link(call: &Call<'_>, object: &mut Value) -> Option<Value> {
    let link = object.pointer("/metadata/selfLink").filter(|_| !call.is_dry_run()).cloned();
    if link.is_some() {
        meta::set(object, "selfLink", None);
    }
    link
}

/// Returns whether an update removes the object: the object is terminating, and the grace period and the last finalizer
/// are gone.
fn delete_during_update(resource: &Resource, new: &Value, old: &Value) -> bool {
    meta::is_deleting(old)
        && meta::finalizers(new).next().is_none()
        && meta::integer(new, "deletionGracePeriodSeconds").unwrap_or(0) == 0
        && resource.strategy.delete.may_be_removed(new)
}

/// Returns 409 for a taken name.
fn exists(call: &Call<'_>, key: &str, new: &Value) -> ApiError {
    let (resource, name) = (call.resource.group_resource(), meta::name(new));
    let error = if meta::text(new, "generateName").is_empty() {
        ApiError::already_exists(&resource, name)
    } else {
        ApiError::generate_name_conflict(&resource, name)
    };
    let view = call.state.store.view();
    match view.get(&call.resource.storage, key) {
        Some(other) if other.is_terminating() => error.while_deleting(),
        _ => error,
    }
}

/// Stores an object of the storage version, or removes the present object, and lets the server react to the
/// write.
pub(in crate::registry) async fn commit(
    state: &Arc<State>,
    resource: &Resource,
    key: &str,
    expected: Option<u64>,
    object: Option<&Value>,
    guard: impl FnOnce(&View) -> Result<(), ApiError>,
) -> Result<Arc<Stored>, CommitError> {
    let draft = object.map(|object| draft(state, resource, expected, object));
    commit_draft(state, resource, key, expected, draft, guard).await
}

/// Makes an object ready to be stored: a new object, or the next version of the object that is `expected`.
fn draft(state: &State, resource: &Resource, expected: Option<u64>, object: &Value) -> Draft {
    let (labels, now) = (state.store.labels(), state.env.now());
    match expected {
        None => resource.draft_new(object, labels, now),
        Some(_) => resource.draft(object, labels, now),
    }
}

/// Works like [`commit`], together with the charges to the quotas of the namespace. Charges are computed
/// again if another write of a quota came first.
pub(super) async fn commit_charged(
    call: &Call<'_>,
    key: &str,
    expected: Option<u64>,
    object: Option<&Value>,
    charged: &mut QuotaCheck<'_>,
    guard: impl Fn(&View) -> Result<(), ApiError>,
) -> Result<Arc<Stored>, CommitError> {
    let (state, resource) = (call.state, &call.resource);
    loop {
        let charges = std::mem::take(&mut charged.charges);
        if charges.is_empty() {
            return commit(state, resource, key, expected, object, guard).await;
        }
        let draft = object.map(|object| draft(state, resource, expected, object));
        match commit_drafts(state, resource, key, expected, draft, charges, &guard).await {
            Err(CommitError::QuotaConflict) => {
                charged.charges =
                    call.charges(charged.object, charged.old).await.map_err(CommitError::Refused)?;
            }
            other => return other,
        }
    }
}

/// Stores a draft, or removes the present object, and lets the server react to the write.
pub(in crate::registry) async fn commit_draft(
    state: &Arc<State>,
    resource: &Resource,
    key: &str,
    expected: Option<u64>,
    draft: Option<Draft>,
    guard: impl FnOnce(&View) -> Result<(), ApiError>,
) -> Result<Arc<Stored>, CommitError> {
    commit_drafts(state, resource, key, expected, draft, Vec::new(), guard).await
}

async fn commit_drafts(
    state: &Arc<State>,
    resource: &Resource,
    key: &str,
    expected: Option<u64>,
    draft: Option<Draft>,
    charges: Vec<QuotaUpdate>,
    guard: impl FnOnce(&View) -> Result<(), ApiError>,
) -> Result<Arc<Stored>, CommitError> {
    if let Some(draft) = &draft {
        draft.check_size().map_err(CommitError::Refused)?;
    }
    let now = state.env.now();
    let write = Write { id: &resource.storage, key, expected, draft, now };
    let keys: Vec<String> = charges.iter().map(|charge| charge.key.clone()).collect();
    let companions = charges.into_iter().zip(&keys);
    let companions = companions.map(|(charge, key)| charge.into_write(key, now)).collect();
    let mut followers = Followers::of(state, resource, key);
    let committed = state.store.commit_with(write, companions, guard).await;
    if committed.is_err()
        && let Some(followers) = &mut followers
    {
        followers.stay();
    }
    let stored = committed?;
    if let Some(followers) = followers {
        Box::pin(followers.settle()).await;
    }
    Ok(stored)
}
