//! The metrics of sharding, read at each scrape.

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet},
    metrics::{
        counter::{ConstCounter, Counter},
        family::Family,
        gauge::{ConstGauge, Gauge},
    },
};

use super::shard_group::{KeyCounts, ShardGroup};
use crate::metrics::encode_one;

pub(super) struct ShardingMetrics(pub(super) ShardGroup);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerLabel {
    controller: String,
}

impl std::fmt::Debug for ShardingMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ShardingMetrics")
    }
}

impl Collector for ShardingMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let owned_keys = self.0.owned_keys();
        let (owned, waiting) =
            (Family::<ControllerLabel, Gauge>::default(), Family::<ControllerLabel, Gauge>::default());
        let forgotten = Family::<ControllerLabel, Counter>::default();
        for controller in self.0.controllers() {
            let label = ControllerLabel { controller: controller.name().to_owned() };
            let counts: KeyCounts = controller.count(&owned_keys);
            owned.get_or_create(&label).set(counts.owned as i64);
            waiting.get_or_create(&label).set(counts.waiting as i64);
            forgotten.get_or_create(&label).inc_by(counts.forgotten);
        }
        encode_one(
            &mut encoder,
            "windlass_sharding_members",
            "Number of replicas that this replica knows to share the keys, itself included; 0 while it is not a member",
            &ConstGauge::new(owned_keys.members() as i64),
        )?;
        encode_one(
            &mut encoder,
            "windlass_sharding_hand_overs",
            "Number of times that this replica gave keys to a replica that joined",
            &ConstCounter::new(self.0.hand_overs()),
        )?;
        encode_one(
            &mut encoder,
            "windlass_sharding_keys",
            "Number of objects in the cache whose key this replica works on",
            &owned,
        )?;
        encode_one(
            &mut encoder,
            "windlass_sharding_waiting_keys",
            "Number of keys with work to do that wait until their last owner gives them up",
            &waiting,
        )?;
        encode_one(
            &mut encoder,
            "windlass_sharding_forgotten_keys",
            "Number of keys without an object in the cache that were forgotten, and may not be taken over from another replica",
            &forgotten,
        )
    }
}
