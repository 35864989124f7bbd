//! Runs the operator. `sample-controller dev` runs the operator on an embedded control plane,
//! `sample-controller crds` prints the CRD.
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
