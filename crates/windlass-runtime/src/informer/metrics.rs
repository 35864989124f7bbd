//! The metrics of caches and of watches.

use std::collections::BTreeMap;

use prometheus_client::{
    collector::Collector,
    encoding::DescriptorEncoder,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
};

use super::{InformerMetrics, SharedInformerFactory};
use crate::{metrics::encode_one, resource_path::GroupResource};

/// The metrics of all caches of the factories, read at each scrape. Caches of the same resource in a cluster count as one. The manager's
/// own cluster has no name, and no label.
#[derive(Debug)]
pub(crate) struct CacheMetrics(pub(crate) Vec<(Option<String>, SharedInformerFactory)>);

/// A resource, and the name of the cluster. `None` for the manager's own cluster.
type Place = (String, Option<String>);

/// Labels as pairs, because the label `cluster` is not always there.
type Labels = Vec<(&'static str, String)>;

/// A gauge of Prometheus is exact up to 15 decimal digits.
const SHOWN_VERSIONS: u64 = 1_000_000_000_000_000;

fn labels((resource, cluster): &Place) -> Labels {
    let cluster = cluster.iter().map(|cluster| ("cluster", cluster.clone()));
    std::iter::once(("resource", resource.clone())).chain(cluster).collect()
}

fn labels_with(place: &Place, name: &'static str, value: &str) -> Labels {
    let mut labels = labels(place);
    labels.push((name, value.to_owned()));
    labels
}

impl CacheMetrics {
    /// Encodes client-go's metric of the resource versions of stores. If several watches show a resource, the oldest store counts.
    fn encode_versions(&self, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
        let mut oldest: BTreeMap<Labels, u64> = BTreeMap::new();
        for (cluster, factory) in &self.0 {
            for informer in factory.informers() {
                let (resource, version) = (informer.resource(), informer.last_sync_resource_version());
                let labels = vec![
                    ("name", cluster.clone().unwrap_or_default()),
                    ("group", resource.group.clone()),
                    ("version", resource.version.clone()),
                    ("resource", resource.plural.clone()),
                ];
                oldest.entry(labels).and_modify(|known| *known = version.min(*known)).or_insert(version);
            }
        }
        let family = Family::<Labels, Gauge>::default();
        for (labels, version) in oldest {
            family.get_or_create(&labels).set((version % SHOWN_VERSIONS) as i64);
        }
        encode_one(
            encoder,
            "informer_store_resource_version",
            "The 15 least significant digits of the resource version of the store",
            &family,
        )
    }
}

impl Collector for CacheMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let mut resources: BTreeMap<Place, Vec<InformerMetrics>> = BTreeMap::new();
        for (cluster, factory) in &self.0 {
            for informer in factory.informers() {
                let resource = GroupResource::of(informer.resource()).to_string();
                resources.entry((resource, cluster.clone())).or_default().push(informer.metrics());
            }
            // A counter that falls when a watch ends would look like a restart.
            for (resource, counted) in factory.ended() {
                resources.entry((resource.to_string(), cluster.clone())).or_default().push(counted);
            }
        }
        let gauge = |read: fn(&InformerMetrics) -> usize| {
            let family = Family::<Labels, Gauge>::default();
            for (resource, informers) in &resources {
                family.get_or_create(&labels(resource)).set(informers.iter().map(read).sum::<usize>() as i64);
            }
            family
        };
        let counter = |read: fn(&InformerMetrics) -> u64| {
            let family = Family::<Labels, Counter>::default();
            for (resource, informers) in &resources {
                family.get_or_create(&labels(resource)).inc_by(informers.iter().map(read).sum());
            }
            family
        };
        let bytes = Family::<Labels, Gauge>::default();
        let changes = Family::<Labels, Counter>::default();
        for (resource, informers) in &resources {
            for metrics in informers {
                let parts = [
                    ("objects", metrics.object_bytes),
                    ("index", metrics.index_bytes),
                    ("shared", metrics.shared_bytes),
                    ("dictionaries", metrics.dictionary_bytes),
                    ("decoded", metrics.decoded_bytes),
                    ("backlog", metrics.backlog_bytes),
                ];
                for (part, size) in parts {
                    bytes.get_or_create(&labels_with(resource, "part", part)).inc_by(size as i64);
                }
                for (change, count) in
                    [("added", metrics.added), ("updated", metrics.updated), ("deleted", metrics.deleted)]
                {
                    changes.get_or_create(&labels_with(resource, "change", change)).inc_by(count);
                }
            }
        }
        let encoder = &mut encoder;
        encode_one(
            encoder,
            "windlass_cache_objects",
            "Number of objects in the cache",
            &gauge(|m| m.objects),
        )?;
        encode_one(encoder, "windlass_cache_bytes", "Size of the cache in bytes, by part", &bytes)?;
        encode_one(encoder, "windlass_cache_changes", "Number of changes that the cache has seen", &changes)?;
        encode_one(
            encoder,
            "windlass_cache_unreadable",
            "Number of objects that the server sent and the cache could not read",
            &counter(|m| m.unreadable),
        )?;
        encode_one(
            encoder,
            "windlass_cache_backlog",
            "Number of changes that the slowest handler has not handled yet",
            &gauge(|m| m.backlog),
        )?;
        encode_one(
            encoder,
            "windlass_cache_coalesced",
            "Number of changes that slow handlers got as part of a later change",
            &counter(|m| m.coalesced),
        )?;
        encode_one(
            encoder,
            "windlass_cache_index_panics",
            "Number of changes during which an index function panicked",
            &counter(|m| m.index_panics),
        )?;
        encode_one(encoder, "windlass_watch_lists", "Number of lists", &counter(|m| m.lists))?;
        encode_one(
            encoder,
            "windlass_watch_relists",
            "Number of watches that could not resume, so that everything was listed again",
            &counter(|m| m.relists),
        )?;
        encode_one(
            encoder,
            "windlass_watch_failures",
            "Number of lists and watches that failed",
            &counter(|m| m.failures),
        )?;
        let failing = Family::<Labels, Gauge>::default();
        for (cluster, factory) in &self.0 {
            for informer in factory.informers() {
                let resource = GroupResource::of(informer.resource()).to_string();
                let gauge = failing.get_or_create(&labels(&(resource, cluster.clone()))).clone();
                let seconds = informer.failing().map_or(0, |failing| failing.duration().as_secs()) as i64;
                gauge.set(gauge.get().max(seconds));
            }
        }
        self.encode_versions(encoder)?;
        encode_one(
            encoder,
            "windlass_watch_failing_seconds",
            "Time since the watch works no longer; 0 while the watch works",
            &failing,
        )
    }
}
