//! A worker whose keys are always ready lets other tasks run, on one thread.

use std::time::Duration;
use windlass_workqueue::{AddOptions, Item, WorkQueue};

/// The number of keys that a worker may take before another task runs. More keys mean starvation.
const STARVED: usize = 10_000;

/// Works until another task shuts the queue down, and returns the number of keys that were taken before that
/// task ran.
async fn taken_before_another_task_runs(queue: WorkQueue<u64>, again: impl Fn(&Item<u64>)) -> usize {
    let other = tokio::spawn({
        let queue = queue.clone();
        async move { queue.shut_down() }
    });
    let mut taken = 0;
    while !queue.is_shut_down() && taken < STARVED {
        let item = queue.get().await.unwrap();
        again(&item);
        taken += 1;
    }
    queue.shut_down();
    other.await.unwrap();
    taken
}

#[tokio::test(flavor = "current_thread")]
async fn a_worker_on_a_full_queue_lets_other_tasks_run() {
    let queue = WorkQueue::new("test");
    (0..2 * STARVED as u64).for_each(|key| queue.add(key));
    assert!(taken_before_another_task_runs(queue, |_| {}).await < STARVED);
}

#[tokio::test(flavor = "current_thread")]
async fn a_key_that_is_requeued_at_once_lets_other_tasks_run() {
    for options in [AddOptions::new(), AddOptions::new().after(Duration::ZERO)] {
        let queue = WorkQueue::new("test");
        queue.add(1);
        assert!(taken_before_another_task_runs(queue, |item| item.requeue(options)).await < STARVED);
    }
}
