//! Returns freed memory to the system.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeMetrics};
use tokio::task::JoinSet;

/// The interval of the blocks: longer than the delay after which the allocator returns memory.
const INTERVAL: Duration = Duration::from_secs(2);
/// A size for which the allocator does not reuse freed memory of smaller objects, in bytes.
const BLOCK: usize = 4 << 20;
/// The threads of the runtime are idle if all threads together work less in an [`INTERVAL`].
const IDLE: Duration = Duration::from_millis(100);
/// The work of the threads after which the threads look for freed memory as soon as the threads are idle.
const WORK: Duration = Duration::from_millis(500);
/// The longest time between two looks of idle threads: the history of the store expires without much work.
const LONGEST: Duration = Duration::from_secs(15);
/// How long a thread waits for the other threads.
const PATIENCE: Duration = Duration::from_millis(5);

static IS_MIMALLOC: AtomicBool = AtomicBool::new(false);

/// Tells the servers of this process that mimalloc is the global allocator. An idle server then returns the memory of a burst on all threads
/// of the runtime; other allocators do so by themselves. Default: another allocator.
pub fn allocator_is_mimalloc() {
    IS_MIMALLOC.store(true, Ordering::Relaxed);
}

/// Lets the allocator return freed memory from time to time, until `stopped` completes. `forget` frees memory that an idle server does not
/// need.
///
/// The allocator of the programs, mimalloc, waits for a second before freed memory goes back to the system, and looks for such memory only when a
/// large block is freed. A server that becomes idle after a burst would keep the memory of the burst. The block itself is never written,
/// and takes no memory of the system. Memory that one thread has allocated and another thread has freed stays with the first thread, until
/// that thread looks: the threads of the runtime look when a burst is over.
pub(crate) async fn keep_returning(stopped: impl Future<Output = ()>, forget: impl Fn()) {
    let returning = async {
        let mut load = Load::new(Handle::current().metrics());
        loop {
            tokio::time::sleep(INTERVAL).await;
            if IS_MIMALLOC.load(Ordering::Relaxed) && load.is_over() {
                forget();
                on_each_thread(look, PATIENCE).await;
            }
            drop(black_box(Vec::<u8>::with_capacity(BLOCK)));
        }
    };
    tokio::select! {
        biased;
        () = stopped => {}
        () = returning => {}
    }
}

/// Lets mimalloc look for freed memory of this thread: without memory for a request, mimalloc looks for all memory that the thread can
/// give back, and no system has memory for this request. Sanitizers, and other allocators on request, abort the process instead.
fn look() {
    let mut block = Vec::<u8>::new();
    let refused = block.try_reserve_exact(isize::MAX.unsigned_abs());
    black_box((block, refused.is_err()));
}

/// The work of the threads of a runtime.
struct Load {
    runtime: RuntimeMetrics,
    /// The work at the last call.
    before: Duration,
    /// The work at the last look for freed memory.
    looked: Duration,
    /// The time of the last look.
    at: Instant,
}

impl Load {
    fn new(runtime: RuntimeMetrics) -> Self {
        Self { runtime, before: Duration::ZERO, looked: Duration::ZERO, at: Instant::now() }
    }

    /// Returns whether the threads are idle, and have not looked for freed memory since they worked.
    fn is_over(&mut self) -> bool {
        let threads = 0..self.runtime.num_workers();
        let work: Duration = threads.map(|thread| self.runtime.worker_total_busy_duration(thread)).sum();
        let is_idle = work.saturating_sub(self.before) < IDLE;
        self.before = work;
        let is_due = work.saturating_sub(self.looked) > WORK || self.at.elapsed() > LONGEST;
        if is_idle && is_due {
            (self.looked, self.at) = (work, Instant::now());
        }
        is_idle && is_due
    }
}

/// Runs `work` on each thread of the runtime. A thread that is busy for longer than `patience` is left out.
async fn on_each_thread(work: fn(), patience: Duration) {
    let threads = Handle::current().metrics().num_workers();
    let done = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..threads {
        let done = Arc::clone(&done);
        tasks.spawn(async move {
            work();
            done.fetch_add(1, Ordering::Relaxed);
            // The thread takes no other task until each thread has a task.
            let start = Instant::now();
            while done.load(Ordering::Relaxed) < threads && start.elapsed() < patience {
                std::thread::sleep(Duration::from_micros(50));
            }
        });
    }
    while tasks.join_next().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread::{self, ThreadId};

    use parking_lot::Mutex;
    use windlass_patience::stretched;

    use super::*;

    #[test]
    fn each_thread_of_the_runtime_looks() {
        static THREADS: Mutex<Vec<ThreadId>> = Mutex::new(Vec::new());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).build().unwrap();
        let note = || {
            look();
            THREADS.lock().push(thread::current().id());
        };
        let all = runtime.spawn(on_each_thread(note, stretched(Duration::from_secs(20))));
        runtime.block_on(all).unwrap();
        let threads = std::mem::take(&mut *THREADS.lock());
        assert_eq!(threads.len(), 3);
        assert_eq!(threads.into_iter().collect::<HashSet<_>>().len(), 3);
    }

    #[test]
    fn the_threads_look_once_after_work() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let mut load = Load::new(runtime.handle().metrics());
        assert!(!load.is_over(), "there was no work");
        let work = runtime.spawn(async {
            let start = Instant::now();
            while start.elapsed() < WORK + IDLE {
                std::hint::spin_loop();
            }
        });
        runtime.block_on(work).unwrap();
        // The runtime counts the work of a thread when the thread has no more work.
        let end = Instant::now() + stretched(Duration::from_secs(20));
        while !load.is_over() {
            assert!(Instant::now() < end, "the threads do not look");
            thread::yield_now();
        }
        assert!(!load.is_over(), "the threads have looked");
    }
}
