//! Applies the CRDs of an operator before the caches start.

use std::{sync::Arc, time::Duration};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::{
    Client,
    api::{Api, Patch, PatchParams, PostParams},
};
use kube_core::DynamicObject;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::sleep;
use windlass_codegen::{cluster_definitions, compatibility::BreakingChange};

use super::{
    conversion::convert,
    decision::Decision,
    install::{FIELD_MANAGER, await_established, definitions, hand_over, is_established, json_of},
    keep::{keep_conversion, keep_metadata, keep_stored_version},
};
use crate::{
    env::Env,
    error::{Error, Result},
    webhook_declaration::WebhookServerDeclaration,
};

/// The pause after a failure; the pause doubles with each failure in a row.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// The longest pause after a failure.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// The most tries to adopt the fields of a CRD that was created.
const ADOPTIONS: usize = 10;

/// The most changes that an error names.
const NAMED: usize = 5;

/// The CRDs that a manager applies at the start.
pub(crate) struct StartupCrds {
    definitions: Api<DynamicObject>,
    /// The CRDs to apply.
    own: Vec<Value>,
    webhooks: Vec<WebhookServerDeclaration>,
    env: Env,
    progress: Progress,
}

/// Why the CRDs are not applied yet, for the readiness check. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Progress(Arc<Mutex<Option<String>>>);

impl Progress {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Some("the CRDs are not applied yet".to_owned()))))
    }

    /// Returns the reason why the CRDs are not applied yet as an error.
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        self.0.lock().clone().map_or(Ok(()), Err)
    }
}

/// The outcome for a CRD.
#[derive(PartialEq, Eq)]
enum Applied {
    Done,
    /// The CRD of the cluster is being deleted.
    Terminating,
}

impl StartupCrds {
    /// # Errors
    /// The versions of a kind contradict each other.
    pub(crate) fn new(
        client: &Client,
        crds: &[CustomResourceDefinition],
        webhooks: Vec<WebhookServerDeclaration>,
        env: Env,
        progress: Progress,
    ) -> Result<Self> {
        let own = cluster_definitions(crds).map_err(|error| Error::setup(error.to_string()))?;
        Ok(Self { definitions: definitions(client), own, webhooks, env, progress })
    }

    /// Applies the CRDs. Failures that a retry may cure are repeated without a limit. CRDs that are being deleted remain to be applied
    /// [after the deletion](Self::apply_after_deletion).
    ///
    /// # Errors
    /// A CRD would break clients or stored objects, the server refused a CRD, or the operator has no rights to CRDs.
    pub(crate) async fn apply(&mut self) -> Result<()> {
        let mut pause = FIRST_PAUSE;
        let mut failure = String::new();
        let terminating = loop {
            let error = match self.apply_all().await {
                Ok(terminating) => break terminating,
                Err(error) if is_final(&error) => return Err(explained(error)),
                Err(error) => error,
            };
            let text = error.to_string();
            *self.progress.0.lock() = Some(text.clone());
            if failure != text {
                tracing::warn!(error = text, "cannot apply the CRDs; trying again");
                failure = text;
            }
            self.pause(&mut pause).await;
        };
        self.own = terminating;
        *self.progress.0.lock() = None;
        Ok(())
    }

    /// Returns whether CRDs are being deleted.
    pub(crate) fn awaits_deletion(&self) -> bool {
        !self.own.is_empty()
    }

    /// Waits until no CRD of the operator is being deleted, and applies the CRDs that the deletion has removed.
    ///
    /// # Errors
    /// As for [`apply`](Self::apply).
    pub(crate) async fn apply_after_deletion(mut self) -> Result<()> {
        for own in &self.own {
            tracing::warn!(crd = name_of(own), "the CRD is being deleted, and stays as it is until then");
        }
        let mut pause = FIRST_PAUSE;
        while self.awaits_deletion() {
            self.pause(&mut pause).await;
            self.apply().await?;
        }
        Ok(())
    }

