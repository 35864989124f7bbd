//! The HTTPS server of webhooks.

mod connection;
mod http;
mod listen;
mod self_issued;
mod tls;

#[cfg(test)]
mod tests;

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    path::PathBuf,
};

use prometheus_client::registry::Registry;

pub use self::{
    listen::WebhookListener,
    self_issued::SelfIssued,
    tls::{ServerError, server_config},
};
use crate::{
    certificates::{CertificateFiles, CertificateMetrics, CertificateStore},
    metrics::{CertificateExpiry, WebhookMetrics},
    webhooks::Webhooks,
};

/// The port that a webhook server listens on by default.
pub const DEFAULT_PORT: u16 = 9443;

/// Where the certificate of a server comes from.
#[derive(Clone, Debug)]
pub enum CertificateSource {
    /// From files of another program, for example a mounted Secret of cert-manager.
    Files(CertificateFiles),
    /// The operator issues the certificate.
    SelfIssued(SelfIssued),
}

/// The default address and certificate of a server: the flags `--webhook-*`.
#[derive(Clone, Debug)]
pub struct ServerDefaults {
    /// The port. Default: 9443.
    pub port: u16,
    /// The files of the certificate.
    pub files: CertificateFiles,
    /// True if clients may use HTTP/2, besides HTTP/1.1. Default: true.
    pub http2: bool,
    /// True if the port and the files override the server's settings, and clients need no certificate.
    /// Default: false.
    pub overriding: bool,
}

impl Default for ServerDefaults {
    fn default() -> Self {
        Self { port: DEFAULT_PORT, files: CertificateFiles::default(), http2: true, overriding: false }
    }
}

/// Serves [`Webhooks`] over HTTPS. Pass the server to `Manager::webhooks`.
///
/// ```no_run
/// use windlass_webhook::{SelfIssued, WebhookServer, Webhooks};
/// # let webhooks = Webhooks::new();
///
/// let server = WebhookServer::new(webhooks).self_issued(SelfIssued::for_service("ops", "webhook-service"));
/// # drop(server);
/// ```
///
/// | limit | |
/// |---|---|
/// | body of an admission request | 7 MiB |
/// | body of a conversion request, with all objects of a list | 128 MiB |
/// | bodies in memory | 160 MiB; further requests wait |
/// | nesting of JSON | 120 levels |
/// | requests at a time | 256; further requests wait |
/// | connections | 1024; further connections wait |
/// | TLS handshake | 10 s |
/// | headers | 32 s, 1 MiB |
/// | idle connection | 90 s |
/// | a handler | the API server's `timeout`, less a tenth (at most 500 ms); 29.5 s without a `timeout` |
pub struct WebhookServer {
    webhooks: Webhooks,
    host: Option<IpAddr>,
    port: Option<u16>,
    certificates: Option<CertificateSource>,
    client_ca: Option<PathBuf>,
    http2: Option<bool>,
    store: CertificateStore,
    metrics: WebhookMetrics,
}

impl From<Webhooks> for WebhookServer {
    fn from(webhooks: Webhooks) -> Self {
        Self::new(webhooks)
    }
}

impl WebhookServer {
    /// Serves webhooks on all addresses, at the port 9443, with the certificate in the files of [`CertificateFiles::default`].
    pub fn new(webhooks: Webhooks) -> Self {
        Self {
            webhooks,
            host: None,
            port: None,
            certificates: None,
            client_ca: None,
            http2: None,
            store: CertificateStore::default(),
            metrics: WebhookMetrics::default(),
        }
    }

    /// Listens on a single address. Default: all addresses, of IPv4 and IPv6.
    pub fn host(mut self, host: IpAddr) -> Self {
        self.host = Some(host);
        self
    }

    /// Sets the port; 0 chooses a free port. Default: 9443, or the flag `--webhook-port`.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Reads the certificate from files. Default: the flags `--webhook-cert-path`, `--webhook-cert-name` and
    /// `--webhook-cert-key`.
    pub fn certificate_files(mut self, files: CertificateFiles) -> Self {
        self.certificates = Some(CertificateSource::Files(files));
        self
    }

    /// Issues the certificate.
    pub fn self_issued(mut self, issued: SelfIssued) -> Self {
        self.certificates = Some(CertificateSource::SelfIssued(issued));
        self
    }

    /// Accepts only clients with a certificate that an authority in this PEM file has signed. A relative path is that of a
    /// file beside the server's certificate. Default: no certificate is asked for.
    pub fn client_ca(mut self, path: impl Into<PathBuf>) -> Self {
        self.client_ca = Some(path.into());
        self
    }

    /// Sets whether clients may use HTTP/2, besides HTTP/1.1.
    pub fn http2(mut self, http2: bool) -> Self {
        self.http2 = Some(http2);
        self
    }

    /// Gives all admission webhooks a value, as [`Webhooks::extension`] does.
    pub fn extension<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.webhooks = self.webhooks.extension(value);
        self
    }

    /// Returns the webhooks.
    pub fn webhooks(&self) -> &Webhooks {
        &self.webhooks
    }

    /// Returns the port that was set.
    pub fn listen_port(&self) -> Option<u16> {
        self.port
    }

    /// Returns the source of the certificate that was set.
    pub fn certificate_source(&self) -> Option<&CertificateSource> {
        self.certificates.as_ref()
    }

    /// Returns the metrics of certificates that are read from files.
    pub fn certificate_metrics(&self) -> &CertificateMetrics {
        self.metrics.certificates()
    }

    /// Adds the metrics to a registry: the metrics of [`WebhookMetrics`], and
    /// `windlass_webhook_certificate_expiry_timestamp_seconds` as soon as there is a certificate.
    pub fn register_metrics(&self, registry: &mut Registry) {
        self.metrics.register(registry);
        registry.register_collector(Box::new(CertificateExpiry(self.store.clone())));
    }

    /// Sets a missing port and missing files of the certificate, or replaces both if the defaults are
    /// overriding.
    pub fn with_defaults(mut self, defaults: ServerDefaults) -> Self {
        if defaults.overriding {
            (self.host, self.port, self.certificates, self.client_ca) = (None, None, None, None);
        }
        self.port.get_or_insert(defaults.port);
        self.certificates.get_or_insert(CertificateSource::Files(defaults.files));
        self.http2.get_or_insert(defaults.http2);
        self
    }

    /// Listens, without serving yet.
    ///
    /// # Errors
    ///
    /// The address is in use, the client authorities cannot be read, or the webhooks' declaration is wrong.
    pub async fn bind(self) -> Result<WebhookListener, ServerError> {
        let Self { webhooks, host, port, certificates, client_ca, http2, store, metrics } = self;
        let conversions = webhooks.conversions();
        let dispatcher = webhooks.dispatcher(metrics.clone()).map_err(ServerError::new)?;
        let source = certificates.unwrap_or_else(|| CertificateSource::Files(CertificateFiles::default()));
        let client_ca = match client_ca {
            Some(path) => Some(tls::read_client_ca(&source, &path).await?),
            None => None,
        };
        let tls = server_config(&store, client_ca.as_deref(), http2.unwrap_or(true))?;
        let host = host.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
        let address = SocketAddr::new(host, port.unwrap_or(DEFAULT_PORT));
        listen::bind(address, listen::Parts { dispatcher, conversions, source, store, tls, metrics }).await
    }
}

impl fmt::Debug for WebhookServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookServer")
            .field("webhooks", &self.webhooks)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}
