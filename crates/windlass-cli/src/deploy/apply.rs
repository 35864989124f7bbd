//! Applies objects by server-side apply.

use kube::Client;
use kube::api::{Patch, PatchParams};
use serde_json::Value;
use windlass_runtime::client::path_segment;

use super::kinds::{Kind, Resources, shown};
use super::{FIELD_MANAGER, NAMESPACE, PROJECT, Target};
use crate::error::{Advice, Result};
use crate::output::Output;
use crate::webhooks;

/// The effect of an apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Applies the objects.
    Apply,
    /// Asks the server for the effect of an apply, and lists the objects.
    DryRun,
    /// Asks the server for the effect of an apply, and shows the differences.
    Diff,
}

/// The effect on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Created,
    Changed,
    Unchanged,
}

/// The objects that have been applied.
#[derive(Clone, Debug, Default)]
pub(crate) struct Applied {
    /// The kind, the namespace and the name of each object.
    pub(super) keys: Vec<(Kind, Option<String>, String)>,
    unchanged: usize,
    changed: usize,
}

/// Applies objects to a cluster.
pub(crate) struct Applier<'a> {
    client: Client,
    resources: Resources,
    target: &'a Target,
    mode: Mode,
}

impl<'a> Applier<'a> {
    pub(crate) fn new(client: &Client, target: &'a Target, mode: Mode) -> Self {
        Self { client: client.clone(), resources: Resources::new(client), target, mode }
    }

    /// Applies the objects in order.
    pub(crate) async fn apply(mut self, objects: &[Value], out: &mut Output) -> Result<Applied> {
        let mut applied = Applied::default();
        for object in objects {
            let kind = Kind::of(object);
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            if kind.kind == "CustomResourceDefinition" && self.mode == Mode::Apply {
                webhooks::replace_refused(&self.client, object, out).await?;
                windlass_dev::install_definitions(&self.client, std::slice::from_ref(object)).await?;
                out.line(format_args!("installed {}", shown(&kind, &name)));
                continue;
            }
            let Some(outcome) = self.one(&kind, &name, object, out).await? else { continue };
            match outcome {
                Outcome::Unchanged => applied.unchanged += 1,
                Outcome::Created | Outcome::Changed => applied.changed += 1,
            }
            if self.mode != Mode::Diff && outcome != Outcome::Unchanged {
                let would = if self.mode == Mode::DryRun { "would be " } else { "" };
                let word = if outcome == Outcome::Created { "created" } else { "changed" };
                out.line(format_args!("{would}{word}: {}", shown(&kind, &name)));
            }
            let namespace = object["metadata"]["namespace"].as_str().map(ToOwned::to_owned);
            applied.keys.push((kind, namespace, name));
        }
        if self.mode != Mode::Diff {
            out.line(format_args!("{} objects changed, {} unchanged", applied.changed, applied.unchanged));
        }
        Ok(applied)
    }

