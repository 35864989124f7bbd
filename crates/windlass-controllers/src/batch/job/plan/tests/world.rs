//! Jobs whose controller stops in the middle of a reconcile.

use std::collections::BTreeSet;

use kube_core::ResourceExt;
use proptest::prelude::*;

use super::*;

/// The step of a reconcile after which the controller stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Crash {
    Pods,
    FirstStatus,
    /// After so many pods were released.
    Releases(usize),
}

#[derive(Clone, Copy, Debug)]
enum Happens {
    Succeeded(usize),
    Failed(usize),
    /// A user deletes a pod.
    Deleted(usize),
    /// The kubelet ends the pods that are terminating.
    Gone,
    Parallelism(i32),
    Suspended(bool),
    Reconcile(Option<Crash>),
}

fn crash() -> impl Strategy<Value = Crash> {
    prop_oneof![Just(Crash::Pods), Just(Crash::FirstStatus), (0..3_usize).prop_map(Crash::Releases),]
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        3 => (0..12_usize).prop_map(Happens::Succeeded),
        2 => (0..12_usize).prop_map(Happens::Failed),
        1 => (0..12_usize).prop_map(Happens::Deleted),
        1 => Just(Happens::Gone),
        1 => (0..5_i32).prop_map(Happens::Parallelism),
        1 => any::<bool>().prop_map(Happens::Suspended),
        6 => prop::option::of(crash()).prop_map(Happens::Reconcile),
    ]
}

/// A Job, the pods of the Job, and the pods that the controller has counted.
struct World {
    job: Job,
    pods: Vec<Arc<Pod>>,
    created: usize,
    back_off: BackOff,
    /// The pods that had succeeded when the controller released the pods, and the indexes of the pods.
    succeeded: usize,
    succeeded_indexes: BTreeSet<i32>,
    /// All other pods that were released.
    others: usize,
}

impl World {
    fn new(job: Job) -> Self {
        let (pods, succeeded_indexes) = (Vec::new(), BTreeSet::new());
        Self {
            job,
            pods,
            created: 0,
            back_off: BackOff::default(),
            succeeded: 0,
            succeeded_indexes,
            others: 0,
        }
    }

    fn change(&mut self, index: usize, change: impl FnOnce(&mut Pod)) {
        if let Some(place) = self.pods.get_mut(index) {
            let mut pod = Pod::clone(place);
            change(&mut pod);
            *place = Arc::new(pod);
        }
    }

    fn set_phase(&mut self, index: usize, phase: &str) {
        self.change(index, |pod| {
            if !pods::has_finished(pod) {
                pod.status.get_or_insert_default().phase = Some(phase.to_owned());
            }
        });
    }

    fn delete(&mut self, index: usize) {
        self.change(index, |pod| {
            pod.metadata.deletion_timestamp.get_or_insert(Time(now()));
        });
    }

    fn untrack(&mut self, index: usize) {
        self.change(index, |pod| pod.finalizers_mut().clear());
    }

    fn position(&self, pod: &Pod) -> usize {
        self.pods.iter().position(|other| other.uid() == pod.uid()).unwrap()
    }

    fn happen(&mut self, event: Happens) -> Result<(), TestCaseError> {
        let spec = self.job.spec.get_or_insert_default();
        match event {
            Happens::Succeeded(index) => self.set_phase(index, "Succeeded"),
            Happens::Failed(index) => self.set_phase(index, "Failed"),
            Happens::Deleted(index) => self.delete(index),
            Happens::Gone => self.end_terminating(),
            Happens::Parallelism(parallelism) => spec.parallelism = Some(parallelism),
            Happens::Suspended(suspend) => spec.suspend = Some(suspend),
            Happens::Reconcile(crash) => return self.reconcile(crash),
        }
        Ok(())
    }

    fn end_terminating(&mut self) {
        for index in 0..self.pods.len() {
            if pods::is_terminating(&self.pods[index]) {
                self.set_phase(index, "Failed");
            }
        }
        self.pods.retain(|pod| !pods::is_terminating(pod) || pod::is_tracked(pod));
    }

    fn status(&self) -> JobStatus {
        self.job.status.clone().unwrap_or_default()
    }

    fn active(&self) -> usize {
        self.pods.iter().filter(|pod| pods::is_active(pod)).count()
    }

    fn reconcile(&mut self, crash: Option<Crash>) -> Result<(), TestCaseError> {
        if conditions::finished(&self.job).is_some() {
            return Ok(());
        }
        let plan = plan(&self.job, &self.pods, self.back_off, later());
        self.back_off = plan.back_off;
        self.change_pods(&plan)?;
        if crash == Some(Crash::Pods) {
            return Ok(());
        }
        if !plan.release.is_empty() || plan.before.conditions != plan.after.conditions {
            self.write(plan.before.clone())?;
        }
        if crash == Some(Crash::FirstStatus) {
            return Ok(());
        }
        for (done, pod) in plan.release.iter().enumerate() {
            if crash == Some(Crash::Releases(done)) {
                return Ok(());
            }
            self.release(pod);
        }
        self.write(plan.after)
    }

