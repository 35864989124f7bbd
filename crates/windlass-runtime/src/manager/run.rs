//! The order of start and stop.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use tokio::{sync::mpsc, time::Instant};

use super::{
    Manager, Shared,
    http::{HealthEndpoints, MetricsEndpoint, serve},
    runnable::{Ended, Group, Runnable, RunningGroup},
    shared::{RunContext, Shutdown},
};
use crate::{
    controller::AnyController,
    error::{BoxError, Error, Result},
    health::Health,
    leader_election::{Leadership, Standing},
};

/// A manager that runs.
pub(crate) struct Running {
    shared: Arc<Shared>,
    groups: [RunningGroup; 4],
    /// What waits for this replica to lead.
    elected: Vec<Runnable>,
    controllers: Vec<Box<dyn AnyController>>,
    leading: bool,
    ended: mpsc::UnboundedReceiver<Ended>,
    leadership: Option<Leadership>,
    grace: Option<Duration>,
    health: Health,
}

/// What the manager waits for while everything runs.
enum Next {
    Stop,
    Ended(Ended),
    Added(Runnable),
    Standing(Standing),
}

impl Running {
    pub(super) async fn start_and_stop(
        manager: Manager,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<()> {
        let Manager { target, env, metrics, health, namespaces, later: (_, mut later), .. } = manager;
        let client = Manager::client(target, &env).await?;
        let shared = Shared::new(client, env, metrics, namespaces).await?;
        let (tell, ended) = mpsc::unbounded_channel();
        let mut running = Self {
            groups: Group::ALL.map(|_| RunningGroup::new(tell.clone())),
            elected: Vec::new(),
            controllers: Vec::new(),
            leading: false,
            ended,
            leadership: None,
            grace: manager.grace,
            health,
            shared,
        };
        let parts = Parts {
            metrics_address: manager.metrics_address,
            health_address: manager.health_address,
            election: manager.leader_election,
            controllers: manager.controllers,
            runnables: manager.runnables,
        };
        tokio::pin!(stop);
        let result = match running.start(parts).await {
            Ok(()) => running.watch_over(stop.as_mut(), &mut later).await,
            Err(error) => Err(error),
        };
        later.close();
        running.stop(result).await
    }

    async fn start(&mut self, parts: Parts) -> Result<()> {
        check_names(&parts.controllers)?;
        if let Some(address) = parts.metrics_address {
            let endpoint = MetricsEndpoint(self.shared.metrics.clone());
            self.start_one(serve("metrics", address, endpoint).await?);
        }
        if let Some(address) = parts.health_address {
            self.start_one(serve("health", address, HealthEndpoints(self.health.clone())).await?);
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
            controller.prepare(&self.shared).await?;
        }
        self.shared.informers.start();
        for runnable in late {
            self.start_one(runnable);
        }
        self.start_unelected(controllers);
        match parts.election {
            Some(election) => self.leadership = Some(election.start(&self.shared)?),
            None => self.lead(),
        }
        Ok(())
    }

    /// Starts the controllers that every replica runs, and warms up those that are to be warm.
    fn start_unelected(&mut self, controllers: Vec<Box<dyn AnyController>>) {
        for mut controller in controllers {
            if !controller.needs_leader() {
                self.start_controller(Group::Others, controller);
            } else if controller.warms_up() {
                // Warming up is a runnable that keeps the controller until this replica leads.
                let name = controller.name().to_owned();
                let warm = async move {
                    controller.start_sources().await?;
                    Ok::<_, Error>(controller)
                };
                self.elected.push(warmed(name, tokio::spawn(warm)));
            } else {
                self.controllers.push(controller);
            }
        }
    }

    fn start_controller(&mut self, group: Group, controller: Box<dyn AnyController>) {
        let name = controller.name().to_owned();
        self.start_one(
            Runnable::new(name, |cx: RunContext| controller.run(cx.shutdown.clone())).group(group),
        );
    }

    fn start_one(&mut self, runnable: Runnable) {
        if runnable.group == Group::LeaderElected && !self.leading {
            self.elected.push(runnable);
            return;
        }
        let group = &mut self.groups[runnable.group as usize];
        let cx = RunContext { shared: self.shared.clone(), shutdown: Shutdown(group.token().clone()) };
        let run: BoxFuture<'static, Result<(), BoxError>> = (runnable.run)(cx);
        group.start(runnable.name, run);
    }

    /// Starts what waited for this replica to lead.
    fn lead(&mut self) {
        self.leading = true;
        for runnable in std::mem::take(&mut self.elected) {
            self.start_one(runnable);
        }
        for controller in std::mem::take(&mut self.controllers) {
            self.start_controller(Group::LeaderElected, controller);
        }
    }

    /// Until it is time to stop; the result is the manager's.
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
                standing = standing(&mut self.leadership) => Next::Standing(standing),
                Some(runnable) = later.recv() => Next::Added(runnable),
            };
            match next {
                Next::Stop => return Ok(()),
                Next::Added(runnable) => self.start_one(runnable),
                Next::Standing(Standing::Leading) => self.lead(),
                Next::Standing(Standing::Lost) => return Err(Error::lost_leadership()),
                Next::Ended(Ended { result: Ok(()), .. }) => {}
                Next::Ended(Ended { name, result: Err(error) }) => {
                    return Err(Error::other(error).while_doing(format_args!("running {name}")));
                }
            }
        }
    }

    /// Stops in the reverse order. A lost leadership leaves no time: another replica may lead already.
    async fn stop(mut self, result: Result<()>) -> Result<()> {
        let lost = result.as_ref().is_err_and(Error::is_lost_leadership);
        let budget = if lost { Some(Duration::ZERO) } else { self.grace };
        let deadline = budget.map(|budget| Instant::now() + budget);
        let mut late = self.groups[Group::LeaderElected as usize].stop(deadline).await;
        if let Some(leadership) = self.leadership.take() {
            // After the last write, so that no two lead at once; before the rest, so that another may soon.
            leadership.end(deadline).await;
        }
        late.extend(self.groups[Group::Others as usize].stop(deadline).await);
        self.shared.recorder.stop(deadline).await;
        self.shared.informers.shutdown().await;
        for group in [Group::Webhooks, Group::Http] {
            late.extend(self.groups[group as usize].stop(deadline).await);
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

/// The next change of standing; never, without an election.
async fn standing(leadership: &mut Option<Leadership>) -> Standing {
    match leadership {
        Some(leadership) => leadership.changed().await,
        None => std::future::pending().await,
    }
}

/// A controller that warms up in a task of its own, and works once this replica leads.
fn warmed(name: String, warm: tokio::task::JoinHandle<Result<Box<dyn AnyController>>>) -> Runnable {
    let run = |cx: RunContext| async move {
        let controller = warm.await.map_err(Error::other)??;
        controller.run(cx.shutdown.clone()).await
    };
    Runnable::new(name, run).group(Group::LeaderElected)
}

/// Two controllers of one name would share metrics and fields they manage.
fn check_names(controllers: &[Box<dyn AnyController>]) -> Result<()> {
    let mut names: Vec<&str> = controllers.iter().map(|controller| controller.name()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::setup(format!(
            "two controllers are called {:?}; give one another name with `.named(..)`",
            pair[0]
        ))),
        None => Ok(()),
    }
}
