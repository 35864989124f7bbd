//! The controllers of certificate signing requests: approve requests of kubelets, sign approved requests, and
//! delete old requests.

mod approving;
mod authority;
mod checks;
mod cleaning;
mod request;
mod signing;

pub use self::authority::{SigningAuthority, SigningAuthorityError};

pub(crate) use self::approving::controller as approving_controller;
pub(crate) use self::cleaning::controller as cleaning_controller;
pub(crate) use self::signing::controller as signing_controller;

use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};

const APPROVED: &str = "Approved";
const DENIED: &str = "Denied";
const FAILED: &str = "Failed";

/// The signer of client certificates of kubelets.
const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// The signer of serving certificates of kubelets.
const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
/// The signer of client certificates of the API server.
const API_CLIENT: &str = "kubernetes.io/kube-apiserver-client";
/// The signer of requests that were made through `v1beta1`.
const LEGACY: &str = "kubernetes.io/legacy-unknown";

fn conditions(request: &CertificateSigningRequest) -> &[CertificateSigningRequestCondition] {
    let status = request.status.as_ref();
    status.and_then(|status| status.conditions.as_deref()).unwrap_or_default()
}

fn has_condition(request: &CertificateSigningRequest, type_: &str) -> bool {
    conditions(request).iter().any(|condition| condition.type_ == type_)
}

fn is_issued(request: &CertificateSigningRequest) -> bool {
    let certificate = request.status.as_ref().and_then(|status| status.certificate.as_ref());
    certificate.is_some_and(|certificate| !certificate.0.is_empty())
}

/// Returns a condition that is true. The server sets missing times.
fn condition(type_: &str, reason: &str, message: &str) -> CertificateSigningRequestCondition {
    CertificateSigningRequestCondition {
        type_: type_.to_owned(),
        status: "True".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        ..CertificateSigningRequestCondition::default()
    }
}
