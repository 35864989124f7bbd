//! The order of start and stop.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::{
    Manager, ManagerState, RunContext, Shutdown,
    http::{HealthEndpoints, MetricsEndpoint, serve},
    runnable::{Ended, Group, Runnable, RunningGroup},
};
use crate::{
    controller::AnyController,
    error::{BoxError, Error, Result},
    health::Health,
    informer::SharedInformerFactory,
    leader_election::{Leadership, LeadershipChange},
};

/// The longest wait for the API server when the manager stops: for the release of the Lease.
const RELEASE_LIMIT: Duration = Duration::from_secs(2);

/// The longest wait for the API server when the manager stops: for events that are not written yet.
const EVENTS_LIMIT: Duration = Duration::from_millis(1500);

/// A running manager.
pub(super) struct RunningManager {
    state: Arc<ManagerState>,
    groups: [RunningGroup; 4],
    /// Runnables that start when this replica becomes the leader.
    elected: Vec<Runnable>,
    leading: bool,
    ended: mpsc::UnboundedReceiver<Ended>,
    leadership: Option<Leadership>,
    grace: Option<Duration>,
    health: Health,
    /// Whether all caches have been declared and started.
    started: Arc<AtomicBool>,
}

/// An occurrence that a running manager reacts to.
enum Next {
    Stop,
    Ended(Ended),
    Added(Runnable),
    Leadership(LeadershipChange),
}

