//! The declaration of a server of webhooks.

use windlass_webhook::{
    AdmissionDeclaration, CertificateSource, ConversionDeclaration, DEFAULT_PORT, WebhookServer,
    certificates::CertificateFiles,
};

/// The declaration of a server of webhooks. See [`Manager::webhook_servers`](crate::Manager::webhook_servers).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WebhookServerDeclaration {
    /// The port of the server.
    pub port: u16,
    /// The source of the certificate.
    pub certificates: CertificateSource,
    /// The admission webhooks.
    pub admissions: Vec<AdmissionDeclaration>,
    /// The kinds that the server converts.
    pub conversions: Vec<ConversionDeclaration>,
}

impl WebhookServerDeclaration {
    /// Returns the declaration of a server.
    pub(crate) fn of(server: &WebhookServer) -> Self {
        let files = || CertificateSource::Files(CertificateFiles::default());
        Self {
            port: server.listen_port().unwrap_or(DEFAULT_PORT),
            certificates: server.certificate_source().cloned().unwrap_or_else(files),
            admissions: server.webhooks().admissions(),
            conversions: server.webhooks().conversions(),
        }
    }
}
