//! Aggregated APIs: a group version whose APIService names a service is answered by an extension server.
//!
//! A group version that this server serves itself is never passed on. Only a server with a listener checks the extension servers:
//! without a listener, they are unavailable.

mod availability;
mod client;
mod discovery;
mod documents;
mod proxy;
mod remote;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, header};
use http_body_util::{BodyExt, Limited};
use windlass_kinds::resources::{API_SERVICES, SERVICES};

pub(crate) use self::availability::keep_available;
use self::client::{Clients, name_user};
use self::documents::Documents;
pub(crate) use self::documents::{Merged, RemoteVersion};
pub(crate) use self::remote::Remote;
use self::remote::Remotes;
use crate::auth::Identity;
use crate::body::{Body, UnreadBody, unread_nothing};
use crate::network::PodNetwork;
use crate::resource::ServedResources;
use crate::state::State;
use crate::store::{Derived, Store};
use crate::webhook::{ClientIdentity, explain};

/// How long a server may take to answer a check or a request for its discovery document.
const PROBE_WITHIN: Duration = Duration::from_secs(5);
/// The largest discovery document of an extension server, in bytes.
const MAX_DOCUMENT: usize = 8 << 20;
/// How often a check is repeated at once, at another endpoint of the service.
const ATTEMPTS: usize = 5;

/// The user of the checks.
fn own_user() -> Identity {
    Identity::unverified("system:kube-aggregator").with_group(Identity::MASTERS)
}

/// The extension servers behind this server.
pub(crate) struct Aggregator {
    remotes: Derived<Remotes>,
    clients: Clients,
    documents: Documents,
    store: Arc<Store>,
}

impl Aggregator {
    pub(crate) fn new(store: Arc<Store>, network: PodNetwork) -> Self {
        Self {
            remotes: Derived::new(API_SERVICES.clone(), Remotes::of),
            clients: Clients::new(Arc::clone(&store), network),
            store,
            documents: Documents::default(),
        }
    }

    /// Sets the certificate and the key, both PEM, that this server shows to extension servers.
    pub(crate) fn identify(&self, certificate: &str, key: &str) {
        match ClientIdentity::from_pem(certificate, key) {
            Ok(identity) => self.clients.identify(identity),
            Err(error) => tracing::error!(%error, "the certificate for aggregated APIs cannot be read"),
        }
    }

    /// Returns the server of the group version of a path, unless this server has the group version.
    pub(crate) fn find(&self, state: &State, served: &ServedResources, path: &str) -> Option<Arc<Remote>> {
        let mut segments = path.strip_prefix("/apis/")?.split('/');
        let (group, version) = (segments.next()?, segments.next().filter(|version| !version.is_empty())?);
        if served.version(group, version).is_some() {
            return None;
        }
        self.remotes.get(&state.store.view()).get(group, version).cloned()
    }

    /// Passes a request on to an extension server.
    pub(crate) async fn pass_on(
        &self,
        remote: &Remote,
        identity: &Identity,
        request: &Request<Bytes>,
        body: UnreadBody,
    ) -> Response<Body> {
        if !remote.is_available {
            return proxy::unavailable("service unavailable");
        }
        match self.clients.of(remote).await {
            Ok(client) => proxy::pass_on(client, remote, identity, request, body).await,
            Err(why) => proxy::unavailable(&why),
        }
    }

    /// Returns the groups of this server and of the extension servers, for discovery.
    pub(crate) fn merged<'a>(&self, state: &State, served: &'a ServedResources) -> Merged<'a> {
        Merged::new(served, &self.remotes.get(&state.store.view()), &self.documents)
    }

    /// Returns the address of a server for errors: that of the service, as in kube-apiserver, although requests go to an endpoint.
    fn address(&self, remote: &Remote) -> String {
        let key = format!("{}/{}", remote.namespace, remote.service);
        let view = self.store.view();
        let service = view.get(&SERVICES, &key).map(|stored| stored.value());
        let field = match service.as_ref().map(|service| &service["spec"]["type"]) {
            Some(kind) if kind == "ExternalName" => "/spec/externalName",
            _ => "/spec/clusterIP",
        };
        let host = service.as_ref().and_then(|service| service.pointer(field)?.as_str());
        match host.filter(|host| !host.is_empty() && *host != "None") {
            Some(host) if host.contains(':') => format!("[{host}]:{}", remote.port),
            Some(host) => format!("{host}:{}", remote.port),
            None => format!("{}.{}.svc:{}", remote.service, remote.namespace, remote.port),
        }
    }

    /// Asks a server for the discovery document of the group version.
    async fn probe(&self, remote: &Remote) -> Result<(), String> {
        let url = format!("https://{}{}", self.address(remote), remote.path());
        let mut last = "context deadline exceeded".to_owned();
        let attempts = async {
            for _ in 0..ATTEMPTS {
                match self.get(remote, &remote.path(), None).await {
                    Ok((head, _)) if head.status.is_success() => return true,
                    Ok((head, _)) => last = format!("bad status from {url}: {}", head.status.as_u16()),
                    Err(why) => last = why,
                }
            }
            false
        };
        if tokio::time::timeout(PROBE_WITHIN, attempts).await == Ok(true) {
            return Ok(());
        }
        Err(format!("failing or missing response from {url}: {last}"))
    }

    /// Gets a document of an extension server.
    async fn get(
        &self,
        remote: &Remote,
        path: &str,
        accept: Option<&'static str>,
    ) -> Result<(http::response::Parts, Bytes), String> {
        self.get_changed(remote, path, accept, None).await
    }

    /// Works like [`Aggregator::get`]. A server may answer 304 if the document has the entity tag `known`.
    async fn get_changed(
        &self,
        remote: &Remote,
        path: &str,
        accept: Option<&'static str>,
        known: Option<&str>,
    ) -> Result<(http::response::Parts, Bytes), String> {
        let url = format!("https://{}{path}", self.address(remote));
        let in_get = |why: String| format!("Get \"{url}\": {why}");
        let call = async {
            let client = self.clients.of(remote).await.map_err(&in_get)?;
            let mut request = proxy::request(remote, &Method::GET, path, unread_nothing())?;
            let mut headers = HeaderMap::new();
            name_user(&mut headers, &own_user());
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept.unwrap_or("application/json")));
            if let Some(known) = known.and_then(|known| HeaderValue::from_str(known).ok()) {
                headers.insert(header::IF_NONE_MATCH, known);
            }
            *request.headers_mut() = headers;
            let reply = client.request(request).await.map_err(|error| in_get(explain(&error)))?;
            let (head, body) = reply.into_parts();
            let body = Limited::new(body, MAX_DOCUMENT).collect().await;
            Ok((head, body.map_err(|error| in_get(error.to_string()))?.to_bytes()))
        };
        let deadline = || Err(in_get("context deadline exceeded".to_owned()));
        tokio::time::timeout(PROBE_WITHIN, call).await.unwrap_or_else(|_| deadline())
    }
}
