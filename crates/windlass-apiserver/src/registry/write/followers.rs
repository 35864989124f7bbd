//! Objects of the server, and served resources, that follow a write.

use std::sync::Arc;

use crate::api_services;
use crate::cluster_roles;
use crate::definitions;
use crate::flow_schemas;
use crate::ip_addresses::ServiceAddresses;
use crate::resource::Resource;
use crate::state::State;
use windlass_kinds::resources::{API_SERVICES, DEFINITIONS};

/// Objects of the server, and served resources, that follow a write. If the request ends early, a separate task writes
/// the objects.
pub(super) struct Followers {
    state: Arc<State>,
    /// `None` if no objects follow, or if the objects have followed.
    kind: Option<FollowerKind>,
}

enum FollowerKind {
    /// The resources of a CustomResourceDefinition, by the name of the definition.
    Definition(String),
    /// The clean-up of a terminating CustomResourceDefinition that had the written object.
    CleanUp(String),
    /// The APIServices of the groups that this server serves.
    ApiServices,
    /// Aggregated cluster roles.
    Roles,
    /// The conditions of flow schemas.
    FlowSchemas,
    /// The IPAddress objects of a service.
    Addresses(ServiceAddresses),
}

impl FollowerKind {
    async fn settle(&self, state: &Arc<State>) {
        match self {
            Self::Definition(name) => definitions::settle(state, name).await,
            Self::CleanUp(name) => definitions::settle_if_terminating(state, name).await,
            Self::ApiServices => api_services::follow(state),
            Self::Roles => cluster_roles::settle(state).await,
            Self::FlowSchemas => flow_schemas::settle(state).await,
            Self::Addresses(addresses) => addresses.settle(state).await,
        }
    }
}

impl Followers {
    pub(super) fn of(state: &Arc<State>, resource: &Resource, key: &str) -> Option<Self> {
        let id = &resource.storage;
        let kind = if *id == *DEFINITIONS {
            FollowerKind::Definition(key.to_owned())
        } else if let Some(custom) = &resource.custom {
            FollowerKind::CleanUp(custom.definition.clone())
        } else if *id == *API_SERVICES {
            FollowerKind::ApiServices
        } else if cluster_roles::follow(state, id) {
            FollowerKind::Roles
        } else if flow_schemas::follow(id) {
            FollowerKind::FlowSchemas
        } else {
            FollowerKind::Addresses(ServiceAddresses::before(state, id, key)?)
        };
        Some(Self { state: Arc::clone(state), kind: Some(kind) })
    }

    /// The objects do not follow: the write failed.
    pub(super) fn stay(&mut self) {
        self.kind = None;
    }

    pub(super) async fn settle(mut self) {
        if let Some(kind) = &self.kind {
            kind.settle(&self.state).await;
        }
        self.kind = None;
    }
}

impl Drop for Followers {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if let Some(kind) = self.kind.take() {
            let state = Arc::clone(&self.state);
            runtime.spawn(async move { kind.settle(&state).await });
        }
    }
}
