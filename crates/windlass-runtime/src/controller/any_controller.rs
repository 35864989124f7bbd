//! A controller as the manager holds it: prepared, started, run.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use kube_core::ApiResource;

use super::{Controller, Running, shard::Shard};
use crate::{
    discovery,
    error::{Error, Result},
    handler::QueueKey,
    kind::Kind,
    manager::{ManagerState, Shutdown},
    permission::{Permission, Permissions},
    watch::Watch,
};

/// A controller with its key type erased, as the manager holds it.
pub(crate) trait AnyController: Send {
    fn name(&self) -> &str;
    /// The kinds that are watched, before [`prepare`](Self::prepare) takes the watches.
    fn watched(&self) -> Vec<ApiResource>;
    /// The declared rights, before [`prepare`](Self::prepare) takes the watches.
    fn permissions(&self) -> Vec<Permission>;
    fn needs_leader(&self) -> bool;
    fn warms_up(&self) -> bool;
    /// Whether replicas split its keys.
    fn is_sharded(&self) -> bool;
    /// Requests the caches, before they are started.
    fn prepare<'a>(&'a mut self, shared: &'a Arc<ManagerState>) -> BoxFuture<'a, Result<()>>;
    /// Starts to fill the queue, and waits until the first lists have ended. Does nothing a second time.
    fn start_sources(&mut self) -> BoxFuture<'_, Result<()>>;
    /// Reconciles until `shutdown`, then completes the reconciles under way.
    fn run(self: Box<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<()>>;
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

    fn prepare<'a>(&'a mut self, shared: &'a Arc<ManagerState>) -> BoxFuture<'a, Result<()>> {
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
            self.running = Some(running);
            Ok(())
        })
    }

    fn start_sources(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let Some(running) = &self.running else { return Ok(()) };
            running.start_watches().await?;
            for source in self.sources.drain(..) {
                running.follow(source);
            }
            running.join_group();
            Ok(())
        })
    }

    fn run(mut self: Box<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let started = shutdown.token().run_until_cancelled(self.start_sources()).await;
            let Some(running) = self.running.take() else { return Ok(()) };
            match started {
                Some(Ok(())) => running.work(shutdown).await,
                not_started => {
                    running.stop_sources();
                    not_started.unwrap_or(Ok(()))
                }
            }
        })
    }
}

impl<Q: QueueKey> Controller<Q> {
    /// The controller's share of the keys; `None` if they are not split.
    fn shard(&self, shared: &ManagerState) -> Result<Option<Shard<Q>>> {
        let Some(hash) = self.shard_hash.clone() else { return Ok(None) };
        let Some(gate) = shared.sharding.get() else {
            return Err(Error::setup(format!(
                "controller {:?} is sharded, but the manager is not: call `Manager::sharding`",
                self.name
            )));
        };
        Ok(Some(Shard::new(gate.clone(), hash, self.each_key)))
    }
}

/// The controller's kind, with its scope if a watch of owned objects needs it.
async fn resolve_scope(
    primary: Option<Kind>,
    needed: bool,
    limit: Option<Duration>,
    shared: &ManagerState,
) -> Result<Option<Kind>> {
    let Some(mut kind) = primary else { return Ok(None) };
    if kind.namespaced.is_none() && needed {
        kind.namespaced = Some(discovery::is_namespaced(&shared.own.client, &kind.resource, limit).await?);
    }
    Ok(Some(kind))
}
