//! Sidecars, init containers and restart rules.

use serde_json::{Value, json};

use super::one;
use super::stage::Stage;

fn with_sidecar(container: &Value) -> Value {
    let mut spec = one(&json!({}));
    let mut sidecar = json!({"name": "side", "image": "i", "restartPolicy": "Always"});
    for (key, value) in container.as_object().unwrap() {
        sidecar[key] = value.clone();
    }
    spec["initContainers"] = json!([sidecar]);
    spec
}

#[test]
fn a_sidecar_of_a_completed_pod_is_not_started_again() {
    let mut spec = with_sidecar(&json!({}));
    spec["restartPolicy"] = json!("Never");
    let mut stage = Stage::new(&spec);
    stage.run_for(1.0).exits("c2", 0).run_for(60.0);
    assert_eq!((stage.state("side").as_str(), stage.phase().as_str()), ("Error 143", "Succeeded"));
    assert_eq!((stage.container("side").restart_count, stage.starts), (0, 2));
}
