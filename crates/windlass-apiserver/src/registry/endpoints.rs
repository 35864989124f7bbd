//! The Endpoints of a service, which are deleted with the service.

use std::sync::Arc;

use super::write::commit_draft;
use crate::meta;
use crate::resource::Resource;
use crate::state::State;
use crate::store::Rejected;

/// Removes the Endpoints with the key of a `removed` service. Finalizers keep the Endpoints.
pub(super) async fn remove_with(state: &Arc<State>, removed: &Resource, key: &str) {
    if removed.plural != "services" || !removed.storage.group.is_empty() {
        return;
    }
    let served = state.served.load_full();
    let Some(endpoints) = served.kind("", "v1", "Endpoints") else { return };
    loop {
        let view = state.store.view();
        let Some(current) = view.get(&endpoints.storage, key) else { return };
        if meta::finalizers(&current.value()).next().is_some() {
            return;
        }
        match commit_draft(state, endpoints, key, Some(current.rv), None, |_| Ok(())).await {
            Err(Rejected::Raced | Rejected::Claimed | Rejected::Overtaken) => {}
            Ok(_) | Err(Rejected::Guarded(_)) => return,
        }
    }
}
