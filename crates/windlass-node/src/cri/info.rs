//! The details of a container runtime in a verbose status: JSON, with equal names in containerd and CRI-O.

use std::collections::BTreeMap;

use serde::Deserialize;

#[derive(Default, Deserialize)]
struct Process {
    #[serde(default)]
    pid: u32,
}

#[derive(Default, Deserialize)]
struct Image {
    #[serde(default, rename = "imageSpec")]
    spec: ImageSpec,
}

#[derive(Default, Deserialize)]
struct ImageSpec {
    #[serde(default)]
    config: ImageConfig,
}

#[derive(Default, Deserialize)]
struct ImageConfig {
    #[serde(default, rename = "StopSignal")]
    stop_signal: String,
}

/// Returns the PID of the first process of a sandbox or of a container.
pub(super) fn pid(info: &BTreeMap<String, String>) -> Option<u32> {
    read::<Process>(info).map(|process| process.pid).filter(|pid| *pid > 0)
}

/// Returns the signal that stops the program of an image, as its configuration has the signal: `SIGINT`.
pub(super) fn stop_signal(info: &BTreeMap<String, String>) -> Option<String> {
    read::<Image>(info).map(|image| image.spec.config.stop_signal).filter(|signal| !signal.is_empty())
}

fn read<'a, T: Deserialize<'a>>(info: &'a BTreeMap<String, String>) -> Option<T> {
    serde_json::from_str(info.get("info")?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_read_if_they_are_there() {
        let info = |text: &str| BTreeMap::from([("info".to_owned(), text.to_owned())]);
        assert_eq!(pid(&info(r#"{"sandboxID": "a", "pid": 7}"#)), Some(7));
        assert_eq!(pid(&info(r#"{"pid": 0}"#)), None);
        assert_eq!(pid(&info(r#"{"pid": "x"}"#)), None);
        assert_eq!(pid(&BTreeMap::new()), None);
        let image = info(r#"{"chainID": "", "imageSpec": {"config": {"StopSignal": "SIGINT"}}}"#);
        assert_eq!(stop_signal(&image).as_deref(), Some("SIGINT"));
        assert_eq!(stop_signal(&info(r#"{"imageSpec": {}}"#)), None);
    }
}
