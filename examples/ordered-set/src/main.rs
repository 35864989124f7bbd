//! Runs the operator. `ordered-set dev` runs the operator on an embedded control plane, `ordered-set crds`
//! prints the CRD.
#![forbid(unsafe_code)]

use ordered_set::{OrderedSet, controller};
use windlass::prelude::*;

#[tokio::main]
async fn main() -> Result<()> {
    Manager::from_args()
        .crd(OrderedSet::crd())
        .sample(include_str!("../sample.yaml"))
        .controller(controller())
        .run()
        .await
}
