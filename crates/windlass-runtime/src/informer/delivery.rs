//! Delivers the changes of a watch to a handler, and retries the changes that the handler fails on.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::sync::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};
use windlass_cache::{Delta, ObjectKey, Subscription, SubscriptionGuard};

use crate::{
    error::{BoxError, chain},
    supervisor::{Fault, Supervisor},
};

/// The return type of a handler function: nothing, or a `Result<(), E>`.
pub trait HandlerResult {
    /// Converts into a result.
    ///
    /// # Errors
    /// The function returned an error.
    fn into_result(self) -> Result<(), BoxError>;
}

/// A function that handles one change.
pub(super) type Handler = Box<dyn Fn(&Delta) -> Result<(), BoxError> + Send + Sync>;

impl HandlerResult for () {
    fn into_result(self) -> Result<(), BoxError> {
        Ok(())
    }
}

impl<E: Into<BoxError>> HandlerResult for Result<(), E> {
    fn into_result(self) -> Result<(), BoxError> {
        self.map_err(Into::into)
    }
}

const FIRST_RETRY: Duration = Duration::from_millis(100);
const LONGEST_RETRY: Duration = Duration::from_mins(1);

/// The task of a handler.
pub(super) struct Delivery {
    pub(super) handler: Handler,
    /// Names the handler in logs and metrics: `handler of pods`.
    pub(super) task: String,
    pub(super) supervisor: Supervisor,
    pub(super) resync: Option<Duration>,
}

/// The result of a wait for changes, besides delivered changes.
enum Due {
    Nothing,
    Resync,
    Retry,
}

/// Changes of an object that the handler failed on, oldest first.
struct Failed {
    deltas: Vec<Delta>,
    due: Instant,
    pause: Duration,
    /// Fails readiness while a change that made the handler panic is not handled.
    fault: Option<Fault>,
}

/// Changes that wait for a retry, by the key of the object.
type Retries = BTreeMap<ObjectKey, Failed>;

impl Delivery {
    /// Spawns the task. The task ends with the subscription.
    ///
    /// Panics of the handler are caught for each change. If the task panics, the task is restarted, and every object is
    /// delivered again in place of the changes that were lost.
    pub(super) fn spawn(self, subscription: Subscription, guard: Weak<SubscriptionGuard>) {
        let (supervisor, task) = (self.supervisor.clone(), self.task.clone());
        let (this, subscription) = (Arc::new(self), Arc::new(Mutex::new(subscription)));
        let mut restarted = false;
        supervisor.spawn(task, move |recovery| {
            let (this, subscription, guard) = (this.clone(), subscription.clone(), guard.clone());
            let restarted = std::mem::replace(&mut restarted, true);
            async move {
                if let Some(guard) = guard.upgrade().filter(|_| restarted) {
                    guard.resync();
                }
                recovery.complete();
                this.run(&mut *subscription.lock().await, &guard).await;
            }
        });
    }

