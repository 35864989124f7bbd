//! The last step of a write: stores the object together with the charged quotas.

use std::sync::Arc;

use serde_json::Value;

use super::Call;
use super::charge::{Charged, ChargedQuota};
use crate::cluster_roles;
use crate::definitions;
use crate::resource::Resource;
use crate::state::State;
use crate::store::{Draft, Rejected, Stored, View, Write};
use crate::wire::ApiError;

/// Stores an object of the storage version, or removes the present object, and lets the server react to the
/// write.
pub(super) async fn commit(
    state: &Arc<State>,
    resource: &Resource,
    key: &str,
    expected: Option<u64>,
    object: Option<&Value>,
    guard: impl FnOnce(&View) -> Result<(), ApiError>,
) -> Result<Arc<Stored>, Rejected> {
    let now = state.env.now();
    let labels = state.store.labels();
    let draft = object.map(|object| match expected {
        None => resource.draft_new(object, labels, now),
        Some(_) => resource.draft(object, labels, now),
    });
    commit_draft(state, resource, key, expected, draft, guard).await
}

/// Works like [`commit`], together with the charges to the quotas of the namespace. Charges are computed
/// again if another write of a quota came first.
pub(super) async fn commit_charged(
    call: &Call<'_>,
    key: &str,
    expected: Option<u64>,
    object: Option<&Value>,
    charged: &mut Charged<'_>,
    guard: impl Fn(&View) -> Result<(), ApiError>,
) -> Result<Arc<Stored>, Rejected> {
    let (state, resource) = (call.state, &call.resource);
    loop {
        let charges = std::mem::take(&mut charged.charges);
        if charges.is_empty() {
            return commit(state, resource, key, expected, object, guard).await;
        }
        let now = state.env.now();
        let draft = object.map(|object| resource.draft(object, state.store.labels(), now));
        match commit_drafts(state, resource, key, expected, draft, charges, &guard).await {
            Err(Rejected::Overtaken) => {
                charged.charges =
                    call.charges(charged.object, charged.old).await.map_err(Rejected::Guarded)?;
            }
            other => return other,
        }
    }
}

/// Stores a draft, or removes the present object, and lets the server react to the write.
pub(super) async fn commit_draft(
    state: &Arc<State>,
    resource: &Resource,
    key: &str,
    expected: Option<u64>,
    draft: Option<Draft>,
    guard: impl FnOnce(&View) -> Result<(), ApiError>,
) -> Result<Arc<Stored>, Rejected> {
    commit_drafts(state, resource, key, expected, draft, Vec::new(), guard).await
}

async fn commit_drafts(
    state: &Arc<State>,
    resource: &Resource,
    key: &str,
    expected: Option<u64>,
    draft: Option<Draft>,
    charges: Vec<ChargedQuota>,
    guard: impl FnOnce(&View) -> Result<(), ApiError>,
) -> Result<Arc<Stored>, Rejected> {
    if let Some(draft) = &draft {
        draft.check_size().map_err(Rejected::Guarded)?;
    }
    let now = state.env.now();
    let write = Write { id: &resource.storage, key, expected, draft, now };
    let keys: Vec<String> = charges.iter().map(|charge| charge.key.clone()).collect();
    let companions = charges.into_iter().zip(&keys);
    let companions = companions.map(|(charge, key)| charge.into_write(key, now)).collect();
    let stored = state.store.commit_with(write, companions, guard).await?;
    definitions::committed(state, resource, key).await;
    cluster_roles::committed(state, resource).await;
    Ok(stored)
}
