//! A priority level: seats, and the queue for seats.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::queue::{Place, Queue, QueueLimits};
use super::schema::Counts;

/// Why a request got no seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    QueueFull,
    /// The level has no queue.
    NoSeat,
    TimeOut,
    /// The client has left.
    Cancelled,
}

impl Refused {
    pub(crate) const ALL: [Self; 4] = [Self::QueueFull, Self::NoSeat, Self::TimeOut, Self::Cancelled];

    /// Returns the label of metrics, as in kube-apiserver.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::NoSeat => "concurrency-limit",
            Self::TimeOut => "time-out",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The limits of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) seats: u32,
    /// `None`: the level refuses requests when no seat is free.
    pub(super) queue: Option<QueueLimits>,
}

/// A priority level.
pub(super) struct Level {
    pub(super) name: String,
    /// `None` if every request gets a seat.
    seating: Option<Mutex<Seating>>,
}

struct Seating {
    limits: Limits,
    taken: u32,
    waiting: Queue<oneshot::Sender<Seat>>,
}

impl Seating {
    /// Takes a free seat for the next request that waits.
    fn next(&mut self) -> Option<oneshot::Sender<Seat>> {
        let is_free = self.taken < self.limits.seats;
        let next = if is_free { self.waiting.pop() } else { None };
        self.taken += u32::from(next.is_some());
        next
    }
}

impl Level {
    /// Makes a level; `None` for a level without limits.
    pub(super) fn new(name: &str, limits: Option<Limits>) -> Self {
        let seating =
            limits.map(|limits| Mutex::new(Seating { limits, taken: 0, waiting: Queue::default() }));
        Self { name: name.to_owned(), seating }
    }

    pub(super) fn is_exempt(&self) -> bool {
        self.seating.is_none()
    }

    /// Changes the limits. Requests that wait get new seats.
    pub(super) fn limit(self: &Arc<Self>, limits: Limits) {
        let Some(seating) = &self.seating else { return };
        seating.lock().limits = limits;
        while self.give_seat() {}
    }

    /// Gives a free seat to the next request; false if no seat is free or no request waits.
    fn give_seat(self: &Arc<Self>) -> bool {
        let Some(seating) = &self.seating else { return false };
        let next = seating.lock().next();
        self.seat(next)
    }

    /// Gives a seat that was taken for the request `next`; false without a request.
    fn seat(self: &Arc<Self>, next: Option<oneshot::Sender<Seat>>) -> bool {
        let Some(next) = next else { return false };
        // The seat of a request that has left goes to the request after it.
        drop(next.send(Seat { level: Some(Arc::clone(self)), counts: None }));
        true
    }

    /// Takes a free seat.
    pub(super) fn try_enter(self: &Arc<Self>, counts: &Arc<Counts>) -> Option<Seat> {
        let level = match &self.seating {
            None => None,
            Some(seating) => {
                let mut seating = seating.lock();
                if seating.taken >= seating.limits.seats || !seating.waiting.is_empty() {
                    return None;
                }
                seating.taken += 1;
                Some(Arc::clone(self))
            }
        };
        counts.begin();
        Some(Seat { level, counts: Some(Arc::clone(counts)) })
    }

    /// Waits for a seat.
    ///
    /// # Errors
    /// The queue is full or missing, or no seat was free in time.
    pub(super) async fn enter(
        self: &Arc<Self>,
        counts: &Arc<Counts>,
        flow: u64,
        deadline: Instant,
    ) -> Result<Seat, Refused> {
        let (sender, receiver) = oneshot::channel();
        let place = self.queue(flow, sender).inspect_err(|why| counts.refuse(*why))?;
        let mut waiting = Waiting { level: self, counts, place, why: Some(Refused::Cancelled) };
        counts.wait();
        // A seat may have become free since the caller looked.
        self.give_seat();
        let Ok(Ok(mut seat)) = timeout_at(deadline, receiver).await else {
            waiting.why = Some(Refused::TimeOut);
            return Err(Refused::TimeOut);
        };
        waiting.why = None;
        counts.begin();
        seat.counts = Some(Arc::clone(counts));
        Ok(seat)
    }

    fn queue(&self, flow: u64, sender: oneshot::Sender<Seat>) -> Result<Place, Refused> {
        let Some(seating) = &self.seating else { return Err(Refused::NoSeat) };
        let mut seating = seating.lock();
        let limits = seating.limits.queue.ok_or(Refused::NoSeat)?;
        seating.waiting.push(flow, limits, sender).ok_or(Refused::QueueFull)
    }

    /// Takes back a seat, and gives the seat to the next request.
    fn leave(self: &Arc<Self>) {
        let Some(seating) = &self.seating else { return };
        let next = {
            let mut seating = seating.lock();
            seating.taken -= 1;
            seating.next()
        };
        self.seat(next);
    }
}

/// A request in the queue of a level. Dropping the value removes the request.
struct Waiting<'a> {
    level: &'a Level,
    counts: &'a Counts,
    place: Place,
    /// Why the request leaves the queue without a seat.
    why: Option<Refused>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.counts.end_wait();
        let Some(why) = self.why else { return };
        self.counts.refuse(why);
        if let Some(seating) = &self.level.seating {
            seating.lock().waiting.remove(self.place);
        }
    }
}

/// The right of a request to run. Dropping the seat gives the seat to the next request of the level.
pub(crate) struct Seat {
    /// `None` for a level without limits.
    level: Option<Arc<Level>>,
    /// `None` until the request that waited for the seat has the seat.
    counts: Option<Arc<Counts>>,
}

impl std::fmt::Debug for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seat").field("of", &self.counts).finish_non_exhaustive()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(counts) = &self.counts {
            counts.end();
        }
        if let Some(level) = &self.level {
            level.leave();
        }
    }
}
