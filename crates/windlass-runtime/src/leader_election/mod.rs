//! Leader election by a Lease: a single replica of several works.

mod elector;
mod lease;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::coordination::v1::Lease;
use prometheus_client::metrics::{counter::Counter, gauge::Gauge};
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

pub use self::elector::Timing;
use self::{
    elector::{Clocks, ElectionStep, Elector},
    lease::LeaseLock,
};
use crate::{
    client::path_segment,
    cluster_state::ClusterState,
    env::{Env, host_name},
    error::{Error, Result},
    events::{EventType, Recorder},
    leader_deadline::LeaderDeadline,
    metrics::{Metrics, NameLabel},
    permission::{Permission, Verb},
};

/// The configuration of a leader election.
///
/// The algorithm and the times are client-go's: replicas with client-go may compete for the same Lease. A
/// graceful stop releases the Lease, and another replica need not wait. A replica that loses the Lease stops
/// everything at once, and the manager's `run` fails: the process must end. With
/// [`back_to_follower`](Self::back_to_follower), the process goes on instead. The begin and the end of a
/// leadership are recorded as events on the Lease.
#[derive(Clone, Debug)]
pub struct LeaderElection {
    name: String,
    namespace: Option<String>,
    identity: Option<String>,
    labels: BTreeMap<String, String>,
    timing: Timing,
    release_on_stop: bool,
    back_to_follower: bool,
}

impl LeaderElection {
    /// Creates a configuration. Replicas that name the same Lease compete.
    pub fn new(lease: impl Into<String>) -> Self {
        Self {
            name: lease.into(),
            namespace: None,
            identity: None,
            labels: BTreeMap::new(),
            timing: Timing::default(),
            release_on_stop: true,
            back_to_follower: false,
        }
    }

    /// Sets the namespace of the Lease. Default: the client's namespace, which in a pod is the pod's.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Sets the name of this replica. Default: the host name and a random ID.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// Adds a label to the Lease. Other labels of the Lease are kept.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// Sets the times of the election. Default: 15, 10 and 2 seconds.
    pub fn timing(mut self, timing: Timing) -> Self {
        self.timing = timing;
        self
    }

    /// Sets whether a graceful stop releases the Lease. Default: true. Choose false if the process continues
    /// to write after the manager has ended.
    pub fn release_on_stop(mut self, release: bool) -> Self {
        self.release_on_stop = release;
        self
    }

    /// Makes a replica that loses the Lease a follower, which campaigns again. Default: the manager ends with an error.
    ///
    /// Everything that only the leader runs is aborted: reconciles under way are dropped, and send no further
    /// request. Webhooks, caches and all other parts go on. When the replica is elected again, the
    /// controllers reconcile every object, as after a start of the process, and the runnables of
    /// [`Group::LeaderElected`](crate::manager::Group::LeaderElected) start again. Such runnables must be
    /// [repeatable](crate::Runnable::repeatable): with any other runnable, the manager does not start.
    ///
    /// The manager still ends with an error if code of the leader blocks a thread for more than a second,
    /// because such code cannot be aborted.
    pub fn back_to_follower(mut self) -> Self {
        self.back_to_follower = true;
        self
    }

    /// Returns whether a replica that loses the Lease campaigns again.
    pub(crate) fn returns_to_follower(&self) -> bool {
        self.back_to_follower
    }

    /// Returns the namespace of the Lease, if different from the client's.
    pub(crate) fn own_namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Returns the name of the Lease.
    pub(crate) fn lease_name(&self) -> &str {
        &self.name
    }

    /// Returns the rights to the Lease.
    pub(crate) fn permissions(&self) -> Vec<Permission> {
        let lease = |verbs: &[Verb]| {
            let permission = Permission::to::<Lease>(verbs.iter().copied());
            match &self.namespace {
                Some(namespace) => permission.in_namespace(namespace),
                None => permission.in_operator_namespace(),
            }
        };
        vec![lease(&[Verb::Create]), lease(&[Verb::Get, Verb::Update]).named(&self.name)]
    }

