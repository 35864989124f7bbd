//! Many clients that write, watch, list and lose their connections, and a check of all that the clients have seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fastrand::Rng;
use http::Method;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::client::{Call, Client, Connection};
use crate::schema::text;
use crate::watcher::{Seen, Watcher, items, version};
use crate::webhook::Webhook;
use crate::{Result, Target};

const WRITERS: u64 = 8;
const WATCHERS: u64 = 6;
/// The number of names that are written.
const NAMES: u64 = 25;
const NAMESPACE: &str = "concurrency";
const MAPS: &str = "/api/v1/namespaces/concurrency/configmaps";
/// The object that ends the watches.
const LAST: &str = "last";
/// One of so many writes loses the connection.
const KILLS: u64 = 20;
/// The number of lists at exact versions that are compared.
const MAX_LISTS: usize = 200;

/// The observations of all clients.
#[derive(Debug, Default)]
pub struct Report {
    acknowledged: usize,
    unanswered: u64,
    events: usize,
    resumed: u64,
    relisted: u64,
    lists: usize,
    /// Broken promises of the server.
    pub wrong: Vec<String>,
}

impl Report {
    /// Returns whether the server kept all promises.
    pub fn is_right(&self) -> bool {
        self.wrong.is_empty() && self.acknowledged > 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { acknowledged, unanswered, events, resumed, relisted, lists, wrong } = self;
        write!(
            f,
            "{acknowledged} acknowledged writes, {unanswered} writes without an answer, {events} events, {resumed} watches resumed, \
             {relisted} listed again, {lists} lists compared, {} wrong",
            wrong.len()
        )?;
        wrong.iter().take(50).try_for_each(|wrong| write!(f, "\n{wrong}"))
    }
}

/// The writes of all writers.
#[derive(Default)]
struct Log {
    /// The versions of the acknowledged writes, with the name.
    acknowledged: Vec<(u64, String)>,
    unanswered: u64,
    /// Lists at a version.
    lists: Vec<(u64, BTreeMap<String, Seen>)>,
    wrong: Vec<String>,
}

/// Lets clients write and watch for `time`, and compares.
///
/// # Errors
/// The server refuses a connection, or a request that should succeed.
pub async fn run(target: &Target, seed: u64, time: Duration) -> Result<Report> {
    let admin = &target.admin;
    let first = admin.connect().await?;
    first.send(Call::post("/api/v1/namespaces", &json!({"metadata": {"name": NAMESPACE}}))).await?;
    let webhook = Webhook::start().await?;
    let configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    first.send(Call::post(configurations, &webhook.configuration(NAMESPACE))).await?;
    let (ended, end) = watch::channel(None);
    let mut watchers = JoinSet::new();
    for number in 0..WATCHERS {
        let is_unlucky = number % 2 == 1;
        watchers.spawn(Watcher::new(admin.clone(), MAPS, seed ^ number, is_unlucky).run(end.clone()));
    }
    let log = Arc::new(Mutex::new(Log::default()));
    let stop = Instant::now() + time;
    let mut clients = JoinSet::new();
    for number in 0..WRITERS {
        let writer = Writer { client: admin.clone(), random: Rng::with_seed(seed ^ (number << 32)), number };
        clients.spawn(writer.run(stop, Arc::clone(&log)));
    }
    clients.spawn(list(admin.clone(), seed, stop, Arc::clone(&log)));
    while let Some(client) = clients.join_next().await {
        client??;
    }
    let last = first.send(Call::post(MAPS, &json!({"metadata": {"name": LAST}}))).await?;
    if last.code != 201 {
        return Err(format!("the last write: {}", last.code).into());
    }
    ended.send(Some(version(&last.json())))?;
    let mut seen = Vec::new();
    while let Some(watcher) = watchers.join_next().await {
        seen.push(watcher??);
    }
    let list = first.send(Call::get(MAPS)).await?.json();
    first.send(Call::new(Method::DELETE, format!("{configurations}/{NAMESPACE}"))).await?;
    first.send(Call::new(Method::DELETE, format!("/api/v1/namespaces/{NAMESPACE}"))).await?;
    let log = std::mem::take(&mut *log.lock().map_err(|_| "a client panicked")?);
    Ok(compare(log, seen, &items(&list)))
}

