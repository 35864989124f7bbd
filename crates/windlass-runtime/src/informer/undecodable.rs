//! The objects of a watch that do not decode, and the time of the next list.

use std::{collections::BTreeMap, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};
use windlass_cache::{ObjectKey, RawObject, Store};

/// The delay before the first list.
const FIRST_DELAY: Duration = Duration::from_secs(5);
/// Each delay is twice the previous delay, up to this limit.
const MAX_DELAY: Duration = Duration::from_mins(10);
/// The largest number of remembered objects. A list shows all objects: a sample is enough.
const MOST_OBJECTS: usize = 64;

/// The objects of a watch that do not decode. As long as the cache holds such an object, the watch lists the
/// kind again, at growing intervals.
///
/// The server may serve a stored object with other content later, as after the conversion of a CRD was registered. The resource
/// version of the object then stays the same, and the server sends no event.
#[derive(Debug, Default)]
pub(super) struct UndecodableObjects {
    schedule: Mutex<Schedule>,
    reported: Notify,
}

#[derive(Debug, Default)]
struct Schedule {
    objects: BTreeMap<ObjectKey, RawObject>,
    /// The time of the next list, if there are objects.
    next: Option<Instant>,
    /// The delay before the next list or, without objects, before the last list.
    delay: Duration,
    last: Option<Instant>,
}

impl UndecodableObjects {
    /// Remembers an object that does not decode.
    pub(super) fn report(&self, object: &RawObject) {
        if self.schedule.lock().add(object, Instant::now()) {
            self.reported.notify_one();
        }
    }

    /// Waits until the kind is to be listed again. `store` is the cache of the watch.
    pub(super) async fn list_due(&self, store: &Store) {
        loop {
            let next = self.schedule.lock().next;
            match next {
                None => self.reported.notified().await,
                Some(next) => {
                    sleep_until(next).await;
                    if self.schedule.lock().take_due(store, Instant::now()) {
                        return;
                    }
                }
            }
        }
    }
}

impl Schedule {
    /// Adds an object. Returns whether the object is the first: a list is then scheduled.
    fn add(&mut self, object: &RawObject, now: Instant) -> bool {
        let key = object.key();
        if self.objects.len() < MOST_OBJECTS || self.objects.contains_key(&key) {
            self.objects.insert(key, object.clone());
        }
        let is_first = self.next.is_none();
        if is_first {
            self.plan(now);
        }
        is_first
    }

    /// Plans the next list. After a long time without a list, the delays begin anew.
    fn plan(&mut self, now: Instant) {
        let recent = self.last.is_some_and(|last| now < last + MAX_DELAY);
        self.delay = if recent { (self.delay * 2).min(MAX_DELAY) } else { FIRST_DELAY };
        self.next = Some(now + self.delay);
    }

    /// Forgets the objects that the store no longer holds. Returns whether a list of the remaining objects is
    /// due.
    fn take_due(&mut self, store: &Store, now: Instant) -> bool {
        let is_held = |key: &ObjectKey, object: &RawObject| {
            store.get(key).is_some_and(|held| held.is_same(object) || held.has_same_content(object))
        };
        self.objects.retain(|key, object| is_held(key, object));
        self.next = None;
        if self.objects.is_empty() {
            return false;
        }
        self.last = Some(now);
        self.plan(now);
        true
    }
}
