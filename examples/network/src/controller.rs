//! The controller, in the style of the article: the handlers of an informer fill a queue of keys, and workers
//! empty the queue.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinSet;
use windlass::{
    AddOptions, RateLimiter, Runnable, Shutdown,
    events::Recorder,
    manager::{Group, RunContext},
    prelude::*,
    workqueue::WorkQueue,
};
use windlass_client::{ResourceEventHandlerFuncs, SharedInformer, SharedInformerFactory, UpdateOptions};

use crate::{
    Desired, InvalidSpec,
    apis::samplecrd::v1::Network,
    client::{
        clientset::Clientset,
        informers::{GroupInformers as _, samplecrd::v1::NetworkInformer},
        listers::samplecrd::v1::NetworkLister,
    },
    neutron::{Error as NeutronError, Neutron, NeutronConfig, stand_in::StandIn},
    report::{self, Report},
    sync::{self, Owner},
};

/// The finalizer: the object is deleted after Neutron has deleted the network.
pub(crate) const FINALIZER: &str = "samplecrd.k8s.io/neutron";

/// How the controller runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// The Neutron to use. Default: a stand-in in this process.
    pub neutron: Option<NeutronConfig>,
    /// The owner of this controller's networks in Neutron. Clusters that share a project need different
    /// names.
    pub owner: String,
    /// The number of workers.
    pub workers: usize,
    /// The interval at which every key is worked on again, which repairs changes in Neutron.
    pub resync: Duration,
    /// How many networks the stand-in gives to a project, and how many subnets; -1 means any number. Default: 100, as Neutron.
    pub stand_in_quota: i64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            neutron: None,
            owner: "kubernetes".to_owned(),
            workers: 2,
            resync: Duration::from_secs(30),
            stand_in_quota: 100,
        }
    }
}

/// Returns the controller as a part of a manager: the controller runs on the leader, with the manager's
/// client, events and shutdown.
pub fn runnable(options: Options) -> Runnable {
    Runnable::new("network-controller", |cx| run(cx, options))
        .group(Group::LeaderElected)
        .needs(Permission::to::<Network>([Verb::Watch, Verb::Update]))
        // Servers that stream the first list need no LIST.
        .needs(Permission::to::<Network>([Verb::List]).optional())
        .needs(Permission::to::<Network>([Verb::Update]).subresource("status"))
}

/// Runs the article's `main`: clients, informer factory, controller, start, run.
async fn run(cx: RunContext, options: Options) -> Result<()> {
    let mut stand_in = None;
    let config = if let Some(config) = options.neutron {
        config
    } else {
        let started = stand_in.insert(StandIn::start().await?);
        let quota = options.stand_in_quota;
        started.set_default_quota(quota);
        tracing::info!(
            url = started.url(),
            quota,
            "no --neutron-url: a stand-in of Neutron runs in this process"
        );
        NeutronConfig::noauth(started.url())
    };
    let neutron = Neutron::new(config).map_err(Error::other)?;
    let network_clientset = Clientset::new(cx.client().clone());
    let network_informer_factory =
        SharedInformerFactory::sharing(cx.informers()).resync(options.resync).build();
    let controller = Controller::new(
        network_clientset,
        &network_informer_factory.samplecrd().v1().networks(),
        neutron,
        Owner::new(&options.owner),
        cx.recorder().clone(),
    )?;
    network_informer_factory.start();
    let _metrics = cx.register_queue_metrics(&controller.workqueue);
    let ended = Arc::new(controller).run(options.workers, options.resync, cx.shutdown()).await;
    network_informer_factory.shutdown().await;
    ended
}

/// Keeps networks in Neutron as `Network` objects say.
pub struct Controller {
    network_clientset: Clientset,
    networks_lister: NetworkLister,
    networks_informer: SharedInformer<Network>,
    workqueue: WorkQueue<ObjectKey>,
    neutron: Neutron,
    owner: Owner,
    recorder: Recorder,
}

impl Controller {
    /// Makes a controller and adds the controller's event handlers to the informer.
    ///
    /// # Errors
    /// The informer factory has been shut down.
    pub fn new(
        network_clientset: Clientset,
        network_informer: &NetworkInformer,
        neutron: Neutron,
        owner: Owner,
        recorder: Recorder,
    ) -> Result<Self> {
        let workqueue = WorkQueue::builder("Networks").rate_limiter(RateLimiter::client_go()).build();
        let (add, update, delete) = (workqueue.clone(), workqueue.clone(), workqueue.clone());
        network_informer.informer()?.add_event_handler(
            ResourceEventHandlerFuncs::new()
                .add_func(move |network| enqueue_network(&add, network))
                .update_func(move |old, new| {
                    // A resync repeats unchanged objects. The timer of `run` enqueues the keys of these
                    // objects.
                    if old.resource_version() != new.resource_version() {
                        enqueue_network(&update, new);
                    }
                })
                .delete_func(move |network| enqueue_network(&delete, network)),
        );
        Ok(Self {
            network_clientset,
            networks_lister: network_informer.lister()?,
            networks_informer: network_informer.informer()?,
            workqueue,
            neutron,
            owner,
            recorder,
        })
    }

