//! Spans and metrics for an OpenTelemetry collector.

#[cfg(not(feature = "opentelemetry"))]
pub(super) use absent::{export, layer};
#[cfg(feature = "opentelemetry")]
pub(super) use present::{export, layer};

#[cfg(feature = "opentelemetry")]
mod present {
    use std::{convert::Infallible, sync::OnceLock};

    use tracing::Subscriber;
    use tracing_subscriber::{Layer, registry::LookupSpan};
    use windlass_opentelemetry::Telemetry;
    use windlass_runtime::{
        Manager, RunContext,
        manager::{Group, Runnable},
    };

    use crate::cli::args::program_name;

    /// The exporters of the environment variables. The process has at most one export, because a process has
    /// one subscriber.
    static TELEMETRY: OnceLock<Option<Telemetry>> = OnceLock::new();

    /// Returns a layer that takes the spans, and a warning if an environment variable is wrong.
    pub(in crate::cli) fn layer<S>() -> (Option<impl Layer<S> + Send + Sync>, Option<String>)
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        let mut problem = None;
        let telemetry = TELEMETRY.get_or_init(|| {
            Telemetry::from_env(&program_name()).unwrap_or_else(|error| {
                problem = Some(error.to_string());
                None
            })
        });
        (telemetry.as_ref().and_then(Telemetry::layer), problem)
    }

    /// Sends the metrics of the manager while the manager runs, and the remaining metrics after all other
    /// parts have stopped.
    pub(in crate::cli) fn export(manager: Manager) -> Manager {
        let Some(telemetry) = TELEMETRY.get().and_then(Option::as_ref) else { return manager };
        let metrics = manager.metrics().clone();
        let run = move |cx: RunContext| async move {
            telemetry.run(move || metrics.render(), cx.shutdown().requested()).await;
            Ok::<_, Infallible>(())
        };
        manager.runnable(Runnable::new("telemetry", run).group(Group::Http))
    }
}

#[cfg(not(feature = "opentelemetry"))]
mod absent {
    use tracing_subscriber::layer::Identity;
    use windlass_runtime::Manager;

    pub(in crate::cli) fn layer() -> (Option<Identity>, Option<String>) {
        (None, None)
    }

    pub(in crate::cli) fn export(manager: Manager) -> Manager {
        manager
    }
}
