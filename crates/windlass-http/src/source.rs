//! A source of credentials that end: a credential plugin, a provider, or a file.

use std::{sync::Arc, time::Duration};

use futures::{
    FutureExt,
    channel::oneshot,
    future::{BoxFuture, Shared},
};
use http::{HeaderValue, Request, Response, header};
use kube_client::client::Body;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use tower::{Service, ServiceExt, util::BoxCloneSyncService};

use crate::error::{BoxError, Error, Result};

/// The shortest time between the begins of two runs of a plugin of which the first failed, or of which the server refused the credentials.
pub(crate) const MIN_AGE: Duration = Duration::from_secs(10);

/// A run of a plugin that takes this long counts as failed.
pub(crate) const LONGEST_RUN: Duration = Duration::from_mins(2);

/// How long a header is used for certain: kube renews a token 60 s before its end. The rest is for the way to the server.
const VALID: Duration = Duration::from_secs(50);

/// A source of the header `Authorization`. The service of kube runs the plugin when the token expires; requests share the run.
pub(crate) struct Source(Mutex<State>);

struct State {
    service: BoxCloneSyncService<Request<Body>, Response<()>, BoxError>,
    /// The last header, and the time at which the service returned the header.
    last: Option<(Instant, HeaderValue)>,
    /// The run that is under way.
    run: Option<Outcome>,
    /// The begin and the error of the last run, if the run failed.
    failure: Option<(Instant, Error)>,
}

/// The outcome of a run. Cancelled if the runtime of the run has shut down.
type Outcome = Shared<oneshot::Receiver<Result<Option<HeaderValue>>>>;

type Call = BoxFuture<'static, Result<Response<()>, BoxError>>;

/// The next step of a caller.
enum Step {
    Known(Result<Option<HeaderValue>>),
    Wait(Outcome),
    Begin(Run, Call, Outcome),
}

impl Source {
    pub(crate) fn new<S>(service: S) -> Arc<Self>
    where
        S: Service<Request<Body>, Response = Response<()>, Error = BoxError> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
    {
        let service = BoxCloneSyncService::new(service);
        Arc::new(Self(Mutex::new(State { service, last: None, run: None, failure: None })))
    }

    /// Returns the value of the header `Authorization`.
    ///
    /// A run of the plugin goes on if the callers leave: a request for a Lease has less time than some plugins take. While the last token is
    /// valid, only the first caller waits for a run, and only the first caller gets the error of a failed run. Otherwise, callers get the error
    /// until the plugin may run again.
    pub(crate) async fn header(self: &Arc<Self>) -> Result<Option<HeaderValue>> {
        let outcome = match self.step() {
            Step::Known(header) => return header,
            Step::Wait(outcome) => outcome,
            Step::Begin(run, call, outcome) => {
                // A runtime that has shut down drops the run at once, which locks the state.
                tokio::spawn(run.drive(call));
                outcome
            }
        };
        outcome.await.unwrap_or_else(|_| Err(Error::stopped()))
    }

    fn step(self: &Arc<Self>) -> Step {
        // Locked during the first poll, which begins the run: two callers must not begin two runs.
        let mut state = self.0.lock();
        if let Some(outcome) = &state.run {
            return state
                .valid()
                .map_or_else(|| Step::Wait(outcome.clone()), |valid| Step::Known(Ok(Some(valid))));
        }
        if let Some((began_at, error)) = &state.failure
            && began_at.elapsed() < MIN_AGE
        {
            return Step::Known(state.valid().map(Some).ok_or_else(|| error.clone()));
        }
        let began_at = Instant::now();
        let mut call: Call = state.service.clone().oneshot(Request::new(Body::empty())).boxed();
        if let Some(outcome) = (&mut call).now_or_never() {
            return Step::Known(state.end(began_at, header_of(outcome)));
        }
        let (sender, outcome) = oneshot::channel();
        let outcome = outcome.shared();
        state.run = Some(outcome.clone());
        Step::Begin(Run { source: self.clone(), began_at, sender: Some(sender) }, call, outcome)
    }
}

impl State {
    /// Returns the last header if the token is valid.
    fn valid(&self) -> Option<HeaderValue> {
        let (returned_at, header) = self.last.as_ref()?;
        (returned_at.elapsed() < VALID).then(|| header.clone())
    }

    /// Notes the outcome of a run, or of a call without a run.
    fn end(
        &mut self,
        began_at: Instant,
        outcome: Result<Option<HeaderValue>>,
    ) -> Result<Option<HeaderValue>> {
        self.run = None;
        match &outcome {
            Ok(header) => {
                self.last = header.clone().map(|header| (Instant::now(), header));
                self.failure = None;
            }
            Err(error) => self.failure = Some((began_at, error.clone())),
        }
        outcome
    }
}

/// A run of the plugin. A run that is dropped, by a panic too, counts as failed.
struct Run {
    source: Arc<Source>,
    began_at: Instant,
    sender: Option<oneshot::Sender<Result<Option<HeaderValue>>>>,
}

