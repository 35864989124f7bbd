//! The Secret that the replicas of an operator share.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{
    ServingCertificate,
    authority::{Facts, Issued, read_bundle},
};

pub(super) const AUTHORITY: &str = "ca.crt";
pub(super) const AUTHORITY_KEY: &str = "ca.key";
pub(super) const SERVING: &str = "tls.crt";
pub(super) const SERVING_KEY: &str = "tls.key";

/// The largest number of kept authorities. Each rotation adds an authority, and removes expired authorities.
const MAX_AUTHORITIES: usize = 4;

/// The Secret with the certificates, in the cluster's present state.
///
/// `ca.crt` has the authorities, the newest first; `ca.key` the key of the newest; `tls.crt` and `tls.key` the certificate that is
/// served.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretState {
    /// The version of the Secret, for optimistic locking.
    pub resource_version: String,
    /// The Secret's `data`, decoded.
    pub data: BTreeMap<String, Vec<u8>>,
}

impl std::fmt::Debug for SecretState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let keys: Vec<&String> = self.data.keys().collect();
        f.debug_struct("SecretState")
            .field("resource_version", &self.resource_version)
            .field("keys", &keys)
            .finish()
    }
}

/// An authority in the Secret.
#[derive(Clone)]
pub(super) struct Authority {
    pub(super) der: Vec<u8>,
    pub(super) facts: Facts,
}

/// The contents of the Secret.
#[derive(Clone, Default)]
pub(super) struct Contents {
    /// The authorities that have not expired, the newest first.
    pub(super) authorities: Vec<Authority>,
    authority_key: String,
    pub(super) serving: Option<(ServingCertificate, Facts)>,
    serving_pem: (Vec<u8>, Vec<u8>),
}

impl Contents {
    /// Reads the Secret. Anything damaged counts as absent and will be replaced.
    pub(super) fn read(secret: &SecretState, now: Timestamp) -> Self {
        let part = |key: &str| secret.data.get(key).map(Vec::as_slice).unwrap_or_default();
        let mut authorities: Vec<Authority> = read_bundle(part(AUTHORITY))
            .into_iter()
            .filter(|(_, facts)| facts.is_own_authority && now < facts.not_after)
            .map(|(der, facts)| Authority { der: der.to_vec(), facts })
            .collect();
        let authority_key = String::from_utf8(part(AUTHORITY_KEY).to_vec()).unwrap_or_default();
        // Without the key of the newest authority, no authority can sign.
        if rcgen::KeyPair::from_pem(&authority_key).is_err() {
            authorities.clear();
        }
        let serving = ServingCertificate::from_pem(part(SERVING), part(SERVING_KEY)).ok();
        let facts = read_bundle(part(SERVING)).into_iter().next().map(|(_, facts)| facts);
        Self {
            authorities,
            authority_key,
            serving: serving.zip(facts),
            serving_pem: (part(SERVING).to_vec(), part(SERVING_KEY).to_vec()),
        }
    }

    pub(super) fn authority_key(&self) -> &str {
        &self.authority_key
    }

    /// Puts a new authority before the other authorities.
    pub(super) fn add_authority(&mut self, authority: &Issued) {
        let new = read_bundle(authority.certificate.as_bytes()).into_iter();
        let new = new.map(|(der, facts)| Authority { der: der.to_vec(), facts });
        self.authorities = new.chain(std::mem::take(&mut self.authorities)).take(MAX_AUTHORITIES).collect();
        self.authority_key.clone_from(&authority.key);
    }

    pub(super) fn set_serving(&mut self, serving: Issued) {
        self.serving_pem = (serving.certificate.into_bytes(), serving.key.into_bytes());
    }

    /// Returns the Secret's data.
    pub(super) fn data(&self) -> BTreeMap<String, Vec<u8>> {
        let (serving, serving_key) = self.serving_pem.clone();
        [
            (AUTHORITY, self.bundle().into_bytes()),
            (AUTHORITY_KEY, self.authority_key.clone().into_bytes()),
            (SERVING, serving),
            (SERVING_KEY, serving_key),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
    }

    /// Returns the authorities, PEM.
    fn bundle(&self) -> String {
        super::bundle::pem(self.authorities.iter().map(|authority| authority.der.as_slice()))
    }
}
