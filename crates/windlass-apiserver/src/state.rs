//! The state that all requests to a server share.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use serde_json::{Value, json};
use windlass_schema::Catalog;

use crate::admission::{Policies, Webhooks};
use crate::aggregated_roles::AggregatedRoles;
use crate::apart::Apart;
use crate::auth::{Authentication, Authorizer, Identity, Impersonation, Issuer, ListenerTokens, Verified};
use crate::flow_control::FlowControl;
use crate::listeners::Listeners;
use crate::network::PodNetwork;
use crate::reply_memory::ReplyMemory;
use crate::resource::{Definitions, Resource, ServedResources};
use crate::store::Env;
use crate::store::Store;
use windlass_kinds::{AdmissionPlugins, Lookups, ServiceClusterIpRange};

/// The state that all requests to a server share.
pub(crate) struct State {
    pub(crate) store: Arc<Store>,
    pub(crate) env: Env,
    pub(crate) catalog: Arc<Catalog>,
    /// The resources that are served now.
    pub(crate) served: ArcSwap<ServedResources>,
    /// The built-in part of the served resources.
    pub(crate) builtin: ServedResources,
    /// The aggregated cluster roles; `None` if the rules do not follow the selected roles. Locked while the rules are written.
    pub(crate) aggregated_roles: Option<tokio::sync::Mutex<AggregatedRoles>>,
    /// The resource that stands for the scales of other resources.
    pub(crate) scales: Arc<Resource>,
    /// The resource that stands for the requests for tokens of service accounts.
    pub(crate) token_requests: Arc<Resource>,
    /// The state of the CustomResourceDefinitions; locked while a definition is settled.
    pub(crate) definitions: tokio::sync::Mutex<Definitions>,
    /// Set while an earlier server's definitions are terminating or without names: the next request continues
    /// the work.
    pub(crate) unsettled_definitions: AtomicBool,
    /// The admission plugins that run.
    pub(crate) plugins: AdmissionPlugins,
    /// The range of the cluster addresses of services.
    pub(crate) service_range: ServiceClusterIpRange,
    /// True if containers may be privileged.
    pub(crate) allows_privileged: bool,
    /// The address of the server in the Endpoints of the Service `kubernetes`; `None` for that of the listener.
    pub(crate) advertise_address: Option<IpAddr>,
    /// The listeners that run.
    pub(crate) listeners: Listeners,
    /// The network of the pods, and the nodes.
    pub(crate) network: PodNetwork,
    /// Runs long requests.
    pub(crate) apart: Apart,
    /// Limits the memory of replies that no client has read yet.
    pub(crate) reply_memory: ReplyMemory,
    /// The limits of requests in flight.
    pub(crate) flow_control: FlowControl,
    /// The admission webhooks.
    pub(crate) webhooks: Webhooks,
    /// The admission policies.
    pub(crate) policies: Policies,
    /// The look-ups of strategies at every write.
    pub(crate) lookups: Lookups,
    /// The bearer tokens that listeners accept.
    pub(crate) tokens: ListenerTokens,
    /// The Secrets with used tokens, which must be labelled.
    pub(crate) used_tokens: UsedTokens,
    /// The signer of service account tokens.
    pub(crate) issuer: Issuer,
    /// Decides about the rights of users.
    pub(crate) authorizer: Arc<Authorizer>,
    /// Runs requests as other users.
    pub(crate) impersonation: Impersonation,
}

/// The keys of Secrets with tokens that were used since the last request was routed.
#[derive(Default)]
pub(crate) struct UsedTokens {
    any: AtomicBool,
    keys: parking_lot::Mutex<BTreeSet<String>>,
}

impl UsedTokens {
    fn add(&self, key: String) {
        self.keys.lock().insert(key);
        self.any.store(true, Ordering::Release);
    }

    /// Takes the keys.
    pub(crate) fn take(&self) -> BTreeSet<String> {
        if self.any.swap(false, Ordering::Acquire) {
            std::mem::take(&mut *self.keys.lock())
        } else {
            BTreeSet::new()
        }
    }
}

impl State {
    /// Returns the user of a token for this server.
    pub(crate) fn identity_of(&self, token: &str) -> Option<Identity> {
        self.authenticate(token, self.issuer.audiences()).ok().map(|(identity, _)| identity)
    }

    /// Authenticates a token for one of `audiences`: a configured token, or a token of a service account that
    /// still exists.
    pub(crate) fn authenticate(&self, token: &str, audiences: &[String]) -> Authentication {
        if let Some(identity) = self.tokens.find(token) {
            // Tokens that were handed in are for this server alone.
            let own = self.issuer.audiences();
            let shared: Vec<String> =
                audiences.iter().filter(|audience| own.contains(audience)).cloned().collect();
            return if shared.is_empty() { Err(String::new()) } else { Ok((identity, shared)) };
        }
        let Some(claims) = self.issuer.verify(token) else { return Err(String::new()) };
        match claims? {
            Verified::Requested(claims) => {
                let audiences = claims.for_audiences(audiences)?;
                claims.check(&self.store.view(), self.env.now())?;
                Ok((claims.identity(), audiences))
            }
            Verified::Legacy(claims) => {
                let own = self.issuer.audiences().iter();
                let shared: Vec<String> = own.filter(|own| audiences.contains(own)).cloned().collect();
                if shared.is_empty() {
                    return Err(String::new());
                }
                if claims.check(token, &self.store.view(), self.env.now())? {
                    self.used_tokens.add(claims.secret_key());
                }
                Ok((claims.identity(), shared))
            }
        }
    }

    /// Reads a protobuf object behind the `k8s\0` prefix. For a kind that is not built in, only version and
    /// kind are read: the caller refuses the object.
    pub(crate) fn decode_protobuf(&self, bytes: &[u8]) -> Result<Value, String> {
        windlass_schema::decode_protobuf(&self.catalog, bytes).or_else(|error| match error.unknown_kind() {
            Some((version, kind)) => Ok(json!({"apiVersion": version, "kind": kind})),
            None => Err(error.to_string()),
        })
    }
}
