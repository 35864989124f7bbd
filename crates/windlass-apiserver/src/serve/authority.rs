//! A certificate authority that lives as long as its server.

use std::net::IpAddr;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// A fresh certificate authority: it signs the server's certificate and those of its clients, and its key never
/// leaves the process.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate_der: CertificateDer<'static>,
    certificate_pem: String,
}

/// A certificate with which a client shows who it is.
pub struct ClientCertificate {
    der: CertificateDer<'static>,
    certificate_pem: String,
    key_pem: String,
}

impl ClientCertificate {
    /// The certificate, PEM.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Its private key, PEM.
    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }

    #[cfg(test)]
    pub(crate) fn certificate_der(&self) -> &[u8] {
        &self.der
    }
}

impl std::fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientCertificate").field("bytes", &self.der.len()).finish_non_exhaustive()
    }
}

impl Authority {
    /// A new authority with a new key.
    pub fn generate() -> Result<Self, rcgen::Error> {
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

    /// The authority's own certificate, PEM: what a client has to trust.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    pub(super) fn certificate_der(&self) -> &CertificateDer<'static> {
        &self.certificate_der
    }

    /// A certificate for the user `name`, a member of `group`: the common name and the organization of its subject.
    pub fn client(&self, name: &str, group: Option<&str>) -> Result<ClientCertificate, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = subject(name, group);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(ClientCertificate {
            der: certificate.der().clone(),
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        })
    }

    /// A certificate for the server itself, valid for loopback, the in-cluster names and `address`.
    pub(super) fn server(
        &self,
        address: IpAddr,
    ) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), rcgen::Error> {
        let key = KeyPair::generate()?;
        let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut params = CertificateParams::new(names.map(str::to_owned))?;
        params.subject_alt_names.extend(
            [
                IpAddr::from([127, 0, 0, 1]),
                IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
                IpAddr::from([10, 96, 0, 1]),
            ]
            .map(SanType::IpAddress),
        );
        if !address.is_unspecified() {
            params.subject_alt_names.push(SanType::IpAddress(address));
        }
        params.distinguished_name = subject("kube-apiserver", None);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.signed_by(&key, &self.issuer)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        Ok((certificate.der().clone(), key))
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authority")
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