impl Run {
    async fn drive(mut self, call: Call) {
        let outcome = match timeout(LONGEST_RUN, call).await {
            Ok(outcome) => header_of(outcome),
            Err(_) => {
                Err(Error::credentials(format!("the credential plugin takes longer than {LONGEST_RUN:?}")))
            }
        };
        self.end(outcome);
    }

    fn end(&mut self, outcome: Result<Option<HeaderValue>>) {
        let Some(sender) = self.sender.take() else { return };
        if let Err(error) = &outcome {
            let cause = std::error::Error::source(error).unwrap_or(error);
            tracing::warn!(error = %cause, "the credential plugin failed");
        }
        let outcome = self.source.0.lock().end(self.began_at, outcome);
        // Fails if no caller waits.
        let _ = sender.send(outcome);
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.end(Err(Error::stopped()));
    }
}

fn header_of(outcome: Result<Response<()>, BoxError>) -> Result<Option<HeaderValue>> {
    let response = outcome.map_err(Error::credentials)?;
    Ok(response.into_parts().0.headers.remove(header::AUTHORIZATION))
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use tokio::{
        runtime::Handle,
        time::{sleep, sleep_until},
    };
    use tower::service_fn;

    use super::*;

    /// Returns a source, and the number of its runs. `run` gets the number of the run, from 1.
    fn source<F>(run: impl Fn(usize) -> F + Clone + Send + Sync + 'static) -> (Arc<Source>, Arc<AtomicUsize>)
    where
        F: Future<Output = Result<Response<()>, BoxError>> + Send + 'static,
    {
        let runs = Arc::<AtomicUsize>::default();
        let counted = runs.clone();
        let service = service_fn(move |_| run(counted.fetch_add(1, Ordering::SeqCst) + 1));
        (Source::new(service), runs)
    }

    fn token(run: usize) -> Result<Response<()>, BoxError> {
        Ok(Response::builder().header(header::AUTHORIZATION, format!("Bearer {run}")).body(())?)
    }

    #[tokio::test(start_paused = true)]
    async fn a_plugin_that_hangs_runs_once_for_many_requests() {
        let (source, runs) = source(|_| pending());
        for _ in 0..50 {
            timeout(Duration::from_secs(1), source.header()).await.expect_err("the plugin hangs");
        }
        assert_eq!(runs.load(Ordering::SeqCst), 1);
        assert_eq!(Handle::current().metrics().num_alive_tasks(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_plugin_that_hung_once_runs_again() {
        let (source, _) = source(async |run| if run == 1 { pending().await } else { token(run) });
        let error = source.header().await.expect_err("the plugin hangs");
        let cause = std::error::Error::source(&error).expect("a cause").to_string();
        assert_eq!(cause, "the credential plugin takes longer than 120s");
        assert_eq!(source.header().await.expect("credentials").expect("a token"), "Bearer 2");
        assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
    }

    /// The requests have 1 s each, and the plugin fails after 3 s.
    #[tokio::test(start_paused = true)]
    async fn a_plugin_that_fails_runs_every_ten_seconds() {
        let (source, runs) = source(async |_| {
            sleep(Duration::from_secs(3)).await;
            Err("the plugin fails".into())
        });
        let begun = Instant::now();
        let mut errors = 0;
        for second in 1..=19 {
            let outcome = timeout(Duration::from_secs(1), source.header()).await;
            errors += usize::from(outcome.is_ok_and(|outcome| outcome.is_err()));
            sleep_until(begun + Duration::from_secs(second)).await;
        }
        assert_eq!(runs.load(Ordering::SeqCst), 2, "after 0 s and after 10 s");
        assert!(errors >= 12, "requests that come between the runs fail at once: {errors}");
    }

    /// The plugin runs before the end of the token, and takes longer than a request for a Lease may take.
    #[tokio::test(start_paused = true)]
    async fn a_valid_token_is_used_while_the_plugin_runs() {
        let (source, runs) = source(async |run| {
            if run > 1 {
                sleep(VALID + Duration::from_secs(10)).await;
            }
            token(run)
        });
        source.header().await.expect("credentials");
        let hasty = async || timeout(Duration::from_secs(1), source.header()).await;
        hasty().await.expect_err("the caller that begins the run waits");
        let header = hasty().await.expect("no wait").expect("credentials");
        assert_eq!(header.expect("a token"), "Bearer 1");
        sleep(VALID).await;
        hasty().await.expect_err("the token may have ended");
        assert_eq!(source.header().await.expect("credentials").expect("a token"), "Bearer 2");
        assert_eq!(runs.load(Ordering::SeqCst), 2);
    }

    /// A run of the plugin fails before the end of the token.
    #[tokio::test(start_paused = true)]
    async fn a_valid_token_is_used_after_a_failed_run() {
        let (source, _) = source(async |run| {
            if run == 1 {
                return token(run);
            }
            sleep(Duration::from_secs(1)).await;
            Err("the plugin fails".into())
        });
        source.header().await.expect("credentials");
        source.header().await.expect_err("the error of the run");
        assert_eq!(source.header().await.expect("credentials").expect("a token"), "Bearer 1");
        sleep(VALID).await;
        source.header().await.expect_err("the error of the next run");
        source.header().await.expect_err("the token may have ended");
    }
}
