//! What a server of webhooks declares.

use windlass_webhook::{
    AdmissionDeclaration, CertificateSource, ConversionDeclaration, DEFAULT_PORT, WebhookServer,
    certificates::CertificateFiles,
};

/// What a server of webhooks declares. See [`Manager::webhook_servers`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WebhookServerDeclaration {
    /// The port that it listens on.
    pub port: u16,
    /// Where its certificate comes from.
    pub certificates: CertificateSource,
    /// The admission webhooks.
    pub admissions: Vec<AdmissionDeclaration>,
    /// The kinds that it converts.
    pub conversions: Vec<ConversionDeclaration>,
}

impl WebhookServerDeclaration {
    /// Returns what a server declares.
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
