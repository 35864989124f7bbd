//! The metrics of work queues.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicU64},
};

use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet},
    metrics::{MetricType, counter::Counter, family::Family, gauge::Gauge},
};
use windlass_workqueue::{Histogram as QueueHistogram, Snapshot};

use super::{NameLabel, encode_one};

/// The metrics of all work queues, read at each scrape.
#[derive(Clone, Default)]
pub(crate) struct QueueMetrics {
    queues: Arc<Mutex<BTreeMap<String, Snapshots>>>,
}

type Snapshots = Arc<dyn Fn() -> Snapshot + Send + Sync>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabel {
    name: String,
    controller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DepthLabel {
    name: String,
    controller: String,
    priority: String,
}

/// The number of priorities with a separate label, as in controller-runtime.
const PRIORITIES: usize = 25;

impl QueueMetrics {
    pub(crate) fn add(&self, controller: &str, snapshot: impl Fn() -> Snapshot + Send + Sync + 'static) {
        self.queues.lock().insert(controller.to_owned(), Arc::new(snapshot));
    }

    pub(crate) fn remove(&self, controller: &str) {
        self.queues.lock().remove(controller);
    }
}

impl std::fmt::Debug for QueueMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("QueueMetrics")
    }
}

impl Collector for QueueMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let queues: Vec<(QueueLabel, Snapshot)> = {
            let queues = self.queues.lock();
            let read = |(name, read): (&String, &Snapshots)| {
                (QueueLabel { name: name.clone(), controller: name.clone() }, read())
            };
            queues.iter().map(read).collect()
        };
        let depth = Family::<DepthLabel, Gauge>::default();
        let (adds, retries) =
            (Family::<QueueLabel, Counter>::default(), Family::<QueueLabel, Counter>::default());
        let unfinished = Family::<QueueLabel, Gauge<f64, AtomicU64>>::default();
        let longest = Family::<QueueLabel, Gauge<f64, AtomicU64>>::default();
        for (label, snapshot) in &queues {
            for (place, (priority, keys)) in snapshot.depth.iter().enumerate() {
                let priority = if place < PRIORITIES {
                    priority.to_string()
                } else {
                    "exceeded_cardinality_limit".to_owned()
                };
                let QueueLabel { name, controller } = label.clone();
                depth.get_or_create(&DepthLabel { name, controller, priority }).inc_by(*keys as i64);
            }
            adds.get_or_create(label).inc_by(snapshot.adds);
            retries.get_or_create(label).inc_by(snapshot.retries);
            unfinished.get_or_create(label).set(snapshot.unfinished_work.as_secs_f64());
            longest.get_or_create(label).set(snapshot.longest_running_processor.as_secs_f64());
        }
        encode_one(
            &mut encoder,
            "workqueue_depth",
            "Current depth of workqueue by workqueue and priority",
            &depth,
        )?;
        encode_one(&mut encoder, "workqueue_adds", "Total number of adds handled by workqueue", &adds)?;
        encode_one(
            &mut encoder,
            "workqueue_retries",
            "Total number of retries handled by workqueue",
            &retries,
        )?;
        encode_one(
            &mut encoder,
            "workqueue_unfinished_work_seconds",
            "How many seconds of work has been done that is in progress and hasn't been observed by work_duration",
            &unfinished,
        )?;
        encode_one(
            &mut encoder,
            "workqueue_longest_running_processor_seconds",
            "How many seconds has the longest running processor for workqueue been running",
            &longest,
        )?;
        let queued = queues.iter().map(|(label, snapshot)| (label, &snapshot.queue_duration));
        encode_histograms(
            &mut encoder,
            "workqueue_queue_duration_seconds",
            "How long in seconds an item stays in workqueue before being requested",
            queued,
        )?;
        let worked = queues.iter().map(|(label, snapshot)| (label, &snapshot.work_duration));
        encode_histograms(
            &mut encoder,
            "workqueue_work_duration_seconds",
            "How long in seconds processing an item from workqueue takes",
            worked,
        )
    }
}

fn encode_histograms<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    queues: impl Iterator<Item = (&'a QueueLabel, &'a QueueHistogram)>,
) -> std::fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    for (label, histogram) in queues {
        // The queue's buckets are cumulative, the encoder's are not.
        let mut below = 0;
        let mut buckets: Vec<(f64, u64)> = Vec::with_capacity(histogram.buckets.len() + 1);
        for (bound, up_to) in &histogram.buckets {
            buckets.push((*bound, up_to - below));
            below = *up_to;
        }
        buckets.push((f64::INFINITY, histogram.count - below));
        metric.encode_family(label)?.encode_histogram::<NameLabel>(
            histogram.sum,
            histogram.count,
            &buckets,
            None,
        )?;
    }
    Ok(())
}
