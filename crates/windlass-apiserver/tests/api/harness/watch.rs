//! A watch from the client's point of view: a sequence of JSON objects, until the stream ends.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::BytesMut;
use http_body_util::BodyExt;
use serde_json::Value;

use super::deadline;
use super::reply::{plain, shown};
use super::transport::Body;

pub(crate) struct Watch {
    pub(crate) code: u16,
    /// How long to wait for an event.
    pub(crate) limit: Duration,
    body: Body,
    buffer: BytesMut,
    ready: VecDeque<Value>,
    id: String,
}

/// One event of a watch.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) kind: String,
    pub(crate) object: Value,
    id: String,
}

impl Event {
    pub(crate) fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    pub(crate) fn version(&self) -> u64 {
        let version = self.object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        version.parse().unwrap_or_else(|_| panic!("no resource version: {self}"))
    }
}

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind, shown(&self.object, &self.id))
    }
}

impl Watch {
    pub(super) fn new(code: u16, body: Body, id: String) -> Self {
        Watch { code, limit: deadline(), body, buffer: BytesMut::new(), ready: VecDeque::new(), id }
    }

    /// The next event.
    pub(crate) async fn next(&mut self) -> Event {
        self.next_or_end().await.expect("an event, not the end of the watch")
    }

    /// The next changes, as `TYPE name`: bookmarks may come at any time.
    pub(crate) async fn take(&mut self, count: usize) -> Vec<String> {
        let mut lines = Vec::new();
        while lines.len() < count {
            let event = self.next().await;
            if event.kind == "BOOKMARK" {
                continue;
            }
            lines.push(plain(format!("{} {}", event.kind, event.name()).trim_end(), &self.id));
        }
        lines
    }

    /// Waits until the server ends the stream, and gives the events before.
    pub(crate) async fn rest(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next_or_end().await {
            events.push(event);
        }
        events
    }

    /// The next event; `None` at the end of the stream.
    pub(crate) async fn next_or_end(&mut self) -> Option<Event> {
        loop {
            if let Some(value) = self.ready.pop_front() {
                let kind =
                    value["type"].as_str().unwrap_or_else(|| panic!("not an event: {value}")).to_owned();
                return Some(Event { kind, object: value["object"].clone(), id: self.id.clone() });
            }
            let frame = tokio::time::timeout(self.limit, self.body.frame()).await.expect("the watch goes on");
            let frame = frame?.expect("an unbroken stream");
            if let Ok(data) = frame.into_data() {
                self.buffer.extend_from_slice(&data);
                self.split();
            }
        }
    }

    /// The next event of a watch in protobuf, with the four bytes of the length.
    pub(crate) async fn next_message(&mut self) -> Vec<u8> {
        loop {
            let length = self.buffer.first_chunk().map(|length| 4 + u32::from_be_bytes(*length) as usize);
            if let Some(length) = length.filter(|length| *length <= self.buffer.len()) {
                return self.buffer.split_to(length).to_vec();
            }
            let frame = tokio::time::timeout(self.limit, self.body.frame()).await.expect("the watch goes on");
            let frame = frame.expect("an event, not the end of the watch").expect("an unbroken stream");
            self.buffer.extend_from_slice(&frame.into_data().unwrap_or_default());
        }
    }

    /// Takes the whole lines out of the buffer.
    fn split(&mut self) {
        while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
            let line = self.buffer.split_to(end + 1);
            self.ready.push_back(serde_json::from_slice(&line).expect("a line of JSON"));
        }
    }
}
