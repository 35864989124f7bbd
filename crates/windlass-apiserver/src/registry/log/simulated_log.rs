//! The log of a simulated pod.

use jiff::Timestamp;
use serde_json::Value;

/// The annotation with the log of all containers. With a dot and a container's name at the end, the
/// annotation has the log of that container.
const ANNOTATION: &str = "kubelet.windlass.dev/log";

/// Returns the log of a container or, with `previous`, of the container's last run.
///
/// # Errors
/// The container has not run, in the words of the kubelet.
pub(super) fn log(pod: &Value, container: &str, previous: bool) -> Result<String, String> {
    let name = pod.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let status = status(pod, container);
    let has_ended = status.is_some_and(|status| status.pointer("/lastState/terminated").is_some());
    if previous && !has_ended {
        return Err(format!("previous terminated container \"{container}\" in pod \"{name}\" not found"));
    }
    let reason = status.and_then(|status| status.pointer("/state/waiting/reason")).and_then(Value::as_str);
    if let Some(reason) = reason.filter(|_| !has_ended) {
        let why = match reason {
            "ErrImagePull" => "image can't be pulled",
            "ImagePullBackOff" => "trying and failing to pull image",
            other => other,
        };
        return Err(format!("container \"{container}\" in pod \"{name}\" is waiting to start: {why}"));
    }
    Ok(text(pod, container))
}

/// Returns whether an annotation holds the log of the container.
pub(super) fn is_scripted(pod: &Value, container: &str) -> bool {
    annotation(pod, container).is_some()
}

/// Returns the line that stands for a log that no annotation holds.
pub(super) fn simulated(pod: &Value, container: &str) -> String {
    let lists = ["containers", "initContainers", "ephemeralContainers"];
    let containers =
        lists.iter().flat_map(|list| pod["spec"].get(*list).and_then(Value::as_array).into_iter().flatten());
    let image =
        containers.filter(|found| found["name"] == container).find_map(|found| found["image"].as_str());
    format!(
        "windlass: the container \"{container}\" is simulated: the program of the image \"{}\" does not run, and has no log; the \
         annotation {ANNOTATION} sets one\n",
        image.unwrap_or_default()
    )
}

fn annotation<'a>(pod: &'a Value, container: &str) -> Option<&'a str> {
    let annotations = pod.pointer("/metadata/annotations").and_then(Value::as_object);
    let text = |key: &str| annotations.and_then(|all| all.get(key)).and_then(Value::as_str);
    text(&format!("{ANNOTATION}.{container}")).or_else(|| text(ANNOTATION))
}

/// Returns the text of the annotation. A text ends with a line end.
pub(super) fn text(pod: &Value, container: &str) -> String {
    let mut log = annotation(pod, container).unwrap_or_default().to_owned();
    if !log.is_empty() && !log.ends_with('\n') {
        log.push('\n');
    }
    log
}

/// Returns whether the container runs. The log of a running container may grow.
pub(super) fn is_running(pod: &Value, container: &str) -> bool {
    status(pod, container).is_some_and(|status| status.pointer("/state/running").is_some())
}

/// Returns the start time of the container or, with `previous`, of the last run: the time of all lines.
pub(super) fn started(pod: &Value, container: &str, previous: bool) -> Option<Timestamp> {
    let status = status(pod, container)?;
    let states: &[&str] = if previous {
        &["/lastState/terminated"]
    } else {
        &["/state/running", "/state/terminated", "/lastState/terminated"]
    };
    let state = states.iter().find_map(|state| status.pointer(state))?;
    state.get("startedAt")?.as_str()?.parse().ok()
}

fn status<'a>(pod: &'a Value, container: &str) -> Option<&'a Value> {
    ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"].iter().find_map(|field| {
        let statuses = pod.pointer("/status")?.get(*field)?.as_array()?;
        statuses.iter().find(|status| status["name"] == container)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(status: &Value) -> Value {
        json!({
            "metadata": {"name": "web", "annotations": {"kubelet.windlass.dev/log": "one"}},
            "status": {"containerStatuses": [status]},
        })
    }

    #[test]
    fn a_container_that_has_not_started_has_no_log() {
        for (reason, why) in [
            ("ContainerCreating", "ContainerCreating"),
            ("ErrImagePull", "image can't be pulled"),
            ("ImagePullBackOff", "trying and failing to pull image"),
        ] {
            let pod = pod(&json!({"name": "a", "state": {"waiting": {"reason": reason}}}));
            let expected = format!("container \"a\" in pod \"web\" is waiting to start: {why}");
            assert_eq!(log(&pod, "a", false), Err(expected));
        }
    }

    #[test]
    fn a_log_without_an_annotation_says_that_the_container_is_simulated() {
        let silent = json!({"spec": {"containers": [{"name": "manager", "image": "controller:latest"}]}});
        assert!(!is_scripted(&silent, "manager"));
        assert_eq!(
            simulated(&silent, "manager"),
            "windlass: the container \"manager\" is simulated: the program of the image \"controller:latest\" does not run, and has \
             no log; the annotation kubelet.windlass.dev/log sets one\n"
        );
        let empty = json!({"metadata": {"annotations": {"kubelet.windlass.dev/log.manager": ""}}});
        assert!(is_scripted(&empty, "manager"), "a log that is empty on purpose");
    }

    #[test]
    fn the_log_of_an_earlier_run_is_there_after_a_restart() {
        let running = pod(&json!({"name": "a", "state": {"running": {}}}));
        let expected = "previous terminated container \"a\" in pod \"web\" not found";
        assert_eq!(log(&running, "a", true), Err(expected.to_owned()));
        assert!(is_running(&running, "a"));

        let ended = json!({"terminated": {"startedAt": "2026-01-02T03:04:05Z"}});
        let waiting = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        let restarted = pod(&json!({"name": "a", "state": waiting, "lastState": ended}));
        for previous in [true, false] {
            assert_eq!(log(&restarted, "a", previous), Ok("one\n".to_owned()));
            let time = started(&restarted, "a", previous).map(|time| time.to_string());
            assert_eq!(time.as_deref(), Some("2026-01-02T03:04:05Z"));
        }
        assert!(!is_running(&restarted, "a"));
    }
}
