//! The one constructor of every `kube::Client` that Windlass uses.
//!
//! kube's own client, with what a controller needs around it: the server's `Retry-After` obeyed (and a POST never
//! repeated blindly), bounded connections with room kept for Leases, a time limit, no compression, metrics, and the
//! record of writes that makes [reads see them](crate::read_your_writes). There is no client-side limit on requests
//! per second: the server's priority and fairness does that better.
//!
//! ```no_run
//! # async fn example() -> windlass_runtime::Result<()> {
//! use windlass_runtime::client::{ClientBuilder, ConfigSource};
//!
//! let client = ClientBuilder::new(ConfigSource::default().load().await?).build()?;
//! # Ok(()) }
//! ```

mod config;
pub(crate) mod path;
pub(crate) mod request;
mod retry;
mod service;

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use kube_client::{Client, client::Body};
use prometheus_client::registry::Registry;
use tokio::sync::Semaphore;

pub(crate) use self::service::is_write;
pub use self::{config::ConfigSource, retry::RetryPolicy, service::NoRetry};
use crate::{
    env::Env,
    error::{BoxError, Error, Result},
    metrics::RestClientMetrics,
    read_your_writes::WriteLog,
};

/// Builds a `kube::Client` with all of the above.
pub struct ClientBuilder {
    target: Target,
    user_agent: Option<String>,
    retry: RetryPolicy,
    request_timeout: Duration,
    connections: usize,
    env: Env,
}

enum Target {
    Config(Box<kube_client::Config>),
    Client(Client),
}

/// What all clones of a client share.
pub(crate) struct Shared {
    pub(crate) writes: WriteLog,
    pub(crate) metrics: RestClientMetrics,
    pub(crate) retry: RetryPolicy,
    pub(crate) request_timeout: Duration,
    /// Ordinary requests under way. Watches, other streams and Leases take none.
    pub(crate) lanes: Semaphore,
    pub(crate) host: String,
    pub(crate) env: Env,
}

impl ClientBuilder {
    /// A client for the cluster that `config` names.
    pub fn new(config: kube_client::Config) -> Self {
        Self::to(Target::Config(Box::new(config)))
    }

    fn to(target: Target) -> Self {
        Self {
            target,
            user_agent: None,
            retry: RetryPolicy::default(),
            request_timeout: Duration::from_secs(65),
            connections: 64,
            env: Env::system(),
        }
    }

    /// The `User-Agent`, which names this program in the server's audit log. Default: `windlass/<version>`.
    pub fn user_agent(mut self, name: impl Into<String>) -> Self {
        self.user_agent = Some(name.into());
        self
    }

    /// When a request is sent again.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// The longest wait for an answer to begin; watches and other streams are not limited. Default: 65 s, a little
    /// more than the server allows itself.
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = timeout;
        self
    }

    /// How many requests are under way at once, and so about how many connections are kept. Default: 64. Watches,
    /// other streams and Leases come on top.
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// Where time of day and randomness come from.
    pub fn env(mut self, env: Env) -> Self {
        self.env = env;
        self
    }

    /// Builds the client. Must run inside a tokio runtime.
    pub fn build(self) -> Result<Client> {
        let agent = self.user_agent.unwrap_or_else(|| format!("windlass/{}", env!("CARGO_PKG_VERSION")));
        let (transport, host) = match self.target {
            Target::Client(client) => (client, "in-process".to_owned()),
            Target::Config(mut config) => {
                config.default_retry = false;
                let agent = http::HeaderValue::from_str(&agent)
                    .map_err(|_| Error::setup(format!("user agent {agent:?}: not a header's value")))?;
                config.headers.push((http::header::USER_AGENT, agent));
                let host = config.cluster_url.authority().map_or_else(String::new, ToString::to_string);
                (Client::try_from(*config)?, host)
            }
        };
        let shared = Shared {
            writes: WriteLog::new(),
            metrics: RestClientMetrics::default(),
            retry: self.retry,
            request_timeout: self.request_timeout,
            lanes: Semaphore::new(self.connections),
            host,
            env: self.env,
        };
        let namespace = transport.default_namespace().to_owned();
        Ok(Client::new(service::ApiService::new(transport, Arc::new(shared)), namespace))
    }
}

/// A client for a server in this process: `service` is called directly, no bytes cross a socket.
///
/// Must run inside a tokio runtime.
///
/// ```
/// # use http::{Request, Response};
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

/// A client made elsewhere, with all of the above around it.
///
/// Writes made through the client that was handed in are not recorded, only those of the one that comes back.
pub fn wrap(client: Client) -> Result<Client> {
    ClientBuilder::to(Target::Client(client)).build()
}

/// The client itself if it was built here, else wrapped.
pub(crate) async fn adopt(client: Client) -> Result<(Client, Arc<Shared>)> {
    if let Some(shared) = shared_of(&client).await {
        return Ok((client, shared));
    }
    let client = wrap(client)?;
    let shared = shared_of(&client).await.ok_or_else(|| Error::setup("the client does not answer"))?;
    Ok((client, shared))
}

/// Asks a client, which hides what it is made of, for what its clones share. A client that was not built here answers
/// with the server's version, which is as good as no answer.
async fn shared_of(client: &Client) -> Option<Arc<Shared>> {
    let mut request = Request::get("/version").body(Body::empty()).ok()?;
    request.extensions_mut().insert(service::WhoAreYou);
    let mut response = client.send(request).await.ok()?;
    response.extensions_mut().remove::<service::Itself>().map(|itself| itself.0)
}

impl Shared {
    pub(crate) fn register_metrics(&self, registry: &mut Registry) {
        self.metrics.register(registry);
    }
}
