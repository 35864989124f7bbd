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

type Checks = Arc<Mutex<BTreeMap<String, NamedCheck>>>;

/// A check, and the error of the last run.
#[derive(Clone)]
struct NamedCheck {
    check: Arc<dyn Check>,
    failure: Arc<Mutex<Option<String>>>,
}

impl NamedCheck {
    fn new(check: impl Check) -> Self {
        Self { check: Arc::new(check), failure: Arc::default() }
    }

    /// Runs the check, and logs a change of the result. Returns whether the check succeeded.
    async fn run(&self, endpoint: &str, name: &str) -> bool {
        let checked = AssertUnwindSafe(async { self.check.check().await }).catch_unwind().await;
        let result = checked
            .unwrap_or_else(|payload| Err(format!("panicked: {}", panic_message(payload.as_ref())).into()));
        // The cause is only logged: everybody can read the endpoint.
        let failure = result.err().map(|error| chain(error.as_ref()));
        let before = std::mem::replace(&mut *self.failure.lock(), failure.clone());
        match &failure {
            Some(error) if before.as_ref() == Some(error) => {
                tracing::debug!(endpoint, check = name, error, "health check still fails");
            }
            Some(error) => tracing::warn!(endpoint, check = name, error, "health check failed"),
            None if before.is_some() => tracing::info!(endpoint, check = name, "health check passes again"),
            None => {}
        }
        failure.is_none()
    }
}

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
        self.live.lock().insert(name.into(), NamedCheck::new(check));
    }

    pub(crate) fn add_ready(&self, name: impl Into<String>, check: impl Check) {
        self.ready.lock().insert(name.into(), NamedCheck::new(check));
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
        let chosen: Vec<(String, NamedCheck)> = {
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
            if check.run(endpoint, &name).await {
                lines.push(format!("[+]{name} ok"));
            } else {
                lines.push(format!("[-]{name} failed: reason withheld"));
                healthy = false;
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

    /// Keeps the lines of a log.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Log {
        fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
            self.0.lock().write(line)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_log_has_a_line_for_each_change_of_a_check() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().without_time().with_ansi(false);
        let _logged =
            tracing::subscriber::set_default(subscriber.with_writer(move || writer.clone()).finish());
        let health = Health::new();
        let failure = Arc::new(Mutex::new(None));
        let seen = failure.clone();
        health.add_ready("store", move || std::future::ready(seen.lock().map_or(Ok(()), Err::<(), &str>)));
        for next in [None, Some("full"), Some("full"), Some("gone"), Some("gone"), None, None] {
            *failure.lock() = next;
            let report = health.answer("/readyz", "").await.expect("a report");
            assert_eq!(report.healthy, next.is_none());
        }
        let text = String::from_utf8(log.0.lock().clone()).expect("text");
        let lines: Vec<&str> =
            text.lines().map(|line| line.split("health: ").last().unwrap_or(line)).collect();
        assert_eq!(
            lines,
            [
                r#"health check failed endpoint="readyz" check="store" error="full""#,
                r#"health check failed endpoint="readyz" check="store" error="gone""#,
                r#"health check passes again endpoint="readyz" check="store""#,
            ]
        );
        let levels: Vec<&str> =
            text.split_whitespace().filter(|word| ["WARN", "INFO"].contains(word)).collect();
        assert_eq!(levels, ["WARN", "WARN", "INFO"]);
    }
}
