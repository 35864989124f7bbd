//! All controllers of a cluster.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube_client::Client;
use windlass_runtime::{Controller, Manager, Result, Runnable};

use crate::component::{KUBE_CONTROLLER_MANAGER, KUBE_SCHEDULER, KUBELET};
use crate::core::secret::SignToken;
use crate::kubelet::{NodeRegistry, PodMode, RunPods, RunningPods};
use crate::{
    SigningAuthority, admissionregistration, apps, autoscaling, batch, certificates, core, discovery,
    garbage_collector, kubelet, policy, scheduler, storage, storagemigration,
};

/// The time without a heartbeat after which a node counts as lost, as in kube-controller-manager.
const NODE_GRACE_PERIOD: Duration = Duration::from_secs(50);

/// The longest interval of the heartbeats of a node, as a real kubelet's.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// The controllers of kube-controller-manager, kube-scheduler and a kubelet that a development cluster needs.
///
/// ```no_run
/// # async fn example(client: kube_client::Client) -> windlass_runtime::Result<()> {
/// windlass_controllers::Controllers::new(client)
///     .run_until(async { tokio::signal::ctrl_c().await.unwrap_or(()) })
///     .await
/// # }
/// ```
pub struct Controllers {
    client: Client,
    root_ca: Option<String>,
    sign_token: Option<SignToken>,
    authority: Option<SigningAuthority>,
    scheduler: bool,
    nodes: bool,
    strict: bool,
    simulated: Vec<Node>,
    node_grace_period: Option<Duration>,
    run: Option<RunPods>,
}

