//! The events of a watch, one by one.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{FutureExt, stream};
use http_body_util::{BodyExt, StreamBody};
use kube_client::client::Body;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use windlass_runtime::BoxError;

use super::Fault;
use super::reply::{AnyBody, status};

/// The longest time that a stale watch holds an event back.
const LONGEST_HOLD: Duration = Duration::from_secs(30);

/// The state of event delivery to watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flow {
    /// True if no event is delivered.
    pub(super) is_held: bool,
    /// How often all faults were ended. A fault strikes a watch only until the next end of all faults.
    pub(super) cleared: u64,
}

impl Flow {
    /// Ends the faults of all watches, and delivers events at once.
    pub(super) fn clear(&mut self) {
        *self = Self { is_held: false, cleared: self.cleared + 1 };
    }
}

/// A watch on its way to the client.
struct Relay {
    body: Body,
    /// The fault, with the [number](Flow::cleared) of ends before the fault.
    fault: Option<(Fault, u64)>,
    flow: watch::Receiver<Flow>,
    /// An incomplete line.
    partial: BytesMut,
    /// Events that are not delivered yet, with the latest time of delivery.
    held: VecDeque<(Instant, Bytes)>,
    delivered: usize,
    ended: bool,
    process: Process,
}

/// The process of a client.
pub(super) struct Process {
    pub(super) number: u64,
    /// The number of the process that has not ended.
    pub(super) current: watch::Receiver<u64>,
}

impl Process {
    /// Waits for the end of the process.
    async fn end(&mut self) {
        let number = self.number;
        if self.current.wait_for(|current| *current != number).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Passes the events of a watch on, with a fault, until the process of the client ends.
pub(super) fn relay(
    body: Body,
    fault: Option<(Fault, u64)>,
    flow: watch::Receiver<Flow>,
    process: Process,
) -> AnyBody {
    let relay = Relay {
        body,
        fault,
        flow,
        partial: BytesMut::new(),
        held: VecDeque::new(),
        delivered: 0,
        ended: false,
        process,
    };
    let frames = stream::unfold(relay, |mut relay| async move {
        let frame = relay.next().await?;
        Some((frame.map(http_body::Frame::data), relay))
    });
    StreamBody::new(frames).boxed_unsync()
}

impl Relay {
    async fn next(&mut self) -> Option<Result<Bytes, BoxError>> {
        loop {
            if self.process.end().now_or_never().is_some() {
                // The process gets no further events.
                std::future::pending::<()>().await;
            }
            let Flow { is_held, cleared } = *self.flow.borrow_and_update();
            self.fault = self.fault.take().filter(|(_, began)| *began == cleared);
            if let Some(end) = self.end_by_fault() {
                return end;
            }
            let keep = match &self.fault {
                _ if is_held => usize::MAX,
                Some((Fault::Stale { events }, _)) if !self.ended => *events,
                _ => 0,
            };
            let due = self.held.front().map(|(due, _)| *due);
            let ready = self.held.len() > keep || (!is_held && due.is_some_and(|due| due <= Instant::now()));
            if ready && let Some((_, event)) = self.held.pop_front() {
                self.delivered += 1;
                return Some(Ok(event));
            }
            if self.ended && self.held.is_empty() {
                return None;
            }
            tokio::select! {
                biased;
                () = self.process.end() => {}
                changed = self.flow.changed() => if changed.is_err() { return None },
                frame = self.body.frame(), if !self.ended => match frame {
                    None => self.ended = true,
                    Some(Err(error)) => return Some(Err(error.into())),
                    Some(Ok(frame)) => if let Ok(data) = frame.into_data() { self.split(&data) },
                },
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() && !is_held => {}
            }
        }
    }

    /// Ends the stream if the fault of the watch is due. The inner `None` is an end without an error.
    #[expect(clippy::option_option, reason = "the inner one is what a stream returns")]
    fn end_by_fault(&mut self) -> Option<Option<Result<Bytes, BoxError>>> {
        let (fault, _) = self.fault.as_mut()?;
        match *fault {
            Fault::WatchDrop { after } if self.delivered >= after => Some(None),
            Fault::WatchCut { after } if self.delivered >= after => {
                *fault = Fault::WatchDrop { after: 0 };
                Some(Some(Err("injected: connection reset by peer".into())))
            }
            Fault::Expired => {
                *fault = Fault::WatchDrop { after: 0 };
                let object = status(410, "Expired", "injected: too old resource version");
                let event = json!({ "type": "ERROR", "object": object });
                Some(Some(Ok(Bytes::from(format!("{event}\n")))))
            }
            _ => None,
        }
    }

    fn split(&mut self, data: &[u8]) {
        self.partial.extend_from_slice(data);
        while let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
            let event = self.partial.split_to(end + 1).freeze();
            self.held.push_back((Instant::now() + LONGEST_HOLD, event));
        }
    }
}
