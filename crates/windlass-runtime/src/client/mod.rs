//! Builds the `kube::Client` that Windlass uses.
//!
//! The client sends requests over one HTTP/2 connection, and watches over a second connection
//! ([`windlass_http`]). The client obeys the server's `Retry-After` (and never repeats a POST that may have
//! been carried out), limits the number of requests in progress but keeps room for Leases, limits the time of
//! requests, asks for no compression, reads a token file again when the token is 50 s old or the server
//! refused the token, reads certificates again after a change of the files, logs the server's warnings, has
//! metrics, and records writes so that [reads see them](crate::read_your_writes). The client does not limit the number of requests per
//! second: API Priority and Fairness of the server limits the rate better.
//!
//! ```no_run
//! # async fn example() -> windlass_runtime::Result<()> {
//! use windlass_runtime::client::{ClientBuilder, ConfigSource};
//!
//! let client = ClientBuilder::new(ConfigSource::default().load().await?).build()?;
//! # Ok(()) }
//! ```

mod api_client;
mod body;
mod call;
mod config;
mod detached;
mod exchange;
mod refusal;
mod retry;
mod service;
mod token_file;
mod traits;
mod transport;
mod warnings;

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use kube_client::{Client, client::Body};
use parking_lot::RwLock;
use prometheus_client::registry::Registry;
use tokio::sync::Semaphore;
use windlass_http::{HttpClient, Options};

pub(crate) use self::{
    api_client::{ApiClient, WithMetadata, decode},
    body::ResponseBody,
    call::{APPLY_PATCH, Call, JSON, JSON_PATCH, MERGE_PATCH, METADATA, METADATA_LIST, OBJECTS},
    detached::OnUnknownOutcome,
    retry::retry_after,
};
pub use self::{config::ConfigSource, retry::RetryPolicy, service::NoRetry};
use self::{service::ApiService, token_file::TokenFile, transport::Transport, warnings::ServerWarnings};
pub use crate::path_segment::{InvalidName, path_segment};
pub(crate) use crate::resource_path as path;
use crate::{
    env::Env,
    error::{BoxError, Error, Result, chain},
    metrics::RestClientMetrics,
    read_your_writes::WriteJournal,
};
pub use windlass_http::Protocol;

/// Builds a `kube::Client` as the [module](self) describes.
pub struct ClientBuilder {
    target: Target,
    user_agent: Option<String>,
    retry: RetryPolicy,
    request_timeout: Duration,
    body_timeout: Duration,
    connections: usize,
    protocol: Option<Protocol>,
    env: Env,
}

enum Target {
    Config(Box<kube_client::Config>),
    Client(Client),
}

/// The state that all clones of a client share.
pub(crate) struct ClientState {
    pub(crate) journal: WriteJournal,
    metrics: RwLock<RestClientMetrics>,
    pub(crate) retry: RetryPolicy,
    pub(crate) request_timeout: Duration,
    pub(crate) body_timeout: Duration,
    /// Limits the number of ordinary requests in progress. Watches, other streams and Leases take no permit.
    pub(crate) connections: Semaphore,
    pub(crate) host: Arc<str>,
    /// The file with the client's token.
    token: Option<TokenFile>,
    pub(crate) warnings: ServerWarnings,
    pub(crate) env: Env,
}

impl ClientBuilder {
    /// Builds a client for the cluster that `config` names.
    pub fn new(config: kube_client::Config) -> Self {
        Self::to(Target::Config(Box::new(config)))
    }

    fn to(target: Target) -> Self {
        Self {
            target,
            user_agent: None,
            retry: RetryPolicy::default(),
            request_timeout: Duration::from_secs(65),
            body_timeout: Duration::from_secs(30),
            connections: 64,
            protocol: None,
            env: Env::system(),
        }
    }

    /// Sets the `User-Agent`: the name of this program in the server's audit log. Default:
    /// `windlass/<version>`.
    pub fn user_agent(mut self, name: impl Into<String>) -> Self {
        self.user_agent = Some(name.into());
        self
    }

    /// Sets when a request is sent again.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Sets the longest wait for a response to begin. Watches and other streams have no limit. Default: 65 s, a little
    /// more than the API server's own limit.
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = timeout;
        self
    }

    /// Sets the longest time in which no byte of a response's body arrives. Watches and other streams have no limit.
    /// Default: 30 s.
    pub fn body_timeout(mut self, timeout: Duration) -> Self {
        self.body_timeout = timeout;
        self
    }

    /// Sets how many requests are in progress at the same time. Over HTTP/1.1, each of the requests has a connection. Watches, other
    /// streams and Leases do not count. Default: 64.
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// Sets the protocol of the connections. Default: HTTP/2 where the server offers HTTP/2, unless the environment variable `DISABLE_HTTP2`
    /// is set, as for client-go.
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = Some(protocol);
        self
    }

    /// Sets the source of wall-clock time and randomness.
    pub fn env(mut self, env: Env) -> Self {
        self.env = env;
        self
    }

    /// Builds the client. Must run inside a tokio runtime.
    pub fn build(self) -> Result<Client> {
        self.build_with_service().map(|(client, _)| client)
    }

    fn build_with_service(self) -> Result<(Client, ApiService)> {
        let agent = self.user_agent.unwrap_or_else(|| format!("windlass/{}", env!("CARGO_PKG_VERSION")));
        let (transport, namespace, host, token) = match self.target {
            Target::Client(client) => {
                let namespace = client.default_namespace().to_owned();
                (Transport::Client(client), namespace, "in-process".to_owned(), None)
            }
            Target::Config(mut config) => {
                let agent = http::HeaderValue::from_str(&agent)
                    .map_err(|_| Error::setup(format!("user agent {agent:?}: not a header's value")))?;
                config.headers.push((http::header::USER_AGENT, agent));
                let host = config.cluster_url.authority().map_or_else(String::new, ToString::to_string);
                let namespace = config.default_namespace.clone();
                let token = TokenFile::take(&mut config.auth_info)?;
                let plugin = config.auth_info.exec.as_ref().and_then(|exec| exec.command.clone());
                // The writes of a reconcile that has lost the right to write must end; the runtime continues
                // all other writes.
                let options = Options::default()
                    .protocol(self.protocol.unwrap_or_else(usual_protocol))
                    .cancels_dropped_writes(true);
                let client =
                    HttpClient::new(*config, options).map_err(|error| explain(error, plugin.as_deref()))?;
                (Transport::Http(client), namespace, host, token)
            }
        };
        let state = Arc::new(ClientState {
            journal: WriteJournal::new(),
            metrics: RwLock::default(),
            retry: self.retry,
            request_timeout: self.request_timeout,
            body_timeout: self.body_timeout,
            connections: Semaphore::new(self.connections),
            host: host.into(),
            token,
            warnings: ServerWarnings::default(),
            env: self.env,
        });
        let service = ApiService::new(transport, state);
        Ok((Client::new(service.clone(), namespace), service))
    }
}

