//! The steps of the tour: the action and the expected result of each.

mod run;

use std::collections::BTreeSet;

pub(super) use self::run::run;
use super::narrator::pods;

/// The state of the cluster that the tour checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ClusterState {
    /// The status of the CustomPod; `None` if there is no such object.
    pub parent: Option<ReportedStatus>,
    /// The names of the pods that the CustomPod owns, and whether each runs.
    pub pods: Vec<(String, bool)>,
}

/// `status.replicas` and `status.podNames` of the CustomPod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReportedStatus {
    pub replicas: u32,
    pub pod_names: BTreeSet<String>,
}

/// The action of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Creates the CustomPod.
    Create { replicas: u32 },
    /// Changes `spec.replicas`.
    Scale { replicas: u32 },
    /// Deletes one pod.
    DeletePod,
    /// Deletes the CustomPod.
    DeleteParent,
}

/// The expected result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// This number of pods run, and the status lists exactly these pods.
    Running(usize),
    /// Like `Running`, and none of these pods exists any more.
    RunningWithout(usize, BTreeSet<String>),
    /// The CustomPod and its pods are gone.
    AllGone,
}

/// A step of the tour.
#[derive(Clone, Copy, Debug)]
pub(super) struct TourStep {
    /// The equivalent kubectl command.
    pub command: &'static str,
    pub action: Action,
}

/// The name of the CustomPod that the tour and the demo create.
pub(super) const SAMPLE: &str = "custompod-sample";

/// The steps of the tour, in order.
pub(super) const STEPS: [TourStep; 5] = [
    TourStep {
        command: "kubectl apply -f custompod-sample.yaml   # replicas: 1",
        action: Action::Create { replicas: 1 },
    },
    TourStep {
        command: "kubectl apply -f custompod-sample.yaml   # replicas: 3",
        action: Action::Scale { replicas: 3 },
    },
    TourStep {
        command: "kubectl apply -f custompod-sample.yaml   # replicas: 1",
        action: Action::Scale { replicas: 1 },
    },
    TourStep { command: "kubectl delete pod POD", action: Action::DeletePod },
    TourStep { command: "kubectl delete custompod custompod-sample", action: Action::DeleteParent },
];

impl Action {
    /// Returns the expected result, given the state before the action.
    pub(super) fn goal(self, before: &ClusterState) -> Goal {
        match self {
            Self::Create { replicas } | Self::Scale { replicas } => Goal::Running(replicas as usize),
            Self::DeletePod => {
                let deleted = before.pods.first().map(|(name, _)| name.clone());
                Goal::RunningWithout(before.pods.len(), deleted.into_iter().collect())
            }
            Self::DeleteParent => Goal::AllGone,
        }
    }
}

impl Goal {
    /// Checks whether the goal is reached.
    ///
    /// # Errors
    /// The goal is not reached. The error names the missing part.
    pub(super) fn check(&self, state: &ClusterState) -> Result<String, String> {
        match self {
            Self::Running(count) => running(state, *count, &BTreeSet::new()),
            Self::RunningWithout(count, gone) => running(state, *count, gone),
            Self::AllGone => match (&state.parent, state.pods.len()) {
                (None, 0) => Ok("the custompod and its pods are gone".to_owned()),
                (None, left) => Err(format!("the custompod is gone, but {} left", pods_are(left))),
                (Some(_), left) => Err(format!("the custompod is still there, and {} left", pods_are(left))),
            },
        }
    }
}

fn pods_are(count: usize) -> String {
    format!("{} {}", pods(count), if count == 1 { "is" } else { "are" })
}

fn running(state: &ClusterState, wanted: usize, gone: &BTreeSet<String>) -> Result<String, String> {
    let Some(reported) = &state.parent else { return Err("there is no custompod".to_owned()) };
    let names: BTreeSet<String> = state.pods.iter().map(|(name, _)| name.clone()).collect();
    if let Some(name) = names.intersection(gone).next() {
        return Err(format!("pod {name} is still there"));
    }
    if names.len() != wanted {
        return Err(format!("there must be {}; {} there", pods(wanted), pods_are(names.len())));
    }
    if let Some((name, _)) = state.pods.iter().find(|(_, runs)| !runs) {
        return Err(format!("pod {name} does not run yet"));
    }
    if reported.pod_names != names || reported.replicas as usize != names.len() {
        let listed: Vec<&str> = reported.pod_names.iter().map(String::as_str).collect();
        return Err(format!(
            "the status has replicas {} and podNames [{}]; the pods are [{}]",
            reported.replicas,
            listed.join(", "),
            names.into_iter().collect::<Vec<_>>().join(", ")
        ));
    }
    let names: Vec<String> = names.into_iter().collect();
    let verb = if wanted == 1 { "runs" } else { "run" };
    Ok(format!("{} {verb}, and status.podNames lists them: {}", pods(wanted), names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(replicas: u32, reported: &[&str], pods: &[(&str, bool)]) -> ClusterState {
        ClusterState {
            parent: Some(ReportedStatus {
                replicas,
                pod_names: reported.iter().map(ToString::to_string).collect(),
            }),
            pods: pods.iter().map(|(name, runs)| ((*name).to_owned(), *runs)).collect(),
        }
    }

    #[test]
    fn all_pods_must_run_and_the_status_must_name_them() {
        let goal = Goal::Running(1);
        assert!(goal.check(&ClusterState::default()).is_err());
        assert!(
            goal.check(&state(0, &[], &[])).unwrap_err().contains("there must be 1 pod; 0 pods are there")
        );
        assert!(goal.check(&state(1, &["a"], &[("a", false)])).unwrap_err().contains("does not run yet"));
        assert!(goal.check(&state(1, &["b"], &[("a", true)])).unwrap_err().contains("podNames [b]"));
        assert!(goal.check(&state(2, &["a"], &[("a", true)])).unwrap_err().contains("replicas 2"));
        assert!(goal.check(&state(1, &["a"], &[("a", true)])).unwrap().contains("1 pod runs"));
    }

    #[test]
    fn a_pod_deleted_by_hand_must_be_replaced_by_another() {
        let before = state(1, &["a"], &[("a", true)]);
        let goal = Action::DeletePod.goal(&before);
        assert!(goal.check(&before).unwrap_err().contains("pod a is still there"));
        assert!(goal.check(&state(1, &["b"], &[("b", true)])).is_ok());
    }

    #[test]
    fn the_deleted_custompod_and_its_pods_must_be_gone() {
        let goal = Action::DeleteParent.goal(&ClusterState::default());
        let mut left = state(1, &["a"], &[("a", true)]);
        assert!(goal.check(&left).unwrap_err().contains("still there"));
        left.parent = None;
        assert!(goal.check(&left).unwrap_err().contains("1 pod is left"));
        assert!(goal.check(&ClusterState::default()).is_ok());
    }
}
