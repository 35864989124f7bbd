//! Keeps the Deployment of each Foo.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{Container, PodSpec, PodTemplateSpec},
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::api::ObjectMeta;
use windlass::{RateLimiter, prelude::*};

use crate::{Foo, FooStatus};

/// The name of the controller: the source of Events and the field manager of writes.
pub const AGENT_NAME: &str = "sample-controller";

/// Reasons and messages of Events, as in the original.
const SUCCESS_SYNCED: &str = "Synced";
const MESSAGE_RESOURCE_SYNCED: &str = "Foo synced successfully";
const ERR_RESOURCE_EXISTS: &str = "ErrResourceExists";

/// How often every Foo is reconciled without a change.
const RESYNC: Duration = Duration::from_secs(30);

/// Returns the controller, with the original's name, workers, resync period and back-off.
pub fn controller() -> Controller {
    let back_off = RateLimiter::exponential(Duration::from_millis(5), Duration::from_secs(1000));
    Controller::of::<Foo>(reconcile)
        .named(AGENT_NAME)
        .resync(RESYNC)
        .owns::<Deployment>()
        .max_concurrent_reconciles(2)
        .rate_limiter(back_off.token_bucket(50.0, 300))
        .needs(Permission::to::<Deployment>([Verb::Create, Verb::Update]))
        .needs(Permission::status_of::<Foo>())
        // Without the status subresource, the status is written by an update of the Foo.
        .needs(Permission::to::<Foo>([Verb::Update]).optional())
}

async fn reconcile(key: ObjectKey, cx: Context<Foo>) -> Result<Action> {
    // The garbage collector deletes the Deployment of a Foo that is gone.
    let Some(parent) = cx.get(&key)? else { return Ok(Action::done()) };
    let name = parent.spec.deployment_name.as_str();
    if name.is_empty() {
        // A retry would not help: a change of the Foo triggers a reconcile.
        return Err(Error::terminal("Deployment name missing from object reference"));
    }

    let existing = cx.lister::<Deployment>()?.get(&ObjectKey::new(key.namespace(), name))?;
    let mut deployment = match existing {
        Some(deployment) => Deployment::clone(&deployment),
        None => cx.create(deployment_for(&parent)?).await?,
    };
    if deployment.controller().map(|owner| &owner.uid) != parent.metadata.uid.as_ref() {
        let message = format!("Resource {name:?} already exists and is not managed by Foo");
        cx.recorder().warning(&*parent, ERR_RESOURCE_EXISTS, &message);
        return Err(Error::other(message));
    }
    let replicas = deployment.spec.as_ref().and_then(|spec| spec.replicas);
    if parent.spec.replicas.is_some() && parent.spec.replicas != replicas {
        // No resource version: this controller decides about the whole Deployment.
        deployment = cx.update(&deployment_for(&parent)?).await?;
    }

    report(&cx, &parent, &deployment).await?;
    cx.recorder().normal(&*parent, SUCCESS_SYNCED, MESSAGE_RESOURCE_SYNCED);
    Ok(Action::done())
}

/// Writes the status, with either variant of the CRD.
async fn report(cx: &Context<Foo>, parent: &Foo, deployment: &Deployment) -> Result<()> {
    let available = deployment.status.as_ref().and_then(|status| status.available_replicas);
    let status = FooStatus { available_replicas: available.unwrap_or(0) };
    match cx.update_status(parent, &status).await {
        // The CRD has no status subresource: the status is a field like any other.
        Err(error) if error.is_not_found() => {}
        updated => return updated.map(drop),
    }
    match cx.update(&Foo { status: Some(status), ..Foo::clone(parent) }).await {
        // The Foo was deleted meanwhile.
        Err(error) if error.is_not_found() => Ok(()),
        updated => updated.map(drop),
    }
}

fn deployment_for(parent: &Foo) -> Result<Deployment> {
    let labels: BTreeMap<String, String> =
        [("app".to_owned(), "nginx".to_owned()), ("controller".to_owned(), parent.name_any())].into();
    let container = Container {
        name: "nginx".to_owned(),
        image: Some("nginx:latest".to_owned()),
        ..Container::default()
    };
    let deployment = Deployment {
        metadata: ObjectMeta {
            name: Some(parent.spec.deployment_name.clone()),
            namespace: parent.namespace(),
            ..ObjectMeta::default()
        },
        spec: Some(DeploymentSpec {
            replicas: parent.spec.replicas,
            selector: LabelSelector { match_labels: Some(labels.clone()), ..LabelSelector::default() },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
                spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
            },
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    };
    deployment.controlled_by(parent)
}
