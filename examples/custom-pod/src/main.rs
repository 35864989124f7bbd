//! Runs the operator. `custom-pod crds` prints its CustomResourceDefinition.
#![forbid(unsafe_code)]

use custom_pod::CustomPod;
use windlass::prelude::*;

#[tokio::main]
async fn main() -> Result<()> {
    Manager::from_args().crd(CustomPod::crd()).controller(custom_pod::controller()).run().await
}