fn compare(log: Log, watchers: Vec<Watcher>, list: &BTreeMap<String, Seen>) -> Report {
    let mut report = Report {
        acknowledged: log.acknowledged.len(),
        unanswered: log.unanswered,
        wrong: log.wrong,
        ..Report::default()
    };
    let written: BTreeSet<u64> = log.acknowledged.iter().map(|(version, _)| *version).collect();
    if written.len() != log.acknowledged.len() {
        report.wrong.push("two writes have the same version".to_owned());
    }
    for watcher in &watchers {
        report.events += watcher.events.len();
        report.resumed += watcher.resumed;
        report.relisted += watcher.relisted;
        report.wrong.extend(watcher.wrong.iter().cloned());
        if watcher.objects != *list {
            report.wrong.push("the copy of a watcher differs from the list".to_owned());
        }
        if watcher.relisted > 0 {
            continue;
        }
        let seen: BTreeSet<u64> = watcher.events.iter().map(|(version, ..)| *version).collect();
        let missed: Vec<&(u64, String)> = log
            .acknowledged
            .iter()
            .filter(|(version, _)| *version > watcher.start && !seen.contains(version))
            .collect();
        if !missed.is_empty() {
            report.wrong.push(format!("a watcher missed {} writes: {:?}", missed.len(), missed.first()));
        }
    }
    let Some(watcher) = watchers.iter().find(|watcher| watcher.relisted == 0) else {
        report.wrong.push("every watcher had to list again".to_owned());
        return report;
    };
    for (version, listed) in &log.lists {
        if *version >= watcher.start {
            report.lists += 1;
            if replay(watcher, *version) != *listed {
                report.wrong.push(format!("the list at {version} differs from the events"));
            }
        }
    }
    report
}

/// Returns the objects at a version, by the events of a watcher.
fn replay(watcher: &Watcher, version: u64) -> BTreeMap<String, Seen> {
    let mut objects = watcher.initial.clone();
    for (_, name, object) in watcher.events.iter().take_while(|(at, ..)| *at <= version) {
        match object {
            Some(object) => objects.insert(name.clone(), object.clone()),
            None => objects.remove(name),
        };
    }
    objects
}

/// Lists whole, by pages, and at exact versions.
async fn list(client: Client, seed: u64, stop: Instant, log: Arc<Mutex<Log>>) -> Result {
    let connection = client.connect().await?;
    let mut random = Rng::with_seed(seed);
    while Instant::now() < stop {
        let whole = connection.send(Call::get(MAPS)).await?.json();
        let at = version(&whole);
        let exact = format!("{MAPS}?resourceVersion={at}&resourceVersionMatch=Exact");
        tokio::time::sleep(Duration::from_millis(random.u64(..200))).await;
        let again = connection.send(Call::get(exact)).await?;
        let mut paged = BTreeMap::new();
        let (mut token, mut paged_at) = (String::new(), 0);
        loop {
            let page = connection.send(Call::get(format!("{MAPS}?limit=7&continue={token}"))).await?.json();
            paged.extend(items(&page));
            if paged_at != 0 && paged_at != version(&page) {
                log.lock()
                    .map_err(|_| "a client panicked")?
                    .wrong
                    .push("pages have several versions".to_owned());
            }
            paged_at = version(&page);
            token = text(&page["metadata"]["continue"]).to_owned();
            if token.is_empty() {
                break;
            }
        }
        let mut log = log.lock().map_err(|_| "a client panicked")?;
        if again.code == 200 && items(&again.json()) != items(&whole) {
            log.wrong.push(format!("two lists at {at} differ"));
        }
        if log.lists.len() < MAX_LISTS {
            log.lists.push((at, items(&whole)));
            log.lists.push((paged_at, paged));
        }
    }
    Ok(())
}

