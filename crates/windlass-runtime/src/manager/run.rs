//! The order of start and stop.

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{
    FutureExt, StreamExt,
    future::{AbortHandle, Abortable, Aborted, BoxFuture, abortable, join_all},
    stream::FuturesUnordered,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use super::{
    Change, Manager, RunContext,
    http::{HealthEndpoints, MetricsEndpoint, serve},
    names::ControllerNames,
    runnable::{Ended, Group, Runnable, RunningGroup},
    secure_metrics::SecureMetrics,
    terms::check_repeatable,
};
use crate::{
    controller::AnyController,
    crds::{Progress, StartupCrds},
    error::{Error, Result},
    health::Health,
    informer::SharedInformerFactory,
    leader_election::{LeaderElection, Leadership, LeadershipChange},
    sharding::{Sharded, Sharding},
    shared_state::SharedState,
    webhook_declaration::WebhookServerDeclaration,
};

/// A running manager.
pub(super) struct RunningManager {
    pub(super) state: Arc<SharedState>,
    pub(super) groups: [RunningGroup; 4],
    /// Runnables that start when this replica becomes the leader. If a leader may become a follower, the
    /// runnables of a leader too.
    pub(super) elected: Vec<Runnable>,
    /// Controllers that discover kinds.
    pub(super) preparing: FuturesUnordered<Preparing>,
    pub(super) names: ControllerNames,
    /// Calls that wait until a part has stopped.
    pub(super) stopping: Vec<(String, oneshot::Sender<Result<()>>)>,
    pub(super) leading: bool,
    /// True if a replica that loses the Lease campaigns again.
    pub(super) returns_to_follower: bool,
    /// A runnable of the leader that has started and cannot start again.
    pub(super) once: Option<String>,
    pub(super) ended: mpsc::UnboundedReceiver<Ended>,
    pub(super) leadership: Option<Leadership>,
    pub(super) sharded: Option<Sharded>,
    pub(super) grace: Option<Duration>,
    pub(super) stale_after: Option<Duration>,
    pub(super) health: Health,
    /// True if the caches have been declared and started.
    pub(super) started: Arc<AtomicBool>,
    /// The controllers in `preparing` by name, for readiness, and to abort the preparation of a controller that is stopped.
    pub(super) asking: Arc<Mutex<BTreeMap<String, AbortHandle>>>,
}

/// An occurrence that a running manager reacts to.
enum Next {
    Stop,
    Ended(Ended),
    Change(Change),
    Prepared(Prepared),
    Leadership(LeadershipChange),
}

/// A controller with requested caches, or with the reason why the caches cannot be requested.
type Prepared = (Box<dyn AnyController>, Result<()>);
/// A preparation ends without a result if the controller is stopped first.
type Preparing = Abortable<BoxFuture<'static, Prepared>>;

impl RunningManager {
    pub(super) async fn start_and_stop(
        manager: Manager,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<()> {
        let applies_crds = manager.applies_crds() && !manager.crds.is_empty();
        let converts = manager.webhook_servers.iter().any(|server| !server.conversions.is_empty());
        let Manager {
            target,
            env,
            metrics,
            health,
            namespaces,
            clusters,
            events_api,
            observer,
            logs_warnings,
            changes: (_, mut changes),
            ..
        } = manager;
        tokio::pin!(stop);
        let state = async {
            let client = Manager::connect(target, &env).await?;
            let connecting = clusters.into_iter().map(|cluster| cluster.connect(&env));
            let connected = join_all(connecting).await.into_iter().collect::<Result<_>>()?;
            SharedState::new(client, env.clone(), metrics, namespaces, connected, events_api, observer).await
        };
        let state = tokio::select! {
            biased;
            () = &mut stop => return Ok(()),
            state = state => state?,
        };
        if !logs_warnings {
            state.clusters().for_each(|(_, cluster)| cluster.silence_warnings());
        }
        let (tell, ended) = mpsc::unbounded_channel();
        let mut running = Self {
            groups: Group::ALL.map(|_| RunningGroup::new(tell.clone())),
            elected: Vec::new(),
            preparing: FuturesUnordered::new(),
            names: ControllerNames::default(),
            stopping: Vec::new(),
            leading: false,
            returns_to_follower: manager
                .leader_election
                .as_ref()
                .is_some_and(LeaderElection::returns_to_follower),
            once: None,
            ended,
            leadership: None,
            sharded: None,
            grace: manager.grace,
            stale_after: manager.stale_after,
            health,
            started: Arc::default(),
            asking: Arc::default(),
            state,
        };
        let names: Vec<&str> = manager.controllers.iter().map(|controller| controller.name()).collect();
        let selected = manager.selection.check(&names);
        if let Some(warning) = manager.selection.warning(&names).filter(|_| selected.is_ok()) {
            tracing::warn!("{warning}");
        }
        let crds = if applies_crds {
            Some(running.startup_crds(&manager.crds, manager.webhook_servers)?)
        } else {
            None
        };
        let (selection, mut controllers) = (manager.selection, manager.controllers);
        controllers.retain(|controller| selection.has(controller.name()));
        let mut parts = Parts {
            converts,
            metrics_address: manager.metrics_address,
            secure_metrics: manager.secure_metrics,
            health_address: manager.health_address,
            election: manager.leader_election,
            sharding: manager.sharding,
            controllers,
            runnables: manager.runnables,
        };
        let result = match selected.and_then(|()| running.start_servers(&mut parts)) {
            Ok(()) => running.work(crds, parts, stop.as_mut(), &mut changes).await,
            Err(error) => Err(error),
        };
        changes.close();
        while changes.try_recv().is_ok() {}
        running.stop(result).await
    }

    /// Prepares the CRDs that are applied before the caches start, and adds the readiness check `crds`.
    fn startup_crds(
        &self,
        crds: &[CustomResourceDefinition],
        webhooks: Vec<WebhookServerDeclaration>,
    ) -> Result<StartupCrds> {
        let progress = Progress::new();
        let shown = progress.clone();
        self.health.add_ready("crds", move || std::future::ready(shown.check()));
        StartupCrds::new(&self.state.own.client, crds, webhooks, self.state.env.clone(), progress)
    }

    /// Applies the CRDs, starts the other parts, and waits until the manager must stop.
    async fn work(
        &mut self,
        crds: Option<StartupCrds>,
        parts: Parts,
        mut stop: std::pin::Pin<&mut (impl Future<Output = ()> + Send)>,
        changes: &mut mpsc::UnboundedReceiver<Change>,
    ) -> Result<()> {
        if let Some(mut crds) = crds {
            if !self.apply(&mut crds, stop.as_mut()).await? {
                return Ok(());
            }
            if crds.awaits_deletion() {
                self.start_one(after_deletion(crds));
            }
        }
        self.start(parts)?;
        self.watch_over(stop, changes).await
    }

    /// Applies the CRDs. Returns false if the manager must stop before.
    async fn apply(
        &mut self,
        crds: &mut StartupCrds,
        mut stop: std::pin::Pin<&mut (impl Future<Output = ()> + Send)>,
    ) -> Result<bool> {
        let mut apply = pin!(crds.apply());
        loop {
            tokio::select! {
                biased;
                () = &mut stop => return Ok(false),
                Some(ended) = self.ended.recv() => self.runnable_ended(ended)?,
                applied = &mut apply => return applied.map(|()| true),
            }
        }
    }

    /// Starts the servers that answer while the CRDs are applied: metrics and health endpoints, and webhooks.
    fn start_servers(&mut self, parts: &mut Parts) -> Result<()> {
        for controller in &parts.controllers {
            self.names.add(controller.name())?;
        }
        if let Some(election) = &parts.election {
            election.check()?;
        }
        check_repeatable(parts.election.as_ref(), &parts.runnables)?;
        if let Some(sharding) = &parts.sharding {
            sharding.check()?;
            let _ = self.state.sharding.set(sharding.shard_group(&self.state.env, &self.state.metrics));
        }
        self.add_checks(parts.converts);
        if let Some(address) = parts.metrics_address {
            let endpoint = MetricsEndpoint { metrics: self.state.metrics.clone(), access: None };
            self.start_one(serve("metrics", address, None, endpoint)?);
        }
        if let Some(metrics) = parts.secure_metrics.take() {
            for runnable in metrics.start(&self.state)? {
                self.start_one(runnable);
            }
        }
        if let Some(address) = parts.health_address {
            self.start_one(serve("health", address, None, HealthEndpoints(self.health.clone()))?);
        }
        parts.runnables.sort_by_key(|runnable| runnable.group);
        let late = parts.runnables.partition_point(|runnable| runnable.group <= Group::Webhooks);
        for runnable in parts.runnables.drain(..late) {
            self.start_one(runnable);
        }
        Ok(())
    }

    fn start(&mut self, parts: Parts) -> Result<()> {
        let mut prepared = Vec::new();
        let sharded = parts.controllers.iter().filter(|controller| controller.is_sharded()).count();
        for controller in parts.controllers {
            prepared.extend(self.prepare(controller)?);
        }
        self.state.informers().iter().for_each(SharedInformerFactory::start);
        self.started.store(true, Ordering::Release);
        for runnable in parts.runnables {
            self.start_one(runnable);
        }
        for controller in prepared {
            self.start_controller(&*controller);
        }
        if let (Some(sharding), Some(group)) = (parts.sharding, self.state.sharding.get()) {
            let (own, env, supervisor) = (&self.state.own, &self.state.env, &self.state.supervisor);
            self.sharded = Some(sharding.start(group.clone(), sharded, own, env, supervisor));
        }
        match parts.election {
            Some(election) => {
                let SharedState { own, env, metrics, leader, .. } = &*self.state;
                self.leadership = Some(election.start(own, env, metrics, leader));
            }
            None => self.lead(),
        }
        Ok(())
    }

    /// Requests the caches of a controller. Returns the controller if the request needs no answer of the
    /// server; otherwise, the controller starts when the answer has come, and other controllers need not
    /// wait.
    fn prepare(&mut self, mut controller: Box<dyn AnyController>) -> Result<Option<Box<dyn AnyController>>> {
        let (state, name) = (self.state.clone(), controller.name().to_owned());
        let mut preparing: BoxFuture<'static, Prepared> = Box::pin(async move {
            let result = controller.prepare(&state).await;
            (controller, result)
        });
        if let Some((controller, result)) = (&mut preparing).now_or_never() {
            return result.map(|()| Some(controller));
        }
        let (preparing, abort) = abortable(preparing);
        self.asking.lock().insert(name, abort);
        self.preparing.push(preparing);
        Ok(None)
    }

    /// Starts a controller, now or when this replica becomes the leader.
    fn start_controller(&mut self, controller: &dyn AnyController) {
        let name = controller.name();
        let Some(work) = controller.work() else { return };
        if controller.needs_leader() && controller.warms_up() {
            let work = work.clone();
            let warm_up = |cx: RunContext| async move {
                let started = cx.shutdown.token().run_until_cancelled(work.start()).await;
                started.unwrap_or(Ok(()))
            };
            self.start_one(Runnable::new(format!("warm-up of {name}"), warm_up).part_of(name));
        }
        let group = if controller.needs_leader() { Group::LeaderElected } else { Group::Others };
        let run = Runnable::repeatable(name, move |cx: RunContext| work.clone().run(cx.shutdown));
        self.start_one(run.part_of(name).group(group));
    }

    pub(super) fn start_one(&mut self, runnable: Runnable) {
        match runnable.group {
            Group::LeaderElected => self.start_elected(runnable),
            group => self.groups[group as usize].start(runnable, &self.state, self.grace),
        }
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::AddRunnable(runnable) => self.start_one(runnable),
            Change::AddController(controller, added) => {
                // The caller may have stopped waiting.
                let _ = added.send(self.add_controller(controller));
            }
            Change::Stop { name, stopped } => self.stop_part(name, stopped),
        }
    }

    fn add_controller(&mut self, controller: Box<dyn AnyController>) -> Result<()> {
        let name = controller.name().to_owned();
        self.names.add(&name)?;
        match self.prepare(controller) {
            Ok(Some(controller)) => self.start_controller(&*controller),
            Ok(None) => {}
            Err(error) => {
                self.names.remove(&name);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Stops the controller or the runnables of a name.
    fn stop_part(&mut self, name: String, stopped: oneshot::Sender<Result<()>>) {
        let before = self.elected.len();
        self.elected.retain(|runnable| runnable.part() != name);
        let mut found = before - self.elected.len();
        found += self.groups.iter_mut().map(|group| group.stop_part(&name)).sum::<usize>();
        // A controller that is still asking the server has a name, but no task. The name is free at once: a
        // preparation that went on would start a second instance beside a new controller of the name.
        if let Some(preparing) = self.asking.lock().remove(&name) {
            preparing.abort();
        }
        if found == 0 && !self.names.contains(&name) {
            let _ = stopped.send(Err(Error::setup(format!("the manager has no part called {name:?}"))));
            return;
        }
        self.stopping.push((name.clone(), stopped));
        self.part_ended(&name);
    }

    /// Reports the end of a part to the waiting callers, if no task of the part runs any more.
    pub(super) fn part_ended(&mut self, part: &str) {
        let runs = self.groups.iter().any(|group| group.runs(part))
            || self.elected.iter().any(|runnable| runnable.part() == part);
        if runs {
            return;
        }
        if self.names.remove(part) {
            self.state.queues.remove(part);
        }
        for (_, stopped) in self.stopping.extract_if(.., |(name, _)| name == part) {
            let _ = stopped.send(Ok(()));
        }
    }

    /// Waits until the manager must stop, and returns the manager's result.
    async fn watch_over(
        &mut self,
        mut stop: std::pin::Pin<&mut (impl Future<Output = ()> + Send)>,
        changes: &mut mpsc::UnboundedReceiver<Change>,
    ) -> Result<()> {
        loop {
            let next = tokio::select! {
                biased;
                () = &mut stop => Next::Stop,
                Some(ended) = self.ended.recv() => Next::Ended(ended),
                change = leadership_change(&mut self.leadership) => Next::Leadership(change),
                Some(prepared) = self.preparing.next(), if !self.preparing.is_empty() => match prepared {
                    Ok(prepared) => Next::Prepared(prepared),
                    Err(Aborted) => continue,
                },
                Some(change) = changes.recv() => Next::Change(change),
            };
            match next {
                Next::Stop => return Ok(()),
                Next::Change(change) => self.change(change),
                Next::Prepared((controller, result)) => {
                    result?;
                    self.asking.lock().remove(controller.name());
                    self.start_controller(&*controller);
                }
                Next::Leadership(LeadershipChange::Acquired) => self.lead(),
                Next::Leadership(LeadershipChange::Lost) => self.lose().await?,
                Next::Ended(ended) => self.runnable_ended(ended)?,
            }
        }
    }

    /// Forgets a runnable that has ended.
    ///
    /// # Errors
    /// The runnable has failed.
    fn runnable_ended(&mut self, mut ended: Ended) -> Result<()> {
        ended.failure()?;
        self.groups[ended.group as usize].remove(ended.task);
        self.part_ended(&ended.part);
        Ok(())
    }
}

/// Returns the runnable that applies CRDs after the deletion of the CRDs.
fn after_deletion(crds: StartupCrds) -> Runnable {
    let run = |cx: RunContext| async move {
        let applied = cx.shutdown.token().run_until_cancelled(crds.apply_after_deletion()).await;
        applied.unwrap_or(Ok(()))
    };
    Runnable::new("CRDs after a deletion", run).without_caches()
}

struct Parts {
    /// True if a webhook server converts kinds.
    converts: bool,
    metrics_address: Option<std::net::SocketAddr>,
    secure_metrics: Option<SecureMetrics>,
    health_address: Option<std::net::SocketAddr>,
    election: Option<LeaderElection>,
    sharding: Option<Sharding>,
    controllers: Vec<Box<dyn AnyController>>,
    runnables: Vec<Runnable>,
}

/// Waits until the leadership is lost; for ever, without an election.
pub(super) async fn lost(leadership: &mut Option<Leadership>) {
    while leadership_change(leadership).await != LeadershipChange::Lost {}
}

/// Waits for the next change of leadership; for ever, without an election.
async fn leadership_change(leadership: &mut Option<Leadership>) -> LeadershipChange {
    match leadership {
        Some(leadership) => leadership.changed().await,
        None => std::future::pending().await,
    }
}
