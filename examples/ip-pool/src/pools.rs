//! Reports the free addresses of pools.

use std::{collections::HashMap, time::Duration};

use kube::api::{Api, ListParams};
use parking_lot::Mutex;
use windlass::{
    conditions,
    finalizer::{self, Finalize},
    prelude::*,
    source::Source,
};

use crate::{IPAddress, IPPool, IPPoolStatus, ledger::Counts, ledger::Ledger, ranges::Ranges};

/// Holds a pool until no claim has an address of the pool.
const FINALIZER: &str = "tsi.tiduyun.com/in-use";

/// When to look again at a deleted pool that is in use, if no address becomes free.
const RECHECK: Duration = Duration::from_secs(60);

/// The time between two writes of a status, because a pool may have many changes.
const PERIOD: Duration = Duration::from_secs(1);

/// Returns the controller of pools.
pub(crate) fn controller(ledger: Ledger) -> Controller {
    let changed = ledger.changed_pools();
    Controller::of::<IPPool>(Pools { ledger, written: Mutex::default() })
        .source(Source::keys(changed))
        .sharded()
        .needs(Permission::status_of::<IPPool>())
        .needs(Permission::finalizers_of::<IPPool>())
        .needs(Permission::to::<IPAddress>([Verb::List]))
}

/// The reconciler of pools.
struct Pools {
    ledger: Ledger,
    /// When the status of each pool was written, in milliseconds since 1970.
    written: Mutex<HashMap<ObjectKey, i64>>,
}

impl Reconciler<IPPool> for Pools {
    type Error = Error;

    async fn reconcile(&self, key: ObjectKey, cx: Context<IPPool>) -> Result<Action> {
        let Some(pool) = cx.get(&key)? else {
            self.written.lock().remove(&key);
            return Ok(Action::done());
        };
        finalizer::guard(&cx, pool, FINALIZER, async |event| match event {
            Finalize::Apply(pool) => self.report(&key, &pool, &cx).await,
            Finalize::Cleanup(pool) => {
                let reported = self.report(&key, &pool, &cx).await?;
                if self.is_in_use(&pool, &cx).await? {
                    // The ledger announces each address that becomes free.
                    return Ok(Action::requeue_after(reported.requeues_after().unwrap_or(RECHECK)));
                }
                Ok::<_, Error>(Action::done())
            }
        })
        .await
    }
}

impl Pools {
    /// Returns whether a claim has an address of the pool.
    async fn is_in_use(&self, pool: &IPPool, cx: &Context<IPPool>) -> Result<bool> {
        let name = pool.name_any();
        let ranges = Ranges::of(&pool.spec).unwrap_or_default();
        if self.ledger.counts(&name, &ranges).allocated > 0 {
            return Ok(true);
        }
        // The ledger of a replica that has just started is empty.
        let addresses = Api::<IPAddress>::all(cx.client().clone()).list(&ListParams::default()).await?;
        Ok(addresses.iter().any(|address| address.spec.pool == name))
    }

    /// Writes the status, not more often than once in a period.
    async fn report(&self, key: &ObjectKey, pool: &IPPool, cx: &Context<IPPool>) -> Result<Action> {
        let now = cx.now().as_millisecond();
        let status = self.status_of(pool, cx);
        if Some(&status) == pool.status.as_ref() {
            return Ok(Action::done());
        }
        let since = self.written.lock().get(key).and_then(|written| u64::try_from(now - written).ok());
        let pause = since.and_then(|since| PERIOD.checked_sub(Duration::from_millis(since)));
        if let Some(pause) = pause.filter(|pause| !pause.is_zero()) {
            return Ok(Action::requeue_after(pause));
        }
        let ready = |status: &IPPoolStatus| status.conditions.first().map(|ready| ready.reason.clone());
        let (before, after) = (pool.status.as_ref().and_then(ready), ready(&status));
        let news = status.conditions.first().filter(|_| before != after).cloned();
        cx.update_status(pool, status).await?;
        self.written.lock().insert(key.clone(), now);
        match news {
            Some(ready) if ready.status == "True" => {
                cx.recorder().normal(pool, &ready.reason, ready.message);
            }
            Some(ready) => cx.recorder().warning(pool, &ready.reason, ready.message),
            None => {}
        }
        Ok(Action::done())
    }

    fn status_of(&self, pool: &IPPool, cx: &Context<IPPool>) -> IPPoolStatus {
        let mut conditions = pool.status.clone().unwrap_or_default().conditions;
        let (counts, ready) = match Ranges::of(&pool.spec) {
            Ok(ranges) => {
                let counts = self.ledger.counts(&pool.name_any(), &ranges);
                (counts, ready(counts))
            }
            Err(error) => {
                let counts = self.ledger.counts(&pool.name_any(), &Ranges::default());
                (counts, conditions::condition("Ready", false, "Invalid", error.to_string()))
            }
        };
        let ready = if pool.metadata.deletion_timestamp.is_some() {
            let message =
                format!("{} addresses are in use; the pool goes with their last claim", counts.allocated);
            conditions::condition("Ready", false, "Deleting", message)
        } else {
            ready
        };
        for condition in [ready, shrunk(counts)] {
            let condition = condition.observed_generation(pool.metadata.generation);
            conditions::set(&mut conditions, condition, cx.now());
        }
        let limited = |count: u128| i64::try_from(count).unwrap_or(i64::MAX);
        IPPoolStatus {
            total: limited(counts.total),
            allocated: limited(counts.allocated),
            available: limited(counts.available),
            outside: limited(counts.outside),
            conditions,
        }
    }
}

fn ready(counts: Counts) -> conditions::NewCondition {
    if counts.available == 0 {
        conditions::condition("Ready", false, "Exhausted", "all addresses are taken")
    } else {
        conditions::condition("Ready", true, "Available", "addresses can be taken")
    }
}

fn shrunk(counts: Counts) -> conditions::NewCondition {
    if counts.outside == 0 {
        conditions::condition("Shrunk", false, "AllInside", "all addresses in use are in the pool")
    } else {
        let message = "addresses in use are outside of the pool; their claims keep them";
        conditions::condition("Shrunk", true, "InUseOutside", message)
    }
}
