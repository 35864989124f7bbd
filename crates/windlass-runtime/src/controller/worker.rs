//! One key, one worker, one outcome.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures::FutureExt;
use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};
use tracing::Instrument;
use windlass_workqueue::Item;

use super::{Outcome, Running};
use crate::{handler::QueueKey, manager::Shutdown, read_your_writes::Session};

impl<Q: QueueKey> Running<Q> {
    /// Reconciles until `shutdown`. Reconciles that are under way then are finished; the manager bounds how long.
    pub(super) async fn work(self: Arc<Self>, shutdown: Shutdown) {
        let workers = self.settings.concurrency;
        self.metrics.max_concurrent.set(workers as i64);
        tracing::info!(controller = self.name, workers, "starting workers");
        let mut running = JoinSet::new();
        for _ in 0..workers {
            running.spawn(self.clone().worker(shutdown.clone()));
        }
        while running.join_next().await.is_some() {}
        self.stop_sources();
        tracing::info!(controller = self.name, "all workers finished");
    }

    async fn worker(self: Arc<Self>, shutdown: Shutdown) {
        // A handle of its own: then workers do not fight over one reference count.
        let queue = self.queue.clone();
        loop {
            let item = tokio::select! {
                biased;
                () = shutdown.requested() => return,
                item = queue.get() => item,
            };
            let Some(item) = item else { return };
            self.metrics.active.inc();
            self.reconcile_one(item).await;
            self.metrics.active.dec();
        }
    }

    async fn reconcile_one(&self, item: Item<Q>) {
        let key = item.key().clone();
        let span = self.span(&key);
        async {
            self.gate.pass(&key, &self.context.caches, &self.metrics).await;
            let writes = Session::default();
            let begun = Instant::now();
            let outcome = writes.run(self.attempt(key.clone())).await;
            self.metrics.time.observe(begun.elapsed().as_secs_f64());
            self.gate.close(key.clone(), writes.take(), &self.context.caches);
            outcome.settle(&item, &self.metrics);
        }
        .instrument(span)
        .await;
        item.done();
    }

    async fn attempt(&self, key: Q) -> Outcome {
        let reconcile = AssertUnwindSafe((self.reconcile)(key, self.context.clone())).catch_unwind();
        let finished = match self.settings.reconcile_timeout {
            Some(limit) => match timeout(limit, reconcile).await {
                Ok(finished) => finished,
                Err(_) => return Outcome::TimedOut(limit),
            },
            None => reconcile.await,
        };
        match finished {
            Ok(result) => Outcome::from(result),
            Err(payload) => Outcome::of_panic(payload.as_ref()),
        }
    }

    /// The log keys of controller-runtime.
    fn span(&self, key: &Q) -> tracing::Span {
        let key = key.to_string();
        let (namespace, name) = key.split_once('/').unwrap_or(("", &key));
        tracing::info_span!(
            "reconcile",
            controller = self.name,
            controllerGroup = self.primary.as_ref().map(|primary| primary.group.as_str()),
            controllerKind = self.primary.as_ref().map(|primary| primary.kind.as_str()),
            namespace,
            name,
            reconcileID = self.context.env.uuid(),
        )
    }
}
