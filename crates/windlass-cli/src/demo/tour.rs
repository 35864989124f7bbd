//! The tour: the steps of the article, what each does, and what must then be seen.

mod run;

use std::collections::BTreeSet;

pub(super) use self::run::run;
use super::narrator::pods;

/// What the tour sees of the cluster at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct View {
    /// `status.replicas` and `status.podNames` of the CustomPod; `None` if there is no such object.
    pub parent: Option<Reported>,
    /// The names of the pods that the CustomPod owns, and whether each runs.
    pub pods: Vec<(String, bool)>,
}

/// What the CustomPod's status says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reported {
    pub replicas: u32,
    pub pod_names: BTreeSet<String>,
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Creates the CustomPod.
    Create { replicas: u32 },
    /// Changes `spec.replicas`.
    Scale { replicas: u32 },
    /// Deletes one of the pods by hand.
    DeletePod,
    /// Deletes the CustomPod.
    DeleteParent,
}

/// What must be seen after a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// So many pods run, and the status names exactly them.
    Running(usize),
    /// The same, and none of them is one of these.
    RunningWithout(usize, BTreeSet<String>),
    /// Neither the CustomPod nor a pod of it is left.
    AllGone,
}

/// One step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// What a person would type.
    pub command: &'static str,
    pub act: Act,
}

/// The name of the CustomPod that the tour and the demo make.
pub(super) const SAMPLE: &str = "custompod-sample";

/// The steps, in order.
pub(super) const STEPS: [Step; 5] = [
    Step {
        command: "kubectl apply -f custompod-sample.yaml   # replicas: 1",
        act: Act::Create { replicas: 1 },
    },
    Step {
        command: "kubectl apply -f custompod-sample.yaml   # replicas: 3",
        act: Act::Scale { replicas: 3 },
    },
    Step {
        command: "kubectl apply -f custompod-sample.yaml   # replicas: 1",
        act: Act::Scale { replicas: 1 },
    },
    Step { command: "kubectl delete pod POD", act: Act::DeletePod },
    Step { command: "kubectl delete custompod custompod-sample", act: Act::DeleteParent },
];

impl Act {
    /// What must be seen after this, given what was seen before it.
    pub(super) fn goal(self, before: &View) -> Goal {
        match self {
            Self::Create { replicas } | Self::Scale { replicas } => Goal::Running(replicas as usize),
            Self::DeletePod => {
                let doomed = before.pods.first().map(|(name, _)| name.clone());
                Goal::RunningWithout(before.pods.len(), doomed.into_iter().collect())
            }
            Self::DeleteParent => Goal::AllGone,
        }
    }
}

impl Goal {
    /// Whether it is reached: what is seen, or what is still missing.
    pub(super) fn check(&self, view: &View) -> Result<String, String> {
        match self {
            Self::Running(count) => running(view, *count, &BTreeSet::new()),
            Self::RunningWithout(count, gone) => running(view, *count, gone),
            Self::AllGone => match (&view.parent, view.pods.len()) {
                (None, 0) => Ok("the custompod is gone, and its pods with it".to_owned()),
                (None, left) => Err(format!("the custompod is gone, but {} left", are(left))),
                (Some(_), left) => Err(format!("the custompod is still there, and {} left", are(left))),
            },
        }
    }
}

fn are(count: usize) -> String {
    format!("{} {}", pods(count), if count == 1 { "is" } else { "are" })
}

fn running(view: &View, wanted: usize, gone: &BTreeSet<String>) -> Result<String, String> {
    let Some(reported) = &view.parent else { return Err("there is no custompod".to_owned()) };
    let names: BTreeSet<String> = view.pods.iter().map(|(name, _)| name.clone()).collect();
    if let Some(name) = names.intersection(gone).next() {
        return Err(format!("pod {name} is still there"));
    }
    if names.len() != wanted {
        return Err(format!("there must be {}; {} there", pods(wanted), are(names.len())));
    }
    if let Some((name, _)) = view.pods.iter().find(|(_, runs)| !runs) {
        return Err(format!("pod {name} does not run yet"));
    }
    if reported.pod_names != names || reported.replicas as usize != names.len() {
        let said: Vec<&str> = reported.pod_names.iter().map(String::as_str).collect();
        return Err(format!(
            "status says replicas {} and podNames [{}], the pods are [{}]",
            reported.replicas,
            said.join(", "),
            names.into_iter().collect::<Vec<_>>().join(", ")
        ));
    }
    let names: Vec<String> = names.into_iter().collect();
    let verb = if wanted == 1 { "runs" } else { "run" };
    Ok(format!("{} {verb}, and status.podNames says so: {}", pods(wanted), names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(replicas: u32, reported: &[&str], pods: &[(&str, bool)]) -> View {
        View {
            parent: Some(Reported {
                replicas,
                pod_names: reported.iter().map(ToString::to_string).collect(),
            }),
            pods: pods.iter().map(|(name, runs)| ((*name).to_owned(), *runs)).collect(),
        }
    }

    #[test]
    fn all_pods_must_run_and_the_status_must_name_them() {
        let goal = Goal::Running(1);
        assert!(goal.check(&View::default()).is_err());
        assert!(
            goal.check(&view(0, &[], &[])).unwrap_err().contains("there must be 1 pod; 0 pods are there")
        );
        assert!(goal.check(&view(1, &["a"], &[("a", false)])).unwrap_err().contains("does not run yet"));
        assert!(goal.check(&view(1, &["b"], &[("a", true)])).unwrap_err().contains("podNames [b]"));
        assert!(goal.check(&view(2, &["a"], &[("a", true)])).unwrap_err().contains("replicas 2"));
        assert!(goal.check(&view(1, &["a"], &[("a", true)])).unwrap().contains("1 pod runs"));
    }

    #[test]
    fn a_pod_deleted_by_hand_must_be_replaced_by_another() {
        let before = view(1, &["a"], &[("a", true)]);
        let goal = Act::DeletePod.goal(&before);
        assert!(goal.check(&before).unwrap_err().contains("pod a is still there"));
        assert!(goal.check(&view(1, &["b"], &[("b", true)])).is_ok());
    }

    #[test]
    fn the_deleted_custompod_must_take_its_pods_along() {
        let goal = Act::DeleteParent.goal(&View::default());
        let mut seen = view(1, &["a"], &[("a", true)]);
        assert!(goal.check(&seen).unwrap_err().contains("still there"));
        seen.parent = None;
        assert!(goal.check(&seen).unwrap_err().contains("1 pod is left"));
        assert!(goal.check(&View::default()).is_ok());
    }
}
