//! The group of replicas, as this replica sees the group: workers ask for the right to work on a key.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use super::{
    membership::{Membership, MembershipStep},
    owned_keys::{OwnedKeys, Ownership},
};

/// The membership of this replica, shared by the workers and the task that keeps the Lease. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ShardGroup(Arc<Inner>);

struct Inner {
    begun: Instant,
    membership: Mutex<Membership>,
    /// A counter of the occasions on which work in flight may have to end.
    revocations: watch::Sender<u64>,
    /// Wakes the task that keeps the Lease.
    wake: Notify,
    /// How many controllers are ready to work.
    ready: watch::Sender<usize>,
    controllers: Mutex<Vec<Weak<dyn ShardedController>>>,
}

/// A controller with keys that are split among replicas.
pub(crate) trait ShardedController: Send + Sync {
    /// Queues the keys that this replica may work on now and could not before.
    fn take_over(self: Arc<Self>, before: &Arc<OwnedKeys>, now: &Arc<OwnedKeys>);
    /// Returns the name of the controller.
    fn name(&self) -> &str;
    /// Counts the keys that this replica owns.
    fn count(&self, owned_keys: &OwnedKeys) -> KeyCounts;
}

/// The keys of a controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyCounts {
    /// The keys of objects in the cache that this replica may work on.
    pub(crate) owned: usize,
    /// The keys with work to do that wait for a hand-over.
    pub(crate) waiting: usize,
    /// The keys of objects in no cache that were forgotten, because too many keys were remembered.
    pub(crate) forgotten: u64,
}

impl ShardGroup {
    pub(super) fn new(membership: Membership) -> Self {
        Self(Arc::new(Inner {
            begun: Instant::now(),
            membership: Mutex::new(membership),
            revocations: watch::channel(0).0,
            wake: Notify::new(),
            ready: watch::channel(0).0,
            controllers: Mutex::default(),
        }))
    }

    /// Begins to work on a key.
    ///
    /// # Errors
    /// This replica may not, or not yet.
    pub(crate) fn enter(&self, key: u64) -> Result<KeyRight, Ownership> {
        let revocations = self.0.revocations.subscribe();
        let ownership = self.0.membership.lock().begin(self.now(), key);
        match ownership {
            Ownership::Own => Ok(KeyRight { group: self.clone(), key, revocations }),
            other => Err(other),
        }
    }

    /// Adds a controller with filled caches. This replica joins the group when the caches of all controllers
    /// are filled.
    pub(crate) fn add(&self, controller: &Arc<impl ShardedController + 'static>) {
        let controller: Weak<dyn ShardedController> =
            Arc::downgrade(&(controller.clone() as Arc<dyn ShardedController>));
        let mut controllers = self.0.controllers.lock();
        controllers.retain(|controller| controller.strong_count() > 0);
        controllers.push(controller);
        drop(controllers);
        self.0.ready.send_modify(|ready| *ready += 1);
    }

    /// Waits until `controllers` controllers have been added.
    pub(super) async fn ready(&self, controllers: usize) {
        // The sender lives as long as `self`.
        let _ = self.0.ready.subscribe().wait_for(|ready| *ready >= controllers).await;
    }

    pub(super) fn leave(&self) {
        self.change(Membership::leave);
        self.0.wake.notify_one();
    }

    pub(super) fn next(&self, random: u64) -> MembershipStep {
        let now = self.now();
        self.change(|membership| membership.next(now, random))
    }

    pub(super) fn request_timeout(&self) -> Duration {
        self.0.membership.lock().request_timeout(self.now())
    }

    pub(super) fn name(&self) -> String {
        self.0.membership.lock().name().to_owned()
    }

    /// Waits until a time, or until the work that a hand-over waits for has ended.
    pub(super) async fn sleep_until(&self, until: Duration) {
        tokio::select! {
            biased;
            () = self.0.wake.notified() => {}
            () = tokio::time::sleep_until(self.0.begun + until) => {}
        }
    }

    /// Changes the membership, and passes the consequences on to controllers and work in flight.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Membership) -> T) -> T {
        let (result, before, now) = {
            let mut membership = self.0.membership.lock();
            let before = membership.owned_keys().clone();
            let result = change(&mut membership);
            (result, before, membership.owned_keys().clone())
        };
        // Also without a change: the time limit of a hand-over may have passed.
        self.0.revocations.send_modify(|count| *count = count.wrapping_add(1));
        if !Arc::ptr_eq(&before, &now) {
            for controller in self.controllers() {
                controller.take_over(&before, &now);
            }
        }
        result
    }

    /// Returns the keys that this replica may work on.
    pub(super) fn owned_keys(&self) -> Arc<OwnedKeys> {
        self.0.membership.lock().owned_keys().clone()
    }

    pub(super) fn hand_overs(&self) -> u64 {
        self.0.membership.lock().hand_overs()
    }

    pub(super) fn controllers(&self) -> Vec<Arc<dyn ShardedController>> {
        self.0.controllers.lock().iter().filter_map(Weak::upgrade).collect()
    }

    fn may_continue(&self, key: u64) -> bool {
        self.0.membership.lock().may_continue(self.now(), key)
    }

    pub(super) fn now(&self) -> Duration {
        self.0.begun.elapsed()
    }
}

/// The right to work on a key. Dropping the right ends the work.
pub(crate) struct KeyRight {
    group: ShardGroup,
    key: u64,
    revocations: watch::Receiver<u64>,
}

impl KeyRight {
    /// Completes when the work must end. The future looks at the clock at each poll: work that is polled
    /// afterwards does nothing once the right has ended, even if the process was suspended.
    pub(crate) async fn revoked(&mut self) {
        loop {
            let changed = self.revocations.changed();
            let ended = std::future::poll_fn(|_| {
                if self.group.may_continue(self.key) {
                    std::task::Poll::Pending
                } else {
                    std::task::Poll::Ready(())
                }
            });
            tokio::select! {
                biased;
                () = ended => return,
                _ = changed => {}
            }
        }
    }
}

impl Drop for KeyRight {
    fn drop(&mut self) {
        if self.group.0.membership.lock().end(self.key) {
            self.group.0.wake.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{leader_election::Timing, sharding::membership::MembershipTiming};

    struct Idle;

    impl ShardedController for Idle {
        fn take_over(self: Arc<Self>, _: &Arc<OwnedKeys>, _: &Arc<OwnedKeys>) {}

        fn name(&self) -> &'static str {
            "idle"
        }

        fn count(&self, _: &OwnedKeys) -> KeyCounts {
            KeyCounts::default()
        }
    }

    #[tokio::test]
    async fn controllers_that_have_ended_are_forgotten() {
        let timing = MembershipTiming { lease: Timing::default(), hand_over_timeout: Duration::from_secs(5) };
        let group = ShardGroup::new(Membership::new("op", timing, 1));
        for _ in 0..100 {
            group.add(&Arc::new(Idle));
        }
        assert_eq!(group.0.controllers.lock().len(), 1);
    }
}