    fn change_pods(&mut self, plan: &Plan) -> Result<(), TestCaseError> {
        for pod in &plan.discard {
            let index = self.position(pod);
            self.untrack(index);
            self.delete(index);
        }
        for pod in &plan.kill {
            self.delete(self.position(pod));
        }
        for new in &plan.create {
            self.created += 1;
            let mut pod = new.clone();
            let name = format!("p{}", self.created);
            (pod.metadata.name, pod.metadata.uid) = (Some(name.clone()), Some(name));
            pod.metadata.creation_timestamp = Some(Time(now()));
            self.pods.push(Arc::new(pod));
        }
        let spec = self.job.spec.clone().unwrap_or_default();
        let most = usize::try_from(spec.parallelism.unwrap()).unwrap();
        prop_assert!(plan.create.is_empty() || self.active() <= most, "{} pods of {most} run", self.active());
        prop_assert!(plan.create.is_empty() || spec.suspend != Some(true), "a suspended Job creates pods");
        Ok(())
    }

    fn release(&mut self, pod: &Pod) {
        let index = self.position(pod);
        let uncounted = self.status().uncounted_terminated_pods.unwrap_or_default();
        let is_failed =
            uncounted.failed.is_some_and(|failed| failed.contains(&pod.uid().unwrap_or_default()));
        match pods::phase(&self.pods[index]) {
            // A pod that a user deletes counts as failed, whatever the end of the pod.
            "Succeeded" if !is_failed => {
                self.succeeded += 1;
                self.succeeded_indexes.extend(pod::index(pod));
            }
            _ => self.others += 1,
        }
        self.untrack(index);
    }

    /// Writes the status. The status never counts a pod that the controller has not seen end.
    fn write(&mut self, status: JobStatus) -> Result<(), TestCaseError> {
        let uncounted = status.uncounted_terminated_pods.clone().unwrap_or_default();
        let waiting: usize = [uncounted.succeeded, uncounted.failed].iter().flatten().map(Vec::len).sum();
        let counted = status.succeeded.unwrap_or(0) + status.failed.unwrap_or(0);
        let counted = usize::try_from(counted).unwrap();
        prop_assert!(
            counted + waiting <= self.created,
            "{} pods counted of {}",
            counted + waiting,
            self.created
        );
        self.job.status = Some(status);
        Ok(())
    }

    /// Lets all pods succeed after each reconcile, until the Job has ended.
    fn settle(&mut self) -> Result<(), TestCaseError> {
        self.happen(Happens::Suspended(false))?;
        self.happen(Happens::Parallelism(3))?;
        for _ in 0..40 {
            self.reconcile(None)?;
            self.end_terminating();
            (0..self.pods.len()).for_each(|index| self.set_phase(index, "Succeeded"));
        }
        Ok(())
    }

    /// Checks that each pod was counted once.
    fn check_end(&self) -> Result<(), TestCaseError> {
        let status = self.status();
        let spec = self.job.spec.clone().unwrap_or_default();
        let succeeded = if spec.completion_mode.as_deref() == Some("Indexed") {
            let indexes = Indexes::parse(status.completed_indexes.as_deref().unwrap_or_default(), 100);
            prop_assert_eq!(indexes, Indexes::of_each(self.succeeded_indexes.iter().copied()));
            self.succeeded_indexes.len()
        } else {
            self.succeeded
        };
        prop_assert_eq!(usize::try_from(status.succeeded.unwrap_or(0)).unwrap(), succeeded);
        let failed = status.failed.unwrap_or(0);
        match conditions::finished(&self.job) {
            Some((conditions::FinishedAs::Complete, _)) => prop_assert!(status.succeeded >= spec.completions),
            Some(_) => {
                prop_assert_eq!(usize::try_from(failed).unwrap(), self.others);
                prop_assert!(failed > spec.backoff_limit.unwrap());
            }
            None => prop_assert!(false, "the Job has not ended: {status:?}"),
        }
        Ok(())
    }
}

/// A time after all back-offs.
fn later() -> Timestamp {
    "2026-01-02T00:00:00Z".parse().unwrap()
}

proptest! {
    #[test]
    fn each_pod_is_counted_once_even_if_the_controller_stops_in_between(
        is_indexed in any::<bool>(),
        completions in 1..6_i32,
        parallelism in 0..5_i32,
        limit in 0..5_i32,
        events in prop::collection::vec(happens(), 0..80),
    ) {
        let mode = if is_indexed { "Indexed" } else { "NonIndexed" };
        let spec = json!({
            "completions": completions, "parallelism": parallelism, "backoffLimit": limit, "completionMode": mode,
        });
        let mut world = World::new(job(spec, json!({})));
        for event in events {
            world.happen(event)?;
        }
        world.settle()?;
        world.check_end()?;
    }
}
