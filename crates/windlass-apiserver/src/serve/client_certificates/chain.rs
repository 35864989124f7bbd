//! The client certificates of a connection.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use der::Decode;
use jiff::Timestamp;
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_cert::Certificate;

use super::{ClientCertificates, validity};
use crate::auth::ClientAuth;

/// The certificate chain of a client. A clone shares the certificates.
///
/// The result of a check holds for the time for which all certificates of the chain are valid. At any other time, each request needs a
/// new check.
#[derive(Clone, Debug)]
pub(in crate::serve) struct ClientChain {
    certificates: Arc<[CertificateDer<'static>]>,
    checked: Option<(Arc<ClientAuth>, RangeInclusive<u64>)>,
}

impl ClientChain {
    /// Checks a chain at the time `now`. An empty chain is no certificate.
    pub(in crate::serve) fn new(
        authorities: &ClientCertificates,
        chain: &[CertificateDer<'_>],
        now: Timestamp,
    ) -> Self {
        let certificates = chain.iter().map(|certificate| certificate.clone().into_owned()).collect();
        let now = unix_time(now);
        let valid = valid_seconds(chain).filter(|seconds| seconds.contains(&now.as_secs()));
        let checked = valid.map(|seconds| (Arc::new(authorities.authenticate(chain, now)), seconds));
        Self { certificates, checked }
    }

    /// Authenticates the client at the time `now`.
    pub(in crate::serve) fn authenticate(
        &self,
        authorities: &ClientCertificates,
        now: Timestamp,
    ) -> Cow<'_, ClientAuth> {
        let now = unix_time(now);
        match &self.checked {
            Some((result, valid)) if valid.contains(&now.as_secs()) => Cow::Borrowed(result),
            _ => Cow::Owned(authorities.authenticate(&self.certificates, now)),
        }
    }
}

fn unix_time(time: Timestamp) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(time.as_second()).unwrap_or(0)))
}

/// Returns the seconds since 1970 at which all certificates are valid; `None` if a certificate cannot be parsed.
fn valid_seconds(chain: &[CertificateDer<'_>]) -> Option<RangeInclusive<u64>> {
    chain.iter().try_fold(0..=u64::MAX, |both, certificate| {
        let valid = validity(&Certificate::from_der(certificate).ok()?);
        Some(*both.start().max(valid.start())..=*both.end().min(valid.end()))
    })
}
