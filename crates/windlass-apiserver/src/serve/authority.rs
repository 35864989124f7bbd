//! The certificate authority of a listener.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::ec_key::sec1_pem;
use super::server_certificate::ServerCertificate;

/// A certificate authority that signs the certificates of a listener and of the listener's clients.
pub struct CertificateAuthority {
    issuer: Issuer<'static, KeyPair>,
    certificate_der: CertificateDer<'static>,
    certificate_pem: String,
}

/// A client certificate with the private key.
pub struct ClientCertificate {
    der: CertificateDer<'static>,
    certificate_pem: String,
    key_pem: String,
}

impl ClientCertificate {
    /// Returns the certificate, PEM.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Returns the private key: SEC1, PEM.
    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }

    #[cfg(test)]
    pub(crate) fn certificate_der(&self) -> &[u8] {
        &self.der
    }

    #[cfg(test)]
    pub(super) fn replace(&mut self, der: Vec<u8>) {
        self.der = der.into();
    }
}

impl std::fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientCertificate").field("bytes", &self.der.len()).finish_non_exhaustive()
    }
}

/// A certificate could not be created.
#[derive(Debug, thiserror::Error)]
#[error("cannot create a certificate: {0}")]
pub struct CertificateError(#[from] CertificateErrorKind);

#[derive(Debug, thiserror::Error)]
enum CertificateErrorKind {
    #[error(transparent)]
    Create(#[from] rcgen::Error),
    #[error("the private key cannot be converted: {0}")]
    Key(#[from] der::Error),
}

impl CertificateAuthority {
    /// Creates an authority with a new key.
    ///
    /// # Errors
    /// A key or a certificate cannot be created.
    pub fn generate() -> Result<Self, CertificateError> {
        Ok(Self::new()?)
    }

    fn new() -> Result<Self, CertificateErrorKind> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = subject("windlass-ca", None);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let certificate = params.self_signed(&key)?;
        Ok(Self {
            certificate_der: certificate.der().clone(),
            certificate_pem: certificate.pem(),
            issuer: Issuer::new(params, key),
        })
    }

    /// Returns the authority's own certificate, in PEM. Clients have to trust this certificate.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Returns the authority's private key: PKCS #8, PEM. The holder of the key can sign a certificate for
    /// any user.
    ///
    /// For the controller that signs certificate signing requests.
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    pub(super) fn certificate_der(&self) -> &CertificateDer<'static> {
        &self.certificate_der
    }

    /// Issues a client certificate for the user `name`, who is in `group`.
    ///
    /// Name and group are the common name and the organization of the subject.
    ///
    /// # Errors
    /// The certificate cannot be created.
    pub fn client(&self, name: &str, group: Option<&str>) -> Result<ClientCertificate, CertificateError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = subject(name, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let (certificate, key) = self.issue(params)?;
        Ok(ClientCertificate {
            der: certificate.der().clone(),
            certificate_pem: certificate.pem(),
            key_pem: sec1_pem(key.serialized_der()).map_err(CertificateErrorKind::Key)?,
        })
    }

    /// Issues a certificate for the server: for loopback, the names in the cluster, and `addresses`.
    pub(super) fn server(&self, addresses: &[IpAddr]) -> Result<ServerCertificate, CertificateError> {
        let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let loopback = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
        let others = addresses.iter().copied().filter(|address| !address.is_unspecified());
        let addresses: BTreeSet<IpAddr> = loopback.into_iter().chain(others).collect();
        let mut params =
            CertificateParams::new(names.map(str::to_owned)).map_err(CertificateErrorKind::Create)?;
        params.subject_alt_names.extend(addresses.into_iter().map(SanType::IpAddress));
        params.distinguished_name = subject("kube-apiserver", None);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let (certificate, key) = self.issue(params)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        Ok(ServerCertificate { chain: vec![certificate.der().clone()], key })
    }

    /// Signs a certificate for a new key.
    fn issue(&self, mut params: CertificateParams) -> Result<(Certificate, KeyPair), CertificateErrorKind> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        Ok((params.signed_by(&key, &self.issuer)?, key))
    }
}

impl std::fmt::Debug for CertificateAuthority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CertificateAuthority")
    }
}

fn subject(common_name: &str, organization: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name.push(DnType::CommonName, common_name);
    name
}
