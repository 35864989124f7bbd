//! The webhooks of an operator on this machine: registered with the API server while the operator runs.

mod abandoned;
mod address;
mod certificate;
mod configurations;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use http::Request;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, Preconditions,
};
use kube::{Client, Config, ResourceExt};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};
use windlass_codegen::WebhooksDeclaration;
use windlass_dev::REPLACED_CONVERSION;
use windlass_runtime::client::ClientBuilder;

use self::address::Address;
use self::certificate::Certificate;
use self::configurations::{Configuration, Configurations, Endpoint};
use crate::error::{Error, Result};
use crate::output::Output;
use crate::project::{Cluster, Workspace};

pub(crate) use self::abandoned::{forget_abandoned, replace_refused};

/// The field manager of the configurations.
const FIELD_MANAGER: &str = "windlass-webhooks";

/// The folder of the certificates, in the folder of the project. Each run has a subfolder, named after the
/// port.
const FOLDER: &str = ".windlass/webhook";

/// The time limit until an operator serves the webhooks.
const SERVED_WITHIN: Duration = Duration::from_secs(60);

/// The number of objects that [`forget_conversion`] lists.
const LOOKED_AT: u32 = 50;

/// The interval between two checks.
const LOOK: Duration = Duration::from_millis(20);

/// Where the API server reaches webhooks.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct WebhookArgs {
    /// Address of this machine that the API server reaches, to call the operator's webhooks. Default: 127.0.0.1, if the server is on this
    /// machine.
    #[arg(long, value_name = "HOST", value_parser = address::host)]
    pub(crate) webhook_host: Option<String>,
}

/// The webhooks of an operator on this machine.
pub(crate) struct LocalWebhooks {
    client: Client,
    name: String,
    endpoint: Endpoint,
    address: Address,
    port: u16,
    /// The folder of the certificate.
    folder: PathBuf,
    registered: Configurations,
    /// The replaced conversion webhooks of services, by CRD.
    before: BTreeMap<String, Value>,
    /// True if the registered webhooks have been printed.
    is_told: bool,
}

impl LocalWebhooks {
    /// Chooses a port, and issues a certificate. Returns `None` if the operator's flags configure the webhook
    /// server.
    pub(crate) fn prepare(
        workspace: &Workspace,
        cluster: &Cluster,
        args: &WebhookArgs,
        flags: &[String],
        out: &mut Output,
    ) -> Result<Option<Self>> {
        let is_own = |flag: &String| flag.starts_with("--webhook-port") || flag.starts_with("--webhook-cert");
        if flags.iter().any(is_own) {
            out.line("webhooks: not registered, because the operator's flags say where they are served");
            return Ok(None);
        }
        let address = Address::choose(args.webhook_host.as_deref(), &cluster.server);
        if let Address::Unreachable = &address {
            out.line(format_args!(
                "webhooks: not registered. The API server {} is on another machine and cannot call this one: name an address of this \
                 machine that it reaches with --webhook-host",
                cluster.server
            ));
        }
        // The port is free now; another program is unlikely to take the port in the meantime.
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let certificate = Certificate::issue(address.host(), port)?;
        let folder = certificate.write(&workspace.root.join(FOLDER), port)?;
        Ok(Some(Self {
            client: cluster.client.clone(),
            name: name(workspace),
            endpoint: Endpoint { base: address.url(port), authority: certificate.authority },
            address,
            port,
            folder,
            registered: Configurations::default(),
            before: BTreeMap::new(),
            is_told: false,
        }))
    }

    /// Issues another certificate if the files are gone: another command may have removed the files while no operator served.
    pub(crate) fn restore_certificate(&mut self, workspace: &Workspace) -> Result<()> {
        if !self.folder.is_dir() {
            let certificate = Certificate::issue(self.address.host(), self.port)?;
            self.folder = certificate.write(&workspace.root.join(FOLDER), self.port)?;
            self.endpoint.authority = certificate.authority;
        }
        Ok(())
    }