    async fn run(&self, subscription: &mut Subscription, guard: &Weak<SubscriptionGuard>) {
        let period = self.resync.filter(|period| !period.is_zero());
        let mut ticks = period.and_then(|period| {
            // If the clock has no instant that late, there is no resync.
            let mut ticks = interval_at(Instant::now().checked_add(period)?, period);
            // A handler that is slower than the period gets no burst of resyncs.
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            Some(ticks)
        });
        let mut retries = Retries::new();
        loop {
            let resync_due = async {
                match &mut ticks {
                    Some(ticks) => drop(ticks.tick().await),
                    None => std::future::pending().await,
                }
            };
            let retry_at = retries.values().map(|failed| failed.due).min();
            let retry_due = async {
                match retry_at {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            let mut deliver = |delta: &Delta| self.deliver(delta, &mut retries);
            let due = tokio::select! {
                biased;
                () = resync_due => Due::Resync,
                () = retry_due => Due::Retry,
                alive = subscription.deliver(&mut deliver) => if alive { Due::Nothing } else { return },
            };
            match due {
                Due::Nothing => {}
                Due::Retry => self.retry(&mut retries),
                Due::Resync => {
                    if let Some(guard) = guard.upgrade() {
                        guard.resync();
                    }
                }
            }
            // Yields so that tasks woken on this thread can run.
            tokio::task::yield_now().await;
        }
    }

    fn deliver(&self, delta: &Delta, retries: &mut Retries) {
        let earlier = if retries.is_empty() { None } else { retries.remove(&delta.object().key()) };
        match earlier {
            None => self.attempt(std::slice::from_ref(delta), FIRST_RETRY, retries),
            Some(Failed { mut deltas, pause, .. }) => {
                push_merged(&mut deltas, delta);
                let pause = if is_deletion(delta) { FIRST_RETRY } else { pause };
                self.attempt(&deltas, pause, retries);
            }
        }
    }

    fn retry(&self, retries: &mut Retries) {
        let now = Instant::now();
        let due = retries.iter().filter(|(_, failed)| failed.due <= now).map(|(key, _)| key.clone());
        let due: Vec<_> = due.take(MOST_RETRIED).collect();
        for key in due {
            let Some(failed) = retries.remove(&key) else { continue };
            let given_up = failed.pause >= LONGEST_RETRY && failed.fault.is_some();
            if given_up && failed.deltas.last().is_some_and(is_deletion) {
                tracing::error!(task = self.task, object = %key, "giving up: the handler panics on a deleted object");
                continue;
            }
            self.attempt(&failed.deltas, (failed.pause * 2).min(LONGEST_RETRY), retries);
        }
    }

    /// Handles changes of an object, and keeps the changes from the first failure on.
    fn attempt(&self, deltas: &[Delta], pause: Duration, retries: &mut Retries) {
        for (place, delta) in deltas.iter().enumerate() {
            // The text of an error is user code, too.
            let handle = || (self.handler)(delta).map_err(|error| chain(error.as_ref()));
            let result = self.supervisor.call(&self.task, handle);
            if let Some(Ok(())) = result {
                continue;
            }
            let key = delta.object().key();
            match &result {
                Some(Err(error)) => {
                    tracing::error!(task = self.task, object = %key, error, retry_in = ?pause, "handler error");
                }
                _ => {
                    tracing::error!(task = self.task, object = %key, retry_in = ?pause, "handler panicked on this object");
                }
            }
            let failed = Failed {
                deltas: deltas[place..].to_vec(),
                due: Instant::now() + pause,
                pause,
                fault: result.is_none().then(|| self.supervisor.fault(&self.task)),
            };
            retries.insert(key, failed);
            return;
        }
    }
}

fn is_deletion(delta: &Delta) -> bool {
    matches!(delta, Delta::Deleted { .. })
}

/// The limit of objects that are retried before new changes are delivered.
const MOST_RETRIED: usize = 256;

/// Adds a change to the waiting changes of the same object. Merges the change with the last change if a
/// single change can express both. Of the objects that were added and deleted after an earlier deletion, keeps the last:
/// only a few changes therefore wait.
fn push_merged(waiting: &mut Vec<Delta>, next: &Delta) {
    let merged = match (waiting.last(), next) {
        (Some(Delta::Updated { old, .. }), Delta::Updated { new, .. }) => {
            Some(Delta::Updated { old: old.clone(), new: new.clone() })
        }
        (Some(Delta::Added { initial, .. }), Delta::Updated { new, .. }) => {
            Some(Delta::Added { object: new.clone(), initial: *initial })
        }
        // A renewal repeats the object.
        (Some(Delta::Added { .. }), Delta::Added { .. }) => Some(next.clone()),
        _ => None,
    };
    if merged.is_some() {
        waiting.pop();
    }
    waiting.push(merged.unwrap_or_else(|| next.clone()));
    // Only behind a deletion: an addition after a renewal may repeat an object that the handler knows. The last object is kept: readers of
    // the cache have seen the object, which may have another owner.
    let ends_again = matches!(
        waiting[..],
        [
            ..,
            Delta::Deleted { .. },
            Delta::Added { .. },
            Delta::Deleted { .. },
            Delta::Added { .. },
            Delta::Deleted { .. }
        ]
    );
    if ends_again {
        waiting.drain(waiting.len() - 4..waiting.len() - 2);
    }
}

#[cfg(test)]
mod tests {
    use windlass_cache::RawObject;

    use super::*;

    /// Returns the changes that wait after these changes: `+` adds the object, `!` repeats the object after a renewal, `*` updates and `-`
    /// deletes the object.
    fn waiting_after(changes: &str) -> String {
        let object = RawObject::from_json(br#"{"metadata":{"name":"a","uid":"a"}}"#).expect("an object");
        let mut waiting = Vec::new();
        for change in changes.chars() {
            let object = object.clone();
            let delta = match change {
                '*' => Delta::Updated { old: object.clone(), new: object },
                '-' => Delta::Deleted { last: object, final_state_unknown: false },
                change => Delta::Added { object, initial: change == '!' },
            };
            push_merged(&mut waiting, &delta);
        }
        let sign = |delta: &Delta| match delta {
            Delta::Added { initial: false, .. } => '+',
            Delta::Added { initial: true, .. } => '!',
            Delta::Updated { .. } => '*',
            Delta::Deleted { .. } => '-',
        };
        waiting.iter().map(sign).collect()
    }

    /// The handler knows the object: an addition after a renewal is no second object.
    #[test]
    fn a_handler_gets_the_deletion_of_an_object_that_a_renewal_repeats() {
        assert_eq!(waiting_after("*!-+"), "*!-+");
        assert!(waiting_after("+!-+").ends_with("-+"), "{}", waiting_after("+!-+"));
        assert!(waiting_after("*!-+-+").ends_with("-+"), "{}", waiting_after("*!-+-+"));
    }

    #[test]
    fn of_the_objects_that_lived_between_two_deletions_the_last_is_kept() {
        assert_eq!(waiting_after("*-+-+-+-"), "*-+-");
        assert_eq!(waiting_after("+-+*-+"), "+-+-+");
        assert_eq!(waiting_after("-+-"), "-+-");
    }

    #[test]
    fn one_addition_waits_after_many_renewals() {
        assert_eq!(waiting_after("+!!!"), "!");
        assert_eq!(waiting_after("*!!*!"), "*!");
        assert_eq!(waiting_after("-+!!-+!"), "-!-!");
    }
}
