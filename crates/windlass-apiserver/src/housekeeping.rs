//! The work of the server that runs beside requests: the next request does the work before the request itself.

use std::sync::Arc;

use crate::auth::{LAST_USED, day};
use crate::bootstrap;
use crate::definitions;
use crate::managed_fields::{FieldManager, SERVER};
use crate::state::State;
use crate::store::Write;
use crate::wire::ApiError;
use windlass_kinds::Subresource;
use windlass_kinds::resources::SECRETS;

/// Continues unfinished work on definitions, removes expired objects, restores the flow control of the server, and labels the Secrets of used tokens.
pub(crate) async fn run(state: &Arc<State>) {
    definitions::resume(state).await;
    remove_expired(state).await;
    bootstrap::restore_flow_control(state).await;
    Box::pin(label_used_tokens(state)).await;
}

/// Removes expired objects.
async fn remove_expired(state: &State) {
    /// A request that finds more objects leaves the rest to the next request.
    const AT_ONCE: usize = 64;
    let now = state.env.now();
    let view = state.store.view();
    for expiry in view.expired(now).take(AT_ONCE) {
        let Some(stored) = view.get(&expiry.id, &expiry.key) else { continue };
        let write = Write { id: &expiry.id, key: &expiry.key, expected: Some(stored.rv), draft: None, now };
        // An object that was written meanwhile has a new time.
        let _ = state.store.commit(write, |_| Ok::<(), ApiError>(())).await;
    }
}

/// Labels the Secrets with tokens that were used for the first time on this day.
async fn label_used_tokens(state: &State) {
    for key in state.used_tokens.take() {
        let Some(resource) = state.builtin.builtin(&SECRETS, "v1") else { return };
        let Some(stored) = state.store.view().get(&resource.storage, &key).cloned() else { continue };
        let (now, old) = (state.env.now(), stored.value());
        let mut new = old.clone();
        new["metadata"]["labels"][LAST_USED] = day(now).into();
        let served = state.served.load_full();
        let manager =
            FieldManager { resource, served: &served, subresource: &Subresource::None, name: SERVER, now };
        manager.track(Some(&old), &mut new).await;
        let draft = resource.draft(&new, state.store.labels(), now);
        let expected = Some(stored.rv);
        let write = Write { id: &resource.storage, key: &key, expected, draft: Some(draft), now };
        // A Secret that was written meanwhile is labelled at the next use of the token.
        let _ = state.store.commit(write, |_| Ok::<(), ApiError>(())).await;
    }
}
