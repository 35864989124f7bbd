//! The volumes of a simulated pod, which come before the containers.

use windlass_runtime::events::EventType;

use super::{PodLifecycle, Sources};
use crate::kubelet::pod_event::PodEvent;
use crate::kubelet::resolve::{Objects, Scope, missing_pull_secrets, unmountable};

impl PodLifecycle<'_> {
    /// Mounts the volumes. Returns whether all are mounted.
    pub(super) fn mount(&mut self) -> bool {
        if self.memory.is_mounted {
            return true;
        }
        let objects = match self.around.sources {
            Sources::Read(objects) => objects,
            // A pod with an address has been mounted by an earlier kubelet.
            Sources::Unread if self.status.pod_ip.is_none() => {
                self.needs_objects = true;
                return false;
            }
            Sources::Unread | Sources::Unneeded => {
                self.memory.is_mounted = true;
                return true;
            }
        };
        let scope = self.scope(objects);
        if let Some(error) = unmountable(scope) {
            if self.memory.mount_error.as_ref() != Some(&error) {
                self.events.push(PodEvent::new(EventType::Warning, "FailedMount", error.to_string()));
                self.memory.mount_error = Some(error);
            }
            self.is_blocked = true;
            return false;
        }
        let secrets = missing_pull_secrets(scope);
        if !secrets.is_empty() {
            let text = format!(
                "Unable to retrieve some image pull secrets ({}); attempting to pull the image may not succeed.",
                secrets.join(", ")
            );
            self.events.push(PodEvent::new(EventType::Warning, "FailedToRetrieveImagePullSecret", text));
        }
        self.memory.is_mounted = true;
        true
    }

    pub(super) fn scope<'b>(&'b self, objects: &'b Objects) -> Scope<'b> {
        Scope { pod: self.pod, spec: &self.spec, addresses: self.around.addresses, objects }
    }
}
