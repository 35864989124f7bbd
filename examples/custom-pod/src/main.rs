//! Runs the operator. `custom-pod dev` runs the operator on an embedded control plane, `custom-pod crds`
//! prints the CustomResourceDefinition.
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
