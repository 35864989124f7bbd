//! The `Authorization` of requests, and the headers that kube's layers add.

use std::{
    future::{Ready, ready},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt, channel::oneshot};
use http::{HeaderMap, HeaderValue, Request, Response, header};
use kube_client::{
    Config,
    client::{AuthError, Body, ConfigExt},
};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use tower::{Layer, Service};

use crate::{
    error::{BoxError, Error, Result},
    plugin::{self, PluginPermit, PluginRuns},
    source::{LONGEST_RUN, MIN_AGE, Source},
};

/// Returns the headers of a request as the headers of a response: the last service behind kube's layers, which only add headers.
#[derive(Clone, Copy)]
pub(crate) struct HeaderSink;

impl HeaderSink {
    /// Returns the headers that a layer adds at once.
    pub(crate) fn headers_of<S>(layered: &mut S) -> Result<HeaderMap>
    where
        S: Service<Request<Body>, Response = Response<()>, Error = BoxError>,
    {
        match layered.call(Request::new(Body::empty())).now_or_never() {
            Some(Ok(response)) => Ok(response.into_parts().0.headers),
            Some(Err(error)) => Err(Error::credentials(error)),
            None => Err(Error::credentials("a header is not known yet")),
        }
    }
}

impl Service<Request<Body>> for HeaderSink {
    type Response = Response<()>;
    type Error = BoxError;
    type Future = Ready<Result<Response<()>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let mut response = Response::new(());
        *response.headers_mut() = request.into_parts().0.headers;
        ready(Ok(response))
    }
}

/// The source of the header `Authorization`: kube's layer for the configuration.
pub(crate) enum Credentials {
    None,
    /// A token or a password of the configuration.
    Fixed(HeaderValue),
    /// Credentials with an end: of a plugin, a provider, or a file.
    Renewed(Arc<Renewed>),
}

pub(crate) struct Renewed {
    config: Arc<Config>,
    state: Mutex<State>,
    runs: PluginRuns,
}

struct State {
    source: Option<Arc<Source>>,
    made_at: Instant,
    refused: bool,
    /// The begin of the last renewal, while the plugin runs.
    renewing_since: Option<Instant>,
    /// The begin of the renewal that made the source.
    renewed_by: Option<Instant>,
}

impl Credentials {
    /// Reads the credentials of a configuration. Runs its credential plugin.
    pub(crate) fn new(config: &Arc<Config>) -> Result<Self, kube_client::Error> {
        let auth = &config.auth_info;
        if auth.exec.is_some() || auth.auth_provider.is_some() || auth.token_file.is_some() {
            let state = State::new(source(config)?, Instant::now());
            return Ok(Self::Renewed(Arc::new(Renewed::new(config.clone(), state))));
        }
        let Some(layer) = config.auth_layer()? else { return Ok(Self::None) };
        let headers = HeaderSink::headers_of(&mut layer.layer(HeaderSink));
        let mut headers = headers.map_err(|error| kube_client::Error::Service(error.into()))?;
        Ok(headers.remove(header::AUTHORIZATION).map_or(Self::None, Self::Fixed))
    }

    /// Returns the value of the header `Authorization`.
    pub(crate) async fn header(&self) -> Result<Option<HeaderValue>> {
        match self {
            Self::None => Ok(None),
            Self::Fixed(value) => Ok(Some(value.clone())),
            Self::Renewed(renewed) => Box::pin(renewed.header()).await,
        }
    }

    /// Notes that the server refused the credentials of a request. A credential plugin runs again before the next request.
    pub(crate) fn refused(&self) {
        if let Self::Renewed(renewed) = self
            && renewed.config.auth_info.exec.is_some()
        {
            renewed.refused();
        }
    }
}

impl State {
    fn new(source: Option<Arc<Source>>, made_at: Instant) -> Self {
        Self { source, made_at, refused: false, renewing_since: None, renewed_by: None }
    }
}

