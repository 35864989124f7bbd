//! Named checks behind `/healthz` and `/readyz`.

use std::{collections::BTreeMap, sync::Arc};

use futures::future::BoxFuture;
use parking_lot::Mutex;

use crate::error::{BoxError, chain};

/// Says whether something is well; an error says what is not. Any `async fn() -> Result<(), E>` is one.
pub trait Check: Send + Sync + 'static {
    /// Looks.
    fn check(&self) -> BoxFuture<'static, Result<(), BoxError>>;
}

impl<F, Fut, E> Check for F
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), E>> + Send + 'static,
    E: Into<BoxError>,
{
    fn check(&self) -> BoxFuture<'static, Result<(), BoxError>> {
        let looking = self();
        Box::pin(async move { looking.await.map_err(Into::into) })
    }
}

/// The checks of a manager. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Health {
    live: Checks,
    ready: Checks,
}

type Checks = Arc<Mutex<BTreeMap<String, Arc<dyn Check>>>>;

/// What a health endpoint answers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) well: bool,
    pub(crate) text: String,
}

impl Health {
    /// With `ping`, which is always well: the process answers.
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

    /// Answers `/healthz`, `/readyz`, `/healthz/{check}` and so on, with `?verbose` and `?exclude={check}`; `None`: no such path.
    pub(crate) async fn answer(&self, path: &str, query: &str) -> Option<Verdict> {
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
        let mut well = true;
        let mut lines = Vec::new();
        for (name, check) in chosen {
            if excluded(&name) {
                lines.push(format!("[+]{name} excluded: ok"));
                continue;
            }
            match check.check().await {
                Ok(()) => lines.push(format!("[+]{name} ok")),
                Err(error) => {
                    // Why it failed is for the log: the endpoint is open to everybody.
                    tracing::info!(
                        endpoint,
                        check = name,
                        error = chain(error.as_ref()),
                        "health check failed"
                    );
                    lines.push(format!("[-]{name} failed: reason withheld"));
                    well = false;
                }
            }
        }
        if well && !verbose {
            return Some(Verdict { well, text: "ok".to_owned() });
        }
        lines.push(format!("{endpoint} check {}\n", if well { "passed" } else { "failed" }));
        Some(Verdict { well, text: lines.join("\n") })
    }
}