/// Returns the protocol of a client if the builder sets no protocol.
fn usual_protocol() -> Protocol {
    let is_disabled = std::env::var_os("DISABLE_HTTP2").is_some_and(|value| !value.is_empty());
    if is_disabled { Protocol::Http1 } else { Protocol::Any }
}

/// Names the credential plugin of the kubeconfig in an error that the plugin caused.
fn explain(error: kube_client::Error, plugin: Option<&str>) -> Error {
    match (&error, plugin) {
        (kube_client::Error::Auth(cause), Some(plugin)) => {
            Error::setup(format!("the credential plugin {plugin:?} of the kubeconfig: {}", chain(cause)))
        }
        _ => error.into(),
    }
}

/// Builds a client for a server in this process: the client calls `service` directly, without a socket.
///
/// Must run inside a tokio runtime.
///
/// ```
/// # use http::{Method, Request, Response, StatusCode};
/// # use kube_client::client::Body;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> windlass_runtime::Result<()> {
/// let service = tower::service_fn(|_: Request<Body>| async {
///     Ok::<_, std::convert::Infallible>(Response::new(Body::empty()))
/// });
/// let client = windlass_runtime::client::in_process(service)?;
/// # drop(client); Ok(()) }
/// ```
pub fn in_process<S, B>(service: S) -> Result<Client>
where
    S: tower::Service<Request<Body>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    wrap(Client::new(service, "default"))
}

/// As [`in_process`], for a server whose failures the caller is to see. Returns the client of the runtime's own requests, and the state that
/// clones of the client share, too.
pub(crate) fn in_process_without_retries<S, B>(service: S) -> Result<(Client, ApiClient, Arc<ClientState>)>
where
    S: tower::Service<Request<Body>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let client = ClientBuilder::to(Target::Client(Client::new(service, "default")));
    let client = client.retry(RetryPolicy { retries: 0, ..RetryPolicy::default() });
    let (client, service) = client.build_with_service()?;
    let state = service.state.clone();
    Ok((client, service.into(), state))
}

/// Wraps a client that was built elsewhere.
///
/// Only writes through the returned client are recorded, not writes through `client`.
pub fn wrap(client: Client) -> Result<Client> {
    ClientBuilder::to(Target::Client(client)).build()
}

/// The longest wait for a client to name its service. A client of [`ClientBuilder`] answers at once, without a request; any other client
/// asks the server, which may be out of reach.
const SERVICE_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the client, the client of the runtime's own requests, and the state of both. A client that [`ClientBuilder`] did not build is
/// wrapped, and draws its random numbers from `env`.
pub(crate) async fn adopt(client: Client, env: &Env) -> Result<(Client, ApiClient, Arc<ClientState>)> {
    let (client, service) = match service_of(&client).await {
        Some(service) => (client, service),
        None => ClientBuilder::to(Target::Client(client)).env(env.clone()).build_with_service()?,
    };
    let state = service.state.clone();
    Ok((client, service.into(), state))
}

/// Returns the service of a client, which hides the service that it is made of. A client that [`ClientBuilder`] did not
/// build sends the request to the API server: the response has no service, or does not come in time.
async fn service_of(client: &Client) -> Option<ApiService> {
    let mut request = Request::get("/version").body(Body::empty()).ok()?;
    request.extensions_mut().insert(service::ServiceRequest);
    let mut response = tokio::time::timeout(SERVICE_TIMEOUT, client.send(request)).await.ok()?.ok()?;
    response.extensions_mut().remove::<service::ServiceResponse>().map(|response| response.0)
}

impl ClientState {
    /// Counts a request. `status` is `None` for a request without a response; `latency` is `None` for a stream.
    fn count(&self, method: &Method, status: Option<StatusCode>, latency: Option<Duration>) {
        let metrics = self.metrics.read();
        metrics.count(method, status, &self.host);
        if let Some(latency) = latency {
            metrics.observe(method, &self.host, latency);
        }
    }

    /// Counts a request that was sent again.
    fn count_retry(&self, method: &Method, status: Option<StatusCode>) {
        self.metrics.read().count_retry(method, status, &self.host);
    }

    /// Shares the counters of another client from now on.
    pub(crate) fn share_metrics(&self, other: &Self) {
        let shared = other.metrics.read().clone();
        *self.metrics.write() = shared;
    }

    pub(crate) fn register_metrics(&self, registry: &mut Registry) {
        self.metrics.read().register(registry);
    }
}
