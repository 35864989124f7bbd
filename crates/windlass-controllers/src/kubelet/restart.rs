//! The restarts of containers that have ended.

use k8s_openapi::api::core::v1::{Container, ContainerRestartRule, PodSpec};

/// The restart policy of a pod or a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RestartPolicy {
    Always,
    OnFailure,
    Never,
}

impl RestartPolicy {
    fn of(policy: Option<&str>) -> Self {
        match policy {
            Some("Never") => Self::Never,
            Some("OnFailure") => Self::OnFailure,
            _ => Self::Always,
        }
    }

    fn applies(self, exit_code: i32) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => exit_code != 0,
            Self::Never => false,
        }
    }
}

/// Decides whether a container is restarted: by the rules of the container, then by the policy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Restart<'a> {
    pub policy: RestartPolicy,
    rules: &'a [ContainerRestartRule],
    /// True if the container has to succeed once: an init container, except a sidecar.
    is_task: bool,
}

impl<'a> Restart<'a> {
    /// An ephemeral container is never restarted.
    pub(super) const NEVER: Restart<'static> =
        Restart { policy: RestartPolicy::Never, rules: &[], is_task: false };

    /// Returns the restarts of a main container.
    pub(super) fn of_main(pod: &PodSpec, main: &'a Container) -> Self {
        let policy = main.restart_policy.as_deref();
        // Without a policy, a container has no rules.
        let rules = main.restart_policy_rules.as_deref().filter(|_| policy.is_some());
        Self {
            policy: RestartPolicy::of(policy.or(pod.restart_policy.as_deref())),
            rules: rules.unwrap_or_default(),
            is_task: false,
        }
    }

    /// Returns the restarts of an init container or a sidecar.
    pub(super) fn of_init(pod: &PodSpec, init: &'a Container) -> Self {
        Self { is_task: !is_sidecar(init), ..Self::of_main(pod, init) }
    }

    /// Returns whether a container with this exit code is restarted. The action of each rule is a restart of the container.
    pub(super) fn applies(self, exit_code: i32) -> bool {
        if self.is_task && exit_code == 0 {
            return false;
        }
        self.rules.iter().any(|rule| matches(rule, exit_code)) || self.policy.applies(exit_code)
    }
}

fn matches(rule: &ContainerRestartRule, exit_code: i32) -> bool {
    rule.exit_codes.as_ref().is_some_and(|codes| {
        let is_listed = codes.values.iter().flatten().any(|code| *code == exit_code);
        is_listed == (codes.operator == "In")
    })
}

/// Returns whether an init container runs beside the main containers.
pub(super) fn is_sidecar(init: &Container) -> bool {
    init.restart_policy.as_deref() == Some("Always")
}
