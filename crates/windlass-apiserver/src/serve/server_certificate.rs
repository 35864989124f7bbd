//! The certificate that a listener presents to clients.

use std::net::IpAddr;

use pem::Pem;
use rustls_pki_types::pem::{Error as PemError, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::authority::{CertificateAuthority, CertificateError};

/// A certificate for a listener, with the private key.
pub struct ServerCertificate {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

/// A PEM text lacks an expected part.
#[derive(Debug, thiserror::Error)]
#[error("no {what} in the PEM text: {source}")]
pub struct CertificateTextError {
    what: &'static str,
    source: PemError,
}

impl CertificateTextError {
    fn no(what: &'static str) -> impl FnOnce(PemError) -> Self {
        move |source| Self { what, source }
    }
}

impl ServerCertificate {
    /// Parses a certificate, optionally followed by the certificates up to the authority, and the private
    /// key: PKCS#8, PKCS#1 or SEC1.
    ///
    /// # Errors
    /// A text is not PEM, or has no certificate or key.
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, CertificateTextError> {
        Ok(Self {
            chain: certificates(certificate)?,
            key: PrivateKeyDer::from_pem_slice(key).map_err(CertificateTextError::no("private key"))?,
        })
    }

    /// Issues a certificate for `addresses`, loopback and the names of the server in the cluster. The
    /// certificate of the new authority follows.
    ///
    /// Clients in pods use the address of the Service `kubernetes`, which is the first address of the
    /// [range of services](crate::ServiceClusterIpRange::first).
    ///
    /// # Errors
    /// A key or a certificate cannot be created.
    pub fn generate(addresses: &[IpAddr]) -> Result<Self, CertificateError> {
        let authority = CertificateAuthority::generate()?;
        let mut certificate = authority.server(addresses)?;
        certificate.chain.push(authority.certificate_der().clone());
        Ok(certificate)
    }

    /// Returns the certificates as PEM, the server's first.
    pub fn certificate_pem(&self) -> String {
        self.chain
            .iter()
            .map(|certificate| pem::encode(&Pem::new("CERTIFICATE", certificate.as_ref())))
            .collect()
    }

    /// Returns the private key as PEM.
    pub fn key_pem(&self) -> String {
        let tag = match &self.key {
            PrivateKeyDer::Pkcs1(_) => "RSA PRIVATE KEY",
            PrivateKeyDer::Sec1(_) => "EC PRIVATE KEY",
            _ => "PRIVATE KEY",
        };
        pem::encode(&Pem::new(tag, self.key.secret_der()))
    }
}

impl std::fmt::Debug for ServerCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerCertificate").field("certificates", &self.chain.len()).finish_non_exhaustive()
    }
}

impl Clone for ServerCertificate {
    fn clone(&self) -> Self {
        Self { chain: self.chain.clone(), key: self.key.clone_key() }
    }
}

/// Parses the certificates of a PEM text. The result has at least one certificate.
pub(super) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, CertificateTextError> {
    let no_certificate = "certificate";
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.map_err(CertificateTextError::no(no_certificate))?;
    if certificates.is_empty() {
        return Err(CertificateTextError { what: no_certificate, source: PemError::NoItemsFound });
    }
    Ok(certificates)
}
