//! The objects that a server creates for itself.

mod cluster;
mod flow_control;
mod policy;
mod template;

use crate::state::State;
use crate::store::Write;
use crate::wire::ApiError;

/// Stands for the uid in a template.
const UID: &str = "00000000-0000-0000-0000-000000000000";
/// Stands for the time in a template.
const TIME: &str = "0000-00-00T00:00:00Z";

/// Creates the objects in an empty store.
pub(crate) fn create(state: &State) -> Result<(), ApiError> {
    let now = state.env.now();
    let time = state.env.now_rfc3339();
    for template in template::all(state) {
        let draft = template.draft.stamped((UID, &state.env.uid()), (TIME, &time));
        let write = Write { id: &template.id, key: &template.key, expected: None, draft: Some(draft), now };
        state
            .store
            .commit_now(write, |_| Ok(()))
            .map_err(|_| ApiError::internal(format!("{} {} is there already", template.id, template.key)))?;
    }
    Ok(())
}
