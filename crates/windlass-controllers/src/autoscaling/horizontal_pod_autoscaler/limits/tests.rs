use serde_json::{Value, json};

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn behavior(value: Value) -> Behavior {
    serde_json::from_value(value).unwrap()
}

fn bounds(current: i32) -> Bounds {
    Bounds { current, least: 2, most: 100 }
}

#[test]
fn without_rules_a_target_at_most_doubles() {
    let history = History::default();
    let limited = |current, desired, most| {
        let bounds = Bounds { most, ..bounds(current) };
        let limited = limit(None, bounds, desired, &history, at(0));
        (limited.replicas, limited.reason)
    };
    assert_eq!(limited(2, 3, 100), (3, "DesiredWithinRange"));
    assert_eq!(limited(2, 10, 100), (4, "ScaleUpLimit"));
    assert_eq!(limited(10, 30, 100), (20, "ScaleUpLimit"));
    assert_eq!(limited(10, 30, 15), (15, "TooManyReplicas"));
    assert_eq!(limited(10, 1, 100), (2, "TooFewReplicas"));
}

#[test]
fn a_target_shrinks_to_the_highest_recommendation_of_five_minutes() {
    let mut history = History::default();
    history.begin(8, at(0));
    assert_eq!(stabilize(None, 8, 3, &mut history, at(15)).replicas, 8);
    assert_eq!(stabilize(None, 8, 4, &mut history, at(299)).replicas, 8);
    assert_eq!(stabilize(None, 8, 3, &mut history, at(301)).replicas, 4);
    assert_eq!(stabilize(None, 8, 3, &mut history, at(900)).replicas, 3);
    assert_eq!(stabilize(None, 3, 9, &mut history, at(901)).replicas, 9, "growth is at once");
}

#[test]
fn each_direction_has_its_own_window() {
    let rules = behavior(json!({
        "scaleUp": {"stabilizationWindowSeconds": 60}, "scaleDown": {"stabilizationWindowSeconds": 120}}));
    let mut history = History::default();
    history.begin(4, at(0));
    let up = stabilize(Some(&rules), 4, 9, &mut history, at(30));
    assert_eq!((up.replicas, up.reason), (4, "ScaleUpStabilized"));
    assert_eq!(stabilize(Some(&rules), 4, 8, &mut history, at(61)).replicas, 8);
    let down = stabilize(Some(&rules), 8, 2, &mut history, at(100));
    assert_eq!((down.replicas, down.reason), (8, "ScaleDownStabilized"), "9 was asked for 70 s ago");
    assert_eq!(stabilize(Some(&rules), 8, 2, &mut history, at(300)).replicas, 2);
}

#[test]
fn policies_count_the_changes_of_their_period() {
    let rules = |select: &str| {
        behavior(json!({
            "scaleUp": {"selectPolicy": select, "policies": [
                {"type": "Pods", "value": 4, "periodSeconds": 60},
                {"type": "Percent", "value": 50, "periodSeconds": 60}]},
            "scaleDown": {"selectPolicy": select, "policies": [
                {"type": "Pods", "value": 4, "periodSeconds": 60},
                {"type": "Percent", "value": 50, "periodSeconds": 60}]},
        }))
    };
    let mut history = History::default();
    let limited = |history: &History, select: &str, current, desired, now| {
        let limited = limit(Some(&rules(select)), bounds(current), desired, history, at(now));
        (limited.replicas, limited.reason)
    };
    assert_eq!(limited(&history, "Max", 10, 50, 0), (15, "ScaleUpLimit"));
    assert_eq!(limited(&history, "Min", 10, 50, 0), (14, "ScaleUpLimit"));
    assert_eq!(limited(&history, "Disabled", 10, 50, 0), (10, "ScaleUpLimit"));
    assert_eq!(limited(&history, "Max", 10, 3, 0), (5, "ScaleDownLimit"));
    assert_eq!(limited(&history, "Min", 10, 3, 0), (6, "ScaleDownLimit"));
    assert_eq!(limited(&history, "Disabled", 10, 3, 0), (10, "ScaleDownLimit"));
    assert_eq!(limited(&history, "Max", 4, 1, 0), (2, "TooFewReplicas"));
    history.rescaled(10, 15, at(0));
    assert_eq!(limited(&history, "Max", 15, 50, 30), (15, "ScaleUpLimit"), "the period has its 5 pods");
    assert_eq!(limited(&history, "Max", 15, 50, 61), (23, "ScaleUpLimit"));
    history.rescaled(15, 10, at(30));
    assert_eq!(limited(&history, "Max", 10, 50, 31), (15, "ScaleUpLimit"), "the removed pods count as well");
}

#[test]
fn old_samples_are_forgotten() {
    let mut history = History::default();
    for second in (0..20_000).step_by(15) {
        history.recommend(1, at(second));
        history.rescaled(1, 2, at(second));
    }
    let count = format!("{history:?}").matches("Sample").count();
    assert!(count <= 2 * 241, "{count} samples");
}