    /// Checks the configuration.
    pub(crate) fn check(&self) -> Result<()> {
        let bad = |what: &str| Err(Error::setup(format!("leader election {:?}: {what}", self.name)));
        if let Err(invalid) = path_segment(&self.name) {
            return bad(&format!("the Lease: {invalid}"));
        }
        if let Some(Err(invalid)) = self.namespace.as_deref().map(path_segment) {
            return bad(&format!("the namespace: {invalid}"));
        }
        // A Lease without a holder is free.
        if self.identity.as_deref() == Some("") {
            return bad("the identity is empty");
        }
        self.timing.check().or_else(bad)
    }

    /// Begins to campaign. `deadline` is the right of the leader's reconciles to run.
    pub(crate) fn start(
        self,
        cluster: &ClusterState,
        env: &Env,
        metrics: &Metrics,
        deadline: &LeaderDeadline,
    ) -> Leadership {
        let namespace = self.namespace.unwrap_or_else(|| cluster.client.default_namespace().to_owned());
        let identity = self.identity.unwrap_or_else(|| format!("{}_{}", host_name(), env.uuid()));
        let gauge = metrics.leader.get_or_create_owned(&NameLabel { name: self.name.clone() });
        gauge.set(0);
        let slow_path = metrics.leader_slow_path.get_or_create_owned(&NameLabel { name: self.name.clone() });
        deadline.close();
        let (tell, changes) = watch::channel(None);
        let may_release = Arc::new(AtomicBool::new(false));
        let again = self.back_to_follower.then(Arc::<Notify>::default);
        let stop = CancellationToken::new();
        let campaign = Campaign {
            elector: Elector::new(identity.clone(), self.timing),
            lock: LeaseLock::new(cluster.api.clone(), &namespace, &self.name, self.labels),
            deadline: deadline.clone(),
            release_on_stop: self.release_on_stop,
            may_release: may_release.clone(),
            recorder: cluster.recorder.named(self.name.as_str()),
            begun: Instant::now(),
            env: env.clone(),
            tell,
            gauge,
            slow_path,
            again: again.clone(),
            stop: stop.clone(),
        };
        tracing::info!(lease = %format_args!("{namespace}/{}", self.name), identity, "attempting to acquire leader lease");
        Leadership { changes, stop, task: tokio::spawn(campaign.run()), may_release, again }
    }
}

/// A change of leadership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeadershipChange {
    /// This replica leads now.
    Acquired,
    /// This replica does not lead any more.
    Lost,
}

/// A running election.
pub(crate) struct Leadership {
    changes: watch::Receiver<Option<LeadershipChange>>,
    stop: CancellationToken,
    task: JoinHandle<()>,
    may_release: Arc<AtomicBool>,
    /// Lets a replica that has lost the Lease campaign again, if the replica becomes a follower.
    again: Option<Arc<Notify>>,
}

impl Leadership {
    /// Waits for the next change.
    pub(crate) async fn changed(&mut self) -> LeadershipChange {
        // A campaign with an ended task can no longer renew.
        match self.changes.changed().await {
            Ok(()) => self.changes.borrow_and_update().unwrap_or(LeadershipChange::Lost),
            Err(_) => LeadershipChange::Lost,
        }
    }

    /// Lets the replica campaign again, after everything that only the leader runs has ended. Returns false if the election has ended
    /// for good.
    pub(crate) fn campaign_again(&self) -> bool {
        let Some(again) = self.again.as_ref().filter(|_| !self.task.is_finished()) else { return false };
        again.notify_one();
        true
    }

    /// Ends the election. Releases the Lease if `release` is set and the configuration allows the release;
    /// the release may take up to `limit`.
    pub(crate) async fn end(mut self, limit: Duration, release: bool) {
        self.may_release.store(release, Ordering::Release);
        self.stop.cancel();
        if timeout(limit, &mut self.task).await.is_err() {
            tracing::warn!("the leader lease could not be released; other replicas wait until it expires");
            self.task.abort();
        }
    }
}

impl Drop for Leadership {
    /// Without the manager, no worker runs any more: the Lease must not be renewed.
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Drives the state machine: carries out steps and reports the results.
struct Campaign {
    elector: Elector,
    lock: LeaseLock,
    /// The right of the leader's reconciles to run.
    deadline: LeaderDeadline,
    release_on_stop: bool,
    /// True if all work of the leader has ended, so that the Lease may be released.
    may_release: Arc<AtomicBool>,
    recorder: Recorder,
    begun: Instant,
    env: Env,
    tell: watch::Sender<Option<LeadershipChange>>,
    gauge: Gauge,
    /// Counts renewals with a read of the Lease.
    slow_path: Counter,
    /// Notified when the replica may campaign again. If `None`, a lost Lease ends the campaign.
    again: Option<Arc<Notify>>,
    stop: CancellationToken,
}

impl Campaign {
    async fn run(mut self) {
        let stop = self.stop.clone();
        tokio::select! {
            biased;
            () = stop.cancelled() => self.step_down().await,
            () = self.campaign() => {}
        }
        self.gauge.set(0);
    }

