//! Gives addresses to claims.

use std::{fmt, net::IpAddr, time::Duration};

use windlass::{
    Enqueuer, EventHandler, HandlerContext, conditions,
    informer::{CacheOptions, IndexFn},
    prelude::*,
    source::Source,
};

use crate::{
    ClaimReference, IPAddress, IPAddressSpec, IPClaim, IPClaimStatus, IPPool,
    ledger::Ledger,
    name_of,
    ranges::{Ranges, number},
};

/// The number of claims that a replica works on concurrently.
const WORKERS: usize = 16;

/// The interval at which a claim without an address is tried again, even without an event.
const RETRY: Duration = Duration::from_secs(60);

/// How often the addresses of claims that are gone are looked for.
const SWEEP: Duration = Duration::from_secs(600);

/// The number of proposals in one reconcile that may turn out to be taken.
const ATTEMPTS: usize = 16;

/// The index of `IPAddress`es by the key of the claim.
const BY_CLAIM: &str = "claim";

/// The index of claims without an address by the awaited pool or address.
const WAITING: &str = "waiting";

/// Returns the controller of claims.
pub(crate) fn controller(ledger: Ledger) -> Controller {
    let by_claim = IndexFn::typed(|address: &IPAddress| [address.spec.claim.key().to_string()]);
    let addresses = Watch::with_handler(kind::<IPAddress>(), Addresses(ledger.clone()))
        .options(CacheOptions::new().index(BY_CLAIM, by_claim))
        .resync(SWEEP);
    let woken = ledger.woken_claims();
    Controller::of::<IPClaim>(Claims { ledger })
        .source(Source::keys(woken))
        .options(CacheOptions::new().index(WAITING, IndexFn::typed(waits_for)))
        .watch(addresses)
        .watch(Watch::mapped(kind::<IPPool>(), claims_of_pool).predicate(Predicate::generation_changed()))
        .max_concurrent_reconciles(WORKERS)
        .sharded()
        .needs(Permission::to::<IPAddress>([Verb::Create, Verb::Delete]))
        .needs(Permission::status_of::<IPClaim>())
}

/// Returns the pools and addresses that a claim without an address waits for.
fn waits_for(claim: &IPClaim) -> Vec<String> {
    if claim.status.as_ref().is_some_and(|status| status.address.is_some()) {
        return Vec::new();
    }
    let pool = format!("pool {}", claim.spec.pool);
    match &claim.spec.address {
        None => vec![pool],
        Some(text) => {
            let address = parse(text).map(|address| format!("address {}", name_of(address)));
            [Some(pool), address].into_iter().flatten().collect()
        }
    }
}

/// Returns the claims that wait for a pool: a changed pool may have addresses for all of these claims.
fn claims_of_pool(pool: &IPPool, cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    let waiting = cx.lister::<IPClaim>()?.by_index(WAITING, &format!("pool {}", pool.name_any()))?;
    Ok(waiting.iter().map(ObjectKey::of).collect())
}

/// Keeps the ledger, which wakes claims that wait for any address. Maps an address to the claim that holds
/// the address, and to the previous holder if a user changed the holder. Maps a free address also to claims
/// that request the address.
struct Addresses(Ledger);

impl EventHandler<ObjectKey> for Addresses {
    fn handle(
        &self,
        delta: &Delta,
        cx: &HandlerContext,
        keys: &mut Enqueuer<'_, ObjectKey>,
    ) -> Result<(), BoxError> {
        let object = delta.object().decode::<IPAddress>()?;
        keys.add(object.spec.claim.key());
        if let Delta::Updated { old, .. } = delta {
            keys.add(old.decode::<IPAddress>()?.spec.claim.key());
        }
        let Some(address) = object.address() else { return Ok(()) };
        if !matches!(delta, Delta::Deleted { .. }) {
            self.0.taken(address, &object.spec.pool);
            return Ok(());
        }
        self.0.freed(address);
        let claims = cx.lister::<IPClaim>()?;
        let this = claims.by_index(WAITING, &format!("address {}", name_of(address)))?;
        this.iter().for_each(|claim| keys.add(ObjectKey::of(claim)));
        Ok(())
    }
}

