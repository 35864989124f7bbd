//! The attempts of authentication, by result and user.

use std::time::Duration;

use crate::auth::AuthenticationResult;
use crate::counters::{Counters, Histograms};

/// Users that are counted by name. Other users are `other`, or `email_id` if the name looks like an address.
const KNOWN: [&str; 5] =
    ["admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"];

/// The counters of authentication.
pub(super) struct Authentication {
    pub(super) durations: Histograms<15>,
    pub(super) attempts: Counters,
    pub(super) users: Counters,
}

impl Default for Authentication {
    fn default() -> Self {
        let mut bound = 0.0005;
        let bounds = std::array::from_fn(|_| {
            bound *= 2.0;
            bound
        });
        Self { durations: Histograms::new(bounds), attempts: Counters::default(), users: Counters::default() }
    }
}

impl Authentication {
    pub(super) fn count(&self, result: &AuthenticationResult<'_>, took: Duration) {
        let name = match result {
            AuthenticationResult::Success(user) => {
                let shown = match user {
                    user if KNOWN.contains(user) => user,
                    user if user.contains('@') => "email_id",
                    _ => "other",
                };
                self.users.add(format!("username=\"{shown}\""));
                "success"
            }
            AuthenticationResult::Failure => "failure",
            AuthenticationResult::Error => "error",
        };
        self.attempts.add(format!("result=\"{name}\""));
        self.durations.observe(format!("result=\"{name}\""), took);
    }
}
