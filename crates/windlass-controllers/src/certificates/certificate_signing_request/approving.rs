//! Approves the requests of kubelets for client certificates, if the user has the right to get a certificate.

use std::time::Duration;

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube_client::api::{Api, PostParams};
use kube_core::ResourceExt;
use windlass_runtime::{Action, Context, Controller, Error, ObjectKey, Result};

use super::request::Request;
use super::{APPROVED, DENIED, KUBELET_CLIENT, checks, condition, has_condition, is_issued};
use crate::component::{self, KUBE_CONTROLLER_MANAGER};

/// The shortest and the longest wait until the rights of a user are looked at again.
const SHORTEST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(1000);

/// A right to get a certificate, as a subresource of the requests.
struct Right {
    subresource: &'static str,
    message: &'static str,
}

const OWN: Right = Right {
    subresource: "selfnodeclient",
    message: "Auto approving self kubelet client certificate after SubjectAccessReview.",
};
const ANY: Right = Right {
    subresource: "nodeclient",
    message: "Auto approving kubelet client certificate after SubjectAccessReview.",
};

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<CertificateSigningRequest>(reconcile).named("csrapproving")
}

async fn reconcile(key: ObjectKey, cx: Context<CertificateSigningRequest>) -> Result<Action> {
    let Some(csr) = cx.get(&key)? else { return Ok(Action::done()) };
    if is_issued(&csr) || has_condition(&csr, APPROVED) || has_condition(&csr, DENIED) {
        return Ok(Action::done());
    }
    let rights = rights(&csr);
    for right in &rights {
        if is_allowed(&csr, right, &cx).await? {
            return approve(&csr, right.message, &cx).await;
        }
    }
    if rights.is_empty() {
        return Ok(Action::done());
    }
    // Rights may come later. The intervals double, because each is as long as the request is old.
    let created = csr.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let age = created.and_then(|created| Duration::try_from(cx.now().duration_since(created)).ok());
    Ok(Action::requeue_after(age.unwrap_or_default().clamp(SHORTEST, LONGEST)))
}

/// Returns the alternative rights for a request; a single right is enough. Returns no rights for a request
/// that is not a kubelet's.
fn rights(csr: &CertificateSigningRequest) -> Vec<Right> {
    if csr.spec.signer_name != KUBELET_CLIENT {
        return Vec::new();
    }
    let Ok(request) = Request::parse(&csr.spec.request.0) else { return Vec::new() };
    if checks::kubelet_client(&request, csr.spec.usages.as_deref().unwrap_or_default()).is_err() {
        return Vec::new();
    }
    let is_own = csr.spec.username.as_deref() == Some(&*request.common_name());
    if is_own { vec![OWN, ANY] } else { vec![ANY] }
}

async fn is_allowed(
    csr: &CertificateSigningRequest,
    right: &Right,
    cx: &Context<CertificateSigningRequest>,
) -> Result<bool> {
    let attributes = ResourceAttributes {
        group: Some("certificates.k8s.io".to_owned()),
        version: Some("*".to_owned()),
        resource: Some("certificatesigningrequests".to_owned()),
        subresource: Some(right.subresource.to_owned()),
        verb: Some("create".to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SubjectAccessReviewSpec {
        user: csr.spec.username.clone(),
        uid: csr.spec.uid.clone(),
        groups: csr.spec.groups.clone(),
        extra: csr.spec.extra.clone(),
        resource_attributes: Some(attributes),
        ..SubjectAccessReviewSpec::default()
    };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let reviews: Api<SubjectAccessReview> = Api::all(cx.client().clone());
    let review = reviews.create(&PostParams::default(), &review).await.map_err(Error::from)?;
    Ok(review.status.is_some_and(|status| status.allowed))
}

async fn approve(
    csr: &CertificateSigningRequest,
    message: &str,
    cx: &Context<CertificateSigningRequest>,
) -> Result<Action> {
    let mut approved = csr.clone();
    let conditions = approved.status.get_or_insert_default().conditions.get_or_insert_default();
    conditions.push(condition(APPROVED, "AutoApproved", message));
    let requests: Api<CertificateSigningRequest> = Api::all(cx.client().clone());
    let options = component::post(KUBE_CONTROLLER_MANAGER);
    match requests
        .replace_subresource("approval", &csr.name_any(), &options, &approved)
        .await
        .map_err(Error::from)
    {
        // The next event of the object triggers a reconcile.
        Err(error) if error.is_conflict() || error.is_not_found() => Ok(Action::done()),
        other => other.map(|_| Action::done()),
    }
}
