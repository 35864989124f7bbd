//! The HTTP client that talks to a collector.

use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use opentelemetry_http::{HttpClient, HttpError};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_pki_types::{CertificateDer, pem::PemObject};
use tokio::runtime::Handle;

/// More of a reply is not read.
const REPLY_LIMIT: usize = 1 << 20;

/// The time limit of a request, including the connection. Exporters have shorter limits by default.
const LIMIT: Duration = Duration::from_secs(60);

/// A connection pool to a collector. Cheap to clone.
///
/// A collector can be used on threads outside of the runtime: a task sends the requests.
#[derive(Clone, Debug)]
pub(crate) struct Collector {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    runtime: Handle,
}

impl Collector {
    /// Checks certificates against the authorities of the file, or of the system.
    pub(crate) fn new(authorities: Option<&Path>, runtime: Handle) -> Result<Self, std::io::Error> {
        let mut roots = RootCertStore::empty();
        match authorities {
            Some(path) => {
                let read =
                    CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
                let certificates = read.map_err(std::io::Error::other)?;
                if roots.add_parsable_certificates(certificates).0 == 0 {
                    return Err(std::io::Error::other("the file has no certificates in PEM"));
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(std::io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        Ok(Self { client: Client::builder(TokioExecutor::new()).build(connector), runtime })
    }

    /// Sends a request and reads the reply.
    pub(crate) async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let exchange = async move {
            let (head, body) = client.request(request.map(Full::new)).await?.into_parts();
            let body = Limited::new(body, REPLY_LIMIT).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(head, body))
        };
        // The timer, too, belongs to the runtime.
        self.runtime.spawn(async { tokio::time::timeout(LIMIT, exchange).await }).await??
    }
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        self.send(request).await
    }
}
