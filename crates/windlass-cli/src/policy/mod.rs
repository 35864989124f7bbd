//! A trial of admission policies: requests to an API server in this process, and the steps of the policies.

mod files;
mod report;
mod request;

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::Client;
use kube::api::PatchParams;
use parking_lot::Mutex;
use serde_json::{Value, json};
use windlass_apiserver::{Identity, PolicyStep, Server};
use windlass_controllers::type_warnings;
use windlass_runtime::client::in_process;

pub(crate) use self::files::Files;
use self::files::{kind, name};
use self::request::{Reply, Target};
use crate::error::Result;
use crate::output::Output;

/// The field manager of the objects of the files.
const MANAGER: &str = "windlass-policy";

/// The kind of the requests of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A creation, or an update of an object that is there.
    Write,
    Delete,
}

/// A server with the objects of the files, before the policies.
pub(crate) struct Trial {
    files: Files,
    operation: Operation,
    user: Identity,
    /// The client of an administrator.
    admin: Client,
    /// The client of the user.
    client: Client,
    steps: Arc<Mutex<Vec<PolicyStep>>>,
}

/// The number of objects, and of objects that were denied.
pub(crate) struct Verdicts {
    pub(crate) tried: usize,
    pub(crate) denied: usize,
}

impl Trial {
    /// Starts a server, and stores the objects that are there before the requests.
    ///
    /// # Errors
    /// The server refuses an object of the files.
    pub(crate) async fn prepare(files: Files, user: Identity, operation: Operation) -> Result<Self> {
        let steps: Arc<Mutex<Vec<PolicyStep>>> = Arc::default();
        let seen = Arc::clone(&steps);
        let server = Server::builder().policy_observer(move |step| seen.lock().push(step.clone())).build()?;
        let admin = in_process(server.service(Identity::admin()))?;
        let client = in_process(server.service(user.clone()))?;
        let trial = Self { files, operation, user, admin, client, steps };
        trial.store_surroundings().await?;
        Ok(trial)
    }

    async fn store_surroundings(&self) -> Result<()> {
        let deleted = if self.operation == Operation::Delete { &self.files.objects[..] } else { &[] };
        let (first, later): (Vec<&Value>, Vec<&Value>) = self
            .files
            .surroundings
            .iter()
            .chain(deleted)
            .partition(|object| ["CustomResourceDefinition", "Namespace"].contains(&kind(object)));
        for object in first {
            self.store(object).await?;
        }
        for namespace in self.namespaces() {
            self.store(
                &json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } }),
            )
            .await?;
        }
        for object in later {
            self.store(object).await?;
        }
        Ok(())
    }

    /// Returns the namespaces of all objects, without the namespaces in the files.
    fn namespaces(&self) -> BTreeSet<&str> {
        let Files { surroundings, objects, .. } = &self.files;
        let known = |namespace: &&str| {
            surroundings.iter().any(|object| kind(object) == "Namespace" && name(object) == *namespace)
        };
        let objects = surroundings.iter().chain(objects);
        let used = objects.filter_map(|object| object["metadata"]["namespace"].as_str());
        used.filter(|namespace| !known(namespace)).collect()
    }

    async fn store(&self, object: &Value) -> Result<()> {
        windlass_dev::apply_manifest(&self.admin, object, &PatchParams::apply(MANAGER).force()).await?;
        Ok(())
    }

    /// Sends the requests, and prints the steps of the policies and the replies.
    ///
    /// # Errors
    /// The server refuses a policy, or does not know the kind of an object.
    pub(crate) async fn run(self, out: &mut Output) -> Result<Verdicts> {
        let mut targets = Vec::with_capacity(self.files.objects.len());
        for object in &self.files.objects {
            let target = Target::find(&self.admin, object, self.operation).await?;
            self.permit(&target).await?;
            // The reply without policies shows the changes of policies.
            let before = target.send(&self.client).await?;
            targets.push((target, before));
        }
        for policy in &self.files.policies {
            self.store(policy).await?;
        }
        for unbound in &self.files.unbound {
            out.line(format_args!("{unbound} has no binding in the files, and is tried on all requests"));
        }
        self.check_types(out).await?;
        let mut denied = 0;
        for (target, before) in &targets {
            out.line(format_args!("{target} ({}, as {})", target.verb(), self.user.name()));
            self.steps.lock().clear();
            let Reply::Admitted { object, .. } = before else {
                out.line(format_args!("  refused without policies: {}", before.refusal()));
                denied += 1;
                continue;
            };
            let reply = target.send(&self.client).await?;
            report::steps(&self.files, &self.steps.lock(), out);
            report::reply(object, &reply, out);
            denied += usize::from(matches!(reply, Reply::Refused { .. }));
        }
        Ok(Verdicts { tried: targets.len(), denied })
    }

    /// Prints the warnings that the controller of a cluster writes into the status of the policies.
    async fn check_types(&self, out: &mut Output) -> Result<()> {
        for policy in self.files.validating() {
            let typed: ValidatingAdmissionPolicy = serde_json::from_value(policy.clone())
                .map_err(|error| format!("{}: {error}", title(policy)))?;
            for warning in type_warnings(&typed.spec.unwrap_or_default(), &self.admin).await? {
                report::type_warning(name(policy), &warning, out);
            }
        }
        Ok(())
    }

    /// Permits the request of the trial to the user, and nothing else.
    async fn permit(&self, target: &Target) -> Result<()> {
        if self.user.is_in(Identity::MASTERS) {
            return Ok(());
        }
        let name = format!("{MANAGER}:{}.{}", target.resource(), target.group());
        let rule = json!({
            "apiGroups": [target.group()], "resources": [target.resource()], "verbs": ["create", "update", "patch", "delete"],
        });
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": name }, "rules": [rule],
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": self.user.name() }],
        });
        self.store(&role).await?;
        self.store(&binding).await
    }
}

/// Returns the kind and the name of an object for a message.
fn title(object: &Value) -> String {
    let metadata = &object["metadata"];
    let text = |field: &str| metadata[field].as_str().unwrap_or_default();
    let name = if name(object).is_empty() { text("generateName") } else { name(object) };
    match text("namespace") {
        "" => format!("{} {name}", kind(object)),
        namespace => format!("{} {namespace}/{name}", kind(object)),
    }
}