    /// Returns whether the API server reaches this machine.
    fn is_reachable(&self) -> bool {
        self.address != Address::Unreachable
    }

    /// Returns the flags of the operator for the port and the certificate.
    pub(crate) fn flags(&self) -> Vec<OsString> {
        let port = self.port.to_string();
        let flags = ["--webhook-local=true", "--webhook-port", &port, "--webhook-cert-path"];
        flags.into_iter().map(OsString::from).chain([self.folder.clone().into()]).collect()
    }

    /// Registers the conversions, before the operator starts: otherwise, objects in another version than the
    /// storage version would lose fields in the operator's lists. Requests for other versions fail until the
    /// operator serves.
    pub(crate) async fn convert(&mut self, webhooks: &WebhooksDeclaration, out: &mut Output) -> Result<()> {
        if !self.is_reachable() {
            return Ok(());
        }
        let wanted = Configurations::of(&self.name, webhooks, &self.endpoint).conversions;
        for (name, conversion) in &wanted {
            if self.registered.conversions.get(name) != Some(conversion) {
                self.convert_one(name, conversion, out).await?;
                self.registered.conversions.insert(name.clone(), conversion.clone());
            }
        }
        let registered = std::mem::replace(&mut self.registered.conversions, wanted);
        for name in registered.into_keys() {
            if !self.registered.conversions.contains_key(&name) {
                self.release(&name, out).await?;
            }
        }
        Ok(())
    }

    /// Waits until the operator serves the webhooks, and tells the API server where the webhooks are. The conversions are registered
    /// before: see [`convert`](Self::convert).
    pub(crate) async fn register(&mut self, webhooks: &WebhooksDeclaration, out: &mut Output) -> Result<()> {
        if !self.is_reachable() {
            return Ok(());
        }
        self.served().await?;
        let wanted = Configurations::of(&self.name, webhooks, &self.endpoint);
        if wanted == self.registered && self.is_told {
            return Ok(());
        }
        self.delete(&self.registered.without(&wanted)).await?;
        self.is_told = false;
        // A configuration counts as registered before the call: the server may have a configuration whose call failed or was cancelled.
        if let Some(configuration) = &wanted.mutating {
            self.registered.mutating = Some(configuration.clone());
            let api: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
            api.patch(&self.name, &parameters(), &Patch::Apply(configuration)).await?;
        }
        if let Some(configuration) = &wanted.validating {
            self.registered.validating = Some(configuration.clone());
            let api: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
            api.patch(&self.name, &parameters(), &Patch::Apply(configuration)).await?;
        }
        out.line(format_args!("webhooks: the API server calls {}: {wanted}", self.endpoint.base));
        self.registered = wanted;
        self.is_told = true;
        Ok(())
    }

    /// Removes the webhooks at the end of a command, as [`remove`](Self::remove). A failure is a warning: the command ends as the operator
    /// has ended.
    pub(crate) async fn clean_up(&mut self, out: &mut Output) {
        if let Err(error) = self.remove(out).await {
            out.line(format_args!(
                "warning: webhooks: {error}. The next `windlass run` or `windlass dev` of the project replaces the webhooks that are left"
            ));
        }
    }

    /// Removes the webhooks from the API server, and restores the conversions. An error names the failed step.
    pub(crate) async fn remove(&mut self, out: &mut Output) -> Result<()> {
        self.remove_certificate();
        self.is_told = false;
        let registered = std::mem::take(&mut self.registered);
        let deleted = self.delete(&registered).await;
        deleted
            .map_err(|error| failed(format_args!("the configuration {} is not deleted", self.name), error))?;
        if registered.mutating.is_some() || registered.validating.is_some() {
            out.line("webhooks: the API server does not call them any more");
        }
        for name in registered.conversions.keys() {
            let released = self.release(name, out).await;
            released
                .map_err(|error| failed(format_args!("the conversion of {name} is not restored"), error))?;
        }
        Ok(())
    }

    /// Removes the certificate and the key from the disk.
    pub(crate) fn remove_certificate(&self) {
        // A folder that cannot be removed does no harm.
        let _ = fs::remove_dir_all(&self.folder);
    }

