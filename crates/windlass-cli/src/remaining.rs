//! Waits until the objects of a CRD are gone, and names the objects that remain.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PartialObjectMeta, ResourceExt};
use tokio::time::{Instant, sleep};

use crate::error::{Advice, Result};
use crate::output::Output;
use crate::webhooks;

/// The limit for objects and a CRD to go.
const GONE_WITHIN: Duration = Duration::from_secs(120);

/// The time after which a line names the remaining objects.
const QUIET: Duration = Duration::from_secs(2);

/// The time between two lines about the remaining objects.
const REPORT: Duration = Duration::from_secs(15);

/// The time between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// How many objects a line names.
const NAMED: usize = 5;

/// The objects of an installed CRD that a command deletes.
pub(crate) struct Remaining<'a> {
    client: &'a Client,
    crd: &'a CustomResourceDefinition,
}

impl<'a> Remaining<'a> {
    pub(crate) fn of(client: &'a Client, crd: &'a CustomResourceDefinition) -> Self {
        Self { client, crd }
    }

    /// Deletes the CRD with all objects, and waits until both are gone. Prints a line at the end.
    ///
    /// The conversion of the CRD is removed only after the server has accepted the deletion: a CRD that stays keeps the conversion.
    pub(crate) async fn delete(&self, out: &mut Output) -> Result<()> {
        let name = self.crd.name_any();
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        match definitions.delete(&name, &DeleteParams::default()).await {
            Ok(_) => {
                webhooks::forget_conversion(self.client, self.crd).await?;
                self.gone(out).await?;
            }
            // Deleted in the meantime.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(format!("deleting {name}: {error}").into()),
        }
        out.line(format_args!("deleted {name}"));
        Ok(())
    }

    /// Waits until the CRD is gone. Names the remaining objects after two seconds.
    async fn gone(&self, out: &mut Output) -> Result<()> {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let name = self.crd.name_any();
        let mut wait = Wait::begin();
        while definitions.get_opt(&name).await?.is_some() {
            self.step(&mut wait, out).await?;
        }
        Ok(())
    }

    /// Waits until the CRD has no objects. Names the remaining objects after two seconds.
    pub(crate) async fn objects_gone(&self, out: &mut Output) -> Result<()> {
        let mut wait = Wait::begin();
        while !self.objects().list_metadata(&ListParams::default()).await?.items.is_empty() {
            self.step(&mut wait, out).await?;
        }
        Ok(())
    }

    async fn step(&self, wait: &mut Wait, out: &mut Output) -> Result<()> {
        let name = self.crd.name_any();
        if Instant::now() > wait.report_at {
            wait.waited_for = self.named().await;
            out.line(format_args!("{name} waits for {}", wait.waited_for));
            out.line(format_args!("  {}", self.hint()));
            wait.report_at = Instant::now() + REPORT;
        }
        if wait.begun.elapsed() > GONE_WITHIN {
            let seconds = GONE_WITHIN.as_secs();
            let message = format!("{name} is not gone after {seconds} s: it waits for {}", wait.waited_for);
            return Err(Advice::new(message, self.hint()));
        }
        sleep(LOOK).await;
        Ok(())
    }

    /// Says how finalizers are removed.
    fn hint(&self) -> String {
        let namespace = if self.crd.spec.scope == "Namespaced" { " --namespace NAMESPACE" } else { "" };
        format!(
            "the operator removes its finalizers: run it with `windlass run`. Without the operator: kubectl patch {} NAME{namespace} --type \
             merge --patch '{{\"metadata\":{{\"finalizers\":null}}}}'",
            self.crd.name_any()
        )
    }

    fn objects(&self) -> Api<DynamicObject> {
        let stored = self.crd.spec.versions.iter().find(|version| version.storage);
        webhooks::objects(
            self.client,
            self.crd,
            stored.map(|version| version.name.as_str()).unwrap_or_default(),
        )
    }

    /// Names the objects of the CRD, with the finalizers of each object.
    async fn named(&self) -> String {
        match self.objects().list_metadata(&ListParams::default()).await {
            Ok(list) => {
                let named: Vec<String> = list.items.iter().take(NAMED).map(with_finalizers).collect();
                let more = list.items.len().saturating_sub(NAMED);
                let more = if more > 0 { format!(", and {more} more") } else { String::new() };
                format!("objects: {}{more}", named.join(", "))
            }
            Err(error) => format!("objects that cannot be listed: {error}"),
        }
    }
}

/// The progress of a wait.
struct Wait {
    begun: Instant,
    report_at: Instant,
    waited_for: String,
}

impl Wait {
    fn begin() -> Self {
        let begun = Instant::now();
        Self { begun, report_at: begun + QUIET, waited_for: String::new() }
    }
}

fn with_finalizers(object: &PartialObjectMeta<DynamicObject>) -> String {
    let key = match object.namespace() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()),
        None => object.name_any(),
    };
    match object.finalizers() {
        [] => format!("{key} (no finalizers)"),
        finalizers => format!("{key} (finalizers {})", finalizers.join(", ")),
    }
}
