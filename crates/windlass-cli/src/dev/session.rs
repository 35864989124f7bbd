//! Builds, installs, runs; and again on each save.

use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use windlass_codegen::{Inventory, WebhooksDeclaration};

use super::Options;
use super::changes::Changes;
use super::samples::Samples;
use super::sources::Sources;
use crate::error::Result;
use crate::output::Output;
use crate::project::{Child, Cluster, Operator, Workspace};
use crate::signals::ShutdownSignal;
use crate::webhooks::{LocalWebhooks, forget_abandoned};

/// The operator of a project on a cluster.
pub(super) struct Session<'w> {
    workspace: &'w Workspace,
    cluster: Cluster,
    options: Options,
    samples: Samples,
    changes: Changes,
    /// The webhook server of an operator with webhooks.
    webhooks: Option<LocalWebhooks>,
    /// The CRDs that the operator declared last, as JSON.
    installed: String,
    running: Option<Running>,
}

struct Running {
    child: Child,
    built: Option<SystemTime>,
}

/// The end of a wait.
enum Event {
    Shutdown,
    Saved(PathBuf),
    Ended(String),
}

impl<'w> Session<'w> {
    pub(super) fn new(workspace: &'w Workspace, cluster: Cluster, options: Options) -> Self {
        let changes = Changes::new(cluster.client.clone());
        Self {
            workspace,
            cluster,
            options,
            samples: Samples::default(),
            changes,
            webhooks: None,
            installed: String::new(),
            running: None,
        }
    }

    /// Runs until the shutdown signal.
    pub(super) async fn run(&mut self, shutdown: &ShutdownSignal, out: &mut Output) -> Result<()> {
        let root = self.workspace.root.clone();
        let mut sources = Sources::of(&root);
        let mut saved = None;
        loop {
            let round = tokio::select! {
                biased;
                () = shutdown.received() => break,
                round = self.round(saved.take(), out) => round,
            };
            if let Err(error) = round {
                out.line(format_args!("{error}"));
                match self.running {
                    Some(_) => out.line("waiting for a change; the operator of the last build runs on"),
                    None => out.line("waiting for a change"),
                }
            }
            loop {
                match self.wait(&mut sources, &root, shutdown, out).await {
                    Event::Shutdown => return self.stop(out).await,
                    Event::Saved(path) => {
                        out.line(format_args!("saved {}", path.display()));
                        saved = Some(Instant::now());
                        break;
                    }
                    Event::Ended(how) => {
                        self.running = None;
                        out.line(format_args!("the operator ended with {how}; waiting for a change"));
                    }
                }
            }
        }
        self.stop(out).await
    }

    /// Builds the operator, installs the declared CRDs, and restarts a changed program.
    async fn round(&mut self, saved: Option<Instant>, out: &mut Output) -> Result<()> {
        let program = self.workspace.build(out).await?;
        let built = std::fs::metadata(&program).and_then(|metadata| metadata.modified()).ok();
        let operator = Operator::new(program);
        let Inventory { crds, webhooks, .. } = operator.inventory().await?;
        self.install(&crds, out).await?;
        // Without webhooks, samples need no operator.
        if webhooks.is_none() {
            self.apply_samples(out).await?;
        }
        if self.running.as_ref().is_none_or(|running| running.built != built) {
            self.start(&operator, webhooks.as_ref(), built, out).await?;
            said(saved, out);
        }
        if let Some(declared) = &webhooks {
            self.register(declared, out).await?;
            self.apply_samples(out).await?;
        }
        Ok(())
    }

    async fn apply_samples(&mut self, out: &mut Output) -> Result<()> {
        if self.options.samples {
            self.samples.apply(&self.workspace.root, &self.cluster.client, out).await?;
        }
        Ok(())
    }

