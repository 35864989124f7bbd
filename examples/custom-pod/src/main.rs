//! Runs the operator: `custom-pod`, or `custom-pod crds` to print what the cluster must know first.
#![forbid(unsafe_code)]

use custom_pod::CustomPod;
use windlass::prelude::*;

#[tokio::main]
async fn main() -> Result<()> {
    Manager::from_args().crd(CustomPod::crd()).controller(custom_pod::controller()).run().await
}