    /// Waits until the operator answers over HTTPS.
    async fn served(&self) -> Result<()> {
        let mut config = Config::new(format!("https://127.0.0.1:{}", self.port).parse()?);
        config.root_cert = Some(certificate::der(&self.endpoint.authority)?);
        let client = ClientBuilder::new(config).build()?;
        let end = Instant::now() + SERVED_WITHIN;
        // The client logs each connection that is refused.
        while TcpStream::connect(("127.0.0.1", self.port)).await.is_err() && Instant::now() < end {
            sleep(LOOK).await;
        }
        loop {
            let answer = client.request_text(Request::get("/").body(Vec::new())?).await;
            match answer {
                // Any response proves that the server listens: this path has no webhook.
                Ok(_) | Err(kube::Error::Api(_)) => return Ok(()),
                Err(error) if Instant::now() > end => {
                    return Err(format!(
                        "the operator does not serve its webhooks after {} s: {error}",
                        SERVED_WITHIN.as_secs()
                    )
                    .into());
                }
                Err(_) => sleep(LOOK).await,
            }
        }
    }

    /// Sets the conversion of an installed CRD.
    async fn convert_one(&mut self, name: &str, conversion: &Value, out: &mut Output) -> Result<()> {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let Some(crd) = definitions.get_opt(name).await? else {
            out.line(format_args!("webhooks: {name} is not installed; `windlass install` installs it"));
            return Ok(());
        };
        let live = serde_json::to_value(&crd.spec.conversion)?;
        let before = match live.pointer("/webhook/clientConfig/service") {
            Some(_) => Some(live),
            // A run that was killed could not restore the conversion of the service.
            None => {
                crd.annotations().get(REPLACED_CONVERSION).and_then(|text| serde_json::from_str(text).ok())
            }
        };
        windlass_dev::set_conversion(&self.client, name, Some(conversion), before.as_ref()).await?;
        self.before.extend(before.map(|before| (name.to_owned(), before)));
        Ok(())
    }

    /// Restores the conversion of a CRD by the service that converted before. Without such a service, the
    /// conversion of a CRD with several versions stays: without a conversion, fields of objects would be lost
    /// in silence. A later conversion of another command stays, too.
    async fn release(&mut self, name: &str, out: &mut Output) -> Result<()> {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let Some(crd) = definitions.get_opt(name).await? else { return Ok(()) };
        let before = self.before.remove(name);
        let url = serde_json::to_value(&crd.spec.conversion)?;
        let url = url.pointer("/webhook/clientConfig/url").and_then(Value::as_str).unwrap_or_default();
        if !self.endpoint.serves(url) {
            out.line(format_args!(
                "webhooks: the conversion of {name} has been set by another command, and stays"
            ));
            return Ok(());
        }
        if before.is_none() && crd.spec.versions.len() > 1 {
            let stored = storage_version(&crd);
            out.line(format_args!(
                "webhooks: the conversion of {name} stays, so that no field is lost: requests for other versions than {stored} fail until the \
                 operator runs again. `windlass uninstall` removes the conversion, with the CRD and all objects"
            ));
            return Ok(());
        }
        windlass_dev::set_conversion(&self.client, name, before.as_ref(), None).await?;
        out.line(match before {
            Some(before) if self.is_deployed(&before).await => {
                format!("webhooks: the conversion of {name} is again that of the deployed service")
            }
            Some(_) => {
                let stored = storage_version(&crd);
                format!(
                    "webhooks: nothing converts {name} now, because the operator is not deployed: requests for other versions than {stored} fail \
                     until `windlass run` or `windlass deploy`"
                )
            }
            None => format!("webhooks: the conversion of {name} is removed: there is only one version"),
        });
        Ok(())
    }