    /// Starts the operator, in place of the running operator.
    async fn start(
        &mut self,
        operator: &Operator,
        declared: Option<&WebhooksDeclaration>,
        built: Option<SystemTime>,
        out: &mut Output,
    ) -> Result<()> {
        let Options { webhooks, flags, .. } = &self.options;
        if self.webhooks.is_none() {
            forget_abandoned(&self.cluster.client, self.workspace, out).await?;
        }
        if declared.is_some() && self.webhooks.is_none() {
            self.webhooks = LocalWebhooks::prepare(self.workspace, &self.cluster, webhooks, flags, out)?;
        }
        // A build without webhooks answers no calls: writes would fail. The next build with webhooks gets another port and certificate.
        if declared.is_none()
            && let Some(mut webhooks) = self.webhooks.take()
        {
            webhooks.remove(out).await?;
        }
        if let Some(webhooks) = &mut self.webhooks {
            webhooks.restore_certificate(self.workspace)?;
        }
        if let Some(mut old) = self.running.take() {
            old.child.stop().await?;
        }
        if let (Some(webhooks), Some(declared)) = (&mut self.webhooks, declared) {
            webhooks.convert(declared, out).await?;
        }
        let own = self.webhooks.as_ref().map(LocalWebhooks::flags).unwrap_or_default();
        let child = operator.start(self.workspace, &self.cluster, &own, flags, out).await?;
        self.running = Some(Running { child, built });
        Ok(())
    }

    /// Registers the webhooks with the API server, after the operator has started to serve webhooks.
    async fn register(&mut self, declared: &WebhooksDeclaration, out: &mut Output) -> Result<()> {
        let (Some(webhooks), Some(running)) = (&mut self.webhooks, &mut self.running) else { return Ok(()) };
        let registered = tokio::select! {
            biased;
            // The next wait reports the end of the operator.
            ended = running.child.ended() => Err(format!("the operator ended with {}", ended?).into()),
            registered = webhooks.register(declared, out) => registered,
        };
        if registered.is_err() && running.child.has_ended() {
            self.running = None;
        }
        registered
    }

    /// Installs the CRDs, if the CRDs have changed since the last call.
    async fn install(&mut self, crds: &[CustomResourceDefinition], out: &mut Output) -> Result<()> {
        let declared = serde_json::to_string(crds)?;
        if declared != self.installed {
            for name in windlass_dev::install_crds(&self.cluster.client, crds).await? {
                out.line(format_args!("installed {name}"));
            }
            self.installed = declared;
            self.changes.watch(crds)?;
        }
        Ok(())
    }

    /// Waits for the next event, and prints the changes of the cluster until then.
    async fn wait(
        &mut self,
        sources: &mut Sources,
        root: &Path,
        shutdown: &ShutdownSignal,
        out: &mut Output,
    ) -> Event {
        let Self { running, changes, .. } = self;
        let ended = async {
            match running {
                Some(running) => match running.child.ended().await {
                    Ok(status) => status.to_string(),
                    Err(error) => error.to_string(),
                },
                None => std::future::pending().await,
            }
        };
        tokio::pin!(ended);
        let saved = sources.changed(root);
        tokio::pin!(saved);
        loop {
            tokio::select! {
                biased;
                () = shutdown.received() => return Event::Shutdown,
                how = &mut ended => return Event::Ended(how),
                path = &mut saved => return Event::Saved(path),
                line = changes.next() => out.line(line),
            }
        }
    }

    async fn stop(&mut self, out: &mut Output) -> Result<()> {
        if let Some(webhooks) = &mut self.webhooks {
            if self.options.is_embedded {
                webhooks.remove_certificate();
            } else {
                webhooks.clean_up(out).await;
            }
        }
        if let Some(mut running) = self.running.take() {
            out.line("stopping the operator");
            running.child.stop().await?;
        }
        Ok(())
    }
}

/// Says that the operator runs, and how long after a save.
fn said(saved: Option<Instant>, out: &mut Output) {
    match saved {
        None => out.line("the operator runs; it is built again when a file is saved. Ctrl-C stops it"),
        Some(saved) => out.line(format_args!(
            "the operator runs again, {:.1} s after the save",
            saved.elapsed().as_secs_f64()
        )),
    }
}
