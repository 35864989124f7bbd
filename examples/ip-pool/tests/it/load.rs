//! Many claims, three replicas with sixteen workers each, and kills: no address is ever given twice.
//!
//! `WINDLASS_CLAIMS=100000 cargo test --release -p ip-pool load -- --ignored --nocapture` runs the test with
//! 100,000 claims, and prints the cost of each tenth of the pool.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use futures::{StreamExt, TryStreamExt, stream};
use ip_pool::{IPClaim, NAME, add_to};
use kube::{
    Client, ResourceExt,
    api::{WatchEvent, WatchParams},
};
use tokio::sync::watch;
use windlass::{Manager, leader_election::Timing, permission::Verb, sharding::Sharding};
use windlass_test::{Fault, Faults, TestCluster, eventually, stretched};

use crate::{SOON, claims::install, user::User};

/// The environment variable with the number of claims.
const CLAIMS: &str = "WINDLASS_CLAIMS";

/// Short, so that the claims of a killed replica move soon.
const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(2),
    renew_deadline: Duration::from_secs(1),
    retry_period: Duration::from_millis(200),
};

fn replica(client: Client, name: usize) -> Manager {
    let sharding = Sharding::new(NAME).identity(format!("replica-{name}")).timing(TIMING);
    add_to(Manager::new(client)).sharding(sharding)
}

/// Runs a replica that dies at a random creation of an address, after or before the creation, and is then
/// restarted.
async fn run(cluster: Client, name: usize, deaths: u32, claims: usize) {
    let mut random = fastrand::Rng::with_seed(name as u64);
    for death in 0..=deaths {
        let faults = Faults::new(cluster.clone());
        if death < deaths {
            let at = random.usize(1..=(claims / 3 / (deaths as usize + 1)).max(1));
            faults.inject(
                Fault::Crash { committed: random.bool() }.on(Verb::Create).to("ipaddresses").skip(at),
            );
        }
        tokio::select! {
            biased;
            () = faults.crashed() => {}
            result = replica(faults.client(), name).run_until(std::future::pending()) => {
                result.expect("it runs until it is killed");
            }
        }
    }
}

/// Follows the status of all claims, and sends how many have an address. Panics if an address is reported for two claims that exist.
async fn audit(user: User, bound: watch::Sender<usize>) {
    let mut version = "0".to_owned();
    let mut holders: HashMap<String, String> = HashMap::new();
    let mut addresses: BTreeMap<String, String> = BTreeMap::new();
    loop {
        let events = user.claims().watch(&WatchParams::default(), &version).await.expect("a watch");
        let mut events = events.boxed();
        while let Ok(Some(event)) = events.try_next().await {
            let claim: IPClaim = match event {
                WatchEvent::Added(claim) | WatchEvent::Modified(claim) => claim,
                WatchEvent::Deleted(claim) => {
                    let uid = claim.uid().unwrap_or_default();
                    if let Some(before) = addresses.remove(&uid) {
                        holders.remove(&before);
                    }
                    bound.send_replace(addresses.len());
                    continue;
                }
                _ => continue,
            };
            version = claim.resource_version().unwrap_or_default();
            let uid = claim.uid().unwrap_or_default();
            let address = claim.status.and_then(|status| status.address);
            if let Some(before) = addresses.remove(&uid) {
                holders.remove(&before);
            }
            if let Some(address) = address {
                let other = holders.insert(address.clone(), uid.clone());
                assert_eq!(other, None, "{address} was given to two claims");
                addresses.insert(uid, address);
            }
            bound.send_replace(addresses.len());
        }
    }
}

/// Creates claims, as many at once as a person would not.
async fn create(user: &User, names: impl Iterator<Item = String>) {
    stream::iter(names)
        .for_each_concurrent(64, |name| async move { user.claim(&name, "big", None).await })
        .await;
}

/// Waits until this number of claims have an address.
async fn settled(bound: &mut watch::Receiver<usize>, claims: usize) {
    let limit = stretched(Duration::from_secs(120 + claims as u64 / 50));
    let all_bound = tokio::time::timeout(limit, bound.wait_for(|bound| *bound == claims)).await;
    let all_bound = all_bound.map(|bound| drop(bound.expect("the audit found nothing")));
    assert!(all_bound.is_ok(), "{} of {claims} claims have an address after {limit:?}", *bound.borrow());
}

/// The cost of a part of the claims.
struct Cost {
    time: Duration,
    /// The processor time of the whole process: the server, three replicas and the test. Other programs do not change it.
    processor: Duration,
}

/// Returns the processor time of this process until now; zero on systems without `/proc`.
fn processor_time() -> Duration {
    // The fields after the name of the program, which may contain spaces; then utime and stime, in hundredths of a second.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    Duration::from_millis(fields.filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() * 10)
}

/// Fills a pool to the last address, in ten parts, then deletes a part and fills the pool again. Returns the
/// cost of each part.
async fn fill(claims: usize, deaths: u32) -> Vec<Cost> {
    let cluster = TestCluster::start().await;
    install(&cluster).await;
    let user = User(cluster.client());
    let replicas: Vec<_> =
        (0..3).map(|name| tokio::spawn(run(cluster.client(), name, deaths, claims))).collect();
    let (bound, mut bound_claims) = watch::channel(0);
    let audit = tokio::spawn(audit(user.clone(), bound));

    // Exactly as many addresses as claims.
    let first = u32::from_be_bytes([10, 0, 0, 0]);
    let last = std::net::Ipv4Addr::from_bits(first + u32::try_from(claims).expect("few enough"));
    user.create_pool("big", &["10.0.0.0/8"], &[&format!("{last}-10.255.255.255")]).await;
    let mut costs = Vec::new();
    for part in 0..10 {
        let (begin, processor) = (Instant::now(), processor_time());
        let end = (part + 1) * claims / 10;
        create(&user, (part * claims / 10..end).map(|number| format!("claim-{number}"))).await;
        settled(&mut bound_claims, end).await;
        costs.push(Cost { time: begin.elapsed(), processor: processor_time().saturating_sub(processor) });
    }
    let released = (claims / 20).max(1);
    stream::iter(0..released)
        .for_each_concurrent(64, |number| {
            let user = user.clone();
            async move { user.release(&format!("claim-{}", number * 20)).await }
        })
        .await;
    create(&user, (0..released).map(|number| format!("late-{number}"))).await;
    settled(&mut bound_claims, claims).await;
    eventually(SOON, || user.is_consistent(claims)).await;
    let total = i64::try_from(claims).expect("few enough");
    user.counts("big", [total, total, 0, 0], ["Exhausted", "AllInside"]).await;
    assert!(!audit.is_finished(), "{:?}", audit.await);
    assert!(replicas.iter().all(|replica| !replica.is_finished()));
    costs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_address_is_given_twice() {
    fill(2000, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes"]
async fn many_claims() {
    let claims = std::env::var(CLAIMS).ok().and_then(|claims| claims.parse().ok()).unwrap_or(100_000);
    let begin = Instant::now();
    for (part, Cost { time, processor }) in fill(claims, 5).await.iter().enumerate() {
        let each = processor.as_secs_f64() * 1e4 / claims as f64;
        println!(
            "{:>3} % full: {time:>8.1?}, {each:.2} ms of processor time for each claim",
            (part + 1) * 10
        );
    }
    println!("{claims} claims in {:.1?}", begin.elapsed());
}
