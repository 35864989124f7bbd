//! `WorkQueue` on tokio's paused clock.

use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use windlass_workqueue::{AddOptions, Equivalent, RateLimiter, WorkQueue};

fn queue() -> WorkQueue<&'static str> {
    WorkQueue::builder("test").rate_limiter(RateLimiter::default().jitter(0.0)).build()
}

#[tokio::test(start_paused = true)]
async fn get_waits_for_a_delayed_key() {
    let queue = queue();
    let began = Instant::now();
    queue.add_after("a", Duration::from_hours(1));
    assert_eq!(*queue.get().await.unwrap().key(), "a");
    assert_eq!(began.elapsed().as_secs(), 3600);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_worker_notices_an_earlier_deadline() {
    let queue = queue();
    queue.add_after("late", Duration::from_secs(100));
    let began = Instant::now();
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move { *queue.get().await.unwrap().key() }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    queue.add_after("early", Duration::from_secs(10));
    assert_eq!(worker.await.unwrap(), "early");
    assert_eq!(began.elapsed().as_secs(), 11);
}

#[tokio::test(start_paused = true)]
async fn when_the_worker_that_holds_the_timer_is_cancelled_another_takes_it() {
    let queue = queue();
    let spawn = || {
        let queue = queue.clone();
        tokio::spawn(async move { *queue.get().await.unwrap().key() })
    };
    let (watcher, other) = (spawn(), spawn());
    tokio::time::sleep(Duration::from_secs(1)).await;
    queue.add_after("a", Duration::from_secs(5));
    tokio::time::sleep(Duration::from_secs(1)).await;
    watcher.abort();
    assert_eq!(timeout(Duration::from_secs(10), other).await.unwrap().unwrap(), "a");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_set_while_no_worker_holds_the_timer_wakes_one() {
    let queue = queue();
    let work = |time: Duration| {
        let queue = queue.clone();
        tokio::spawn(async move {
            let item = queue.get().await.unwrap();
            tokio::time::sleep(time).await;
            *item.key()
        })
    };
    let (watcher, other) = (work(Duration::from_hours(1)), work(Duration::ZERO));
    tokio::time::sleep(Duration::from_secs(1)).await;
    queue.add("long");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let began = Instant::now();
    queue.add_after("a", Duration::from_secs(5));
    let other = timeout(Duration::from_mins(1), other).await.expect("woken at the deadline");
    assert_eq!(other.unwrap(), "a");
    assert_eq!(began.elapsed().as_secs(), 5);
    assert_eq!(watcher.await.unwrap(), "long");
}

#[tokio::test(start_paused = true)]
async fn keys_due_at_the_same_time_wake_as_many_workers() {
    let queue: WorkQueue<u32> = WorkQueue::new("test");
    let workers: Vec<_> = (0..5)
        .map(|_| {
            let queue = queue.clone();
            // Each worker keeps a key for a minute: five keys need five workers.
            tokio::spawn(async move {
                let item = queue.get().await.unwrap();
                tokio::time::sleep(Duration::from_mins(1)).await;
                *item.key()
            })
        })
        .collect();
    tokio::task::yield_now().await;
    (0..5).for_each(|key| queue.add_after(key, Duration::from_secs(5)));
    let began = Instant::now();
    for worker in workers {
        worker.await.unwrap();
    }
    assert_eq!(began.elapsed().as_secs(), 65);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_get_loses_no_key() {
    let queue = queue();
    for _ in 0..100 {
        let given_up = timeout(Duration::from_millis(1), queue.get()).await;
        assert!(given_up.is_err());
    }
    let mut sleeper = Box::pin(queue.get());
    assert!(futures_poll(&mut sleeper).is_none());
    queue.add("a");
    // The woken worker is cancelled before it takes the key.
    drop(sleeper);
    assert_eq!(*timeout(Duration::from_secs(1), queue.get()).await.unwrap().unwrap().key(), "a");
}

fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::Pin::new(future).poll(&mut context) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_an_item_marks_it_as_done_and_a_requeued_key_comes_back() {
    let queue = queue();
    queue.add_with("a", AddOptions::new().priority(7));
    let item = queue.get().await.unwrap();
    assert_eq!(item.priority(), 7);
    item.requeue(AddOptions::new().rate_limited().priority(item.priority()));
    assert_eq!(item.num_requeues(), 1);
    drop(item);
    let began = Instant::now();
    let item = queue.get().await.unwrap();
    assert_eq!((item.priority(), began.elapsed()), (7, Duration::from_millis(5)));
    item.forget();
    assert_eq!(queue.num_requeues(&"a"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_shut_down_wakes_every_worker() {
    let queue = queue();
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.get().await.is_none() })
        })
        .collect();
    tokio::task::yield_now().await;
    queue.shut_down();
    for worker in workers {
        assert!(worker.await.unwrap());
    }
    assert!(queue.is_shut_down());
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_ready_keys_and_keys_in_flight() {
    let queue = queue();
    queue.add("a");
    queue.add("b");
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move {
            while let Some(item) = queue.get().await {
                tokio::time::sleep(Duration::from_secs(10)).await;
                item.done();
            }
        }
    });
    tokio::task::yield_now().await;
    let began = Instant::now();
    queue.shut_down_with_drain().await;
    assert_eq!(began.elapsed().as_secs(), 20);
    worker.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn equal_seeds_give_equal_delays() {
    async fn delays(seed: u64) -> Vec<Duration> {
        let queue = WorkQueue::builder("test").seed(seed).build();
        let mut delays = Vec::new();
        for _ in 0..8 {
            queue.add_rate_limited("a");
            let began = Instant::now();
            queue.get().await.unwrap().done();
            delays.push(began.elapsed());
        }
        delays
    }
    let first = delays(1).await;
    assert_eq!(first, delays(1).await);
    assert_ne!(first, delays(2).await);
}

#[tokio::test(start_paused = true)]
async fn the_token_bucket_delays_failures_beyond_its_burst() {
    let queue: WorkQueue<u32> = WorkQueue::builder("test").rate_limiter(RateLimiter::client_go()).build();
    let began = Instant::now();
    (0..110).for_each(|key| queue.add_rate_limited(key));
    for _ in 0..110 {
        queue.get().await.unwrap().done();
    }
    // A burst of 100, each after 5 ms; then 10 a second.
    assert_eq!(began.elapsed().as_millis(), 1000);
}

/// A key in two borrowed parts.
#[derive(Hash)]
struct Parts<'a>(&'a str, &'a str);

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key(Arc<str>, Arc<str>);

impl Equivalent<Key> for Parts<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        (self.0, self.1) == (&*key.0, &*key.1)
    }
}

impl From<&Parts<'_>> for Key {
    fn from(parts: &Parts<'_>) -> Self {
        Self(parts.0.into(), parts.1.into())
    }
}

#[test]
fn a_known_key_is_not_converted_again() {
    let queue = WorkQueue::new("test");
    let known = Key("default".into(), "a".into());
    queue.add(known.clone());
    let added = queue.add_ref(&Parts("default", "a"), AddOptions::new());
    assert_eq!(queue.len(), 1, "it is the same key");
    assert!(Arc::ptr_eq(&added.0, &known.0));
    let other = queue.add_ref(&Parts("default", "b"), AddOptions::new().priority(7));
    assert_eq!(queue.len(), 2);
    let item = queue.try_get().unwrap();
    assert!((item.priority(), Arc::ptr_eq(&item.key().1, &other.1)) == (7, true));
    queue.shut_down();
    assert!(queue.add_ref(&Parts("default", "c"), AddOptions::new()) == Key("default".into(), "c".into()));
    assert_eq!(queue.len(), 1);
}
