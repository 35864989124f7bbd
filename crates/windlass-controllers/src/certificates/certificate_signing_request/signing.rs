//! Signs the certificates of approved requests.

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::SignedDuration;
use kube_client::api::Api;
use kube_core::ResourceExt;
use windlass_runtime::{Action, Context, Controller, Error, ObjectKey, Reconciler, Result};

use super::request::Request;
use super::{
    APPROVED, DENIED, FAILED, SigningAuthority, checks, condition, conditions, has_condition, is_issued,
};
use crate::component::{self, KUBE_CONTROLLER_MANAGER};

/// The default life of a certificate, and the longest life.
const LONGEST: SignedDuration = SignedDuration::from_hours(24 * 365);
/// The shortest life of a certificate.
const SHORTEST: SignedDuration = SignedDuration::from_mins(10);

struct Signer {
    authority: SigningAuthority,
}

/// Returns the controller: the four signers of Kubernetes, with a common authority.
pub(crate) fn controller(authority: SigningAuthority) -> Controller {
    Controller::of::<CertificateSigningRequest>(Signer { authority }).named("csrsigning")
}

impl Reconciler<CertificateSigningRequest> for Signer {
    type Error = Error;

    async fn reconcile(&self, key: ObjectKey, cx: Context<CertificateSigningRequest>) -> Result<Action> {
        let Some(csr) = cx.get(&key)?.filter(|csr| is_due(csr)) else { return Ok(Action::done()) };
        let request = Request::parse(&csr.spec.request.0)
            .map_err(|error| Error::other(format!("unable to parse csr {:?}: {error}", csr.name_any())))?;
        let usages = csr.spec.usages.as_deref().unwrap_or_default();
        let mut next = (*csr).clone();
        let status = next.status.get_or_insert_default();
        if let Err(why) = checks::check(&csr.spec.signer_name, &request, usages) {
            let mut failed = condition(FAILED, "SignerValidationFailure", &why);
            failed.last_update_time = Some(Time(cx.now()));
            status.conditions.get_or_insert_default().push(failed);
        } else {
            let serial = u128::from(cx.env().random()) << 64 | u128::from(cx.env().random());
            let life = life(csr.spec.expiration_seconds);
            let signed = self.authority.sign(&request, usages, life, serial, cx.now());
            let certificate =
                signed.map_err(|error| Error::other(format!("error auto signing csr: {error}")))?;
            status.certificate = Some(ByteString(certificate.into_bytes()));
        }
        write(&next, &cx).await
    }
}

/// Returns whether a request is approved, and neither signed nor failed.
fn is_due(csr: &CertificateSigningRequest) -> bool {
    let has_failed = conditions(csr)
        .iter()
        .any(|condition| condition.type_ == FAILED && matches!(condition.status.as_str(), "" | "True"));
    checks::is_signer(&csr.spec.signer_name)
        && has_condition(csr, APPROVED)
        && !has_condition(csr, DENIED)
        && !has_failed
        && !is_issued(csr)
}

fn life(seconds: Option<i32>) -> SignedDuration {
    let requested = seconds.map(|seconds| SignedDuration::from_secs(seconds.into()));
    requested.unwrap_or(LONGEST).clamp(SHORTEST, LONGEST)
}

async fn write(csr: &CertificateSigningRequest, cx: &Context<CertificateSigningRequest>) -> Result<Action> {
    let requests: Api<CertificateSigningRequest> = Api::all(cx.client().clone());
    match requests
        .replace_status(&csr.name_any(), &component::post(KUBE_CONTROLLER_MANAGER), csr)
        .await
        .map_err(Error::from)
    {
        // The next event of the object triggers a reconcile.
        Err(error) if error.is_conflict() || error.is_not_found() => Ok(Action::done()),
        other => other.map(|_| Action::done()),
    }
}
