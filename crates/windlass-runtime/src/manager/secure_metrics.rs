//! Metrics over HTTPS, for readers with access.

use std::{net::SocketAddr, time::Duration};

use jiff::Timestamp;
use windlass_webhook::{
    certificates::{CertificateFiles, CertificateStore, ServingCertificate},
    server_config,
};

use super::{
    RunContext, Runnable,
    http::{MetricsEndpoint, serve},
    metrics_access::MetricsAccess,
    runnable::Group,
};
use crate::{
    error::{BoxError, Error, Result},
    permission::{Permission, Verb},
    shared_state::SharedState,
};

/// The lifetime of a self-signed certificate; the certificate is renewed after two thirds.
const LIFE: Duration = Duration::from_hours(24 * 365);

/// Serves `/metrics` over HTTPS, with access control by the API server.
/// [`Manager::secure_metrics`](super::Manager::secure_metrics) adds the endpoint.
///
/// A client sends the token of a service account (`Authorization: Bearer`). The API server names the user of
/// the token (TokenReview), and decides if the user may `get` the path `/metrics` (SubjectAccessReview);
/// answers are remembered as long as in controller-runtime.
///
/// ```
/// # async fn example(client: kube_client::Client) {
/// use windlass_runtime::{Manager, manager::SecureMetrics};
///
/// let manager = Manager::new(client).secure_metrics(SecureMetrics::new(([0, 0, 0, 0], 8443).into()));
/// # drop(manager); }
/// ```
#[derive(Clone, Debug)]
pub struct SecureMetrics {
    address: SocketAddr,
    files: Option<CertificateFiles>,
    authorize: bool,
    http2: bool,
}

impl SecureMetrics {
    /// Serves on this address, with a self-signed certificate that clients do not verify.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, files: None, authorize: true, http2: true }
    }

    /// Reads the certificate from files, and reads changed files again.
    pub fn certificate_files(mut self, files: CertificateFiles) -> Self {
        self.files = Some(files);
        self
    }

    /// Lets every client read the metrics.
    pub fn without_authorization(mut self) -> Self {
        self.authorize = false;
        self
    }

    /// Sets whether clients may use HTTP/2, besides HTTP/1.1. Default: true.
    pub fn http2(mut self, http2: bool) -> Self {
        self.http2 = http2;
        self
    }

    /// Returns the port.
    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the rights to ask the API server.
    pub(super) fn permissions(&self) -> Vec<Permission> {
        let review = |group: &str, plural: &str| {
            Permission::to_plural(group, plural, [Verb::Create]).cluster_wide().optional()
        };
        let reviews =
            [("authentication.k8s.io", "tokenreviews"), ("authorization.k8s.io", "subjectaccessreviews")];
        reviews.into_iter().filter(|_| self.authorize).map(|(group, plural)| review(group, plural)).collect()
    }

    /// Listens, and returns the runnables that serve and that keep the certificate up to date.
    pub(super) fn start(self, state: &SharedState) -> Result<[Runnable; 2]> {
        let store = CertificateStore::default();
        let tls = server_config(&store, None, self.http2).map_err(|error| Error::setup(error.to_string()))?;
        let access = self.authorize.then(|| MetricsAccess::new(state.own.api.clone()));
        let endpoint = MetricsEndpoint { metrics: state.metrics.clone(), access };
        let server = serve("metrics", self.address, Some(tls), endpoint)?;
        let certificate_metrics = state.metrics.certificates();
        let certificate = move |cx: RunContext| async move {
            let keep = async {
                match &self.files {
                    Some(files) => files.watch(&store, &certificate_metrics).await,
                    None => self_signed(&store, &cx).await?,
                }
                Ok::<(), BoxError>(())
            };
            cx.shutdown().token().run_until_cancelled(keep).await.unwrap_or(Ok(()))
        };
        Ok([server, Runnable::new("metrics certificate", certificate).group(Group::Http)])
    }
}

/// Makes certificates, one after the other, before each expiry.
async fn self_signed(store: &CertificateStore, cx: &RunContext) -> Result<(), BoxError> {
    let names = ["localhost", "127.0.0.1", "::1"].map(ToOwned::to_owned);
    loop {
        let now: Timestamp = cx.env().now();
        store.set(ServingCertificate::self_signed(&names, now, LIFE)?);
        tokio::time::sleep(LIFE * 2 / 3).await;
    }
}
