//! The resources of the server, from discovery.

use kube_client::discovery::ApiGroup;
use kube_client::{Client, Discovery};
use kube_core::discovery::{ApiCapabilities, ApiResource, Scope, verbs};
use windlass_runtime::{Error, Result};

/// A resource in the most stable version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    pub api: ApiResource,
    pub namespaced: bool,
    pub watchable: bool,
    pub deletable: bool,
    pub collection_deletable: bool,
}

impl Resource {
    fn new(api: ApiResource, capabilities: &ApiCapabilities) -> Self {
        let can = |verb| capabilities.supports_operation(verb);
        Self {
            namespaced: capabilities.scope == Scope::Namespaced,
            watchable: can(verbs::LIST) && can(verbs::WATCH),
            deletable: can(verbs::GET) && can(verbs::LIST) && can(verbs::DELETE),
            collection_deletable: can(verbs::DELETE_COLLECTION),
            api,
        }
    }

    /// Returns `<plural>.<group>`, as conditions of namespaces name a resource: `pods.`, `deployments.apps`.
    pub(crate) fn name(&self) -> String {
        format!("{}.{}", self.api.plural, self.api.group)
    }

    /// Returns whether this is the resource of Events. Events have no owners and no dependents, and change
    /// all the time.
    pub(crate) fn is_events(&self) -> bool {
        self.api.kind == "Event" && matches!(self.api.group.as_str(), "" | "events.k8s.io")
    }
}

/// Discovers all resources, each once, sorted by group and plural.
pub(crate) async fn discover(client: &Client) -> Result<Vec<Resource>> {
    let found = Discovery::new(client.clone()).run_aggregated().await.map_err(Error::from)?;
    let mut resources: Vec<Resource> = found
        .groups()
        .flat_map(ApiGroup::resources_by_stability)
        .map(|(api, capabilities)| Resource::new(api, &capabilities))
        .collect();
    resources.sort_by(|a, b| (&a.api.group, &a.api.plural).cmp(&(&b.api.group, &b.api.plural)));
    Ok(resources)
}
