//! Runs the operator. `ip-pool dev` runs it on a control plane of its own, `ip-pool crds` prints its CRDs.
#![forbid(unsafe_code)]

use ip_pool::{NAME, add_to};
use windlass::{prelude::*, sharding::Sharding};

#[tokio::main]
async fn main() -> Result<()> {
    add_to(Manager::from_args())
        .sample(include_str!("../sample.yaml"))
        .sharding(Sharding::new(NAME))
        .run()
        .await
}
