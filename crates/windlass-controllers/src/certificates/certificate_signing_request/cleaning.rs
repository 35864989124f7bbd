//! Deletes old requests.

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube_client::api::{Api, DeleteParams};
use kube_core::ResourceExt;
use windlass_runtime::{Action, Context, Controller, Error, ObjectKey, Result};

use super::authority::end_of;
use super::{APPROVED, DENIED, FAILED, conditions, is_issued};
use crate::wake;

/// The time for which a request stays after the certificate was issued, or after a refusal.
const DECIDED: SignedDuration = SignedDuration::from_hours(1);
/// The time for which a request waits for an approval, and then for a certificate.
const PENDING: SignedDuration = SignedDuration::from_hours(24);

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<CertificateSigningRequest>(reconcile).named("csrcleaner")
}

async fn reconcile(key: ObjectKey, cx: Context<CertificateSigningRequest>) -> Result<Action> {
    let Some(csr) = cx.get(&key)? else { return Ok(Action::done()) };
    let Some(due) = expires_at(&csr) else { return Ok(Action::done()) };
    if due > cx.now() {
        return Ok(wake::at(Some(due), cx.now()));
    }
    let requests: Api<CertificateSigningRequest> = Api::all(cx.client().clone());
    match requests.delete(&csr.name_any(), &DeleteParams::default()).await.map_err(Error::from) {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(Action::done()),
    }
}

/// Returns the time at which to delete a request: the earliest deadline of the creation, the conditions and
/// the certificate.
fn expires_at(csr: &CertificateSigningRequest) -> Option<Timestamp> {
    if conditions(csr).is_empty() {
        return csr.metadata.creation_timestamp.as_ref()?.0.checked_add(PENDING).ok();
    }
    let by_condition = conditions(csr).iter().filter_map(|condition| {
        let kept = match &*condition.type_ {
            APPROVED if !is_issued(csr) => PENDING,
            APPROVED | DENIED | FAILED => DECIDED,
            _ => return None,
        };
        condition.last_update_time.as_ref()?.0.checked_add(kept).ok()
    });
    let is_approved = conditions(csr).iter().any(|condition| condition.type_ == APPROVED);
    let certificate = csr.status.as_ref().and_then(|status| status.certificate.as_ref());
    let end = certificate.filter(|_| is_approved).and_then(|certificate| end_of(&certificate.0));
    by_condition.chain(end).min()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Returns after how many hours a request is deleted that was created at midnight.
    fn hours(status: Value) -> Option<i64> {
        let midnight: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let csr = json!({
            "metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"request": "", "signerName": "example.com/a"},
            "status": status,
        });
        let due = expires_at(&serde_json::from_value(csr).unwrap())?;
        Some(due.duration_since(midnight).as_hours())
    }

    fn with(type_: &str, certificate: Value) -> Value {
        let condition = json!({"type": type_, "status": "True", "lastUpdateTime": "2026-01-01T10:00:00Z"});
        json!({"conditions": [condition], "certificate": certificate})
    }

    #[test]
    fn requests_are_kept_for_a_time_that_depends_on_their_state() {
        assert_eq!(hours(json!({})), Some(24), "pending");
        assert_eq!(hours(with("Approved", json!(null))), Some(34), "approved, without a certificate");
        assert_eq!(hours(with("Approved", json!("eA=="))), Some(11), "issued");
        assert_eq!(hours(with("Denied", json!(null))), Some(11));
        assert_eq!(hours(with("Failed", json!(null))), Some(11));
        assert_eq!(hours(with("Noted", json!(null))), None);
    }
}
