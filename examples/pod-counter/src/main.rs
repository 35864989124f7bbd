//! The controller manager. `pod-counter dev` runs the manager on an embedded control plane, `pod-counter
//! crds` prints the CRD.
#![forbid(unsafe_code)]

use pod_counter::{EcsBind, ecs_bind_controller, event_log, pod_controller};
use windlass::prelude::*;

#[tokio::main]
async fn main() -> Result<()> {
    Manager::from_args()
        .crd(EcsBind::crd())
        .sample(include_str!("../sample.yaml"))
        .controller(pod_controller())
        .controller(ecs_bind_controller())
        .runnable(event_log())
        .run()
        .await
}
