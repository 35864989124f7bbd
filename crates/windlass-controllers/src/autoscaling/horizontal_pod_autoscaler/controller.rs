//! Reads the metrics and sizes of targets, and changes the sizes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::autoscaling::v2::{
    CrossVersionObjectReference, HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec,
};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube_core::ResourceExt;
use windlass_runtime::{Action, Context, Controller, Error, ObjectKey, Reconciler, Result};

use super::history::History;
use super::metrics::{Annotations, Metrics};
use super::plan::{Input, Plan, Rescale, plan};
use super::scale::{Target, annotations_of};
use crate::component::ServerVersion;
use crate::pod_control::message_of;
use crate::{labels, wake};

/// How often the metrics of an autoscaler are read.
const PERIOD: SignedDuration = SignedDuration::from_secs(15);

/// Returns the controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<HorizontalPodAutoscaler>(Autoscalers::default())
        .named("horizontal-pod-autoscaler")
        .reads::<Pod>()
        .max_concurrent_reconciles(2)
}

/// The controller, with the state of each autoscaler.
#[derive(Default)]
struct Autoscalers {
    known: Mutex<BTreeMap<ObjectKey, Known>>,
    version: ServerVersion,
}

/// The state of an autoscaler beside the object.
#[derive(Clone, Debug, Default)]
struct Known {
    uid: String,
    spec: HorizontalPodAutoscalerSpec,
    annotations: Annotations,
    read_at: Option<Timestamp>,
    history: History,
    /// The selector of the target's pods. `None`: the selector is not known yet.
    selector: Option<LabelSelector>,
}

impl Reconciler<HorizontalPodAutoscaler> for Autoscalers {
    type Error = Error;

    async fn reconcile(&self, key: ObjectKey, cx: Context<HorizontalPodAutoscaler>) -> Result<Action> {
        let Some(autoscaler) = cx.get(&key)? else {
            self.known().remove(&key);
            return Ok(Action::done());
        };
        let now = cx.now();
        let mut known = self.of(&key, &autoscaler);
        let due = known.read_at.and_then(|read_at| read_at.checked_add(PERIOD).ok());
        if due.is_some_and(|due| due > now) {
            return Ok(wake::at(due, now));
        }
        known.read_at = Some(now);
        let outcome = self.scale(&key, &autoscaler, &mut known, &cx).await;
        self.known().insert(key, known);
        outcome?;
        Ok(wake::at(now.checked_add(PERIOD).ok(), now))
    }
}

