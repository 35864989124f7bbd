//! The named checks of `/healthz` and `/readyz`.

use std::{collections::BTreeMap, panic::AssertUnwindSafe, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use parking_lot::Mutex;

use crate::{
    error::{BoxError, chain},
    supervisor::panic_message,
};

/// A health check. Returns an error that describes the failure.
///
/// Every `async fn() -> Result<(), E>` is a check. See [`Manager::readyz_check`](crate::Manager::readyz_check).
pub trait Check: Send + Sync + 'static {
    /// Runs the check.
    fn check(&self) -> BoxFuture<'static, Result<(), BoxError>>;
}

impl<F, Fut, E> Check for F
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), E>> + Send + 'static,
    E: Into<BoxError>,
{
    fn check(&self) -> BoxFuture<'static, Result<(), BoxError>> {
        let check = self();
        Box::pin(async move { check.await.map_err(Into::into) })
    }
}

/// The checks of a manager. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Health {
    live: Checks,
    ready: Checks,
}

type Checks = Arc<Mutex<BTreeMap<String, Arc<dyn Check>>>>;

/// The response of a health endpoint.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HealthReport {
    pub(crate) healthy: bool,
    pub(crate) text: String,
}

impl Health {
    /// Creates the checks `ping`, which always succeed.
    pub(crate) fn new() -> Self {
        let health = Self::default();
        health.add_live("ping", || async { Ok::<(), BoxError>(()) });
        health.add_ready("ping", || async { Ok::<(), BoxError>(()) });
        health
    }

    pub(crate) fn add_live(&self, name: impl Into<String>, check: impl Check) {
        self.live.lock().insert(name.into(), Arc::new(check));
    }

    pub(crate) fn add_ready(&self, name: impl Into<String>, check: impl Check) {
        self.ready.lock().insert(name.into(), Arc::new(check));
    }

    pub(crate) fn remove_live(&self, name: &str) -> bool {
        self.live.lock().remove(name).is_some()
    }

    pub(crate) fn remove_ready(&self, name: &str) -> bool {
        self.ready.lock().remove(name).is_some()
    }

    /// Runs the checks that a path names, such as `/healthz`, `/readyz` or `/healthz/{check}`, with `?verbose` and
    /// `?exclude={check}`. Returns `None` for any other path.
    pub(crate) async fn answer(&self, path: &str, query: &str) -> Option<HealthReport> {
        let path = path.trim_end_matches('/');
        let (endpoint, checks, rest) = [("healthz", &self.live), ("readyz", &self.ready)]
            .into_iter()
            .find_map(|(name, checks)| Some((name, checks, path.strip_prefix('/')?.strip_prefix(name)?)))?;
        let chosen: Vec<(String, Arc<dyn Check>)> = {
            let checks = checks.lock();
            match rest.strip_prefix('/') {
                Some(one) => vec![(one.to_owned(), checks.get(one)?.clone())],
                None if rest.is_empty() => {
                    checks.iter().map(|(name, check)| (name.clone(), check.clone())).collect()
                }
                None => return None,
            }
        };
        let excluded = |name: &str| query.split('&').any(|pair| pair.strip_prefix("exclude=") == Some(name));
        let verbose = query.split('&').any(|pair| pair == "verbose" || pair.starts_with("verbose="));
        let mut healthy = true;
        let mut lines = Vec::new();
        for (name, check) in chosen {
            if excluded(&name) {
                lines.push(format!("[+]{name} excluded: ok"));
                continue;
            }
            let checked = AssertUnwindSafe(async { check.check().await }).catch_unwind().await;
            let result = checked.unwrap_or_else(|payload| {
                Err(format!("panicked: {}", panic_message(payload.as_ref())).into())
            });
            match result {
                Ok(()) => lines.push(format!("[+]{name} ok")),
                Err(error) => {
                    // The cause is only logged: everybody can read the endpoint.
                    tracing::info!(
                        endpoint,
                        check = name,
                        error = chain(error.as_ref()),
                        "health check failed"
                    );
                    lines.push(format!("[-]{name} failed: reason withheld"));
                    healthy = false;
                }
            }
        }
        if healthy && !verbose {
            return Some(HealthReport { healthy, text: "ok".to_owned() });
        }
        lines.push(format!("{endpoint} check {}\n", if healthy { "passed" } else { "failed" }));
        Some(HealthReport { healthy, text: lines.join("\n") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_check_that_panics_has_failed() {
        let health = Health::new();
        health.add_live("clumsy", || async {
            assert!(std::env::args().count() == 0, "on purpose");
            Ok::<(), BoxError>(())
        });
        let report = health.answer("/healthz", "").await.expect("a report");
        assert!(!report.healthy && report.text.contains("[-]clumsy failed"), "{}", report.text);
        assert!(health.answer("/healthz", "exclude=clumsy").await.expect("a report").healthy);
    }
}
