//! Applies the changes of a watch, while the watch goes on being read.

use std::{panic::resume_unwind, sync::Arc};

use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    task::JoinHandle,
};
use tokio_util::task::TaskTracker;
use windlass_cache::{BatchApplier, ChangeBatch, InformerCore, ReflectorId, ScanOptions};

/// The right to apply the changes of a watch. After a panic, the next run of the watch waits for the last batch of the run before.
pub(super) type Turn = Arc<Mutex<()>>;

/// Two batches of changes: a reflector fills one batch, while another task applies the other batch.
pub(super) struct Pipeline {
    filling: ChangeBatch,
    /// Absent while a task applies a batch.
    idle: Option<Box<Apply>>,
    running: Option<JoinHandle<Box<Apply>>>,
    /// The tasks that a shutdown waits for.
    tasks: TaskTracker,
}

/// Applies batches.
struct Apply {
    applier: BatchApplier,
    batch: ChangeBatch,
    informer: InformerCore,
    _turn: OwnedMutexGuard<()>,
}

/// The bytes of a batch that take longer to apply than another task takes to begin.
const LARGE: usize = 16 << 10;

impl Apply {
    fn run(&mut self) {
        self.applier.apply(&mut self.batch);
        if let Some(warning) = self.informer.memory_warning() {
            tracing::warn!("{warning}");
        }
    }
}

impl Pipeline {
    pub(super) async fn new(
        turn: Turn,
        tasks: TaskTracker,
        informer: InformerCore,
        source: ReflectorId,
        options: &ScanOptions,
    ) -> Self {
        let turn = turn.lock_owned().await;
        let applier = BatchApplier::new(informer.clone(), source, options);
        let apply = Apply { applier, batch: ChangeBatch::default(), informer, _turn: turn };
        Self { filling: ChangeBatch::default(), idle: Some(Box::new(apply)), running: None, tasks }
    }

    /// Returns the batch that the reflector fills.
    pub(super) fn changes(&mut self) -> &mut ChangeBatch {
        &mut self.filling
    }

    /// Applies all changes so far, many changes in another task.
    pub(super) async fn apply(&mut self) {
        if self.filling.is_empty() {
            return;
        }
        if self.filling.bytes() < LARGE {
            return self.flush().await;
        }
        let mut apply = self.wait().await;
        std::mem::swap(&mut self.filling, &mut apply.batch);
        self.running = Some(self.tasks.spawn(async move {
            apply.run();
            apply
        }));
        // The last spawned task waits in this thread's LIFO slot, from which no other thread steals. Another task pushes the first task
        // to the queue, from which other threads steal.
        drop(tokio::spawn(std::future::ready(())));
    }

    /// Applies all changes so far, and waits until the changes have been applied. Without a change, the store adds the indexes that
    /// queries want.
    pub(super) async fn flush(&mut self) {
        let mut apply = self.wait().await;
        std::mem::swap(&mut self.filling, &mut apply.batch);
        apply.run();
        apply.batch.shrink();
        self.filling.shrink();
        self.idle = Some(apply);
    }

    /// Returns whether another task applies a batch, or has applied a batch whose outcome is not known yet.
    pub(super) fn is_applying(&self) -> bool {
        self.running.is_some()
    }

    /// Takes the outcome of the other task if the task has ended, and releases the memory of the batch. Continues a panic of the task.
    pub(super) async fn take_outcome(&mut self) {
        if self.running.as_ref().is_some_and(JoinHandle::is_finished) {
            let mut apply = self.wait().await;
            apply.batch.shrink();
            self.filling.shrink();
            self.idle = Some(apply);
        }
    }

