//! Self-issued certificates of an operator: when to renew, write and serve certificates.

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use jiff::Timestamp;
use serde_json::Value;

use super::{
    CaBundle, SecretState, ServedAt, ServingCertificate,
    authority::{Facts, create_authority, issue_server},
    secret::Contents,
    store::CertificateError,
};

/// The lives of self-issued certificates. A certificate is renewed after two thirds of the certificate's
/// life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateDurations {
    /// The life of an authority. Default: 365 days.
    pub authority: Duration,
    /// The life of a serving certificate. Default: 90 days.
    pub serving: Duration,
}

impl Default for CertificateDurations {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        Self { authority: 365 * DAY, serving: 90 * DAY }
    }
}

/// The rotation of self-issued certificates: a state machine without clock, network and tasks.
///
/// Replicas share the state, which is in the cluster: a Secret with the authorities and the serving
/// certificate, and the `caBundle`s. [`plan`](Self::plan) gets the present state and returns writes; the
/// caller performs the writes, reads the state, and calls `plan` again until there are no writes. Any replica
/// may write: the resource version of the Secret lets a single replica win.
///
/// A rotation goes in this order, whichever replica takes the next step:
///
/// 1. a new authority is added to the Secret; the serving certificate stays,
/// 2. the new authority is added to all `caBundle`s, beside the old authorities,
/// 3. when all `caBundle`s contain the new authority, the authority signs a new serving certificate for the
///    Secret,
/// 4. each replica serves the new certificate; expired authorities are removed.
#[derive(Clone, Debug)]
pub struct Rotation {
    location: ServedAt,
    names: Vec<String>,
    lifetimes: CertificateDurations,
}

/// The present state in the cluster.
#[derive(Clone, Copy, Debug)]
pub struct CertificateState<'a> {
    /// The Secret, or `None` for a missing Secret.
    pub secret: Option<&'a SecretState>,
    /// The webhook configurations and CustomResourceDefinitions with `caBundle`s of this operator. Objects
    /// without a webhook at our location are left alone.
    pub objects: &'a [Value],
    /// The certificate that this replica serves.
    pub serving: Option<&'a ServingCertificate>,
}

/// The actions to take now.
#[derive(Debug, Default)]
pub struct Plan {
    /// The certificate to serve from now on, or `None` to keep the present certificate.
    pub serve: Option<ServingCertificate>,
    /// The write of the Secret. After a conflict, another replica was faster: read the state again.
    pub secret: Option<SecretWrite>,
    /// JSON patches of `objects`, by index.
    pub patches: Vec<(usize, Value)>,
}

/// A write of the Secret.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretWrite {
    /// The version that must still be current, or `None` to create the Secret.
    pub resource_version: Option<String>,
    /// The data. The Secret's type is `kubernetes.io/tls`.
    pub data: BTreeMap<String, Vec<u8>>,
    /// The change and the reason, for the log.
    pub reason: &'static str,
}

impl std::fmt::Debug for SecretWrite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretWrite")
            .field("resource_version", &self.resource_version)
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}

impl Rotation {
    /// Issues certificates for the names of a location.
    pub fn new(location: ServedAt, lifetimes: CertificateDurations) -> Self {
        let names = location.names().into_iter().map(canonical).collect();
        Self { location, names, lifetimes }
    }

    /// Adds DNS names and IP addresses to the certificate.
    pub fn names(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.names.extend(names.into_iter().map(canonical));
        self
    }

    /// Returns the location.
    pub fn location(&self) -> &ServedAt {
        &self.location
    }

    /// Returns the next steps. An empty plan means: all is well at this time.
    ///
    /// # Errors
    ///
    /// A certificate cannot be created, because a name is not a DNS name for example.
    pub fn plan(&self, now: Timestamp, observed: CertificateState<'_>) -> Result<Plan, CertificateError> {
        let contents = observed.secret.map(|secret| Contents::read(secret, now)).unwrap_or_default();
        let mut plan = Plan { secret: self.secret(now, observed, contents.clone())?, ..Plan::default() };
        plan.serve = self.serve(now, observed, &contents);
        let authorities: Vec<&[u8]> = contents.authorities.iter().map(|authority| &*authority.der).collect();
        // Without an authority, the `caBundle`s would be empty.
        if !authorities.is_empty() {
            for (at, object) in observed.objects.iter().enumerate() {
                plan.patches.extend(
                    CaBundle::of(&self.location, object).patch(&authorities, now).map(|patch| (at, patch)),
                );
            }
        }
        Ok(plan)
    }

    /// Returns the write of the Secret that is due.
    fn secret(
        &self,
        now: Timestamp,
        observed: CertificateState<'_>,
        mut contents: Contents,
    ) -> Result<Option<SecretWrite>, CertificateError> {
        let mut reason = None;
        let is_due = |facts: &Facts| now >= two_thirds(facts) || now < facts.not_before;
        let newest = contents.authorities.first();
        if newest.is_none_or(|authority| is_due(&authority.facts)) {
            contents.add_authority(&create_authority(now, self.lifetimes.authority)?);
            reason = Some("a new certificate authority");
        }
        let Some(newest) = contents.authorities.first().cloned() else { return Ok(None) };
        // A certificate that the API server can still verify is replaced only after every bundle has the new
        // authority.
        let usable = contents.serving.as_ref().map(|(_, facts)| facts).filter(|facts| {
            let is_signed = contents.authorities.iter().any(|by| by.facts.common_name == facts.issuer);
            is_signed && now < facts.not_after && self.names.iter().all(|name| facts.names.contains(name))
        });
        let renew = match usable {
            None => true,
            Some(facts) => {
                let newer = facts.issuer != newest.facts.common_name;
                (newer || is_due(facts)) && self.is_trusted(observed.objects, &newest.der)
            }
        };
        if renew {
            let (names, life) = (&self.names, self.lifetimes.serving);
            contents.set_serving(issue_server(&newest.facts, contents.authority_key(), names, now, life)?);
            reason = reason.or(Some("a new serving certificate"));
        }
        Ok(reason.map(|reason| SecretWrite {
            resource_version: observed.secret.map(|secret| secret.resource_version.clone()),
            data: contents.data(),
            reason,
        }))
    }

    /// Returns the Secret's certificate if that certificate is better than the served certificate.
    fn serve(
        &self,
        now: Timestamp,
        observed: CertificateState<'_>,
        contents: &Contents,
    ) -> Option<ServingCertificate> {
        let (certificate, facts) = contents.serving.as_ref()?;
        let issuer =
            contents.authorities.iter().find(|authority| authority.facts.common_name == facts.issuer)?;
        let replaceable = match observed.serving {
            None => true,
            Some(present) if present.is_same(certificate) => false,
            Some(present) => now >= present.not_after() || self.is_trusted(observed.objects, &issuer.der),
        };
        replaceable.then(|| certificate.clone())
    }

    /// Returns whether all `caBundle`s of ours have this authority.
    fn is_trusted(&self, objects: &[Value], authority: &[u8]) -> bool {
        objects.iter().all(|object| CaBundle::of(&self.location, object).has(authority))
    }
}

/// Returns an IP address in the form that a certificate is read in, and another name unchanged.
fn canonical(name: String) -> String {
    name.parse::<IpAddr>().map(|address| address.to_string()).unwrap_or(name)
}

fn two_thirds(facts: &Facts) -> Timestamp {
    let life = facts.not_after.duration_since(facts.not_before);
    facts.not_before.checked_add(life * 2 / 3).unwrap_or(facts.not_after)
}
