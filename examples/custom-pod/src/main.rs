//! Runs the operator. `custom-pod dev` runs it on a control plane of its own, `custom-pod crds` prints its CustomResourceDefinition.
#![forbid(unsafe_code)]

use custom_pod::CustomPod;
use windlass::prelude::*;

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> Result<()> {
    Manager::from_args()
        .crd(CustomPod::crd())
        .sample(include_str!("../sample.yaml"))
        .controller(custom_pod::controller())
        .run()
        .await
}
