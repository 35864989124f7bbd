//! A stand-in of Neutron: an HTTP server in the process with the same API for networks, subnets and quotas, without packets.
//!
//! The same tests run on the stand-in and on the real Neutron (`tests/it/neutron.rs`). The stand-in has
//! faults for tests: [`Faults`].

mod faults;
mod identity;
mod reply;
mod store;
mod subnet;

use std::{io, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use self::{faults::Fate, identity::Identity, reply::Reply, store::Store};
pub use self::{faults::Faults, identity::Account};
use crate::neutron::Credentials;

/// The largest body of a request, in bytes.
const LARGEST: usize = 1 << 20;

/// A running stand-in. Dropping the value ends the stand-in.
pub struct StandIn {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    server: JoinHandle<()>,
}

struct Shared {
    store: Store,
    /// With an account, each request to Neutron needs a token.
    identity: Option<Identity>,
    faults: Faults,
}

impl StandIn {
    /// Starts a stand-in on a free port of this machine, without authentication.
    ///
    /// # Errors
    /// No port is free.
    pub async fn start() -> io::Result<Self> {
        Self::serve(None).await
    }

    /// Starts a stand-in that asks for tokens, with a Keystone under `/v3`.
    ///
    /// # Errors
    /// No port is free.
    pub async fn with_keystone(account: Account) -> io::Result<Self> {
        Self::serve(Some(Identity::new(account))).await
    }

    async fn serve(identity: Option<Identity>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let store = Store::new(format!("http://{address}"));
        let shared = Arc::new(Mutex::new(Shared { store, identity, faults: Faults::default() }));
        let server = tokio::spawn(accept(listener, shared.clone()));
        Ok(Self { address, shared, server })
    }

    /// Returns the URL of the server.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the credentials of an account in the Keystone of this stand-in.
    pub fn credentials(&self, account: &Account) -> Credentials {
        Credentials {
            auth_url: format!("{}/v3", self.url()),
            username: account.username.clone(),
            password: account.password.clone(),
            user_domain: "Default".to_owned(),
            project: account.project.clone(),
            project_domain: "Default".to_owned(),
        }
    }

    /// Changes the faults.
    pub fn set_faults(&self, faults: Faults) {
        self.shared.lock().faults = faults;
    }

    /// Makes all tokens invalid, as a restart of Keystone with other keys does.
    pub fn revoke_tokens(&self) {
        if let Some(identity) = &mut self.shared.lock().identity {
            identity.revoke();
        }
    }

    /// Sets how many objects a project may have: `network` or `subnet`. Default: 100; -1 means any number.
    pub fn set_quota(&self, project: &str, resource: &str, limit: i64) {
        self.shared.lock().store.set_limit(project, resource, limit);
    }

    /// Sets the largest number of networks, and of subnets, of a project without a quota. Default: 100, as in
    /// Neutron; -1 means any number.
    pub fn set_default_quota(&self, limit: i64) {
        self.shared.lock().store.set_default_quota(limit);
    }

    /// Returns the number of `networks` or `subnets` that were ever created.
    pub fn created(&self, plural: &str) -> u64 {
        self.shared.lock().store.created(plural)
    }

    /// Returns the number of tokens that were issued.
    pub fn tokens_issued(&self) -> usize {
        self.shared.lock().identity.as_ref().map_or(0, Identity::issued)
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl std::fmt::Debug for StandIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StandIn").field("address", &self.address).finish_non_exhaustive()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Mutex<Shared>>) {
    // Dropped with the server, to end all connections.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(connections.spawn(serve_connection(stream, shared.clone()))),
                Err(error) => {
                    tracing::warn!(%error, "the stand-in of Neutron cannot accept a connection");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            },
        }
    }
}

async fn serve_connection(stream: TcpStream, shared: Arc<Mutex<Shared>>) {
    let service = service_fn(move |request| respond(request, shared.clone()));
    if let Err(error) = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a connection to the stand-in of Neutron ended");
    }
}

/// A connection that is closed without a response.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed by a fault")]
struct Closed;

async fn respond(
    request: Request<Incoming>,
    shared: Arc<Mutex<Shared>>,
) -> Result<Response<Full<Bytes>>, Closed> {
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, LARGEST).collect().await;
    let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let (fate, delay) = shared.lock().faults.next(parts.method != Method::GET);
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let reply = match fate {
        Fate::CloseBefore => return Err(Closed),
        Fate::Refuse(code) => Reply::fault(code),
        Fate::Work | Fate::CloseAfter => {
            let path = parts.uri.path().to_owned();
            let query = parts.uri.query().unwrap_or_default().to_owned();
            shared.lock().handle(&parts.method, &path, &query, &parts.headers, &body, Timestamp::now())
        }
    };
    if matches!(fate, Fate::CloseAfter) {
        return Err(Closed);
    }
    Ok(reply.into_response())
}

impl Shared {
    fn handle(
        &mut self,
        method: &Method,
        path: &str,
        query: &str,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Reply {
        let mut project = None;
        if let Some(identity) = &mut self.identity {
            if path == "/v3/auth/tokens" {
                return identity.authenticate(method, body, now);
            }
            let token = headers.get("X-Auth-Token").and_then(|token| token.to_str().ok());
            match identity.project_of(token, now) {
                Some(found) => project = Some(found.to_owned()),
                None => return Reply::unauthorized(),
            }
        }
        let query: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let body: Result<Value, _> =
            if body.is_empty() { Ok(Value::Null) } else { serde_json::from_slice(body) };
        let Ok(body) = body else {
            return Reply::error(400, "HTTPBadRequest", "Body contains invalid data");
        };
        self.store.handle(method, path, &query, &body, project.as_deref(), now)
    }
}
