//! The work queue, through the calls of a controller: one task adds keys of objects as a handler does, and eight workers take, forget and finish the keys.

use crate::cell::Cell;
use crate::process;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_cache::ObjectKey;
use windlass_workqueue::{AddOptions, WorkQueue};

const WORKERS: usize = 8;
const HOT_KEYS: usize = 1000;

/// The added keys.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Load {
    /// Every key once.
    Distinct,
    /// The same thousand keys repeatedly.
    Hot,
}

fn keys(load: Load, adds: usize) -> Vec<ObjectKey> {
    let distinct = match load {
        Load::Distinct => adds,
        Load::Hot => HOT_KEYS,
    };
    // About 30 bytes, as in the peers.
    let namespace = |n: usize| format!("team-{:02}-prod", n % 25);
    (0..distinct).map(|n| ObjectKey::namespaced(&namespace(n), &format!("payments-{n:09}"))).collect()
}

async fn work(queue: WorkQueue<ObjectKey>) -> u64 {
    let mut worked = 0;
    while let Some(item) = queue.get().await {
        worked += 1;
        item.forget();
        item.done();
    }
    worked
}

/// Adds and processes `adds` keys. The rate is adds per second until the last key is done.
pub(crate) fn run(load: Load, adds: usize) -> Cell {
    let keys: Arc<[ObjectKey]> = keys(load, adds).into();
    let queue: WorkQueue<ObjectKey> = WorkQueue::new("bench");
    let mut worked = 0;
    let (elapsed, processor) = crate::runtime().block_on(async {
        let workers: Vec<_> = (0..WORKERS).map(|_| tokio::spawn(work(queue.clone()))).collect();
        tokio::time::sleep(Duration::from_millis(50)).await;
        let (adder, keys) = (queue.clone(), Arc::clone(&keys));
        let (processor, began) = (process::processor(), Instant::now());
        let adding = tokio::spawn(async move {
            for key in keys.iter().cycle().take(adds) {
                adder.add_with(key.clone(), AddOptions::new());
            }
        });
        adding.await.expect("the adder does not panic");
        queue.shut_down_with_drain().await;
        let elapsed = (began.elapsed(), process::processor() - processor);
        for worker in workers {
            worked += worker.await.expect("a worker does not panic");
        }
        elapsed
    });
    if let Load::Distinct = load {
        assert_eq!(worked, adds as u64, "every key is worked on once");
    }
    Cell::rate(adds as f64 / elapsed.as_secs_f64()).with("processor", processor).with("worked", worked as f64)
}