/// A client that writes.
struct Writer {
    client: Client,
    random: Rng,
    number: u64,
}

impl Writer {
    async fn run(mut self, stop: Instant, log: Arc<Mutex<Log>>) -> Result {
        let mut connection = self.client.connect().await?;
        while Instant::now() < stop {
            let name = format!("m{}", self.random.u64(..NAMES));
            let Some(call) = self.call(&connection, &name).await? else { continue };
            if self.random.u64(..KILLS) == 0 {
                let wait = Duration::from_micros(self.random.u64(..3_000));
                let _ = tokio::time::timeout(wait, connection.begin(call)).await;
                connection.kill();
                log.lock().map_err(|_| "a client panicked")?.unanswered += 1;
                connection = self.client.connect().await?;
                continue;
            }
            let (is_dry, is_delete) = (call.path.contains("dryRun"), call.method == Method::DELETE);
            let reply = connection.send(call).await?;
            let mut log = log.lock().map_err(|_| "a client panicked")?;
            match reply.code {
                200 | 201 if is_dry || is_delete => {}
                200 | 201 => log.acknowledged.push((version(&reply.json()), name)),
                404 | 409 | 422 => {}
                code => log.wrong.push(format!("{code}: {}", String::from_utf8_lossy(&reply.body))),
            }
        }
        Ok(())
    }

    /// Makes the next write of an object. Returns `None` if the object that the write needs is missing.
    async fn call(&mut self, connection: &Connection, name: &str) -> Result<Option<Call>> {
        let path = format!("{MAPS}/{name}");
        let kind = self.random.u32(..10);
        if kind < 2 {
            let object = json!({"metadata": {"name": name}, "data": {"count": "0"}});
            return Ok(Some(Call::post(MAPS, &object)));
        }
        let reply = connection.send(Call::get(&path)).await?;
        if reply.code != 200 {
            return Ok(None);
        }
        let mut object = reply.json();
        let (count, at) = (Seen::of(&object).count, version(&object));
        let next = json!((count + 1).to_string());
        let by = format!("w{}", self.number);
        let dry = if self.random.u32(..10) == 0 { "?dryRun=All" } else { "" };
        let patch = |content_type, body: Value| {
            Call::new(Method::PATCH, format!("{path}{dry}")).with(content_type, body.to_string())
        };
        Ok(Some(match kind {
            2..4 => {
                object["data"]["count"] = next;
                Call::new(Method::PUT, format!("{path}{dry}")).with("application/json", object.to_string())
            }
            4 => patch(
                "application/merge-patch+json",
                json!({
                    "metadata": {"resourceVersion": at.to_string()}, "data": {"count": next, by: at.to_string()}
                }),
            ),
            5 => patch("application/merge-patch+json", json!({"metadata": {"labels": {by: at.to_string()}}})),
            6 | 7 => patch(
                "application/json-patch+json",
                json!([
                    {"op": "test", "path": "/metadata/uid", "value": object["metadata"]["uid"]},
                    {"op": "test", "path": "/data/count", "value": count.to_string()},
                    {"op": "replace", "path": "/data/count", "value": next}
                ]),
            ),
            8 => {
                let config = json!({
                    "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "annotations": {by.clone(): at.to_string()}}
                });
                let path = format!("{path}?fieldManager={by}&force=true");
                Call::new(Method::PATCH, path).with("application/apply-patch+yaml", config.to_string())
            }
            _ => {
                let options = json!({"preconditions": {"resourceVersion": at.to_string()}});
                Call::new(Method::DELETE, path).with("application/json", options.to_string())
            }
        }))
    }
}
