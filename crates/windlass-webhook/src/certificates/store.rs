//! The certificate that a server presents. The certificate can be exchanged while the server runs.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use rustls::{
    crypto::ring::sign::any_supported_type,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use x509_cert::{Certificate, der::Decode};

use super::authority::create_self_signed;

/// A certificate chain and the private key of the chain.
#[derive(Clone)]
pub struct ServingCertificate {
    key: Arc<CertifiedKey>,
    not_after: Timestamp,
}

/// A certificate or key that cannot be used. The message never has the key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CertificateError(pub(super) String);

impl ServingCertificate {
    /// Parses a PEM chain, the server's own certificate first, and the PEM key (PKCS#8, SEC1 or PKCS#1).
    ///
    /// # Errors
    ///
    /// There is no certificate or no key, or the key is not that of the certificate.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, CertificateError> {
        let failed = |what: &str, error: &dyn std::fmt::Display| CertificateError(format!("{what}: {error}"));
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<_, _>>()
            .map_err(|error| failed("the certificate is not PEM", &error))?;
        let Some(leaf) = chain.first() else {
            return Err(CertificateError("there is no PEM certificate".to_owned()));
        };
        let leaf =
            Certificate::from_der(leaf).map_err(|error| failed("the certificate does not decode", &error))?;
        let not_after = timestamp(&leaf.tbs_certificate.validity.not_after);
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| failed("there is no PEM private key", &error))?;
        let key =
            any_supported_type(&key).map_err(|error| failed("the private key cannot be used", &error))?;
        let key = CertifiedKey::new(chain, key);
        key.keys_match()
            .map_err(|_| CertificateError("the private key is not that of the certificate".to_owned()))?;
        Ok(Self { key: Arc::new(key), not_after })
    }

    /// Creates a self-signed certificate, for servers with clients that do not verify the certificate.
    /// `names` are DNS names and IP addresses.
    ///
    /// # Errors
    ///
    /// A name is neither a DNS name nor an IP address.
    pub fn self_signed(names: &[String], now: Timestamp, life: Duration) -> Result<Self, CertificateError> {
        let issued = create_self_signed(names, now, life)?;
        Self::from_pem(issued.certificate.as_bytes(), issued.key.as_bytes())
    }

    /// Returns when the certificate expires.
    pub fn not_after(&self) -> Timestamp {
        self.not_after
    }

    #[cfg(test)]
    pub(super) fn leaf(&self) -> &[u8] {
        &self.key.cert[0]
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.key.cert == other.key.cert
    }
}

impl std::fmt::Debug for ServingCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServingCertificate").field("not_after", &self.not_after).finish_non_exhaustive()
    }
}

pub(super) fn timestamp(time: &x509_cert::time::Time) -> Timestamp {
    let seconds = i64::try_from(time.to_unix_duration().as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}

/// The certificate that a server shows to new connections. Cheap to clone; clones share the certificate.
///
/// A new store is empty: connections fail in the TLS handshake until a certificate is set.
#[derive(Clone, Default)]
pub struct CertificateStore(Arc<ArcSwapOption<ServingCertificate>>);

impl CertificateStore {
    /// Presents this certificate to new connections. Returns whether the certificate differs from the earlier
    /// certificate.
    pub fn set(&self, certificate: ServingCertificate) -> bool {
        let before = self.0.swap(Some(Arc::new(certificate.clone())));
        before.is_none_or(|before| !before.is_same(&certificate))
    }

    /// Returns the certificate.
    pub fn get(&self) -> Option<Arc<ServingCertificate>> {
        self.0.load_full()
    }
}

impl std::fmt::Debug for CertificateStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CertificateStore").field(&self.get()).finish()
    }
}

impl ResolvesServerCert for CertificateStore {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.get().map(|certificate| certificate.key.clone())
    }
}
