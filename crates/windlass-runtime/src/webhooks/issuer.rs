//! Carries out the plans of the rotation of self-issued certificates.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{sleep, timeout};
use windlass_webhook::{
    SelfIssued, WebhookListener,
    certificates::{CertificateState, CertificateStore, Plan, Rotation, SecretState},
};

use super::{
    cluster::{Cluster, Trusting},
    configurations::Configurations,
};
use crate::{
    env::Env,
    error::{Error, Result},
    manager::RunContext,
    supervisor::Recovery,
};

/// The pause after a failure; doubles with each failure in a row, up to the usual interval.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// The most steps without a pause. A rotation takes five.
const MAX_STEPS: usize = 10;

/// Issues the certificates of a webhook server.
pub(super) struct Issuer {
    rotation: Rotation,
    cluster: Cluster,
    store: CertificateStore,
    interval: Duration,
    env: Env,
}

impl Issuer {
    pub(super) fn new(issued: SelfIssued, listener: &WebhookListener, cx: &RunContext) -> Result<Self> {
        let (namespace, name) = issued.secret_name();
        let (client, supervisor) = (cx.client().clone(), cx.state.supervisor.clone());
        let configurations = Configurations::watch(client.clone(), cx.env().random(), supervisor);
        let cluster = Cluster {
            client,
            configurations: configurations.map_err(Error::other)?,
            secret: (namespace.to_owned(), name.to_owned()),
            crds: listener
                .conversions()
                .iter()
                .map(windlass_webhook::ConversionDeclaration::crd_name)
                .collect(),
        };
        Ok(Self {
            rotation: issued.rotation(),
            cluster,
            store: listener.certificates().clone(),
            interval: issued.check_interval(),
            env: cx.env().clone(),
        })
    }

    /// Looks at the cluster again and again, and takes the steps that are due. Never returns.
    pub(super) async fn run(&self, recovery: Recovery) {
        let mut pause = FIRST_PAUSE;
        let mut failure = String::new();
        loop {
            let mut progress = self.cluster.configurations.progress();
            let wait = match self.settle().await {
                Ok(()) => {
                    recovery.complete();
                    (pause, failure) = (FIRST_PAUSE, String::new());
                    // A new configuration gets its authority at once.
                    let _ = timeout(self.interval, progress.changed()).await;
                    continue;
                }
                Err(error) => {
                    let text = error.to_string();
                    // Another replica was faster.
                    if error.is_conflict() || error.is_already_exists() {
                        tracing::debug!(error = text, "another replica wrote the webhook certificates");
                    } else if failure != text {
                        tracing::error!(
                            error = text,
                            "cannot maintain the webhook certificates; trying again"
                        );
                        failure = text;
                    }
                    let wait = pause.mul_f64(1.0 + self.env.fraction());
                    pause = (pause * 2).min(self.interval.max(FIRST_PAUSE));
                    wait
                }
            };
            sleep(wait).await;
        }
    }

    /// Takes steps until none is due.
    async fn settle(&self) -> Result<()> {
        for _ in 0..MAX_STEPS {
            if !self.step().await? {
                return Ok(());
            }
        }
        Err(Error::setup("the certificates change again and again: do two operators use one Secret?"))
    }

    /// Takes the next step. Returns `false` if no step is needed.
    async fn step(&self) -> Result<bool> {
        let secret = self.cluster.secret().await?;
        let trusting = match self.cluster.trusting().await {
            Ok(trusting) => trusting,
            // Without anything to serve, a certificate that is not trusted yet is better than none.
            Err(error) if self.store.get().is_none() => {
                let plan = self.plan(secret.as_ref(), &[])?;
                return if self.carry_out(plan, &[]).await? { Ok(true) } else { Err(error) };
            }
            Err(error) => return Err(error),
        };
        let plan = self.plan(secret.as_ref(), &trusting.1)?;
        self.carry_out(plan, &trusting.0).await
    }

    fn plan(&self, secret: Option<&SecretState>, objects: &[Value]) -> Result<Plan> {
        let serving = self.store.get();
        let observed = CertificateState { secret, objects, serving: serving.as_deref() };
        self.rotation.plan(self.env.now(), observed).map_err(|error| Error::setup(error.to_string()))
    }

    async fn carry_out(&self, plan: Plan, places: &[Trusting]) -> Result<bool> {
        let Plan { serve, secret, patches } = plan;
        let is_something = serve.is_some() || secret.is_some() || !patches.is_empty();
        if let Some(certificate) = serve {
            let not_after = certificate.not_after();
            self.store.set(certificate);
            tracing::info!(%not_after, "serving a new webhook certificate");
        }
        if let Some(write) = secret {
            let reason = write.reason;
            self.cluster.write_secret(write).await?;
            let (namespace, name) = &self.cluster.secret;
            tracing::info!(reason, "wrote the webhook certificates into Secret {namespace}/{name}");
        }
        for (at, patch) in &patches {
            if let Some(place) = places.get(*at) {
                self.cluster.patch(place, patch).await?;
            }
        }
        Ok(is_something)
    }
}
