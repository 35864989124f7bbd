//! Runs the operator. `sample-controller dev` runs it on a control plane of its own, `sample-controller crds` prints its CRD.
#![forbid(unsafe_code)]

use sample_controller::{Foo, controller};
use windlass::prelude::*;

#[tokio::main]
async fn main() -> Result<()> {
    Manager::from_args()
        .crd(Foo::crd())
        .sample(include_str!("../sample.yaml"))
        .controller(controller())
        .run()
        .await
}
