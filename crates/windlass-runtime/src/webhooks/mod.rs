//! Webhooks as a part of a manager: the server is a runnable, and what its certificates need is written to the cluster.

mod cluster;
mod configurations;
mod issuer;
mod reads;
mod rights;

use std::sync::{Arc, OnceLock};

use windlass_webhook::{CertificateSource, WebhookListener, WebhookServer};

pub use self::reads::{AdmissionContextExt, AdmissionWebhookExt};
pub(crate) use self::reads::{WebhookCluster, reads_of};
use self::{issuer::Issuer, reads::needs_of};
use crate::{
    error::{Error, Result},
    manager::{Group, Manager, RunContext, Runnable},
    supervisor::Recovery,
    webhook_declaration::WebhookServerDeclaration,
};

type StartedCheck = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

impl Manager {
    /// Serves webhooks, on every replica. They start before the caches, because a list may need a conversion.
    ///
    /// Pass [`Webhooks`](windlass_webhook::Webhooks), or a [`WebhookServer`] with a port and a source of certificates.
    ///
    /// A webhook may read the cluster: see [`AdmissionContextExt`].
    ///
    /// Adds the readiness check `webhook` (a second server: `webhook-2`), which fails until the server listens with a valid certificate. If the certificate's
    /// files are missing, the manager runs on: the error is logged, and the files are read again every second.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use windlass_runtime::{Manager, webhook::{AdmissionContext, AdmissionChange, AdmissionDenial, Webhooks}};
    ///
    /// async fn validate(change: AdmissionChange<ConfigMap>, _: AdmissionContext) -> Result<(), AdmissionDenial> {
    ///     match change.new_object() {
    ///         Some(config) if config.data.is_none() => Err(AdmissionDenial::new("data is required")),
    ///         _ => Ok(()),
    ///     }
    /// }
    ///
    /// # async fn example(client: kube_client::Client) {
    /// let manager = Manager::new(client).webhooks(Webhooks::new().validator::<ConfigMap>(validate));
    /// # drop(manager); }
    /// ```
    pub fn webhooks(mut self, server: impl Into<WebhookServer>) -> Self {
        let server = server.into().with_defaults(self.webhook_defaults.clone());
        self.webhook_servers.push(WebhookServerDeclaration::of(&server));
        let check_name = match self.webhook_servers.len() {
            1 => "webhook".to_owned(),
            number => format!("webhook-{number}"),
        };
        self.metrics().register(|registry| server.register_metrics(registry));
        self.metrics().set_certificates(server.certificate_metrics());
        let (reads, mut needed) = (reads_of(server.webhooks()), needs_of(server.webhooks()));
        if let Some(CertificateSource::SelfIssued(issued)) = server.certificate_source() {
            needed.extend(rights::permissions(issued, &server.webhooks().conversions()));
        }
        let started = Arc::new(OnceLock::<StartedCheck>::new());
        let check = started.clone();
        let run = move |cx: RunContext| async move {
            let cluster = WebhookCluster { client: cx.client().clone(), caches: cx.caches.clone() };
            let listener =
                server.extension(cluster).bind().await.map_err(|error| Error::setup(error.to_string()))?;
            let (env, check) = (cx.env().clone(), listener.started_check());
            let _ = started.set(Box::new(move || check(env.now())));
            serve(listener, cx).await
        };
        let runnable = needed.into_iter().fold(Runnable::new("webhooks", run), Runnable::needs);
        let runnable = reads.into_iter().fold(runnable, Runnable::reads_cache);
        self.runnable(runnable.group(Group::Webhooks)).readyz_check(check_name, move || {
            let checked = match check.get() {
                Some(check) => check(),
                None => Err("webhook server has not been started yet".to_owned()),
            };
            std::future::ready(checked)
        })
    }
}

/// Serves until the shutdown, and keeps the certificate up to date meanwhile.
async fn serve(listener: WebhookListener, cx: RunContext) -> Result<()> {
    let shutdown = cx.shutdown.clone();
    let supervisor = cx.state.supervisor.clone();
    let certificates = match listener.certificate_source().clone() {
        CertificateSource::Files(files) => {
            let (store, metrics) =
                (listener.certificates().clone(), listener.metrics().certificates().clone());
            let watch = move |recovery: Recovery| {
                let (files, store, metrics) = (files.clone(), store.clone(), metrics.clone());
                recovery.complete();
                async move { files.watch(&store, &metrics).await }
            };
            futures::future::Either::Left(supervisor.supervise(
                "webhook certificate".to_owned(),
                shutdown.token().clone(),
                watch,
            ))
        }
        CertificateSource::SelfIssued(issued) => {
            let issuer = Arc::new(Issuer::new(issued, &listener, &cx)?);
            let run = move |recovery: Recovery| {
                let issuer = issuer.clone();
                async move { issuer.run(recovery).await }
            };
            futures::future::Either::Right(supervisor.supervise(
                "webhook certificate".to_owned(),
                shutdown.token().clone(),
                run,
            ))
        }
    };
    tokio::select! {
        biased;
        () = listener.serve(async move { shutdown.requested().await }) => Ok(()),
        // It ends at the shutdown only, after a panic.
        () = certificates => Ok(()),
    }
}
