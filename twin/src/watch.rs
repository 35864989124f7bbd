//! An open watch.

use std::time::Duration;

use bytes::BytesMut;
use http_body_util::BodyExt;
use kube_client::client::Body;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::outcome::END;

/// The body of a watch, read in lines.
pub(crate) struct Watch {
    body: Option<Body>,
    buffer: BytesMut,
}

impl Watch {
    pub(crate) fn new(body: Body) -> Self {
        Watch { body: Some(body), buffer: BytesMut::new() }
    }

    /// Reads `expected` events within `limit`, and further events until the watch is quiet for the time
    /// `quiet`.
    pub(crate) async fn read(&mut self, expected: usize, limit: Duration, quiet: Duration) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(body) = &mut self.body {
            let patience = if events.len() < expected { limit } else { quiet };
            let Ok(frame) = timeout(patience, body.frame()).await else { break };
            let Some(Ok(frame)) = frame else {
                self.body = None;
                events.push(json!({"type": END}));
                break;
            };
            if let Ok(data) = frame.into_data() {
                self.buffer.extend_from_slice(&data);
                events.extend(self.lines().into_iter().filter(is_compared));
            }
        }
        events
    }

    /// Takes the complete lines out of the buffer.
    fn lines(&mut self) -> Vec<Value> {
        let mut lines = Vec::new();
        while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
            let line = self.buffer.split_to(end + 1);
            let text = || Value::String(String::from_utf8_lossy(&line).into_owned());
            lines.push(serde_json::from_slice(&line).unwrap_or_else(|_| text()));
        }
        lines
    }
}

/// Returns whether an event is compared. Bookmarks may come at any time, except the bookmark at the end of
/// the initial events.
fn is_compared(event: &Value) -> bool {
    event["type"] != "BOOKMARK"
        || event["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true"
}