    /// Returns whether the service of a conversion exists. Without the right to read services, the service counts as existing.
    async fn is_deployed(&self, conversion: &Value) -> bool {
        let field = |name: &str| {
            conversion.pointer(&format!("/webhook/clientConfig/service/{name}")).and_then(Value::as_str)
        };
        let (Some(namespace), Some(name)) = (field("namespace"), field("name")) else { return false };
        let services: Api<Service> = Api::namespaced(self.client.clone(), namespace);
        services.get_opt(name).await.map_or(true, |service| service.is_some())
    }

    async fn delete(&self, configurations: &Configurations) -> Result<()> {
        if configurations.mutating.is_some() {
            self.delete_own::<MutatingWebhookConfiguration>().await?;
        }
        if configurations.validating.is_some() {
            self.delete_own::<ValidatingWebhookConfiguration>().await?;
        }
        Ok(())
    }

    /// Deletes a configuration that calls this operator. A configuration that another run of the project has replaced stays.
    async fn delete_own<K: Configuration>(&self) -> Result<()> {
        let api: Api<K> = Api::all(self.client.clone());
        match api.get_opt(&self.name).await? {
            Some(found) if found.urls().any(|url| self.endpoint.serves(url)) => delete(&api, &found).await,
            _ => Ok(()),
        }
    }
}

/// Deletes a configuration, unless the configuration has changed since the read.
async fn delete<K: Configuration>(api: &Api<K>, found: &K) -> Result<()> {
    let preconditions = Preconditions { uid: found.uid(), resource_version: found.resource_version() };
    let unchanged = DeleteParams::default().preconditions(preconditions);
    match api.delete(&found.name_any(), &unchanged).await {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        deleted => absent(deleted),
    }
}

/// Removes the conversion of a CRD that is being deleted, if the conversion webhook does not answer: the API server could not read the
/// objects.
pub(crate) async fn forget_conversion(client: &Client, crd: &CustomResourceDefinition) -> Result<()> {
    let is_converted =
        crd.spec.conversion.as_ref().is_some_and(|conversion| conversion.strategy == "Webhook");
    for version in crd.spec.versions.iter().filter(|version| version.served && is_converted) {
        let listed = objects(client, crd, &version.name).list(&ListParams::default().limit(LOOKED_AT)).await;
        if let Err(kube::Error::Api(status)) = listed
            && status.message.contains("conversion webhook")
        {
            windlass_dev::set_conversion(client, &crd.name_any(), None, None).await?;
            return Ok(());
        }
    }
    Ok(())
}

/// Returns the objects of a version of a CRD, in all namespaces.
pub(crate) fn objects(client: &Client, crd: &CustomResourceDefinition, version: &str) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &resource(crd, version))
}

/// Returns the resource of a version of a CRD.
pub(crate) fn resource(crd: &CustomResourceDefinition, version: &str) -> ApiResource {
    let (group, names) = (&crd.spec.group, &crd.spec.names);
    ApiResource {
        group: group.clone(),
        version: version.to_owned(),
        api_version: format!("{group}/{version}"),
        kind: names.kind.clone(),
        plural: names.plural.clone(),
    }
}

/// Returns the name of the configurations of a project's operator on this machine.
fn name(workspace: &Workspace) -> String {
    format!("{}-local", workspace.project.project_name)
}

/// Deletes the configurations of an operator on this machine.
pub(crate) async fn forget(client: &Client, workspace: &Workspace) -> Result<()> {
    let name = name(workspace);
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    absent(mutating.delete(&name, &DeleteParams::default()).await)?;
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    absent(validating.delete(&name, &DeleteParams::default()).await)
}

fn storage_version(crd: &CustomResourceDefinition) -> &str {
    let stored = crd.spec.versions.iter().find(|version| version.storage);
    stored.map(|version| version.name.as_str()).unwrap_or_default()
}

/// Returns an error that begins with the failed step.
fn failed(step: impl Display, error: Error) -> Error {
    format!("{step}: {}", windlass_runtime::Error::other(error)).into()
}

/// Accepts a missing configuration, which needs no deletion.
fn absent<T>(deleted: kube::Result<T>) -> Result<()> {
    match deleted {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn parameters() -> PatchParams {
    PatchParams::apply(FIELD_MANAGER).force()
}
