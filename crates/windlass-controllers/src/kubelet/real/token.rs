//! The tokens of pods: issued for a pod, and renewed at 80 % of their life.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest as Request, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube_client::api::{Api, PostParams};

use super::worker::{Job, account, name, text};
use crate::kubelet::container::earlier;
use crate::kubelet::resolve::{Objects, TokenRequest};

/// A token is renewed after this time at the latest.
const RENEW_WITHIN: SignedDuration = SignedDuration::from_hours(24);

/// The tokens of all pods.
#[derive(Default)]
pub(super) struct Tokens {
    issued: Mutex<BTreeMap<String, BTreeMap<TokenRequest, Issued>>>,
}

#[derive(Clone)]
struct Issued {
    token: String,
    renew_at: Timestamp,
}

impl Tokens {
    /// Adds the tokens of a pod's volumes to `objects`. Returns when the first token has to be renewed.
    ///
    /// # Errors
    /// The API server refuses a token: the service account or the pod is gone, for example.
    pub(super) async fn issue(&self, job: &Job, objects: &mut Objects) -> Result<Option<Timestamp>, String> {
        let mut first = None;
        for request in TokenRequest::of_volumes(&job.spec) {
            let now = job.env.now();
            let known = self.known(&job.uid, &request).filter(|issued| issued.renew_at > now);
            let issued = match known {
                Some(issued) => issued,
                None => self.renew(job, &request, now).await?,
            };
            first = earlier(first, Some(issued.renew_at));
            objects.tokens.insert(request, issued.token);
        }
        Ok(first)
    }

    fn known(&self, uid: &str, request: &TokenRequest) -> Option<Issued> {
        let issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        issued.get(uid)?.get(request).cloned()
    }

    async fn renew(&self, job: &Job, request: &TokenRequest, now: Timestamp) -> Result<Issued, String> {
        let pod = BoundObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: Some(name(job)),
            uid: Some(job.uid.clone()),
        };
        let audience = Some(request.audience.clone()).filter(|audience| !audience.is_empty());
        let wanted = Request {
            spec: Some(TokenRequestSpec {
                audiences: Some(audience.into_iter().collect()),
                bound_object_ref: Some(pod),
                expiration_seconds: Some(request.expiration_seconds),
            }),
            ..Request::default()
        };
        let accounts: Api<ServiceAccount> = Api::namespaced(job.client.clone(), job.namespace());
        let reply = accounts.create_token_request(&account(job), &PostParams::default(), &wanted).await;
        let reply = reply.map_err(|error| format!("failed to fetch token: {}", text(error)))?;
        let life =
            SignedDuration::from_secs(reply.spec.and_then(|spec| spec.expiration_seconds).unwrap_or(3600));
        let wait = (life * 4 / 5).min(RENEW_WITHIN);
        let renew_at = now.checked_add(wait).unwrap_or(Timestamp::MAX);
        let token = reply.status.and_then(|status| status.token).unwrap_or_default();
        let issued = Issued { token, renew_at };
        let mut all = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(job.uid.clone()).or_default().insert(request.clone(), issued.clone());
        Ok(issued)
    }

    pub(super) fn forget(&self, uid: &str) {
        self.issued.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}
