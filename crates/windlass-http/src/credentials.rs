//! The `Authorization` of requests, and the headers that kube's layers add.

use std::{
    future::{Ready, ready},
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use futures::FutureExt;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use kube_client::{
    Config,
    client::{Body, ConfigExt},
};
use parking_lot::Mutex;
use tower::{Layer, Service, ServiceExt, util::BoxCloneSyncService};

use crate::error::{BoxError, Error, Result};

/// How long the credentials that a plugin returned are used at least, even if the server refuses the credentials.
const MIN_AGE: Duration = Duration::from_secs(10);

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
    Renewed(Box<Renewed>),
}

pub(crate) struct Renewed {
    config: Arc<Config>,
    state: Mutex<State>,
}

struct State {
    source: Option<Source>,
    made_at: Instant,
    refused: bool,
}

type Source = BoxCloneSyncService<Request<Body>, Response<()>, BoxError>;

impl Credentials {
    /// Reads the credentials of a configuration. Runs its credential plugin.
    pub(crate) fn new(config: &Arc<Config>) -> Result<Self, kube_client::Error> {
        let auth = &config.auth_info;
        if auth.exec.is_some() || auth.auth_provider.is_some() || auth.token_file.is_some() {
            let state = State { source: source(config)?, made_at: Instant::now(), refused: false };
            return Ok(Self::Renewed(Box::new(Renewed { config: config.clone(), state: Mutex::new(state) })));
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
            let mut state = renewed.state.lock();
            state.refused = state.made_at.elapsed() >= MIN_AGE;
        }
    }
}

impl Renewed {
    async fn header(&self) -> Result<Option<HeaderValue>> {
        if self.begin_renewal() {
            self.renew().await;
        }
        let Some(source) = self.state.lock().source.clone() else { return Ok(None) };
        let response = source.oneshot(Request::new(Body::empty())).await.map_err(Error::credentials)?;
        Ok(response.into_parts().0.headers.remove(header::AUTHORIZATION))
    }

    /// Returns whether the caller must run the plugin again. A failed plugin runs again after [`MIN_AGE`] at the earliest.
    fn begin_renewal(&self) -> bool {
        let mut state = self.state.lock();
        let is_due = std::mem::take(&mut state.refused);
        if is_due {
            state.made_at = Instant::now();
        }
        is_due
    }

    /// Runs the plugin again. The last credentials stay in use if the plugin fails.
    async fn renew(&self) {
        let config = self.config.clone();
        match tokio::task::spawn_blocking(move || source(&config)).await {
            Ok(Ok(source)) => {
                *self.state.lock() = State { source, made_at: Instant::now(), refused: false };
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "the credential plugin failed; the last credentials are used");
            }
            Err(_) => {}
        }
    }
}

fn source(config: &Config) -> Result<Option<Source>, kube_client::Error> {
    let Some(layer) = config.auth_layer()? else { return Ok(None) };
    Ok(Some(BoxCloneSyncService::new(layer.layer(HeaderSink))))
}

#[cfg(test)]
mod tests {
    use kube_client::config::ExecConfig;

    use super::*;

    /// A plugin that worked at first, and fails now.
    #[tokio::test]
    async fn a_failing_plugin_runs_once_for_many_refused_requests() {
        let folder = tempfile::tempdir().expect("a folder");
        let runs = folder.path().join("runs");
        let mut config = Config::new(http::Uri::from_static("https://127.0.0.1"));
        let script = format!("echo run >> {}; exit 1", runs.display());
        config.auth_info.exec = Some(ExecConfig {
            api_version: Some("client.authentication.k8s.io/v1".to_owned()),
            command: Some("sh".to_owned()),
            args: Some(vec!["-c".to_owned(), script]),
            ..ExecConfig::default()
        });
        let made_at = Instant::now().checked_sub(2 * MIN_AGE).expect("the machine has run for a while");
        let state = Mutex::new(State { source: None, made_at, refused: false });
        let credentials = Credentials::Renewed(Box::new(Renewed { config: Arc::new(config), state }));
        for _ in 0..20 {
            credentials.refused();
            assert_eq!(credentials.header().await.expect("the last credentials"), None);
        }
        assert_eq!(std::fs::read_to_string(runs).expect("the plugin has run"), "run\n");
    }
}
