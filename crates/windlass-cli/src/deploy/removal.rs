//! Removes a deployed project: the custom resources while the operator runs, then all other objects.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, ResourceExt};
use serde_json::Value;
use tokio::time::{Instant, sleep};
use windlass_runtime::client::path_segment;

use super::kinds::{Kind, Resources};
use super::prune::{Found, deployed_kinds, labelled};
use super::{NAMESPACE, PROJECT, Target};
use crate::error::{Advice, Result};
use crate::output::Output;
use crate::remaining::Remaining;
use crate::webhooks;

/// The limit for a namespace to go.
const GONE_WITHIN: Duration = Duration::from_secs(120);

/// The time until a line names the objects that a namespace waits for.
const REPORT: Duration = Duration::from_secs(5);

/// The time between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// The objects of a project in a cluster.
pub(crate) struct Removal<'a> {
    client: &'a Client,
    target: &'a Target,
}

impl<'a> Removal<'a> {
    pub(crate) fn new(client: &'a Client, target: &'a Target) -> Self {
        Self { client, target }
    }

    /// Returns the installed CRDs of the project.
    pub(crate) async fn definitions(&self, crds: &[&Value]) -> Result<Vec<CustomResourceDefinition>> {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let mut installed = Vec::new();
        for crd in crds {
            let name = crd["metadata"]["name"].as_str().unwrap_or_default();
            installed.extend(definitions.get_opt(name).await?);
        }
        Ok(installed)
    }

    /// Returns the namespaces of the other deployments of the project, sorted.
    pub(crate) async fn others(&self) -> Result<BTreeSet<String>> {
        let deployments: Api<Deployment> = Api::all(self.client.clone());
        let selected = ListParams::default().labels(&self.target.selector());
        let others = deployments.list_metadata(&selected).await?.into_iter();
        let others = others.filter(|deployment| !self.target.owns(deployment));
        Ok(others
            .filter_map(|deployment| deployment.labels().get(NAMESPACE).cloned().or(deployment.namespace()))
            .collect())
    }

    /// Deletes the objects of CRDs, and waits until the finalizers are done. The operator still runs.
    pub(crate) async fn delete_custom_resources(
        &self,
        definitions: &[CustomResourceDefinition],
        out: &mut Output,
    ) -> Result<()> {
        for crd in definitions {
            let name = crd.name_any();
            let mut count = 0;
            for object in stored(self.client, crd).list_metadata(&ListParams::default()).await? {
                let objects = stored_in(self.client, crd, object.namespace().as_deref());
                match objects.delete(&path_segment(&object.name_any())?, &DeleteParams::default()).await {
                    Err(kube::Error::Api(status)) if status.code == 404 => {}
                    Err(error) => {
                        return Err(format!("deleting {name} {}: {error}", object.name_any()).into());
                    }
                    Ok(_) => count += 1,
                }
            }
            if count > 0 {
                Remaining::of(self.client, crd).objects_gone(out).await?;
                out.line(format_args!("deleted {count} objects of {name}"));
            }
        }
        Ok(())
    }

    /// Returns the objects of the deployment in the order of a deployment, without CRDs.
    pub(crate) async fn objects(&self, manifests: &[Value]) -> Result<Vec<Found>> {
        let kinds = deployed_kinds(self.client, self.target).await?;
        let mut found = self.of_manifests(manifests).await?;
        let known: BTreeSet<(String, String, Option<String>)> = found.iter().map(key).collect();
        let further = labelled(self.client, self.target, &kinds).await?;
        found.extend(further.into_iter().filter(|found| !known.contains(&key(found))));
        Ok(found)
    }