impl Renewed {
    fn new(config: Arc<Config>, state: State) -> Self {
        Self { config, state: Mutex::new(state), runs: PluginRuns::new() }
    }

    async fn header(self: &Arc<Self>) -> Result<Option<HeaderValue>> {
        if let Some(renewal) = self.begin_renewal() {
            let longest_wait = if renewal.is_second { Duration::ZERO } else { LONGEST_RUN };
            let (end, ended) = oneshot::channel::<()>();
            // The plugin runs on if the caller leaves: a request for a Lease has less time than some plugins take.
            plugin::spawn(move || {
                renewal.run();
                drop(end);
            });
            let _ = timeout(longest_wait, ended).await;
        }
        let Some(source) = self.state.lock().source.clone() else { return Ok(None) };
        let header = source.header().await;
        if header.as_ref().is_err_and(is_of_another_form) {
            self.refused();
        }
        header
    }

    /// Lets a later request make the source again.
    fn refused(&self) {
        let mut state = self.state.lock();
        state.refused = state.made_at.elapsed() >= MIN_AGE;
    }

    /// Returns the renewal that the caller must run. A failed plugin runs again after [`MIN_AGE`] at the earliest, and a plugin that hangs runs
    /// again after [`LONGEST_RUN`], unless two runs hang.
    fn begin_renewal(self: &Arc<Self>) -> Option<Renewal> {
        let mut state = self.state.lock();
        let now = Instant::now();
        let is_renewing = state.renewing_since.is_some_and(|since| now < since + LONGEST_RUN);
        if is_renewing || !state.refused {
            return None;
        }
        let permit = self.runs.begin()?;
        state.refused = false;
        state.made_at = now;
        let is_second = state.renewing_since.replace(now).is_some();
        Some(Renewal { renewed: self.clone(), began_at: now, is_second, _permit: permit })
    }
}

/// A run of the plugin. Other requests use the last credentials meanwhile.
struct Renewal {
    renewed: Arc<Renewed>,
    began_at: Instant,
    /// An earlier run hangs: no request waits for this run.
    is_second: bool,
    _permit: PluginPermit,
}

impl Renewal {
    /// Runs the plugin. The last credentials stay in use if the plugin fails. Blocks.
    fn run(self) {
        match source(&self.renewed.config) {
            Ok(source) => self.renew(source),
            Err(error) => {
                tracing::warn!(%error, "the credential plugin failed; the last credentials are used");
            }
        }
    }

    /// Replaces the credentials, except those of a later renewal.
    fn renew(&self, source: Option<Arc<Source>>) {
        let mut state = self.renewed.state.lock();
        if state.renewed_by < Some(self.began_at) {
            state.source = source;
            state.renewed_by = Some(self.began_at);
            state.made_at = Instant::now();
            state.refused = false;
        }
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        let mut state = self.renewed.state.lock();
        // A later renewal may be under way.
        if state.renewing_since == Some(self.began_at) {
            state.renewing_since = None;
        }
    }
}

/// Returns whether a plugin that returned tokens with an end has returned other credentials, which the source cannot use.
fn is_of_another_form(error: &Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref());
    matches!(cause, Some(AuthError::UnrefreshableTokenResponse))
}

fn source(config: &Config) -> Result<Option<Arc<Source>>, kube_client::Error> {
    let Some(layer) = config.auth_layer()? else { return Ok(None) };
    Ok(Some(Source::new(layer.layer(HeaderSink))))
}

#[cfg(test)]
mod tests {
    use kube_client::config::ExecConfig;

    use super::*;

    /// Returns a configuration whose plugin is a script of the shell.
    fn plugin(script: String) -> Config {
        let mut config = Config::new(http::Uri::from_static("https://127.0.0.1"));
        config.auth_info.exec = Some(ExecConfig {
            api_version: Some("client.authentication.k8s.io/v1".to_owned()),
            command: Some("sh".to_owned()),
            args: Some(vec!["-c".to_owned(), script]),
            ..ExecConfig::default()
        });
        config
    }

