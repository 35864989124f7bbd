//! The session of `windlass dev`.

mod changes;
mod samples;
mod session;
mod sources;

use windlass_dev::ControlPlane;

use self::session::Session;
use crate::error::Result;
use crate::node::SimulatedNodeArgs;
use crate::output::Output;
use crate::project::{Cluster, ClusterArgs, LOCAL_KUBECONFIG, Workspace, warn_of_replaced};
use crate::signals::ShutdownSignal;
use crate::webhooks::WebhookArgs;

/// How a session runs.
pub(crate) struct Options {
    /// The port of the control plane.
    pub(crate) port: u16,
    /// True if simulated pods wait for missing objects and for probes.
    pub(crate) strict: bool,
    /// The nodes of the control plane.
    pub(crate) nodes: SimulatedNodeArgs,
    /// True if samples are applied.
    pub(crate) samples: bool,
    /// Where the API server reaches the webhooks.
    pub(crate) webhooks: WebhookArgs,
    /// Flags of the operator.
    pub(crate) flags: Vec<String>,
    /// True if the cluster is a control plane of this session. The state of the control plane is lost at the
    /// end.
    pub(crate) is_embedded: bool,
}

/// Runs the operator until the shutdown signal, on a named cluster or on an embedded control plane.
pub(crate) async fn run(
    workspace: &Workspace,
    args: &ClusterArgs,
    options: Options,
    shutdown: &ShutdownSignal,
    out: &mut Output,
) -> Result<()> {
    if !options.is_embedded {
        let cluster = args.connect(workspace, out).await?;
        return Session::new(workspace, cluster, options).run(shutdown, out).await;
    }
    let nodes = options.nodes.nodes()?;
    let mut plane = ControlPlane::start(options.port).await?;
    plane.set_strict(options.strict);
    plane.set_nodes(nodes);
    plane.set_node_monitor_grace_period(options.nodes.grace_period());
    let kubeconfig = workspace.root.join(LOCAL_KUBECONFIG);
    warn_of_replaced(&kubeconfig, LOCAL_KUBECONFIG.as_ref(), out);
    plane.write_kubeconfig(&kubeconfig)?;
    out.line(format_args!(
        "control plane: ready in {} ms at {}",
        plane.startup_time().as_millis(),
        plane.url()
    ));
    out.line(format_args!("  kubectl --kubeconfig {LOCAL_KUBECONFIG} get all"));
    plane.start_controllers();
    let cluster = Cluster {
        client: plane.client(),
        server: plane.url(),
        kubeconfig: Some(kubeconfig),
        context: None,
        namespace: args.namespaces(workspace),
    };
    let mut session = Session::new(workspace, cluster, options);
    let result = tokio::select! {
        biased;
        result = session.run(shutdown, out) => result,
        failed = plane.controllers_failed() => failed.map_err(Into::into),
    };
    drop(session);
    plane.stop().await;
    result
}
