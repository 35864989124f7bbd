//! The requests that wait for a seat of a priority level.

use std::collections::{HashMap, VecDeque};

/// Waiting requests. The requests of a flow keep their order, and flows with waiting requests take turns: a flow with many
/// requests does not delay the other flows.
#[derive(Debug)]
pub(super) struct Queue<T> {
    flows: HashMap<u64, VecDeque<(u64, T)>>,
    /// The flows with waiting requests.
    turns: VecDeque<u64>,
    len: usize,
    /// The number of the next request.
    next: u64,
}

/// The most requests that a queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueLimits {
    /// Of one flow.
    pub(super) flow: usize,
    /// Of all flows together.
    pub(super) total: usize,
}

/// A place in a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    flow: u64,
    number: u64,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { flows: HashMap::new(), turns: VecDeque::new(), len: 0, next: 0 }
    }
}

impl<T> Queue<T> {
    /// Adds a request; `None` if the queue is full.
    pub(super) fn push(&mut self, flow: u64, limits: QueueLimits, request: T) -> Option<Place> {
        let waiting = self.flows.get(&flow).map_or(0, VecDeque::len);
        if waiting >= limits.flow || self.len >= limits.total {
            return None;
        }
        if waiting == 0 {
            self.turns.push_back(flow);
        }
        let number = self.next;
        self.next += 1;
        self.len += 1;
        self.flows.entry(flow).or_default().push_back((number, request));
        Some(Place { flow, number })
    }

    /// Removes the next request.
    pub(super) fn pop(&mut self) -> Option<T> {
        let flow = self.turns.pop_front()?;
        let requests = self.flows.get_mut(&flow)?;
        let (_, request) = requests.pop_front()?;
        self.len -= 1;
        if requests.is_empty() {
            self.flows.remove(&flow);
        } else {
            self.turns.push_back(flow);
        }
        Some(request)
    }

    /// Removes the request at `place`, unless the request has left.
    pub(super) fn remove(&mut self, place: Place) {
        let Some(requests) = self.flows.get_mut(&place.flow) else { return };
        let Ok(index) = requests.binary_search_by_key(&place.number, |(number, _)| *number) else { return };
        requests.remove(index);
        self.len -= 1;
        if requests.is_empty() {
            self.flows.remove(&place.flow);
            self.turns.retain(|flow| *flow != place.flow);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }
}
