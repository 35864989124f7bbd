//! Runs the operator. `ip-pool dev` runs the operator on an embedded control plane, `ip-pool crds` prints the
//! CRDs.
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
