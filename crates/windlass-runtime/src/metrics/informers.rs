//! The metrics of caches and their watches.

use std::collections::BTreeMap;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
};

use super::encode_one;
use crate::{
    client::path::GroupResource,
    informer::{InformerMetrics, SharedInformerFactory},
};

/// The metrics of all caches of a factory, read at each scrape. Caches of the same resource count as one.
#[derive(Debug)]
pub(crate) struct CacheMetrics(pub(crate) SharedInformerFactory);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResourceLabel {
    resource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PartLabel {
    resource: String,
    part: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ChangeLabel {
    resource: String,
    change: &'static str,
}

impl Collector for CacheMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let mut resources: BTreeMap<String, Vec<InformerMetrics>> = BTreeMap::new();
        for informer in self.0.informers() {
            resources
                .entry(GroupResource::of(informer.resource()).to_string())
                .or_default()
                .push(informer.metrics());
        }
        let gauge = |read: fn(&InformerMetrics) -> usize| {
            let family = Family::<ResourceLabel, Gauge>::default();
            for (resource, informers) in &resources {
                let label = ResourceLabel { resource: resource.clone() };
                family.get_or_create(&label).set(informers.iter().map(read).sum::<usize>() as i64);
            }
            family
        };
        let counter = |read: fn(&InformerMetrics) -> u64| {
            let family = Family::<ResourceLabel, Counter>::default();
            for (resource, informers) in &resources {
                let label = ResourceLabel { resource: resource.clone() };
                family.get_or_create(&label).inc_by(informers.iter().map(read).sum());
            }
            family
        };
        let bytes = Family::<PartLabel, Gauge>::default();
        let changes = Family::<ChangeLabel, Counter>::default();
        for (resource, informers) in &resources {
            for metrics in informers {
                let parts = [
                    ("objects", metrics.object_bytes),
                    ("index", metrics.index_bytes),
                    ("shapes", metrics.shape_bytes),
                    ("dictionaries", metrics.dictionary_bytes),
                    ("decoded", metrics.decoded_bytes),
                    ("backlog", metrics.backlog_bytes),
                ];
                for (part, size) in parts {
                    bytes.get_or_create(&PartLabel { resource: resource.clone(), part }).inc_by(size as i64);
                }
                for (change, count) in
                    [("added", metrics.added), ("updated", metrics.updated), ("deleted", metrics.deleted)]
                {
                    changes.get_or_create(&ChangeLabel { resource: resource.clone(), change }).inc_by(count);
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
        )
    }
}