/// The reconciler of claims.
struct Claims {
    ledger: Ledger,
}

/// The result of an allocation.
enum Outcome {
    Bound(IpAddr),
    Waits(Reason, String),
}

/// The reason for a claim without an address: the reason of the condition and of the Event.
#[derive(Clone, Copy, Debug)]
enum Reason {
    PoolNotFound,
    PoolInvalid,
    PoolExhausted,
    AddressInvalid,
    AddressNotInPool,
    AddressInUse,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl Reconciler<IPClaim> for Claims {
    type Error = Error;

    async fn reconcile(&self, key: ObjectKey, cx: Context<IPClaim>) -> Result<Action> {
        // A terminating claim keeps the address until the claim is gone.
        let claim = cx.get(&key)?;
        let held =
            cx.lister::<IPAddress>()?.by_index(BY_CLAIM, &key.to_string())?.complete()?.not_terminating();
        let kept = claim.as_ref().and_then(|claim| choose(claim, &held));
        for object in held.iter().filter(|object| kept.is_none() || object.address() != kept) {
            cx.delete(object).await?;
        }
        let Some(claim) = claim.filter(|claim| claim.metadata.deletion_timestamp.is_none()) else {
            self.ledger.forget(&key);
            return Ok(Action::done());
        };
        // Also not for another pool: a user may change the pool of a claim.
        self.ledger.forget(&key);
        let outcome = match kept {
            Some(address) => Outcome::Bound(address),
            None => self.allocate(&cx, &claim).await?,
        };
        if matches!(outcome, Outcome::Bound(_)) {
            self.ledger.wake_next(&claim.spec.pool);
        }
        let action = match outcome {
            Outcome::Bound(_) => Action::done(),
            Outcome::Waits(..) => Action::requeue_after(RETRY),
        };
        report(&cx, &claim, outcome).await?;
        Ok(action)
    }
}

/// Returns the address that a claim keeps among the addresses that were created for the claim's key: a
/// requested address, or preferably the address in the status.
fn choose(claim: &IPClaim, held: &Objects<IPAddress>) -> Option<IpAddr> {
    let fits = |object: &&IPAddress| {
        let IPAddressSpec { pool, claim: holder, .. } = &object.spec;
        Some(&holder.uid) == claim.metadata.uid.as_ref() && *pool == claim.spec.pool
    };
    let is_wanted =
        |address: &IpAddr| claim.spec.address.as_ref().is_none_or(|wanted| parse(wanted) == Some(*address));
    let reported = claim.status.as_ref().and_then(|status| parse(status.address.as_ref()?));
    let fitting = held.iter().filter(fits).filter_map(IPAddress::address).filter(is_wanted);
    fitting.min_by_key(|address| (Some(*address) != reported, *address))
}

/// Parses an address. An IPv4 address in the form of IPv6, such as `::ffff:10.0.0.1`, is the IPv4 address.
fn parse(text: &str) -> Option<IpAddr> {
    text.parse().ok().map(|address: IpAddr| address.to_canonical())
}

impl Claims {
    async fn allocate(&self, cx: &Context<IPClaim>, claim: &IPClaim) -> Result<Outcome> {
        let name = &claim.spec.pool;
        let Some(pool) = cx.lister::<IPPool>()?.get(&ObjectKey::cluster(name))? else {
            return Ok(Outcome::Waits(Reason::PoolNotFound, format!("there is no pool {name}")));
        };
        if pool.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::Waits(Reason::PoolNotFound, format!("pool {name} is being deleted")));
        }
        let ranges = match Ranges::of(&pool.spec) {
            Ok(ranges) => ranges,
            Err(error) => return Ok(Outcome::Waits(Reason::PoolInvalid, format!("pool {name}: {error}"))),
        };
        if let Some(text) = &claim.spec.address {
            return take_static(cx, claim, &ranges, text).await;
        }
        // The address before, if a user deleted the object of the address.
        let before = claim.status.as_ref().and_then(|status| parse(status.address.as_ref()?));
        if let Some(address) = before.filter(|address| ranges.contains(number(*address)))
            && take(cx, claim, address).await?
        {
            return Ok(Outcome::Bound(address));
        }
        self.take_any(cx, claim, &ranges).await
    }

    async fn take_any(&self, cx: &Context<IPClaim>, claim: &IPClaim, ranges: &Ranges) -> Result<Outcome> {
        let (key, pool) = (ObjectKey::of(claim), &claim.spec.pool);
        let (addresses, claims) = (cx.lister::<IPAddress>()?, cx.lister::<IPClaim>()?);
        // This process may have written an address that the watch has not reported, and other claims of the pool may ask for the address.
        let is_taken = |address| {
            let name = name_of(address);
            let waiting = claims.by_index(WAITING, &format!("address {name}"));
            let is_asked_for =
                waiting.is_ok_and(|claims| claims.iter().any(|claim| claim.spec.pool == *pool));
            let address = addresses.get(&ObjectKey::cluster(&name));
            is_asked_for || address.map_or(true, |address| address.is_some())
        };
        for _ in 0..ATTEMPTS {
            let random = u128::from(cx.env().random()) << 64 | u128::from(cx.env().random());
            let Some(proposal) = self.ledger.propose(&key, pool, ranges, random, is_taken) else {
                return Ok(Outcome::Waits(Reason::PoolExhausted, format!("pool {pool} has no free address")));
            };
            if take(cx, claim, proposal.address).await? {
                return Ok(Outcome::Bound(proposal.address));
            }
        }
        Err(Error::other(format!("{ATTEMPTS} addresses of pool {pool} were taken by others meanwhile")))
    }
}