impl Autoscalers {
    fn known(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state of an autoscaler. After a change of the spec or of a metric, the metrics are read at once.
    fn of(&self, key: &ObjectKey, autoscaler: &HorizontalPodAutoscaler) -> Known {
        let uid = autoscaler.uid().unwrap_or_default();
        let mut known = self.known().get(key).cloned().filter(|known| known.uid == uid).unwrap_or_default();
        known.uid = uid;
        if known.spec != autoscaler.spec || known.annotations != *autoscaler.annotations() {
            known.read_at = None;
            known.spec.clone_from(&autoscaler.spec);
            known.annotations.clone_from(autoscaler.annotations());
        }
        known
    }

    /// Performs a step of an autoscaler.
    async fn scale(
        &self,
        key: &ObjectKey,
        autoscaler: &HorizontalPodAutoscaler,
        known: &mut Known,
        cx: &Context<HorizontalPodAutoscaler>,
    ) -> Result<()> {
        let namespace = autoscaler.namespace().unwrap_or_default();
        let spec = &autoscaler.spec;
        let mut target = match Target::read(cx.client(), &namespace, &spec.scale_target_ref).await {
            Ok(target) => target,
            Err(why) => {
                return report(autoscaler, Plan::without_target(autoscaler, &why, cx.now()), cx).await;
            }
        };
        let size = target.size();
        let (mut metrics, mut selector_error) = (Metrics::default(), None);
        match select(&size.selector) {
            Ok(selector) => {
                known.selector = Some(selector.clone());
                metrics.pods = pods(&namespace, &selector, cx)?;
                let rivals = self.rivals(key, &metrics.pods);
                if !rivals.is_empty() {
                    selector_error = Some(ambiguous(&size.selector, key, rivals));
                }
            }
            Err(error) => selector_error = Some(error),
        }
        metrics.target = target.annotations().await?;
        metrics.autoscaler.clone_from(autoscaler.annotations());
        for object in described_objects(spec) {
            let found = annotations_of(cx.client(), &namespace, object).await;
            metrics.objects.insert((object.kind.clone(), object.name.clone()), found);
        }
        let input = Input {
            autoscaler,
            size: &size,
            selector_error: selector_error.as_ref(),
            metrics: &metrics,
            is_1_37: self.version.minor(cx.client()).await? >= 37,
            now: cx.now(),
        };
        let mut plan = plan(input, &mut known.history);
        if let Some(rescale) = plan.rescale.take() {
            self.resize(autoscaler, &mut target, &rescale, &mut plan, known, cx).await?;
        }
        report(autoscaler, plan, cx).await
    }

    async fn resize(
        &self,
        autoscaler: &HorizontalPodAutoscaler,
        target: &mut Target,
        rescale: &Rescale,
        plan: &mut Plan,
        known: &mut Known,
        cx: &Context<HorizontalPodAutoscaler>,
    ) -> Result<()> {
        let Rescale { from, to, reason } = rescale;
        let is_1_37 = self.version.minor(cx.client()).await? >= 37;
        let size = format!("New size: {to}; reason: {reason}");
        match target.resize(*to).await {
            Ok(()) => {
                cx.recorder().normal(autoscaler, "SuccessfulRescale", size);
                known.history.rescaled(*from, *to, cx.now());
                plan.rescaled(*to, cx.now());
                if is_1_37 {
                    plan.note_zero(&autoscaler.spec, rescale, cx.now());
                }
            }
            Err(error) => {
                let why = message_of(&error);
                cx.recorder().warning(autoscaler, "FailedRescale", format!("{size}; error: {why}"));
                let desired = autoscaler.status.as_ref().map_or(0, |status| status.desired_replicas);
                plan.not_rescaled(desired, &why, cx.now());
            }
        }
        Ok(())
    }

    /// Returns the other autoscalers whose targets select one of the pods.
    fn rivals(&self, key: &ObjectKey, pods: &[Arc<Pod>]) -> Vec<ObjectKey> {
        let selects = |known: &Known| {
            let selector = known.selector.as_ref();
            selector.is_some_and(|selector| {
                pods.iter().any(|pod| labels::selects(selector, pod.metadata.labels.as_ref()))
            })
        };
        let known = self.known();
        let others = known.iter().filter(|(other, _)| *other != key && other.namespace() == key.namespace());
        others.filter(|(_, known)| selects(known)).map(|(other, _)| other.clone()).collect()
    }
}

/// Parses the selector of a target.
fn select(selector: &str) -> std::result::Result<LabelSelector, (&'static str, String)> {
    if selector.is_empty() {
        return Err(("SelectorRequired", "selector is required".to_owned()));
    }
    let wrong = |why: String| {
        let message = "couldn't convert selector into a corresponding internal selector object";
        ("InvalidSelector", format!("{message}: {why}"))
    };
    labels::parse(selector).map_err(wrong)
}

fn ambiguous(selector: &str, key: &ObjectKey, mut rivals: Vec<ObjectKey>) -> (&'static str, String) {
    rivals.push(key.clone());
    rivals.sort();
    let shown =
        rivals.iter().map(|key| format!("{{{} {}}}", key.name(), key.namespace().unwrap_or_default()));
    let shown = shown.collect::<Vec<_>>().join(" ");
    let message = format!("pods by selector {selector} are controlled by multiple HPAs: [{shown}]");
    ("AmbiguousSelector", message)
}

fn pods(
    namespace: &str,
    selector: &LabelSelector,
    cx: &Context<HorizontalPodAutoscaler>,
) -> Result<Vec<Arc<Pod>>> {
    let all = cx.lister::<Pod>()?.namespace(namespace).all()?.complete()?;
    Ok(all.into_iter().filter(|pod| labels::selects(selector, pod.metadata.labels.as_ref())).collect())
}

fn described_objects(
    spec: &HorizontalPodAutoscalerSpec,
) -> impl Iterator<Item = &CrossVersionObjectReference> {
    let metrics = spec.metrics.iter().flatten();
    metrics.filter_map(|metric| metric.object.as_ref()).map(|object| &object.described_object)
}

/// Records the warnings and writes the status.
async fn report(
    autoscaler: &HorizontalPodAutoscaler,
    plan: Plan,
    cx: &Context<HorizontalPodAutoscaler>,
) -> Result<()> {
    for (reason, message) in &plan.warnings {
        cx.recorder().warning(autoscaler, reason, message.as_str());
    }
    match cx.update_status(autoscaler, plan.status).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}
