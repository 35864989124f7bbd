//! The pages of docs/ whose Rust blocks are doc tests of this crate. `cargo xtask tidy` reads this list.

#[doc = include_str!("../../../docs/from-kube-rs.md")]
mod from_kube_rs {}

#[doc = include_str!("../../../docs/from-kubebuilder.md")]
mod from_kubebuilder {}

#[doc = include_str!("../../../docs/caches.md")]
mod caches {}

#[doc = include_str!("../../../docs/errors-and-retries.md")]
mod errors_and_retries {}

#[doc = include_str!("../../../docs/metrics.md")]
mod metrics {}

#[doc = include_str!("../../../docs/flags.md")]
mod flags {}

#[doc = include_str!("../../../docs/predicates.md")]
mod predicates {}

#[doc = include_str!("../../../docs/webhooks.md")]
mod webhooks {}

#[doc = include_str!("../../../docs/webhooks-that-read.md")]
mod webhooks_that_read {}

#[doc = include_str!("../../../docs/certificates.md")]
mod certificates {}

#[doc = include_str!("../../../docs/state-and-metrics.md")]
mod state_and_metrics {}

#[doc = include_str!("../../../docs/new-version.md")]
mod new_version {}

#[doc = include_str!("../../../docs/events.md")]
mod events {}

#[doc = include_str!("../../../docs/finalizers.md")]
mod finalizers {}

#[doc = include_str!("../../../docs/secrets.md")]
mod secrets {}

#[doc = include_str!("../../../docs/leader-election.md")]
mod leader_election {}

#[doc = include_str!("../../../docs/sharding.md")]
mod sharding {}

#[doc = include_str!("../../../docs/clusters.md")]
mod clusters {}

#[doc = include_str!("../../../docs/dynamic-kinds.md")]
mod dynamic_kinds {}

#[doc = include_str!("../../../docs/work-queue.md")]
mod work_queue {}

#[doc = include_str!("../../../docs/writes.md")]
mod writes {}

#[doc = include_str!("../../../docs/stateful.md")]
mod stateful {}

#[doc = include_str!("../../../docs/markers.md")]
mod markers {}

#[doc = include_str!("../../../docs/deploying.md")]
mod deploying {}
