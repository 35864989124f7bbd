//! Tasks that are restarted after a panic, and the tasks that are down.
//!
//! Every background task of the runtime runs under a [`Supervisor`]: a panic is logged, counted, and followed
//! by a restart with back-off. Until the restarted task works again, [`Supervisor::down`] names the task and
//! readiness fails.

use std::{
    any::Any,
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use futures::FutureExt;
use parking_lot::Mutex;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;

/// The pause before the first restart; doubles with each panic in a row.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The longest pause before a restart.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Supervises the background tasks of a manager or informer factory. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Supervisor {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The tasks that are down, with the number of faults each has.
    down: Mutex<BTreeMap<String, usize>>,
    panics: Family<TaskLabel, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TaskLabel {
    task: String,
}

/// Marks a task as down until dropped.
pub(crate) struct Fault {
    inner: Arc<Inner>,
    task: String,
}

/// Lets a restarted task report a success. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Recovery(Arc<Mutex<Option<Fault>>>);

impl Recovery {
    /// Returns whether the task counts as down.
    pub(crate) fn is_pending(&self) -> bool {
        self.0.lock().is_some()
    }

    /// Ends the fault that the last panic began.
    pub(crate) fn complete(&self) {
        self.0.lock().take();
    }
}

impl Supervisor {
    /// Spawns a task that is restarted after a panic. The task ends when the future of `start` completes.
    ///
    /// A restarted task counts as down until the task calls [`Recovery::complete`].
    pub(crate) fn spawn<F, Fut>(&self, task: impl Into<String>, start: F) -> JoinHandle<()>
    where
        F: FnMut(Recovery) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        tokio::spawn(self.clone().supervise(task.into(), CancellationToken::new(), start))
    }

    /// Works like [`spawn`](Self::spawn), in the caller's task. No task is restarted after `stopping` is
    /// cancelled.
    pub(crate) async fn supervise<F, Fut>(self, task: String, stopping: CancellationToken, mut start: F)
    where
        F: FnMut(Recovery) -> Fut,
        Fut: Future<Output = ()>,
    {
        let recovery = Recovery(Arc::default());
        let mut pause = FIRST_PAUSE;
        loop {
            let run = async { start(recovery.clone()).await };
            let Err(payload) = AssertUnwindSafe(run).catch_unwind().await else { return };
            // Recovered since the last panic: this is the first of a new row.
            if recovery.0.lock().is_none() {
                pause = FIRST_PAUSE;
                *recovery.0.lock() = Some(self.fault(&task));
            }
            self.count_panic(&task);
            tracing::error!(task, panic = panic_message(payload.as_ref()), restart_in = ?pause, "a task panicked");
            if stopping.run_until_cancelled(sleep(pause)).await.is_none() {
                return;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Calls a function of the user's. A panic is logged and counted, and `None` is returned.
    pub(crate) fn call<R>(&self, task: &str, function: impl FnOnce() -> R) -> Option<R> {
        match catch_unwind(AssertUnwindSafe(function)) {
            Ok(output) => Some(output),
            Err(payload) => {
                self.count_panic(task);
                tracing::error!(task, panic = panic_message(payload.as_ref()), "a callback panicked");
                None
            }
        }
    }

    /// Marks a task as down until the fault is dropped.
    pub(crate) fn fault(&self, task: &str) -> Fault {
        *self.inner.down.lock().entry(task.to_owned()).or_default() += 1;
        Fault { inner: self.inner.clone(), task: task.to_owned() }
    }

    /// Returns the tasks that are down, in order.
    pub(crate) fn down(&self) -> Vec<String> {
        self.inner.down.lock().keys().cloned().collect()
    }

    pub(crate) fn count_panic(&self, task: &str) {
        self.inner.panics.get_or_create(&TaskLabel { task: task.to_owned() }).inc();
    }

    pub(crate) fn register_metrics(&self, registry: &mut Registry) {
        registry.register(
            "windlass_task_panics",
            "Number of panics in background tasks and callbacks, by task.",
            self.inner.panics.clone(),
        );
    }
}

impl Drop for Fault {
    fn drop(&mut self) {
        let mut down = self.inner.down.lock();
        if let Some(faults) = down.get_mut(&self.task) {
            *faults -= 1;
            if *faults == 0 {
                down.remove(&self.task);
            }
        }
    }
}

/// Returns the message of a panic.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_down_until_it_works_again() {
        let supervisor = Supervisor::default();
        let (runs, works) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let task = supervisor.spawn("watch pods", {
            let (runs, works) = (runs.clone(), works.clone());
            move |recovery| {
                let (run, works) = (runs.fetch_add(1, Ordering::SeqCst), works.clone());
                async move {
                    assert!(run >= 2, "run {run}");
                    works.notified().await;
                    recovery.complete();
                    works.notified().await;
                }
            }
        });
        while runs.load(Ordering::SeqCst) < 3 {
            sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(supervisor.down(), ["watch pods"]);
        works.notify_one();
        tokio::task::yield_now().await;
        assert!(supervisor.down().is_empty());
        works.notify_one();
        task.await.expect("the task ends");
        let panics =
            supervisor.inner.panics.get_or_create(&TaskLabel { task: "watch pods".to_owned() }).get();
        assert_eq!(panics, 2);
    }

    #[test]
    fn a_task_is_down_while_it_has_a_fault() {
        let supervisor = Supervisor::default();
        let (first, second) = (supervisor.fault("a"), supervisor.fault("a"));
        drop(first);
        assert_eq!(supervisor.down(), ["a"]);
        drop(second);
        assert!(supervisor.down().is_empty());
        assert_eq!(supervisor.call("b", || -> u32 { panic!("no") }), None);
    }
}
