//! Certificate signing requests, certificates of pods, and bundles of trusted authorities.

mod certificate_signing_request;
mod cluster_trust_bundle;
mod pod_certificate_request;

mod signer;
mod subject;

pub use self::subject::{attributes, organizations};
use crate::kind::Kind;

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] = &[
    ("certificatesigningrequests", &certificate_signing_request::KIND),
    ("clustertrustbundles", &cluster_trust_bundle::KIND),
    ("podcertificaterequests", &pod_certificate_request::KIND),
];

const GROUP: &str = "certificates.k8s.io";