    /// Waits, and doubles the next pause.
    async fn pause(&self, pause: &mut Duration) {
        sleep(pause.mul_f64(1.0 + self.env.fraction())).await;
        *pause = (*pause * 2).min(LONGEST_PAUSE);
    }

    /// Returns the CRDs that are not applied because the CRDs of the cluster are being deleted.
    async fn apply_all(&self) -> Result<Vec<Value>> {
        let mut terminating = Vec::new();
        for own in &self.own {
            let name = name_of(own);
            let doing = |error: Error| error.while_doing(format_args!("applying the CRD {name}"));
            if self.apply_one(name, own).await.map_err(doing)? == Applied::Terminating {
                terminating.push(own.clone());
            }
        }
        for own in &self.own {
            let name = name_of(own);
            let doing = |error: Error| error.while_doing(format_args!("waiting for the CRD {name}"));
            await_established(&self.definitions, name).await.map_err(doing)?;
        }
        Ok(terminating)
    }

    /// Applies a CRD. A terminating CRD stays as it is if the resources are still served: the operator may have to remove the finalizers of
    /// the objects that the deletion of the CRD waits for.
    async fn apply_one(&self, name: &str, own: &Value) -> Result<Applied> {
        let live = self.definitions.get_opt(name).await?;
        if let Some(live) = live.as_ref().filter(|live| live.metadata.deletion_timestamp.is_some()) {
            if is_established(live) {
                return Ok(Applied::Terminating);
            }
            return Err(Error::setup("the CRD is being deleted"));
        }
        let live = live.as_ref().map(json_of).transpose()?;
        self.decide(name, own, live).await?;
        Ok(Applied::Done)
    }

    async fn decide(&self, name: &str, own: &Value, live: Option<Value>) -> Result<()> {
        match Decision::of(live.as_ref(), own) {
            Decision::Create => self.create(name, own.clone()).await,
            Decision::Update => self.update(name, &live.unwrap_or_default(), own.clone()).await,
            Decision::Keep(newer) => {
                if !newer.is_empty() {
                    let more = listed(&newer);
                    tracing::info!(
                        crd = name,
                        more,
                        "the CRD in the cluster allows more than this program's, and stays"
                    );
                }
                self.add_conversion(name, &live.unwrap_or_default(), own.clone()).await
            }
            Decision::Refuse(changes) => Err(Error::terminal(refusal(&changes))),
        }
    }

    /// Creates a CRD, unless another replica is faster: an apply would undo a newer CRD that the other replica has created. The fields then
    /// belong to the field manager as after an apply.
    async fn create(&self, name: &str, mut own: Value) -> Result<()> {
        convert(&mut own, &self.webhooks)?;
        let object: DynamicObject = serde_json::from_value(own)?;
        let parameters =
            PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let created = self.definitions.create(&parameters, &object).await?;
        tracing::info!(crd = name, "created the CRD");
        self.adopt(name, created).await
    }