    /// Deletes deployed objects in the reverse order of a deployment.
    pub(crate) async fn delete_objects(&self, found: &[Found], out: &mut Output) -> Result<()> {
        for object in found.iter().rev().filter(|found| found.kind.is_prunable()) {
            object.delete(self.client).await?;
            out.line(format_args!("deleted {}", object.shown()));
        }
        for namespace in found.iter().filter(|found| found.kind.kind == "Namespace") {
            namespace.delete(self.client).await?;
            self.namespace_gone(&namespace.name, out).await?;
            out.line(format_args!("deleted {}", namespace.shown()));
        }
        Ok(())
    }

    /// Returns the objects of the manifests that are in the cluster. A namespace that a person has named counts only if a deployment has
    /// made the namespace.
    async fn of_manifests(&self, objects: &[Value]) -> Result<Vec<Found>> {
        let mut resources = Resources::new(self.client);
        let mut all = Vec::new();
        for object in objects {
            let kind = Kind::of(object);
            if kind.kind == "CustomResourceDefinition" {
                continue;
            }
            let Some(resource) = resources.get(&kind).await? else { continue };
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let namespace = object["metadata"]["namespace"].as_str().map(ToOwned::to_owned);
            let live =
                resource.objects(self.client, namespace.as_deref()).get_opt(&path_segment(&name)?).await?;
            let Some(live) = live else { continue };
            let owner = live.labels().get(PROJECT).map(String::as_str);
            // Another deployment may have applied a cluster-scoped object of the same name later.
            if live.labels().get(NAMESPACE).is_some_and(|namespace| *namespace != self.target.namespace) {
                continue;
            }
            let is_ours = owner == Some(self.target.project.as_str());
            let may_be_foreign = owner.is_some() || self.target.is_named && self.target.is_namespace(object);
            if is_ours || !may_be_foreign {
                all.push(Found { kind, resource, namespace, name });
            }
        }
        Ok(all)
    }

    async fn namespace_gone(&self, name: &str, out: &mut Output) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let begun = Instant::now();
        let mut report_at = begun + REPORT;
        while let Some(namespace) = namespaces.get_opt(name).await? {
            if Instant::now() > report_at {
                out.line(format_args!("namespace/{name} waits: {}", reason(&namespace)));
                report_at = Instant::now() + REPORT * 3;
            }
            if begun.elapsed() > GONE_WITHIN {
                let message = format!(
                    "namespace/{name} is not gone after {} s: {}",
                    GONE_WITHIN.as_secs(),
                    reason(&namespace)
                );
                return Err(Advice::new(message, "remove what the namespace waits for, and undeploy again"));
            }
            sleep(LOOK).await;
        }
        Ok(())
    }
}

fn key(found: &Found) -> (String, String, Option<String>) {
    (found.kind.kind.clone(), found.name.clone(), found.namespace.clone())
}

/// Returns the messages of a terminating namespace.
fn reason(namespace: &Namespace) -> String {
    let conditions = namespace.status.as_ref().and_then(|status| status.conditions.as_ref());
    let waiting = conditions.into_iter().flatten().filter(|condition| condition.status == "True");
    let messages: Vec<String> = waiting.filter_map(|condition| condition.message.clone()).collect();
    if messages.is_empty() { "its objects are being deleted".to_owned() } else { messages.join("; ") }
}

/// Counts the objects of CRDs.
pub(crate) async fn count_objects(
    client: &Client,
    definitions: &[CustomResourceDefinition],
) -> Result<usize> {
    let mut count = 0;
    for crd in definitions {
        count += stored(client, crd).list_metadata(&ListParams::default()).await?.items.len();
    }
    Ok(count)
}

/// Returns the objects of a CRD in the stored version.
fn stored(client: &Client, crd: &CustomResourceDefinition) -> Api<kube::api::DynamicObject> {
    stored_in(client, crd, None)
}

fn stored_in(
    client: &Client,
    crd: &CustomResourceDefinition,
    namespace: Option<&str>,
) -> Api<kube::api::DynamicObject> {
    let stored = crd.spec.versions.iter().find(|version| version.storage);
    let resource = webhooks::resource(crd, stored.map(|version| version.name.as_str()).unwrap_or_default());
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}