    /// Returns credentials whose first source is old enough for a renewal.
    fn made_a_while_ago(config: Config, first: Option<Arc<Source>>) -> Credentials {
        let made_at = Instant::now().checked_sub(2 * MIN_AGE).expect("the machine has run for a while");
        Credentials::Renewed(Arc::new(Renewed::new(Arc::new(config), State::new(first, made_at))))
    }

    /// A plugin that worked at first, and fails now.
    #[tokio::test]
    async fn a_failing_plugin_runs_once_for_many_refused_requests() {
        let folder = tempfile::tempdir().expect("a folder");
        let runs = folder.path().join("runs");
        let config = plugin(format!("echo run >> {}; exit 1", runs.display()));
        let credentials = made_a_while_ago(config, None);
        for _ in 0..20 {
            credentials.refused();
            assert_eq!(credentials.header().await.expect("the last credentials"), None);
        }
        assert_eq!(std::fs::read_to_string(runs).expect("the plugin has run"), "run\n");
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_that_hangs_holds_up_later_renewals_for_two_minutes() {
        let mut config = Config::new(http::Uri::from_static("https://127.0.0.1"));
        config.auth_info.exec = Some(ExecConfig::default());
        let renewed = Arc::new(Renewed::new(Arc::new(config), State::new(None, Instant::now())));
        let credentials = Credentials::Renewed(renewed.clone());
        let begin = async |after: Duration| {
            tokio::time::advance(after).await;
            credentials.refused();
            renewed.begin_renewal()
        };
        let hanging = begin(MIN_AGE).await.expect("a renewal");
        assert!(begin(MIN_AGE).await.is_none(), "the plugin runs");
        assert!(!hanging.is_second, "a request waits");
        let second = begin(LONGEST_RUN).await.expect("a renewal beside the plugin that hangs");
        assert!(second.is_second, "no request waits");
        assert!(begin(LONGEST_RUN).await.is_none(), "two runs hang");
        drop((hanging, second));
        let hanging = begin(MIN_AGE).await.expect("no plugin runs");
        let second = begin(LONGEST_RUN).await.expect("a renewal beside the plugin that hangs");
        drop(hanging);
        assert!(begin(MIN_AGE).await.is_none(), "the plugin runs again");
        drop(second);
        assert!(begin(MIN_AGE).await.is_some(), "no plugin runs");
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_first_renewal_that_hangs_holds_up_a_request() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = Config::new(http::Uri::from_static("https://127.0.0.1"));
        let script = "while [ -e $0 ]; do sleep 0.02; done".to_owned();
        config.auth_info.exec = Some(ExecConfig {
            api_version: Some("client.authentication.k8s.io/v1".to_owned()),
            command: Some("sh".to_owned()),
            args: Some(vec!["-c".to_owned(), script, folder.path().display().to_string()]),
            ..ExecConfig::default()
        });
        let renewed = Renewed::new(Arc::new(config), State::new(None, Instant::now()));
        let credentials = Credentials::Renewed(Arc::new(renewed));
        let mut waits = Vec::new();
        for _ in 0..4 {
            tokio::time::advance(LONGEST_RUN).await;
            credentials.refused();
            let begun = Instant::now();
            credentials.header().await.expect("the last credentials");
            waits.push(begun.elapsed().as_secs());
        }
        assert_eq!(waits, [120, 0, 0, 0]);
    }

    /// The second run was started because the first run took too long.
    #[tokio::test]
    async fn a_late_renewal_does_not_replace_the_credentials_of_a_later_renewal() {
        let config = Arc::new(Config::new(http::Uri::from_static("https://127.0.0.1")));
        let state = State::new(None, Instant::now());
        let renewed = Arc::new(Renewed::new(config, state));
        let token = |value: &'static str| {
            let response = move || Ok(Response::builder().header(header::AUTHORIZATION, value).body(())?);
            Some(Source::new(tower::service_fn(move |_| ready(response()))))
        };
        let renewal = |began_at: Instant| {
            let permit = renewed.runs.begin().expect("a permit");
            Renewal { renewed: renewed.clone(), began_at, is_second: false, _permit: permit }
        };
        let (first, second) = (renewal(Instant::now()), renewal(Instant::now() + LONGEST_RUN));
        second.renew(token("second"));
        first.renew(token("first"));
        assert_eq!(renewed.header().await.expect("credentials").expect("a token"), "second");
    }

