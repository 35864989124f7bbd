//! The values of client-go's metrics.

use std::time::Duration;
use windlass_workqueue::core::{Config, Queue, Timestamp};
use windlass_workqueue::{AddOptions, LOW_PRIORITY};

fn at(millis: u64) -> Timestamp {
    Timestamp::from(Duration::from_millis(millis))
}

#[test]
fn durations_adds_and_depth() {
    let queue = Queue::new(&Config::default());
    let low = AddOptions::new().priority(LOW_PRIORITY);
    let limited = AddOptions::new().rate_limited();
    let _ = queue.add("a", AddOptions::new(), at(0));
    let _ = queue.add("a", AddOptions::new(), at(1));
    let _ = queue.add("b", low, at(1));
    let _ = queue.add("b", AddOptions::new(), at(1));
    let _ = queue.add("c", low, at(1));
    let _ = queue.add("d", limited, at(1));
    assert_eq!(queue.snapshot(at(1)).depth, [(0, 2), (LOW_PRIORITY, 1)]);

    let a = queue.get(at(2)).unwrap();
    let b = queue.get(at(4)).unwrap();
    let _ = queue.add("b", AddOptions::new(), at(5));
    let during = queue.snapshot(at(10));
    assert_eq!(during.unfinished_work, Duration::from_millis(8 + 6));
    assert_eq!(during.longest_running_processor, Duration::from_millis(8));
    let _ = queue.done(a, at(12));
    let _ = queue.done(b, at(12));

    let after = queue.snapshot(at(12));
    assert_eq!(
        (after.adds, after.retries),
        (4, 1),
        "a, b, c, and b again; no call has fired the timer of d yet"
    );
    assert_eq!(after.unfinished_work, Duration::ZERO);
    assert_eq!(after.queue_duration.count, 2);
    assert!((after.queue_duration.sum - 0.005).abs() < 1e-9);
    assert!((after.work_duration.sum - 0.018).abs() < 1e-9);
    let bounds: Vec<f64> = after.work_duration.buckets.iter().map(|&(bound, _)| bound).collect();
    assert_eq!(bounds.len(), 12);
    assert!((bounds[0] - 1e-8).abs() < 1e-12 && (bounds[11] - 1000.0).abs() < 1e-9);
    let ten_ms = after.work_duration.buckets.iter().find(|&&(bound, _)| (bound - 0.01).abs() < 1e-9).unwrap();
    assert_eq!(ten_ms.1, 2, "bounds are inclusive");
}
