//! The checks of probes, and the hooks of containers.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, HTTPGetAction, LifecycleHandler, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use windlass_node::probe::{Check, CheckResult, HttpProbe, run, run_hook};
use windlass_node::{ContainerId, Runtime, SandboxId};

/// The longest time of a hook, for hooks that a kubelet does not limit.
const HOOK_LIMIT: Duration = Duration::from_hours(1);

/// A container with probes and hooks to perform.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub runtime: &'a dyn Runtime,
    pub sandbox: &'a SandboxId,
    pub id: &'a ContainerId,
    pub container: &'a Container,
    /// The address of the pod, for messages.
    pub address: &'a str,
}

impl Target<'_> {
    /// Performs a probe once. The text of a failure is that of the kubelet.
    pub(crate) async fn probe(self, probe: &Probe) -> CheckResult {
        let seconds = probe.timeout_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let limit = Duration::from_secs(seconds.unwrap_or(1).max(1));
        match self.check(probe) {
            Ok(Some(check)) => run(self.runtime, self.sandbox, self.id, &check, limit).await,
            Ok(None) => CheckResult::Success,
            Err(why) => CheckResult::Failure(why),
        }
    }

    fn check(self, probe: &Probe) -> Result<Option<Check>, String> {
        Ok(Some(if let Some(exec) = &probe.exec {
            Check::Exec { words: exec.command.clone().unwrap_or_default() }
        } else if let Some(get) = &probe.http_get {
            self.http(get)?
        } else if let Some(socket) = &probe.tcp_socket {
            Check::Tcp { host: given(socket.host.as_deref()), port: self.port(&socket.port)? }
        } else if let Some(grpc) = &probe.grpc {
            let service = grpc.service.clone().unwrap_or_default();
            Check::Grpc { port: self.port(&IntOrString::Int(grpc.port))?, service }
        } else {
            return Ok(None);
        }))
    }

    /// Performs a `postStart` or `preStop` hook.
    ///
    /// # Errors
    /// Why the hook has failed.
    pub(crate) async fn hook(self, hook: &LifecycleHandler) -> Result<(), String> {
        let check = if let Some(sleep) = &hook.sleep {
            let seconds = u64::try_from(sleep.seconds).unwrap_or_default();
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            return Ok(());
        } else if let Some(exec) = &hook.exec {
            Check::Exec { words: exec.command.clone().unwrap_or_default() }
        } else if let Some(get) = &hook.http_get {
            self.http(get)?
        } else {
            return Ok(());
        };
        run_hook(self.runtime, self.sandbox, self.id, &check, HOOK_LIMIT).await
    }

    fn http(self, get: &HTTPGetAction) -> Result<Check, String> {
        let headers = get.http_headers.iter().flatten();
        let host = given(get.host.as_deref());
        Ok(Check::Http(HttpProbe {
            port: self.port(&get.port)?,
            path: get.path.clone().unwrap_or_else(|| "/".to_owned()),
            tls: get.scheme.as_deref().is_some_and(|scheme| scheme.eq_ignore_ascii_case("HTTPS")),
            is_outside: host.is_some(),
            host: host.unwrap_or_else(|| self.address.to_owned()),
            headers: headers.map(|header| (header.name.clone(), header.value.clone())).collect(),
        }))
    }

    /// Returns the number of a port. A name is the name of a port of the container.
    fn port(self, port: &IntOrString) -> Result<u16, String> {
        let wrong = || format!("invalid port number: {port:?}");
        match port {
            IntOrString::Int(number) => u16::try_from(*number).map_err(|_| wrong()),
            IntOrString::String(name) => {
                let mut ports = self.container.ports.iter().flatten();
                let found = ports.find(|port| port.name.as_deref() == Some(name));
                let number = found.and_then(|port| u16::try_from(port.container_port).ok());
                number.or_else(|| name.parse().ok()).ok_or_else(wrong)
            }
        }
    }
}

/// Returns the host of a check. A check without a host is a check of the pod.
fn given(host: Option<&str>) -> Option<String> {
    host.filter(|host| !host.is_empty()).map(str::to_owned)
}