impl Controllers {
    /// Creates the controllers. `client` needs the rights of an administrator.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            root_ca: None,
            sign_token: None,
            authority: None,
            scheduler: true,
            nodes: true,
            strict: true,
            simulated: Vec::new(),
            node_grace_period: None,
            run: None,
        }
    }

    /// Sets the certificate (PEM) for the ConfigMap `kube-root-ca.crt` of each namespace. By default, there
    /// is no such ConfigMap.
    pub fn root_ca(mut self, pem: impl Into<String>) -> Self {
        self.root_ca = Some(pem.into());
        self
    }

    /// Sets the signer of legacy tokens, the tokens in Secrets of type `kubernetes.io/service-account-token`.
    /// The signer gets the service account and the name of the Secret, and returns `None` if the signer
    /// cannot sign. By default, such Secrets stay empty.
    ///
    /// The server must accept the tokens: pass `windlass_apiserver::Server::legacy_token`.
    pub fn sign_legacy_tokens(
        mut self,
        sign: impl Fn(&ServiceAccount, &str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.sign_token = Some(Box::new(sign));
        self
    }

    /// Sets the authority that signs the certificates of approved requests, for the signers
    /// `kubernetes.io/kube-apiserver-client`, `kubernetes.io/kube-apiserver-client-kubelet`,
    /// `kubernetes.io/kubelet-serving` and `kubernetes.io/legacy-unknown`. Without an authority, such
    /// requests are approved and cleaned up, but never get a certificate.
    ///
    /// The server must trust the authority: pass that of `windlass_apiserver::RunningListener`. A certificate lives as long as the request says, at
    /// most a year (the default) and at least ten minutes.
    pub fn sign_certificates(mut self, authority: SigningAuthority) -> Self {
        self.authority = Some(authority);
        self
    }

    /// Leaves out the scheduler and the simulated nodes: pods stay pending unless another program runs the
    /// pods.
    ///
    /// For tests that play the kubelet themselves.
    pub fn without_nodes(mut self) -> Self {
        (self.scheduler, self.nodes) = (false, false);
        self
    }

    /// Leaves out the simulated nodes, but runs the scheduler: pods are bound to the Node objects that a test creates, and stay
    /// pending unless the test reports a status.
    pub fn without_kubelets(mut self) -> Self {
        self.nodes = false;
        self
    }

    /// Sets whether pods wait as in a real cluster: for claims, pod affinity and topology spread, for missing ConfigMaps and
    /// Secrets, and for the delays of probes. The default is true. With `false`, every simulated pod starts and becomes ready at
    /// once.
    ///
    /// The annotation `kubelet.windlass.dev/strict: "false"` does the same for a pod or a namespace.
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Adds simulated nodes to the first node, `windlass`. Labels, annotations, taints and the capacity in the status are
    /// those of the given objects. By default, a node has 32 CPUs, 128 GiB of memory and room for 110 pods. An object with
    /// the name `windlass` changes the first node. [`NodePool`](crate::NodePool) makes equal nodes.
    ///
    /// While the cluster runs, a Node object with the annotation `kubelet.windlass.dev/run: simulate` adds a node, and the
    /// deletion of the object removes the node.
    pub fn simulated_nodes(mut self, nodes: impl IntoIterator<Item = Node>) -> Self {
        self.simulated.extend(nodes);
        self
    }

    /// Sets the time without a heartbeat after which a node counts as lost. Default: 50 s, as in kube-controller-manager; never
    /// without simulated nodes, because nothing sends the heartbeats of nodes that a test creates.
    /// Simulated nodes send a heartbeat every 10 s, or four times in the period if the period is shorter than 40 s.
    pub fn node_monitor_grace_period(mut self, period: Duration) -> Self {
        self.node_grace_period = Some(period);
        self
    }

    /// Runs the programs of the pods that `mode` says. Without this, all pods are simulated.
    ///
    /// Keep a clone of `pods` to reach into the pods. `host_ports` are ports on the loopback address of this
    /// machine that pods reach at `host.windlass.internal`.
    pub fn run_pods(mut self, pods: RunningPods, mode: PodMode, host_ports: Vec<u16>) -> Self {
        self.run = Some(RunPods { pods, mode, host_ports });
        self
    }

    /// Returns a manager that runs all controllers. More controllers can be added.
    pub fn manager(self) -> Manager {
        let mut manager = Manager::new(self.client).log_warnings(false);
        let grace = self.node_grace_period.or(self.nodes.then_some(NODE_GRACE_PERIOD));
        let mut nodes = Vec::new();
        if self.nodes {
            let version = self.run.as_ref().map(|run| run.pods.runtime().version());
            let simulated = self.simulated;
            let heartbeat = HEARTBEAT.min(grace.unwrap_or(NODE_GRACE_PERIOD) / 4);
            let register = move |cx| kubelet::register_nodes(cx, simulated.clone(), heartbeat);
            manager = manager
                .runnable(Runnable::new("nodes", register))
                .runnable(Runnable::new("storage-class", storage::storage_class::keep_default_class));
            let registry = Arc::new(NodeRegistry::default());
            nodes
                .push(kubelet::node_keeper(Arc::clone(&registry), version, heartbeat).field_manager(KUBELET));
            if self.run.is_some() {
                manager = manager.runnable(Runnable::new("kube-dns", kubelet::create_dns_service));
            }
            let kubelet = kubelet::controllers(self.run, &registry, self.strict).into_iter();
            nodes.extend(kubelet.map(|controller| controller.field_manager(KUBELET)));
        }
        if self.scheduler {
            nodes.push(scheduler::controller(self.strict).field_manager(KUBE_SCHEDULER));
        }
        let authority = self.root_ca.clone();
        let tokens = self.sign_token.map(|sign| core::secret::service_account_tokens(sign, authority));
        // These controllers write to a key as often as the cluster changes. A slow-down would slow down
        // rollouts.
        vec![
            admissionregistration::validating_admission_policy::controller(),
            apps::daemon_set::controller(),
            apps::deployment::controller(),
            apps::replica_set::controller::<ReplicaSet>(),
            apps::stateful_set::controller(),
            autoscaling::horizontal_pod_autoscaler::controller(),
            batch::cron_job::controller(),
            batch::job::controller(),
            batch::job::orphans_controller(),
            batch::job::ttl_controller(),
            certificates::certificate_signing_request::approving_controller(),
            certificates::certificate_signing_request::cleaning_controller(),
            core::endpoints::controller(),
            core::namespace::controller(),
            core::node::controller(grace),
            core::node::taint_eviction(),
            core::persistent_volume::controller(),
            core::persistent_volume::protection(),
            core::persistent_volume_claim::controller(),
            core::persistent_volume_claim::ephemeral(),
            core::persistent_volume_claim::protection(),
            core::pod::controller(),
            core::replication_controller::controller(),
            core::resource_quota::controller(),
            core::service_account::controller(),
            discovery::endpoint_slice::controller(),
            discovery::endpoint_slice::mirroring_controller(),
            policy::pod_disruption_budget::controller(),
            storage::volume_attributes_class::protection(),
        ]
        .into_iter()
        .chain(self.root_ca.map(core::config_map::root_ca))
        .chain(tokens)
        .chain(self.authority.map(certificates::certificate_signing_request::signing_controller))
        .map(|controller| controller.field_manager(KUBE_CONTROLLER_MANAGER))
        .chain(nodes)
        .map(Controller::allow_hot_loops)
        .fold(
            storagemigration::storage_version_migration::add_to(garbage_collector::add_to(manager)),
            Manager::controller,
        )
    }

    /// Runs the controllers until `stop` completes, then stops them gracefully.
    ///
    /// # Errors
    /// A request is forbidden, or the first lists do not arrive in time.
    pub async fn run_until(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        self.manager().run_until(stop).await
    }
}
