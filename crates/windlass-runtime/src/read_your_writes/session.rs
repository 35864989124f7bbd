//! Which reconcile wrote what.

use std::sync::Arc;

use parking_lot::Mutex;
use windlass_cache::ObjectKey;

use crate::client::path::GroupResource;

/// A write that a later reconcile waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WriteRef {
    pub(crate) resource: GroupResource,
    pub(crate) key: ObjectKey,
    pub(crate) uid: Arc<str>,
    pub(crate) revision: u64,
    pub(crate) gone: bool,
}

/// The writes of one reconcile. A task that the reconcile spawned is not part of it.
#[derive(Clone, Default)]
pub(crate) struct Session(Arc<Mutex<Vec<WriteRef>>>);

tokio::task_local! {
    static CURRENT: Session;
}

impl Session {
    /// Runs a reconcile as this session.
    pub(crate) async fn run<F: Future>(&self, reconcile: F) -> F::Output {
        CURRENT.scope(self.clone(), reconcile).await
    }

    /// The last write to each object.
    pub(crate) fn take(&self) -> Vec<WriteRef> {
        let mut last: Vec<WriteRef> = Vec::new();
        for mut write in self.0.lock().drain(..) {
            let same = |earlier: &WriteRef| earlier.resource == write.resource && earlier.key == write.key;
            if let Some(place) = last.iter().position(same) {
                let earlier = last.remove(place);
                if earlier.uid == write.uid {
                    // A deletion may not know how new the object was; the write before it does.
                    write.revision = write.revision.max(earlier.revision);
                    write.gone |= earlier.gone;
                }
            }
            last.push(write);
        }
        last
    }
}

/// Notes a write in the session that is running, if one is.
pub(super) fn note(write: WriteRef) {
    let _ = CURRENT.try_with(|session| session.0.lock().push(write));
}
