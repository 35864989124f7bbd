//! The memory of the objects that long requests make.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

tokio::task_local! {
    /// The share of the request that the task works on.
    static SHARE: Share;
}

/// Limits the memory of the objects of long requests together, by estimates. Long requests wait in order.
#[derive(Clone, Debug)]
pub(crate) struct WorkMemory {
    /// For requests that work.
    working: Arc<Semaphore>,
    /// For requests that wait for a webhook.
    calling: Arc<Semaphore>,
}

impl WorkMemory {
    /// The limit of all requests that work together, in KiB.
    const WORKING: u32 = 128 << 10;
    /// The limit of all requests that wait for a webhook together, in KiB.
    const CALLING: u32 = 128 << 10;

    pub(crate) fn new() -> Self {
        let semaphore = |limit: u32| Arc::new(Semaphore::new(limit as usize));
        Self { working: semaphore(Self::WORKING), calling: semaphore(Self::CALLING) }
    }

    /// Waits until there are `bytes` of memory. A request that needs more than the limit runs alone.
    pub(crate) async fn reserve(&self, bytes: usize) -> Share {
        let amount = u32::try_from(bytes >> 10).unwrap_or(u32::MAX).clamp(1, Self::WORKING);
        let held = Arc::clone(&self.working).acquire_many_owned(amount).await.ok();
        Share { memory: self.clone(), amount, state: Mutex::new(State { held, calls: 0 }) }
    }
}

/// The memory of a request.
pub(crate) struct Share {
    memory: WorkMemory,
    /// The size in KiB.
    amount: u32,
    state: Mutex<State>,
}

struct State {
    held: Option<OwnedSemaphorePermit>,
    /// The number of calls of webhooks in flight.
    calls: usize,
}

impl Share {
    /// Runs a request with the share, until the end of the request.
    pub(crate) async fn during<T>(self, request: impl Future<Output = T>) -> T {
        SHARE.scope(self, request).await
    }
}

/// Calls a webhook. The webhook may itself send a long request to this server, and the answer of the webhook must not wait for that
/// request's memory: during the call, the memory of this request counts to that of requests that wait for a webhook, if there is room.
pub(crate) async fn calling<T>(call: impl Future<Output = T>) -> T {
    let Ok(counted) = SHARE.try_with(Calling::begin) else { return call.await };
    let done = call.await;
    counted.end().await;
    done
}

/// A call of a webhook in flight.
struct Calling;

impl Calling {
    fn begin(share: &Share) -> Self {
        let mut state = share.state.lock();
        if state.calls == 0
            && state.held.is_some()
            && let Ok(moved) = Arc::clone(&share.memory.calling).try_acquire_many_owned(share.amount)
        {
            state.held = Some(moved);
        }
        state.calls += 1;
        Self
    }

    /// Ends the call, and waits for the memory to work on.
    async fn end(self) {
        drop(self);
        let wanted = SHARE.try_with(|share| {
            let state = share.state.lock();
            let is_working =
                state.held.as_ref().is_some_and(|held| Arc::ptr_eq(held.semaphore(), &share.memory.working));
            (state.calls == 0 && !is_working).then(|| (Arc::clone(&share.memory.working), share.amount))
        });
        if let Ok(Some((working, amount))) = wanted {
            let held = working.acquire_many_owned(amount).await.ok();
            // The call may already be dropped.
            let _ = SHARE.try_with(|share| share.state.lock().held = held);
        }
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        // The share is gone when the request ends.
        let _ = SHARE.try_with(|share| {
            let mut state = share.state.lock();
            state.calls = state.calls.saturating_sub(1);
        });
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const ALL: usize = (WorkMemory::WORKING as usize) << 10;

    #[tokio::test]
    async fn requests_share_a_limit() {
        let memory = WorkMemory::new();
        let first = memory.reserve(usize::MAX).await;
        let mut second = Box::pin(memory.reserve(1));
        assert!(futures::poll!(&mut second).is_pending());
        drop(first);
        second.await;
    }

    #[tokio::test]
    async fn a_webhook_may_send_a_long_request() {
        let memory = WorkMemory::new();
        let (ask, asked) = tokio::sync::oneshot::channel::<()>();
        let nested = memory.clone();
        let outer = memory.reserve(ALL).await.during(async move {
            // The webhook answers after its own request.
            calling(async move { drop(nested.reserve(ALL).await) }).await;
            ask.send(()).unwrap();
        });
        outer.await;
        asked.await.unwrap();
        assert!(memory.reserve(ALL).now_or_never().is_some(), "no memory stays reserved");
    }

    #[tokio::test]
    async fn a_request_works_again_after_the_last_of_several_calls() {
        let memory = WorkMemory::new();
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let other = memory.clone();
        let work = async move {
            let first = calling(async {});
            let second = calling(async {
                // The first call has ended; the request still waits.
                assert!(other.reserve(ALL).now_or_never().is_some());
                ended.await.unwrap();
            });
            futures::join!(first, second);
            assert!(other.reserve(1).now_or_never().is_none(), "the request works");
        };
        let mut outer = Box::pin(memory.reserve(ALL).await.during(work));
        assert!(futures::poll!(&mut outer).is_pending());
        end.send(()).unwrap();
        outer.await;
    }

    #[tokio::test]
    async fn the_memory_of_waiting_requests_is_limited() {
        let memory = WorkMemory::new();
        let wait = || std::future::pending::<()>();
        let mut first = Box::pin(memory.reserve(ALL).await.during(calling(wait())));
        assert!(futures::poll!(&mut first).is_pending());
        let mut second = Box::pin(memory.reserve(ALL).await.during(calling(wait())));
        assert!(futures::poll!(&mut second).is_pending());
        assert!(memory.reserve(1).now_or_never().is_none(), "the second request keeps its memory");
        drop(first);
    }
}