impl RunningManager {
    pub(super) async fn start_and_stop(
        manager: Manager,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<()> {
        let Manager { target, env, metrics, health, namespaces, events_api, later: (_, mut later), .. } =
            manager;
        tokio::pin!(stop);
        let state = async {
            let client = Manager::connect(target, &env).await?;
            ManagerState::new(client, env.clone(), metrics, namespaces, events_api).await
        };
        let state = tokio::select! {
            biased;
            () = &mut stop => return Ok(()),
            state = state => state?,
        };
        let (tell, ended) = mpsc::unbounded_channel();
        let mut running = Self {
            groups: Group::ALL.map(|_| RunningGroup::new(tell.clone())),
            elected: Vec::new(),
            leading: false,
            ended,
            leadership: None,
            grace: manager.grace,
            health,
            started: Arc::default(),
            state,
        };
        let parts = Parts {
            metrics_address: manager.metrics_address,
            health_address: manager.health_address,
            election: manager.leader_election,
            controllers: manager.controllers,
            runnables: manager.runnables,
        };
        let started = tokio::select! {
            biased;
            () = &mut stop => None,
            started = running.start(parts) => Some(started),
        };
        let result = match started {
            Some(Ok(())) => running.watch_over(stop.as_mut(), &mut later).await,
            Some(Err(error)) => Err(error),
            None => Ok(()),
        };
        later.close();
        running.stop(result).await
    }

    async fn start(&mut self, parts: Parts) -> Result<()> {
        check_names(&parts.controllers)?;
        if let Some(election) = &parts.election {
            election.check()?;
        }
        self.add_checks();
        if let Some(address) = parts.metrics_address {
            let endpoint = MetricsEndpoint(self.state.metrics.clone());
            self.start_one(serve("metrics", address, endpoint)?);
        }
        if let Some(address) = parts.health_address {
            self.start_one(serve("health", address, HealthEndpoints(self.health.clone()))?);
        }
        let mut runnables = parts.runnables;
        runnables.sort_by_key(|runnable| runnable.group);
        let (early, late): (Vec<_>, Vec<_>) =
            runnables.into_iter().partition(|runnable| runnable.group <= Group::Webhooks);
        for runnable in early {
            self.start_one(runnable);
        }
        let mut controllers = parts.controllers;
        for controller in &mut controllers {
            controller.prepare(&self.state).await?;
        }
        self.state.informers.start();
        self.started.store(true, Ordering::Release);
        for runnable in late {
            self.start_one(runnable);
        }
        for controller in controllers {
            self.start_controller(controller);
        }
        match parts.election {
            Some(election) => self.leadership = Some(election.start(&self.state)),
            None => self.lead(),
        }
        Ok(())
    }

    /// Adds the readiness checks that every manager has.
    fn add_checks(&self) {
        let (informers, started) = (self.state.informers.clone(), self.started.clone());
        // Readiness tells whether the caches were ever filled: one that is filled stays so.
        let synced = Arc::new(AtomicBool::new(false));
        self.health.add_ready("informer-sync", move || {
            let result = if synced.load(Ordering::Acquire) {
                Ok(())
            } else if started.load(Ordering::Acquire) {
                caches_filled(&informers).inspect(|()| synced.store(true, Ordering::Release))
            } else {
                Err("the caches are not started".to_owned())
            };
            std::future::ready(result)
        });
        let supervisor = self.state.supervisor.clone();
        self.health.add_ready("tasks", move || {
            let down = supervisor.down();
            std::future::ready(if down.is_empty() {
                Ok(())
            } else {
                Err(format!("down after a panic: {}", down.join(", ")))
            })
        });
    }

    /// Starts a controller, now or when this replica becomes the leader.
    fn start_controller(&mut self, controller: Box<dyn AnyController>) {
        let name = controller.name().to_owned();
        let group = if controller.needs_leader() { Group::LeaderElected } else { Group::Others };
        if controller.needs_leader() && controller.warms_up() {
            let (warm, warmed) = oneshot::channel();
            let warm_up = |cx: RunContext| async move { warm_up(controller, warm, &cx.shutdown).await };
            self.start_one(Runnable::new(format!("warm-up of {name}"), warm_up));
            let run = |cx: RunContext| async move {
                // Without a sender the warm-up has failed or was stopped, and the manager ends.
                match before_shutdown(&cx.shutdown, warmed).await {
                    Some(Ok(controller)) => controller.run(cx.shutdown).await,
                    Some(Err(_)) | None => Ok(()),
                }
            };
            self.start_one(Runnable::new(name, run).group(group));
        } else {
            let run = |cx: RunContext| controller.run(cx.shutdown);
            self.start_one(Runnable::new(name, run).group(group));
        }
    }

    fn start_one(&mut self, runnable: Runnable) {
        if runnable.group == Group::LeaderElected && !self.leading {
            self.elected.push(runnable);
            return;
        }
        let group = &mut self.groups[runnable.group as usize];
        let cx = RunContext { state: self.state.clone(), shutdown: group.shutdown().clone() };
        let run: BoxFuture<'static, Result<(), BoxError>> = (runnable.run)(cx);
        group.start(runnable.name, run);
    }

    /// Starts the runnables that only the leader runs.
    fn lead(&mut self) {
        self.leading = true;
        for runnable in std::mem::take(&mut self.elected) {
            self.start_one(runnable);
        }
    }

    /// Waits until it is time to stop, and returns the manager's result.
    async fn watch_over(
        &mut self,
        mut stop: std::pin::Pin<&mut (impl Future<Output = ()> + Send)>,
        later: &mut mpsc::UnboundedReceiver<Runnable>,
    ) -> Result<()> {
        loop {
            let next = tokio::select! {
                biased;
                () = &mut stop => Next::Stop,
                Some(ended) = self.ended.recv() => Next::Ended(ended),
                change = leadership_change(&mut self.leadership) => Next::Leadership(change),
                Some(runnable) = later.recv() => Next::Added(runnable),
            };
            match next {
                Next::Stop => return Ok(()),
                Next::Added(runnable) => self.start_one(runnable),
                Next::Leadership(LeadershipChange::Acquired) => self.lead(),
                Next::Leadership(LeadershipChange::Lost) => return Err(Error::lost_leadership()),
                Next::Ended(Ended { result: Ok(()), .. }) => {}
                Next::Ended(Ended { name, result: Err(error) }) => {
                    return Err(Error::other(error).while_doing(format_args!("running {name}")));
                }
            }
        }
    }

    /// Stops everything in the reverse order. After a lost election nothing gets time to finish: another replica may lead
    /// already.
    async fn stop(mut self, result: Result<()>) -> Result<()> {
        let lost = result.as_ref().is_err_and(Error::is_lost_leadership);
        let budget = if lost { Some(Duration::ZERO) } else { self.grace };
        let deadline = budget.map(|budget| Instant::now() + budget);
        let elected = self.groups[Group::LeaderElected as usize].stop(deadline).await;
        let mut late = elected.aborted;
        if let Some(leadership) = self.leadership.take() {
            // After the last write, so that two replicas never work at the same time; before the other groups, so that
            // another replica can take over soon.
            leadership.end(RELEASE_LIMIT, !elected.still_running).await;
        }
        late.extend(self.groups[Group::Others as usize].stop(deadline).await.aborted);
        self.state.events.shutdown(EVENTS_LIMIT).await;
        self.state.informers.shutdown().await;
        for group in [Group::Webhooks, Group::Http] {
            late.extend(self.groups[group as usize].stop(deadline).await.aborted);
        }
        if late.is_empty() || lost {
            return result;
        }
        result.and(Err(Error::setup(format!(
            "not everything stopped within {:?}: {} ended by force",
            budget.unwrap_or_default(),
            late.join(", ")
        ))))
    }
}

struct Parts {
    metrics_address: Option<std::net::SocketAddr>,
    health_address: Option<std::net::SocketAddr>,
    election: Option<crate::leader_election::LeaderElection>,
    controllers: Vec<Box<dyn AnyController>>,
    runnables: Vec<Runnable>,
}

/// Fails with the resources whose first list has not ended.
fn caches_filled(informers: &SharedInformerFactory) -> std::result::Result<(), String> {
    let waiting: Vec<String> = informers
        .informers()
        .iter()
        .filter(|informer| !informer.has_synced())
        .map(|informer| informer.resource().plural.clone())
        .collect();
    if waiting.is_empty() {
        Ok(())
    } else {
        Err(format!("the first list has not ended: {}", waiting.join(", ")))
    }
}

/// Waits for the next change of leadership; for ever, without an election.
async fn leadership_change(leadership: &mut Option<Leadership>) -> LeadershipChange {
    match leadership {
        Some(leadership) => leadership.changed().await,
        None => std::future::pending().await,
    }
}

/// Returns the output of a future, or `None` if the shutdown is requested before.
async fn before_shutdown<F: Future>(shutdown: &Shutdown, future: F) -> Option<F::Output> {
    tokio::select! {
        biased;
        () = shutdown.requested() => None,
        output = future => Some(output),
    }
}

/// Fills a controller's queue on every replica, and hands the controller on when its caches are filled.
async fn warm_up(
    mut controller: Box<dyn AnyController>,
    warm: oneshot::Sender<Box<dyn AnyController>>,
    shutdown: &Shutdown,
) -> Result<()> {
    match before_shutdown(shutdown, controller.start_sources()).await {
        Some(started) => started?,
        None => return Ok(()),
    }
    // The receiver is gone only when the manager stops.
    let _ = warm.send(controller);
    Ok(())
}

/// Checks the names of controllers. A name is a metric label and a field manager, and is unique.
fn check_names(controllers: &[Box<dyn AnyController>]) -> Result<()> {
    let mut names: Vec<&str> = controllers.iter().map(|controller| controller.name()).collect();
    if let Some(name) = names.iter().find(|name| !is_label_value(name)) {
        return Err(Error::setup(format!(
            "{name:?} cannot be a controller's name, which is a field manager and a label value: it has at most 63 \
             letters, digits, `-`, `_` and `.`, and begins and ends with a letter or digit; set one with `.named(..)`"
        )));
    }
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::setup(format!(
            "two controllers are called {:?}; give one another name with `.named(..)`",
            pair[0]
        ))),
        None => Ok(()),
    }
}

/// Whether a text is a non-empty label value.
fn is_label_value(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && bytes.iter().all(|byte| inner(*byte))
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}