    /// The request that runs the plugin is a request for a Lease, say, which has less time than the plugin takes.
    #[tokio::test]
    async fn a_slow_plugin_outlives_the_request_that_runs_the_plugin() {
        let folder = tempfile::tempdir().expect("a folder");
        let runs = folder.path().join("runs");
        let credential = r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"new"}}"#;
        let mut config = Config::new(http::Uri::from_static("https://127.0.0.1"));
        config.auth_info.exec = Some(ExecConfig {
            api_version: Some("client.authentication.k8s.io/v1".to_owned()),
            command: Some("sh".to_owned()),
            args: Some(vec![
                "-c".to_owned(),
                format!("echo run >> {}; sleep 0.3; echo '{credential}'", runs.display()),
            ]),
            ..ExecConfig::default()
        });
        let credentials = made_a_while_ago(config, None);
        credentials.refused();
        let hasty = timeout(Duration::from_millis(20), credentials.header());
        hasty.await.expect_err("the plugin takes longer");

        let renewed = async {
            while credentials.header().await.expect("credentials").is_none_or(|value| value != "Bearer new") {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(60), renewed).await.expect("the credentials of the plugin");
        assert_eq!(std::fs::read_to_string(runs).expect("the plugin has run"), "run\n");
    }

    /// The first token has an end, and later tokens have none.
    #[tokio::test]
    async fn a_plugin_may_return_a_token_without_an_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = format!(
            r#"if mkdir '{first}' 2>/dev/null; then end=',"expirationTimestamp":"2020-01-01T00:00:00Z"'; fi
               echo '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",'
               echo '"status":{{"token":"new"'$end'}}}}'"#,
            first = folder.path().join("first").display()
        );
        let config = plugin(script);
        let first = source(&config).expect("a token");
        let credentials = made_a_while_ago(config, first);
        credentials.header().await.expect_err("the source expects an end");
        assert_eq!(credentials.header().await.expect("credentials").expect("a token"), "Bearer new");
    }

    /// The first token has expired; the second takes 0.3 s. No request waits that long.
    #[tokio::test]
    async fn an_expired_token_is_renewed_even_if_no_request_waits_for_the_plugin() {
        let folder = tempfile::tempdir().expect("a folder");
        let runs = folder.path().join("runs");
        let script = format!(
            r#"if [ -e '{runs}' ]; then sleep 0.3; end=2999; else end=2020; fi
               echo run >> '{runs}'
               echo '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",'
               echo '"status":{{"token":"of-'$end'","expirationTimestamp":"'$end'-01-01T00:00:00Z"}}}}'"#,
            runs = runs.display()
        );
        let config = plugin(script);
        let credentials = Credentials::new(&Arc::new(config)).expect("credentials");
        let hasty = async || timeout(Duration::from_millis(20), credentials.header()).await;
        let renewed = async {
            loop {
                if let Ok(value) = hasty().await {
                    return value;
                }
            }
        };
        let renewed = timeout(Duration::from_secs(20), renewed).await.expect("a new token");
        assert_eq!(renewed.expect("a new token").expect("a token"), "Bearer of-2999");
        assert_eq!(std::fs::read_to_string(runs).expect("the plugin has run"), "run\nrun\n");
    }
}