    /// Turns the field manager's create into an apply. The server writes the status of a new CRD at the same time.
    async fn adopt(&self, name: &str, mut crd: DynamicObject) -> Result<()> {
        for _ in 0..ADOPTIONS {
            let Some(patch) = adoption(&json_of(&crd)?) else { return Ok(()) };
            let patch = Patch::<()>::Json(serde_json::from_value(patch)?);
            let patched = self.definitions.patch(name, &PatchParams::default(), &patch).await;
            match patched.map_err(Error::from) {
                Ok(_) => return Ok(()),
                Err(error) if error.is_conflict() || error.is_failed_test() => {
                    crd = self.definitions.get(name).await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Adds the conversion webhook to a CRD that has everything else, such as a CRD that kubectl has applied: without the webhook, the server
    /// would drop fields of stored objects.
    async fn add_conversion(&self, name: &str, live: &Value, mut own: Value) -> Result<()> {
        if live["spec"]["conversion"]["strategy"] == "Webhook" {
            return Ok(());
        }
        if let Err(error) = convert(&mut own, &self.webhooks) {
            tracing::warn!(crd = name, %error, "the CRD in the cluster has no conversion webhook");
            return Ok(());
        }
        let conversion = &own["spec"]["conversion"];
        if conversion["strategy"] != "Webhook" {
            return Ok(());
        }
        let version = &live["metadata"]["resourceVersion"];
        let patch =
            json!({ "metadata": { "resourceVersion": version }, "spec": { "conversion": conversion } });
        let parameters =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        self.definitions.patch(name, &parameters, &Patch::Merge(patch)).await?;
        tracing::info!(crd = name, "added the conversion webhook to the CRD");
        Ok(())
    }

    /// Applies a CRD, unless the live CRD has changed since it was read.
    async fn update(&self, name: &str, live: &Value, mut own: Value) -> Result<()> {
        keep_metadata(live, &mut own);
        keep_stored_version(live, &mut own);
        let has_webhook = live["spec"]["conversion"]["strategy"] == "Webhook";
        if !has_webhook {
            convert(&mut own, &self.webhooks)?;
        }
        keep_conversion(live, &mut own);
        own["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        let applied = self.definitions.patch(name, &parameters, &Patch::Apply(&own)).await?;
        tracing::info!(crd = name, "updated the CRD");
        hand_over(&self.definitions, name, &applied).await?;
        if Decision::of(Some(&json_of(&applied)?), &own) == Decision::Update {
            tracing::warn!(
                crd = name,
                "the API server does not keep every field of the CRD: is it older than the CRD needs?"
            );
        }
        Ok(())
    }
}

/// Returns the name of a CRD.
fn name_of(crd: &Value) -> &str {
    crd["metadata"]["name"].as_str().unwrap_or_default()
}

/// Returns a JSON patch by which the fields that a create has set belong to an apply of the field manager.
fn adoption(created: &Value) -> Option<Value> {
    let mut managers = created["metadata"]["managedFields"].as_array()?.clone();
    let is_ours = |entry: &Value| {
        entry["manager"] == FIELD_MANAGER && entry["operation"] == "Update" && entry["subresource"].is_null()
    };
    managers.iter_mut().find(|entry| is_ours(entry))?["operation"] = "Apply".into();
    let version = &created["metadata"]["resourceVersion"];
    Some(json!([
        { "op": "test", "path": "/metadata/resourceVersion", "value": version },
        { "op": "replace", "path": "/metadata/managedFields", "value": managers },
    ]))
}

/// Returns whether a failure is permanent.
fn is_final(error: &Error) -> bool {
    let is_refused = error.is_forbidden() || error.status().is_some_and(|status| status.code == 400);
    error.is_terminal() || is_refused || (error.is_invalid() && !error.is_failed_test())
}

/// Adds advice to an error about missing rights.
fn explained(error: Error) -> Error {
    if !error.is_forbidden() {
        return error;
    }
    Error::terminal(format!(
        "{error}; an operator that applies its CRDs needs the rights create, get and patch on customresourcedefinitions: apply the \
         operator's manifests again, or turn this off with --apply-crds=false"
    ))
}

fn refusal(changes: &[BreakingChange]) -> String {
    format!(
        "this would break clients or stored objects, so that the CRD is not changed: {}. Make the change compatible, as a new version of \
         the kind or a new field; or, if no client and no object needs the old form, apply the CRD by hand before the operator starts: \
         `windlass install`, or the command `crds` of the operator and `kubectl apply --server-side --force-conflicts`",
        listed(changes)
    )
}

/// Lists changes without the name of the CRD.
fn listed(changes: &[BreakingChange]) -> String {
    let shown = changes.iter().take(NAMED).map(|change| {
        let text = change.to_string();
        let shown = text.strip_prefix(change.crd.as_str()).unwrap_or(&text);
        shown.trim_start_matches([':', ' ']).to_owned()
    });
    let mut shown: Vec<String> = shown.collect();
    if changes.len() > NAMED {
        shown.push(format!("and {} more", changes.len() - NAMED));
    }
    shown.join("; ")
}
