//! A pod whose image changes.

use std::time::Duration;

use serde_json::json;
use windlass_node::{ContainerId, PullError};

use super::super::action::{Action, Observation};
use super::stage::Stage;
use super::{image, one};

fn set_image(stage: &mut Stage, image: &str) {
    stage.pod.spec.as_mut().unwrap().containers[0].image = Some(image.to_owned());
    stage.wake_at = Some(stage.now);
}

fn looks(stage: &Stage) -> usize {
    stage.actions.iter().filter(|action| matches!(action, Action::FindImage { .. })).count()
}

#[test]
fn an_image_that_changes_during_the_pull_is_not_started() {
    let mut stage = Stage::new(&one(&json!({})));
    (stage.present, stage.hold_pull) = (false, Some("c"));
    stage.run_for(1.0);
    set_image(&mut stage, "app:v2");
    stage.run_for(1.0);
    stage.hold_pull = None;
    stage.inbox.push(Observation::Pulled {
        container: "c".into(),
        outcome: Ok(image()),
        took: Duration::ZERO,
    });
    stage.run_for(1.0);
    assert_eq!((looks(&stage), stage.starts, stage.phase().as_str()), (2, 1, "Running"));
}

#[test]
fn an_image_that_changes_during_the_start_restarts_the_container() {
    let mut stage = Stage::new(&one(&json!({})));
    stage.hold_start = true;
    stage.run_for(1.0);
    set_image(&mut stage, "app:v2");
    stage.run_for(1.0);
    stage.hold_start = false;
    let outcome = Ok(ContainerId("old".into()));
    stage.inbox.push(Observation::Started { container: "c".into(), outcome });
    stage.run_for(1.0);
    stage.assert_event("Killing: Container c definition changed, will be restarted");
    assert_eq!((looks(&stage), stage.phase().as_str()), (2, "Running"));
}

#[test]
fn a_corrected_image_does_not_wait_for_the_failures_of_the_wrong_image() {
    let mut stage = Stage::new(&one(&json!({})));
    stage.present = false;
    stage.pull_error = Some(PullError::NotFound("manifest unknown".into()));
    stage.run_for(200.0);
    assert_eq!(stage.state("c"), "ImagePullBackOff");
    set_image(&mut stage, "app:v2");
    stage.run_for(0.0);
    assert_eq!(stage.state("c"), "ErrImagePull");
    // The back-off begins again.
    stage.run_for(11.0);
    let pulls =
        |stage: &Stage| stage.actions.iter().filter(|action| matches!(action, Action::Pull { .. })).count();
    let before = pulls(&stage);
    stage.run_for(20.0);
    assert_eq!(pulls(&stage), before + 1);
    stage.pull_error = None;
    set_image(&mut stage, "app:v3");
    stage.run_for(0.0);
    assert_eq!(stage.phase(), "Running");
}

#[test]
fn a_corrected_image_does_not_wait_for_the_crashes_of_the_wrong_image() {
    let mut stage = Stage::new(&one(&json!({})));
    stage.run_for(1.0).exits("c1", 1).exits("c2", 1).run_for(11.0).exits("c3", 1);
    assert_eq!(stage.state("c"), "CrashLoopBackOff");
    set_image(&mut stage, "app:v2");
    stage.run_for(0.0);
    assert_eq!((stage.state("c").as_str(), stage.starts), ("Running", 4));
}

#[test]
fn a_container_that_has_ended_for_good_is_not_started_for_a_new_image() {
    let mut spec = one(&json!({}));
    spec["restartPolicy"] = json!("Never");
    spec["containers"].as_array_mut().unwrap().push(json!({"name": "d", "image": "app:v1"}));
    let mut stage = Stage::new(&spec);
    stage.run_for(1.0).exits("c1", 0);
    set_image(&mut stage, "app:v2");
    stage.run_for(1.0);
    assert_eq!((stage.state("c").as_str(), stage.starts), ("Completed 0", 2));
}
