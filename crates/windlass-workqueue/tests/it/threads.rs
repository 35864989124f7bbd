//! Several threads: no key is handed out twice at once, no key is lost, the order is kept.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use windlass_patience::stretched;
use windlass_workqueue::{AddOptions, LOW_PRIORITY, WorkQueue};

/// The limit of every wait on an idle machine.
const SOON: Duration = Duration::from_secs(20);
const WORKERS: usize = 8;
const ADDERS: usize = 4;
const ADDS: u64 = if cfg!(miri) { 60 } else { 20_000 };

fn runtime(threads: usize) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_time().build().unwrap()
}

/// A seeded generator (xorshift), so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// The test's record of one key.
#[derive(Default)]
struct Record {
    running: AtomicBool,
    /// Incremented before each add.
    wanted: AtomicU64,
    /// The value of `wanted` that the last worker saw.
    seen: AtomicU64,
}

async fn work(queue: WorkQueue<usize>, records: Arc<[Record]>) {
    while let Some(item) = queue.get().await {
        let record = &records[*item.key()];
        assert!(!record.running.swap(true, Ordering::SeqCst), "{} was handed out twice", item.key());
        let wanted = record.wanted.load(Ordering::SeqCst);
        if wanted.is_multiple_of(7) {
            tokio::task::yield_now().await;
        }
        record.seen.store(wanted, Ordering::SeqCst);
        record.running.store(false, Ordering::SeqCst);
        item.done();
    }
}

fn add_at_random(queue: &WorkQueue<usize>, records: &[Record], seed: u64) {
    let mut random = Random(seed);
    for _ in 0..ADDS {
        let key = random.below(records.len() as u64) as usize;
        let mut options = AddOptions::new().priority([0, 0, LOW_PRIORITY, 5][random.below(4) as usize]);
        if random.below(8) == 0 {
            options = options.after(Duration::from_micros(random.below(200)));
        }
        records[key].wanted.fetch_add(1, Ordering::SeqCst);
        queue.add_with(key, options);
    }
}

#[test]
fn no_key_twice_at_once_and_none_lost() {
    for keys in [1, 3, 100, 5000] {
        let queue = WorkQueue::new("test");
        let records: Arc<[Record]> = (0..keys).map(|_| Record::default()).collect();
        let runtime = runtime(2);
        let workers: Vec<_> =
            (0..WORKERS).map(|_| runtime.spawn(work(queue.clone(), Arc::clone(&records)))).collect();
        thread::scope(|scope| {
            for adder in 0..ADDERS {
                let (queue, records) = (&queue, &records);
                scope.spawn(move || add_at_random(queue, records, 0x9E37_79B9 + adder as u64 + keys as u64));
            }
        });
        runtime.block_on(async {
            // A shut-down drops delayed keys: wait for them first.
            let began = std::time::Instant::now();
            while records.iter().any(|r| r.seen.load(Ordering::SeqCst) != r.wanted.load(Ordering::SeqCst)) {
                assert!(began.elapsed() < stretched(SOON), "a key was lost: {:?}", queue.metrics());
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            queue.shut_down_with_drain().await;
            for worker in workers {
                worker.await.unwrap();
            }
        });
        assert_eq!(queue.len(), 0);
        let metrics = queue.metrics();
        assert_eq!(metrics.queue_duration.count, metrics.work_duration.count);
        assert_eq!(
            metrics.adds, metrics.work_duration.count,
            "each add that did not merge leads to one piece of work"
        );
    }
}

#[test]
fn the_keys_of_one_adder_come_in_order() {
    let queue: WorkQueue<(usize, u64)> = WorkQueue::new("test");
    let handed_out = Mutex::new([0; ADDERS]);
    let left = AtomicUsize::new(ADDERS * ADDS as usize);
    thread::scope(|scope| {
        for adder in 0..ADDERS {
            let queue = queue.clone();
            scope.spawn(move || (1..=ADDS).for_each(|n| queue.add((adder, n))));
        }
        for _ in 0..WORKERS {
            let (queue, handed_out, left) = (queue.clone(), &handed_out, &left);
            scope.spawn(move || {
                while left.load(Ordering::Relaxed) > 0 {
                    let mut last = handed_out.lock().unwrap();
                    let Some(item) = queue.try_get() else {
                        drop(last);
                        thread::yield_now();
                        continue;
                    };
                    let (adder, n) = *item.key();
                    assert_eq!(n, last[adder] + 1, "adder {adder}");
                    last[adder] = n;
                    drop(last);
                    left.fetch_sub(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert!(queue.is_empty());
}

#[test]
fn a_sleeping_worker_is_woken() {
    let queue: WorkQueue<u64> = WorkQueue::new("test");
    let back: WorkQueue<u64> = WorkQueue::new("back");
    let runtime = runtime(2);
    let (here, there) = (queue.clone(), back.clone());
    runtime.spawn(async move {
        while let Some(item) = here.get().await {
            there.add(*item.key());
        }
    });
    // Each add meets a worker that is falling asleep, asleep, or waking up.
    runtime.block_on(async {
        for n in 0..ADDS {
            queue.add(n);
            let item = tokio::time::timeout(stretched(SOON), back.get()).await;
            assert_eq!(item.expect("woken in time").map(|item| *item.key()), Some(n));
        }
    });
    queue.shut_down();
}

#[test]
fn a_worker_is_woken_while_the_adding_task_goes_on() {
    let queue: WorkQueue<u64> = WorkQueue::new("test");
    let worked = Arc::new(AtomicU64::new(0));
    let runtime = runtime(2);
    for _ in 0..2 {
        let (queue, worked) = (queue.clone(), Arc::clone(&worked));
        runtime.spawn(async move {
            while let Some(item) = queue.get().await {
                worked.fetch_add(1, Ordering::Relaxed);
                item.done();
            }
        });
    }
    // A task that this task wakes is scheduled on the same thread, after this task yields. This task never
    // yields.
    let adder = runtime.spawn({
        let queue = queue.clone();
        async move {
            let began = std::time::Instant::now();
            for key in 0.. {
                queue.add(key);
                if worked.load(Ordering::Relaxed) > 0 {
                    return true;
                }
                if key % 1000 == 0 && began.elapsed() > stretched(SOON) {
                    return false;
                }
            }
            false
        }
    });
    assert!(runtime.block_on(adder).unwrap(), "no worker took a key while keys were added");
    queue.shut_down();
}