    /// Waits for the cache, runs the workers, and returns when the shutdown is requested and no key is in flight.
    ///
    /// # Errors
    /// A worker panicked.
    pub async fn run(self: Arc<Self>, workers: usize, resync: Duration, shutdown: &Shutdown) -> Result<()> {
        tokio::select! {
            biased;
            () = shutdown.requested() => return Ok(()),
            () = self.networks_informer.synced() => {}
        }
        // Dropped with this future: the tasks are aborted when the leadership is lost.
        let mut tasks = JoinSet::new();
        for _ in 0..workers.max(1) {
            tasks.spawn(self.clone().run_worker());
        }
        tracing::info!(workers, "started workers");
        let ended = tokio::select! {
            biased;
            () = shutdown.requested() => Ok(()),
            () = self.enqueue_all_periodically(resync) => Ok(()),
            Some(Err(panic)) = tasks.join_next() => Err(Error::other(panic)),
        };
        self.workqueue.shut_down();
        while tasks.join_next().await.is_some() {}
        ended
    }

    async fn run_worker(self: Arc<Self>) {
        while self.process_next_work_item().await {}
    }

    /// Works on a key. Returns `false` after the shut-down of the queue.
    async fn process_next_work_item(&self) -> bool {
        let Some(item) = self.workqueue.get().await else { return false };
        let key = item.key().clone();
        match self.sync_handler(&key).await {
            Ok(()) => {
                item.forget();
                tracing::debug!(%key, "done");
            }
            // The cache is behind; an event will enqueue the key as well.
            Err(error) if error.is_conflict() => item.requeue(AddOptions::new().rate_limited()),
            Err(error) => {
                tracing::warn!(%key, %error, "error syncing, requeued");
                item.requeue(AddOptions::new().rate_limited());
            }
        }
        true
    }

    /// Makes Neutron agree with an object.
    async fn sync_handler(&self, key: &ObjectKey) -> Result<()> {
        let (namespace, name) = (key.namespace().unwrap_or_default(), key.name());
        let Some(network) = self.networks_lister.networks(namespace).get(name)? else {
            tracing::warn!("Network: {key} does not exist in local cache, will delete it from Neutron ...");
            return sync::delete(&self.neutron, &self.known(key, None)).await.or_else(retry);
        };
        if network.metadata.deletion_timestamp.is_some() {
            return self.finalize(key, &network).await;
        }
        let desired = Desired::of(&network.spec).and_then(|desired| sync::check_name(key).map(|()| desired));
        let desired = match desired {
            Ok(desired) => desired,
            Err(invalid) => return self.report(&network, Report::invalid(&invalid)).await,
        };
        let network = self.with_finalizer(network).await?;
        let is_resync = report::is_synced(&network);
        // A resync usually finds no change.
        if is_resync {
            tracing::debug!(%key, ?desired, "[Neutron] Try to process network");
        } else {
            tracing::info!(%key, ?desired, "[Neutron] Try to process network");
        }
        match sync::ensure(&self.neutron, &self.known(key, Some(&network)), &desired).await {
            Ok(actual) => {
                self.report(&network, Report::ready(&actual)).await?;
                if actual.is_recreated {
                    let message = format!("{}, made again: it was gone", Report::ready(&actual).message);
                    tracing::warn!(%key, message, "recreated in Neutron");
                    self.recorder.warning(&*network, "Recreated", message);
                } else if !is_resync {
                    tracing::info!("Successfully synced '{key}'");
                }
                Ok(())
            }
            Err(sync::Failure::Immutable(message)) => {
                let invalid = InvalidSpec { reason: "CIDRImmutable", message };
                self.report(&network, Report::invalid(&invalid)).await
            }
            Err(sync::Failure::Neutron(error)) => self.fail(&network, error).await,
        }
    }