    /// Applies an object. Returns `None` for an existing namespace that the user has named, because the
    /// namespace may have other users.
    async fn one(
        &mut self,
        kind: &Kind,
        name: &str,
        object: &Value,
        out: &mut Output,
    ) -> Result<Option<Outcome>> {
        let shown = shown(kind, name);
        let Some(resource) = self.resources.get(kind).await? else { return Err(unserved(&shown, kind)) };
        let objects = resource.objects(&self.client, object["metadata"]["namespace"].as_str());
        let before = objects
            .get_opt(&path_segment(name)?)
            .await
            .map_err(|error| format!("reading {shown}: {error}"))?;
        let before = before.map(serde_json::to_value).transpose()?;
        if let Some(before) = &before {
            let owner = &before["metadata"]["labels"][PROJECT];
            if owner.as_str().is_some_and(|owner| owner != self.target.project) {
                return Err(Advice::new(
                    format!("{shown} belongs to the deployed project {owner}"),
                    "undeploy that project, or give this project another name in windlass.toml",
                ));
            }
            let deployment = before["metadata"]["labels"][NAMESPACE].as_str();
            if let Some(other) = deployment.filter(|namespace| *namespace != self.target.namespace) {
                out.line(format_args!("note: {shown} was an object of the deployment in namespace {other}"));
            }
            if self.target.is_namespace(object) && self.target.is_named && owner.is_null() {
                return Ok(None);
            }
        }
        let is_crd = kind.kind == "CustomResourceDefinition";
        let mut parameters = PatchParams::apply(if is_crd { "kubectl" } else { FIELD_MANAGER }).force();
        if self.mode != Mode::Apply {
            parameters = parameters.dry_run();
        }
        let after = match objects.patch(&path_segment(name)?, &parameters, &Patch::Apply(object)).await {
            Ok(after) => serde_json::to_value(after)?,
            // A dry run does not make the namespace of the other objects.
            Err(kube::Error::Api(status)) if status.code == 404 && self.mode != Mode::Apply => object.clone(),
            Err(error) => return Err(format!("applying {shown}: {error}").into()),
        };
        if self.mode == Mode::Diff {
            let text = difference(&shown, before.as_ref(), &after);
            if !text.is_empty() {
                out.line(text.trim_end());
            }
        }
        Ok(Some(outcome(before.as_ref(), &after)))
    }
}

fn unserved(shown: &str, kind: &Kind) -> crate::error::Error {
    let owner = match kind.group.as_str() {
        "cert-manager.io" => {
            "install cert-manager, or let the operator issue the certificate (SelfIssued in src/setup.rs)"
        }
        "monitoring.coreos.com" => {
            "install the Prometheus operator, or remove ../prometheus from config/default/kustomization.yaml"
        }
        _ => "install the CRD of the kind",
    };
    Advice::new(format!("the cluster does not serve the kind {kind} of {shown}"), owner)
}

/// Compares an object before and after an apply. Clusters answer a dry run with the resource version of the live object.
fn outcome(before: Option<&Value>, after: &Value) -> Outcome {
    match before {
        None => Outcome::Created,
        Some(before) if shape(before) == shape(after) => Outcome::Unchanged,
        Some(_) => Outcome::Changed,
    }
}

/// Returns an object without the fields that the server sets.
fn shape(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        let of_server =
            ["managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink"];
        of_server.iter().for_each(|field| drop(metadata.remove(*field)));
    }
    object
}

/// Returns the differences of an object as a unified diff. The values of a Secret are left out.
fn difference(shown: &str, before: Option<&Value>, after: &Value) -> String {
    if after["kind"] == "Secret" {
        return String::new();
    }
    let text = |object: &Value| serde_saphyr::to_string(&shape(object)).unwrap_or_default();
    let (old, new) = (before.map(text).unwrap_or_default(), text(after));
    if old == new {
        return String::new();
    }
    let mut options = diffy::DiffOptions::new();
    options.set_original_filename(if before.is_some() {
        format!("live/{shown}")
    } else {
        "/dev/null".to_owned()
    });
    options.set_modified_filename(format!("deployed/{shown}"));
    options.create_patch(&old, &new).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_the_server_are_no_change() {
        let live = json!({ "metadata": { "name": "a", "resourceVersion": "1", "managedFields": [] }, "spec": 1, "status": 1 });
        let same = json!({ "metadata": { "name": "a", "resourceVersion": "2", "generation": 2 }, "spec": 1 });
        assert_eq!(outcome(Some(&live), &same), Outcome::Unchanged);
        let other = json!({ "metadata": { "name": "a" }, "spec": 2 });
        assert_eq!(outcome(Some(&live), &other), Outcome::Changed);
        assert_eq!(outcome(None, &other), Outcome::Created);
        let text = difference("a/b", Some(&live), &other);
        assert!(text.contains("-spec: 1\n+spec: 2\n"), "{text}");
        assert_eq!(difference("a/b", Some(&live), &same), "");
    }
}
