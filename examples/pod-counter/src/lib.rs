//! A controller manager with two controllers.
//!
//! - [`pod_controller`] counts the pods of the cluster every ten seconds. It writes the count into a label of the control-plane nodes, and
//!   records an Event on each pod.
//! - [`ecs_bind_controller`] binds instances to pods, as `EcsBind` objects ask for.
#![forbid(unsafe_code)]

mod ecs_bind;
mod pod_count;

use windlass::{Runnable, prelude::*};

pub use self::{
    ecs_bind::{EcsBind, EcsBindSpec, EcsBindStatus, controller as ecs_bind_controller},
    pod_count::{COUNT_LABEL, PERIOD, controller as pod_controller},
};

/// Returns a part of the manager that logs each Event of the controllers, as the article's `StartLogging` does.
pub fn event_log() -> Runnable {
    Runnable::new("event-log", |cx| async move {
        cx.events().start_logging();
        Ok::<_, Error>(())
    })
}
