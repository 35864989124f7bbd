//! A controller in the manager, before the preparation.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use kube_core::ApiResource;

use super::{
    Controller, Running,
    shard::Shard,
    work::{ControllerWork, Work},
};
use crate::{
    discovery,
    error::{Error, Result},
    handler::QueueKey,
    kind::Kind,
    permission::{Permission, Permissions},
    shared_state::SharedState,
    watch::Watch,
};

/// A controller with an erased key type, for the manager.
pub(crate) trait AnyController: Send {
    fn name(&self) -> &str;
    /// Returns the kinds that are watched, before [`prepare`](Self::prepare) takes the watches.
    fn watched(&self) -> Vec<ApiResource>;
    /// Returns the declared rights, before [`prepare`](Self::prepare) takes the watches.
    fn permissions(&self) -> Vec<Permission>;
    fn needs_leader(&self) -> bool;
    fn warms_up(&self) -> bool;
    /// Returns whether replicas split the keys.
    fn is_sharded(&self) -> bool;
    /// Requests the caches, before the caches are started.
    fn prepare<'a>(&'a mut self, shared: &'a Arc<SharedState>) -> BoxFuture<'a, Result<()>>;
    /// Returns the work of the controller after [`prepare`](Self::prepare).
    fn work(&self) -> Option<Arc<dyn ControllerWork>>;
}

impl<Q: QueueKey> AnyController for Controller<Q> {
    fn name(&self) -> &str {
        &self.name
    }

    fn watched(&self) -> Vec<ApiResource> {
        Controller::watched(self).cloned().collect()
    }

    fn permissions(&self) -> Vec<Permission> {
        Controller::permissions(self)
    }

    fn needs_leader(&self) -> bool {
        self.settings.needs_leader
    }

    fn warms_up(&self) -> bool {
        self.settings.warm_up
    }

    fn is_sharded(&self) -> bool {
        self.shard_hash.is_some()
    }

    fn prepare<'a>(&'a mut self, shared: &'a Arc<SharedState>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            if let Some(method) = self.misused {
                return Err(Error::setup(format!(
                    "controller {:?} has no kind of its own, so `.{method}(..)` has nothing to apply to; set it on a `Watch`",
                    self.name
                )));
            }
            let owns = self.watches.iter().any(Watch::maps_to_owner);
            let limit = self.settings.cache_sync_timeout;
            let rights = self.permissions().into_iter().map(|right| (self.name.as_str(), right));
            let declared = Permissions::merge(rights, &shared.own.namespaces);
            let primary = resolve_scope(self.primary.clone(), owns, limit, shared).await?;
            let shard = self.shard(shared)?;
            let running = Running::new(
                &self.name,
                primary,
                self.reconcile.clone(),
                std::mem::take(&mut self.predicates),
                self.settings.clone(),
                declared,
                shared,
            );
            if let Some(shard) = shard {
                running.set_shard(shard);
            }
            for watch in self.primary_watch.take().into_iter().chain(self.watches.drain(..)) {
                running.declare(watch).await?;
            }
            self.handle.connect(&running);
            self.work = Some(Work::new(running, std::mem::take(&mut self.sources)));
            Ok(())
        })
    }

    fn work(&self) -> Option<Arc<dyn ControllerWork>> {
        self.work.clone().map(|work| work as Arc<dyn ControllerWork>)
    }
}

impl<Q: QueueKey> Controller<Q> {
    /// Returns the controller's share of the keys; `None` for keys that are not split.
    fn shard(&self, shared: &SharedState) -> Result<Option<Shard<Q>>> {
        let Some(hash) = self.shard_hash.clone() else { return Ok(None) };
        let Some(group) = shared.sharding.get() else {
            return Err(Error::setup(format!(
                "controller {:?} is sharded, but the manager is not: call `Manager::sharding`",
                self.name
            )));
        };
        Ok(Some(Shard::new(group.clone(), hash, self.stored_keys)))
    }
}

/// Returns the controller's kind, with the scope if a watch of owned objects needs the scope.
async fn resolve_scope(
    primary: Option<Kind>,
    needed: bool,
    limit: Option<Duration>,
    shared: &SharedState,
) -> Result<Option<Kind>> {
    let Some(mut kind) = primary else { return Ok(None) };
    if kind.namespaced.is_none() && needed {
        kind.namespaced = Some(discovery::is_namespaced(&shared.own.api, &kind.resource, limit).await?);
    }
    Ok(Some(kind))
}
