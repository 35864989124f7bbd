//! A registry on a store: the distribution protocol, for one machine.

mod blobs;
mod manifests;
mod reply;
mod route;
mod uploads;

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use self::reply::{Body, Refusal, json};
use self::route::{Repository, Route};
use self::uploads::Uploads;
use crate::{Error, Result, Store};

/// The most connections at the same time.
const MOST_CONNECTIONS: usize = 256;

/// The longest wait for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// The pause after the operating system has refused a connection: it may have no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A registry on a store, without TLS and without passwords.
#[derive(Debug)]
pub struct RegistryServer {
    listener: TcpListener,
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    store: Store,
    uploads: Uploads,
    /// True if only requests that change nothing are answered.
    read_only: bool,
}

impl RegistryServer {
    /// Listens on an address. Port 0 chooses a free port.
    pub async fn bind(store: Store, address: SocketAddr) -> Result<Self> {
        let cannot = |error| Error::Storage { doing: format!("cannot listen on {address}"), error };
        let listener = TcpListener::bind(address).await.map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let state = State { store, uploads: Uploads::default(), read_only: false };
        Ok(Self { listener, address, state: Arc::new(state) })
    }

    /// Refuses all requests that would change the store.
    #[must_use]
    pub fn read_only(self) -> Self {
        let Self { listener, address, state } = self;
        let store = state.store.clone();
        Self {
            listener,
            address,
            state: Arc::new(State { store, uploads: Uploads::default(), read_only: true }),
        }
    }

    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` ends. Requests in flight are cut off.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let mut connections = JoinSet::new();
        tokio::pin!(shutdown);
        loop {
            let accepted = async {
                // The semaphore is never closed.
                let place = Arc::clone(&places).acquire_owned().await.ok();
                (place, self.listener.accept().await)
            };
            tokio::select! {
                biased;
                () = &mut shutdown => return,
                Some(_) = connections.join_next() => {}
                (place, accepted) = accepted => match accepted {
                    Ok((stream, _)) => {
                        let state = Arc::clone(&self.state);
                        connections.spawn(async move {
                            serve(stream, state).await;
                            drop(place);
                        });
                    }
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                },
            }
        }
    }
}

async fn serve(stream: TcpStream, state: Arc<State>) {
    let service = service_fn(move |request| {
        let state = Arc::clone(&state);
        async move { Ok::<_, Infallible>(state.answer(request).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(error, "a connection to the registry ended");
    }
}

impl State {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let line = format!("{} {}", request.method(), request.uri().path());
        let response = self.route(request).await.unwrap_or_else(Refusal::into_response);
        tracing::info!(request = line, status = response.status().as_u16());
        response
    }

    async fn route(&self, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
        let host = request.headers().get(http::header::HOST).and_then(|host| host.to_str().ok());
        let host = host
            .or_else(|| request.uri().authority().map(http::uri::Authority::as_str))
            .unwrap_or("localhost")
            .to_owned();
        let path = request.uri().path().to_owned();
        let method = request.method().clone();
        if self.read_only && !is_read(&method) {
            return Err(Refusal::unsupported());
        }
        let query = request.uri().query().unwrap_or_default().to_owned();
        let in_repository = |name: &str| Repository::new(&host, name);
        match Route::parse(&path).ok_or_else(Refusal::not_found)? {
            Route::Root if is_read(&method) => Ok(json(StatusCode::OK, &serde_json::json!({}))),
            Route::Catalog if is_read(&method) => self.catalog(&host),
            Route::Tags(name) if is_read(&method) => self.tags(&in_repository(name)?, &query),
            Route::Referrers(_, digest) if is_read(&method) => self.list_referrers(digest, &query),
            Route::Manifest(name, reference) => {
                let repository = in_repository(name)?;
                match method {
                    Method::GET | Method::HEAD => self.get_manifest(&repository, reference),
                    Method::PUT => self.put_manifest(&repository, reference, request).await,
                    Method::DELETE => self.delete_manifest(&repository, reference),
                    _ => Err(Refusal::unsupported()),
                }
            }
            Route::Blob(name, digest) if is_read(&method) => {
                in_repository(name)?;
                self.get_blob(digest, method == Method::HEAD)
            }
            Route::Uploads(name) if method == Method::POST => {
                self.begin_upload(&in_repository(name)?, &query, request).await
            }
            Route::Upload(name, id) => {
                let repository = in_repository(name)?;
                match method {
                    Method::GET => self.show_upload(&repository, id),
                    Method::PATCH => self.continue_upload(&repository, id, request).await,
                    Method::PUT => self.finish_upload(&repository, id, &query, request).await,
                    Method::DELETE => self.cancel_upload(id),
                    _ => Err(Refusal::unsupported()),
                }
            }
            _ => Err(Refusal::unsupported()),
        }
    }
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}
