//! The Endpoints of a service, which are deleted with the service.

use std::sync::Arc;

use super::write::commit_draft;
use crate::meta;
use crate::resource::Resource;
use crate::state::State;
use crate::store::CommitError;
use windlass_kinds::resources;

/// Removes the Endpoints with the key of a `removed` service. Finalizers keep the Endpoints.
pub(super) async fn remove_with(state: &Arc<State>, removed: &Resource, key: &str) {
    if removed.storage != *resources::SERVICES {
        return;
    }
    let served = state.served.load_full();
    let Some(endpoints) = served.builtin(&resources::ENDPOINTS, "v1") else { return };
    loop {
        let view = state.store.view();
        let Some(current) = view.get(&endpoints.storage, key) else { return };
        if meta::finalizers(&current.value()).next().is_some() {
            return;
        }
        match commit_draft(state, endpoints, key, Some(current.rv), None, |_| Ok(())).await {
            Err(CommitError::Conflict | CommitError::ClaimTaken | CommitError::QuotaConflict) => {}
            Ok(_) | Err(CommitError::Refused(_)) => return,
        }
    }
}