async fn take_static(cx: &Context<IPClaim>, claim: &IPClaim, ranges: &Ranges, text: &str) -> Result<Outcome> {
    let Some(address) = parse(text) else {
        return Ok(Outcome::Waits(Reason::AddressInvalid, format!("{text:?} is no address")));
    };
    if !ranges.contains(number(address)) {
        let message = format!("pool {} does not give {address}", claim.spec.pool);
        return Ok(Outcome::Waits(Reason::AddressNotInPool, message));
    }
    if take(cx, claim, address).await? {
        return Ok(Outcome::Bound(address));
    }
    Ok(Outcome::Waits(Reason::AddressInUse, format!("{address} belongs to another claim")))
}

/// Creates the object of an address for a claim. Returns whether the claim has the address: the server lets one creation succeed.
async fn take(cx: &Context<IPClaim>, claim: &IPClaim, address: IpAddr) -> Result<bool> {
    let claim_reference = ClaimReference {
        namespace: claim.namespace().unwrap_or_default(),
        name: claim.name_any(),
        uid: claim.uid().unwrap_or_default(),
    };
    let (address_text, pool) = (address.to_string(), claim.spec.pool.clone());
    let spec = IPAddressSpec { address: address_text, pool, claim: claim_reference };
    match cx.create(IPAddress::new(&name_of(address), spec)).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_already_exists() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes the status, and records an Event for a changed status.
async fn report(cx: &Context<IPClaim>, claim: &IPClaim, outcome: Outcome) -> Result<()> {
    let pool = &claim.spec.pool;
    let (address, reason, message) = match outcome {
        Outcome::Bound(address) => {
            (Some(address.to_string()), "Allocated".to_owned(), format!("{address} of pool {pool}"))
        }
        Outcome::Waits(reason, message) => (None, reason.to_string(), message),
    };
    let mut status = claim.status.clone().unwrap_or_default();
    let is_bound = address.is_some();
    let condition = conditions::condition("Bound", is_bound, &reason, &message)
        .observed_generation(claim.metadata.generation);
    let is_news = status.address != address || status.conditions.iter().all(|known| known.reason != reason);
    status = IPClaimStatus { address, ..status };
    conditions::set(&mut status.conditions, condition, cx.now());
    cx.update_status(claim, status).await?;
    if is_news && is_bound {
        cx.recorder().normal(claim, &reason, message);
    } else if is_news {
        cx.recorder().warning(claim, &reason, message);
    }
    Ok(())
}