    /// Deletes the network in Neutron, then removes the finalizer.
    async fn finalize(&self, key: &ObjectKey, network: &Network) -> Result<()> {
        if !network.finalizers().iter().any(|finalizer| finalizer == FINALIZER) {
            // The object has finalizers of other controllers.
            return self.report(network, Report::deleted()).await;
        }
        if let Err(error) = sync::delete(&self.neutron, &self.known(key, Some(network))).await {
            return self.fail(network, error).await;
        }
        let mut finalized = network.clone();
        finalized.finalizers_mut().retain(|finalizer| finalizer != FINALIZER);
        match self.networks(network).update(&finalized, &UpdateOptions::default()).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the known network of a key: the network in the status of the object, if the object exists.
    fn known<'a>(&'a self, key: &'a ObjectKey, network: Option<&'a Network>) -> sync::Known<'a> {
        let status = network.and_then(|network| network.status.as_ref());
        sync::Known {
            key,
            owner: &self.owner,
            network_id: status.and_then(|status| status.network_id.as_deref()),
            subnet_id: status.and_then(|status| status.subnet_id.as_deref()),
            is_taken: Box::new(|id| self.holders().any(|(holder, held)| held == id && holder != *key)),
        }
    }

    /// Returns the keys of all objects with a network in the status, and the ID of each network.
    fn holders(&self) -> impl Iterator<Item = (ObjectKey, String)> + use<> {
        let networks = self.networks_lister.list(&Selector::everything()).ok();
        let holder = |network: Arc<Network>| {
            Some((ObjectKey::of(&*network), network.status.as_ref()?.network_id.clone()?))
        };
        networks.into_iter().flatten().filter_map(holder)
    }

    /// Adds the finalizer before the first request to Neutron. An object that was deleted meanwhile refuses
    /// the finalizer.
    async fn with_finalizer(&self, network: Arc<Network>) -> Result<Arc<Network>> {
        if network.finalizers().iter().any(|finalizer| finalizer == FINALIZER) {
            return Ok(network);
        }
        let mut guarded = Network::clone(&network);
        guarded.finalizers_mut().push(FINALIZER.to_owned());
        Ok(Arc::new(self.networks(&network).update(&guarded, &UpdateOptions::default()).await?))
    }

    /// Reports an error of Neutron, and returns the error so that the key is tried again.
    async fn fail(&self, network: &Network, error: NeutronError) -> Result<()> {
        self.report(network, Report::failed(&error)).await?;
        retry(error)
    }

    /// Writes a changed status, and records an event for a changed condition.
    async fn report(&self, network: &Network, report: Report) -> Result<()> {
        let Some(changed) = report::status(network, &report, windlass::env::Env::system().now()) else {
            return Ok(());
        };
        let updated = Network { status: Some(changed.status), ..network.clone() };
        match self.networks(network).update_status(&updated, &UpdateOptions::default()).await {
            Err(error) if error.is_not_found() => return Ok(()),
            written => drop(written?),
        }
        if changed.is_transition {
            if report.is_wanted {
                self.recorder.normal(network, report.reason, report.message);
            } else {
                self.recorder.warning(network, report.reason, report.message);
            }
        }
        Ok(())
    }

    fn networks(&self, network: &Network) -> crate::client::clientset::samplecrd::v1::NetworkInterface {
        self.network_clientset.samplecrd_v1().networks(network.namespace().as_deref().unwrap_or_default())
    }

    /// Enqueues every key in each period: the keys of all objects, and of networks in Neutron without an
    /// object. Never returns.
    async fn enqueue_all_periodically(&self, period: Duration) {
        let mut ticks = tokio::time::interval(period.max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let lister = self.networks_informer.lister();
            lister.keys().unwrap_or_default().into_iter().for_each(|key| self.workqueue.add(key));
            let held = self.holders().map(|(_, id)| id).collect();
            match sync::keys(&self.neutron, &self.owner, &held).await {
                Ok(keys) => {
                    let gone = keys.into_iter().filter(|key| matches!(lister.get(key), Ok(None)));
                    gone.for_each(|key| self.workqueue.add(key));
                }
                Err(error) => tracing::warn!(%error, "cannot list the networks in Neutron"),
            }
        }
    }
}

/// Returns the error, so that the key is tried again with back-off. A request that will be refused again
/// waits for the timer of `run`, or for a change of the object.
fn retry(error: NeutronError) -> Result<()> {
    if error.is_lasting() {
        tracing::warn!(%error, "not tried again at once");
        return Ok(());
    }
    Err(Error::other(error))
}

/// Adds the key of an object to the queue.
fn enqueue_network(workqueue: &WorkQueue<ObjectKey>, network: &Network) {
    workqueue.add(ObjectKey::of(network));
}

impl std::fmt::Debug for Controller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Controller").field("neutron", &self.neutron).finish_non_exhaustive()
    }
}