    /// Waits until no task applies a batch. Continues a panic of the task. Never returns after the shutdown of the tokio runtime.
    async fn wait(&mut self) -> Box<Apply> {
        if let Some(running) = &mut self.running {
            match running.await {
                Ok(apply) => self.idle = Some(apply),
                Err(error) => {
                    if let Ok(panic) = error.try_into_panic() {
                        resume_unwind(panic);
                    }
                }
            }
            self.running = None;
        }
        match self.idle.take() {
            Some(apply) => apply,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        panic::AssertUnwindSafe,
        sync::mpsc::{Receiver, Sender, channel},
    };

    use futures::FutureExt;
    use parking_lot::Mutex as SyncMutex;
    use windlass_cache::{Delta, InformerOptions, ObjectKey, ReflectorEvent, ReflectorStore, Scanner};

    use super::*;

    const SOURCE: ReflectorId = ReflectorId(0);
    const HUGE: usize = 2 * LARGE;

    fn informer() -> InformerCore {
        InformerCore::new(InformerOptions::default())
    }

    async fn pipeline(informer: &InformerCore, turn: &Turn) -> Pipeline {
        tracked(informer, turn, &TaskTracker::new()).await
    }

    async fn tracked(informer: &InformerCore, turn: &Turn, tasks: &TaskTracker) -> Pipeline {
        let scan = ScanOptions::default();
        Pipeline::new(turn.clone(), tasks.clone(), informer.clone(), SOURCE, &scan).await
    }

    /// Adds an object with a text of a length, at a resource version.
    fn put(pipeline: &mut Pipeline, version: u64, length: usize) {
        let json = format!(
            r#"{{"metadata":{{"name":"a","uid":"a","resourceVersion":"{version}"}},"text":"{}"}}"#,
            "x".repeat(length)
        );
        let mut scanner = Scanner::new(&ScanOptions::default());
        let changes = pipeline.changes();
        changes.upsert(scanner.scan(json.as_bytes()).expect("an object")).expect("a name");
        changes.progress(&version.to_string());
    }

    fn notice(pipeline: &mut Pipeline) {
        pipeline.changes().notice(ReflectorEvent::Recovered);
    }

    /// Makes the informer wait, at each notice, until the sender sends or is dropped.
    fn held(informer: &InformerCore) -> Sender<()> {
        let (release, held): (_, Receiver<()>) = channel();
        let held = SyncMutex::new(held);
        informer.set_reflector_event_handler(Arc::new(move |_, _| {
            let _ = held.lock().recv();
        }));
        release
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn small_and_large_batches_are_applied_in_order() {
        let informer = informer();
        let (_guard, mut subscription) = informer.subscribe();
        let mut pipeline = pipeline(&informer, &Turn::default()).await;
        pipeline.changes().begin_list();
        put(&mut pipeline, 1, HUGE);
        pipeline.changes().end_list();
        for version in 2..200 {
            put(&mut pipeline, version, if version % 7 < 4 { HUGE } else { 1 });
            pipeline.apply().await;
        }
        pipeline.flush().await;
        assert_eq!(informer.high_water_mark(), 199);
        let object = informer.store().get(&ObjectKey::cluster("a")).expect("the object");
        assert_eq!(object.revision(), 199);
        let mut last = 0;
        while last < 199 {
            let mut follow = |delta: &Delta| {
                let revision = delta.object().revision();
                assert!(revision > last, "{revision} after {last}");
                last = revision;
            };
            subscription.deliver(&mut follow).await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_large_batch_is_applied_while_the_next_batch_is_filled() {
        let informer = informer();
        let release = held(&informer);
        let mut pipeline = pipeline(&informer, &Turn::default()).await;
        put(&mut pipeline, 1, HUGE);
        notice(&mut pipeline);
        pipeline.apply().await;
        put(&mut pipeline, 2, 1);
        assert!(pipeline.flush().now_or_never().is_none(), "the batch before is not applied yet");
        drop(release);
        pipeline.flush().await;
        assert_eq!(informer.high_water_mark(), 0, "no list has ended");
        assert_eq!(informer.store().get(&ObjectKey::cluster("a")).expect("the object").revision(), 2);
    }

    #[tokio::test]
    async fn a_panic_of_the_other_task_is_a_panic_of_the_watch() {
        let informer = informer();
        informer.set_reflector_event_handler(Arc::new(|_, _| panic!("on purpose")));
        let mut pipeline = pipeline(&informer, &Turn::default()).await;
        put(&mut pipeline, 1, HUGE);
        notice(&mut pipeline);
        pipeline.apply().await;
        let panic = AssertUnwindSafe(pipeline.flush()).catch_unwind().await.expect_err("a panic");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"on purpose"));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_shutdown_waits_for_the_last_batch() {
        let (informer, tasks) = (informer(), TaskTracker::new());
        let release = held(&informer);
        let mut pipeline = tracked(&informer, &Turn::default(), &tasks).await;
        put(&mut pipeline, 1, HUGE);
        notice(&mut pipeline);
        pipeline.apply().await;
        drop(pipeline);
        tasks.close();
        assert!(tasks.wait().now_or_never().is_none(), "the batch is not applied yet");
        drop(release);
        tasks.wait().await;
    }

    /// The changes of the run before must not follow the first changes of the next run.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_next_run_of_a_watch_waits_for_the_last_batch_of_the_run_before() {
        let (informer, turn) = (informer(), Turn::default());
        let release = held(&informer);
        let mut before = pipeline(&informer, &turn).await;
        put(&mut before, 1, HUGE);
        notice(&mut before);
        before.apply().await;
        drop(before);
        assert!(pipeline(&informer, &turn).now_or_never().is_none());
        drop(release);
        let mut next = pipeline(&informer, &turn).await;
        put(&mut next, 2, 1);
        next.flush().await;
        assert_eq!(informer.store().get(&ObjectKey::cluster("a")).expect("the object").revision(), 2);
    }
}