    async fn campaign(&mut self) {
        let mut step = self.elector.next(self.now(), self.env.fraction());
        let mut known_leader = None;
        loop {
            step = match step {
                ElectionStep::Lost => {
                    self.lose();
                    let Some(again) = self.again.clone() else { return };
                    again.notified().await;
                    tracing::info!("attempting to acquire the leader lease again");
                    self.elector.campaign_again();
                    self.elector.next(self.now(), self.env.fraction())
                }
                ElectionStep::WaitUntil(elapsed) => {
                    sleep_until(self.begun + elapsed).await;
                    self.elector.next(self.now(), self.env.fraction())
                }
                ElectionStep::Read => {
                    let limit = self.elector.request_timeout(self.now());
                    let reading =
                        timeout(limit, self.lock.read()).await.unwrap_or(elector::LeaseRead::Failed);
                    let step = self.elector.read(self.now(), self.env.fraction(), reading);
                    self.count_slow_path(&step);
                    step
                }
                ElectionStep::Create(record) => {
                    let limit = self.elector.request_timeout(self.now());
                    let ok = timeout(limit, self.lock.create(&record)).await.unwrap_or(false);
                    self.after_write(ok)
                }
                ElectionStep::Update(record) => {
                    let limit = self.elector.request_timeout(self.now());
                    let ok = timeout(limit, self.lock.update(&record)).await.unwrap_or(false);
                    self.after_write(ok)
                }
            };
            if self.elector.leader() != known_leader.as_deref() {
                known_leader = self.elector.leader().map(ToOwned::to_owned);
                if let Some(leader) = &known_leader {
                    tracing::info!(leader, "new leader");
                }
            }
        }
    }

    /// Takes the right of the leader away, and tells the manager.
    fn lose(&self) {
        self.deadline.close();
        self.gauge.set(0);
        self.record_event("stopped leading");
        self.tell.send_replace(Some(LeadershipChange::Lost));
    }

    fn after_write(&mut self, ok: bool) -> ElectionStep {
        let led = self.elector.is_leading();
        self.elector.wrote(self.now(), self.env.fraction(), ok);
        if let Some(until) = self.elector.leads_until() {
            self.deadline.set(self.begun + until);
        }
        if self.elector.is_leading() && !led {
            tracing::info!("successfully acquired lease");
            self.gauge.set(1);
            self.record_event("became leader");
            self.tell.send_replace(Some(LeadershipChange::Acquired));
        }
        self.elector.next(self.now(), self.env.fraction())
    }

    /// Counts a renewal with a read of the Lease, like client-go.
    fn count_slow_path(&self, next: &ElectionStep) {
        if matches!(next, ElectionStep::Update(_)) && self.elector.leader() == Some(self.elector.identity()) {
            self.slow_path.inc();
        }
    }

    /// Gives up the leadership, and releases the Lease so that other replicas need not wait.
    async fn step_down(&mut self) {
        let Some(record) = self.elector.release(self.now()) else { return };
        self.record_event("stopped leading");
        if !self.release_on_stop {
            return;
        }
        if !self.may_release.load(Ordering::Acquire) {
            tracing::warn!("the leader lease is not released: some work has not ended");
        } else if self.lock.release(&record).await {
            tracing::info!("released the leader lease");
        } else {
            tracing::warn!("the leader lease could not be released; other replicas wait until it expires");
        }
    }

    /// Records an event on the Lease, in client-go's words.
    fn record_event(&self, what: &str) {
        let note = format!("{} {what}", self.elector.identity());
        self.recorder.event(EventType::Normal, self.lock.reference(), "LeaderElection", note);
    }

    fn now(&self) -> Clocks {
        Clocks { elapsed: self.begun.elapsed(), time: self.env.now() }
    }
}
