//! Many hostile clients at once, and the latency of the administrator meanwhile.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use crate::attack::{self, MAPS};
use crate::client::{Call, Client, Connection};
use crate::usage::Process;
use crate::{Result, Target};

/// The longest time that the administrator waits for `/readyz`.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// The memory after the attack, compared with the memory before.
const MAX_GROWTH: f64 = 1.5;
/// The longest time after the end of the attack until the memory is measured: longer than the history of the server.
const AFTERWARDS: Duration = Duration::from_secs(100);

/// The label of the objects that the crowd creates.
const LABEL: &str = "siege-crowd";

/// The number of hostile users with rights.
const USERS: usize = 20;

/// The work of the hostile clients.
#[derive(Default)]
struct Work {
    requests: AtomicU64,
    refused: AtomicU64,
}

/// Lets `clients` hostile clients loose for `time`. Returns whether the server kept the limits.
///
/// # Errors
/// The server does not start, or the administrator gets no reply.
pub async fn run(target: &Target, clients: usize, time: Duration) -> Result<bool> {
    let admin = target.admin.connect().await?;
    attack::prepare(&admin).await?;
    allow(&admin).await?;
    let attacks = Arc::new(attack::calls());
    let process = target.process();
    let resident = || process.map_or(0, Process::resident);
    let kept = names(&admin, "").await?;
    let before = resident();
    let work = Arc::new(Work::default());
    let mut crowd = JoinSet::new();
    for number in 0..clients {
        crowd.spawn(hostile(target.admin.clone(), number, Arc::clone(&attacks), Arc::clone(&work)));
    }
    let client = target.admin.clone();
    // The administrator has a separate thread: the crowd keeps the threads of this runtime busy.
    let probe = std::thread::spawn(move || probe(client, time));
    let mut peak = before;
    while !probe.is_finished() {
        peak = peak.max(resident());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut waits = probe.join().map_err(|_| "the administrator panicked")??;
    crowd.shutdown().await;
    remove_objects(&admin, &kept).await?;
    if let Some(process) = process {
        process.shrink((before as f64 * MAX_GROWTH) as u64, AFTERWARDS).await;
    }
    let after = resident();
    waits.sort();
    let at = |part: usize| waits.get(waits.len() * part / 100).copied().unwrap_or_default();
    let longest = waits.last().copied().unwrap_or_default();
    println!(
        "{clients} clients for {} s: {} requests, {} refused; /readyz: {} times, median {:?}, 99 % {:?}, longest {longest:?}",
        time.as_secs(),
        work.requests.load(Ordering::Relaxed),
        work.refused.load(Ordering::Relaxed),
        waits.len(),
        at(50),
        at(99),
    );
    println!("memory: {} MiB before, {} MiB at most, {} MiB after", before >> 20, peak >> 20, after >> 20);
    Ok(longest <= MAX_WAIT && (process.is_none() || after as f64 <= before as f64 * MAX_GROWTH))
}

/// Returns the names of the ConfigMaps in the namespace of the attacks.
async fn names(admin: &Connection, query: &str) -> Result<BTreeSet<String>> {
    let reply = admin.send(Call::get(format!("{MAPS}?{query}"))).await?;
    let list: Value = serde_json::from_slice(&reply.body)?;
    let items = list["items"].as_array().into_iter().flatten();
    Ok(items.filter_map(|item| item["metadata"]["name"].as_str()).map(str::to_owned).collect())
}

/// Removes the objects that the crowd has created: all but the `kept`.
async fn remove_objects(admin: &Connection, kept: &BTreeSet<String>) -> Result {
    match admin.send(Call::new(Method::DELETE, format!("{MAPS}?labelSelector={LABEL}"))).await?.code {
        200 => {}
        code => return Err(format!("the objects stay: {code}").into()),
    }
    for name in names(admin, "").await?.difference(kept) {
        admin.send(Call::new(Method::DELETE, format!("{MAPS}/{name}"))).await?;
    }
    match names(admin, &format!("labelSelector={LABEL}")).await?.len() {
        0 => Ok(()),
        count => Err(format!("{count} objects stay").into()),
    }
}

/// Asks for `/readyz` again and again, on a kept connection and on new connections in turn. Returns the waits.
fn probe(admin: Client, time: Duration) -> Result<Vec<Duration>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let kept = admin.connect().await?;
        let mut waits = Vec::new();
        let end = Instant::now() + time;
        while Instant::now() < end {
            let start = Instant::now();
            let call = Call::get("/readyz");
            let reply = if waits.len() % 2 == 0 { kept.send(call).await } else { admin.send(call).await };
            waits.push(start.elapsed());
            let code = reply?.code;
            if code != 200 {
                return Err(format!("/readyz: {code}").into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(waits)
    })
}

/// Returns the name of a hostile user.
fn user(number: usize) -> String {
    format!("siege-{}", number % USERS)
}

/// Gives the hostile users all rights, but for the limits of requests in flight.
async fn allow(admin: &Connection) -> Result {
    let subjects: Vec<_> = (0..USERS)
        .map(|number| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user(number)}))
        .collect();
    let binding = json!({
        "metadata": {"name": "siege"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": subjects
    });
    let call = Call::post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding);
    match admin.send(call).await?.code {
        201 | 409 => Ok(()),
        code => Err(format!("the users get no rights: {code}").into()),
    }
}

/// Attacks until the end of the task.
async fn hostile(admin: Client, number: usize, attacks: Arc<Vec<Call>>, work: Arc<Work>) {
    let (user, anonymous) = (admin.as_user(&user(number)), admin.anonymous());
    let mut random = fastrand::Rng::with_seed(number as u64);
    loop {
        // An attack that the server ends is tried again.
        let _ = match number % 8 {
            0 => silence(&anonymous).await,
            1 => half_a_request(&anonymous).await,
            2 => flood(&anonymous, "/api/v1/pods", &work).await,
            3 => flood(&user, "/openapi/v3", &work).await,
            4 | 5 => send_body(&user, &attacks[number / 8 % attacks.len()], &work).await,
            6 => watches(&user, &work).await,
            _ => resets(&user, &work).await,
        };
        tokio::time::sleep(Duration::from_millis(random.u64(1..50))).await;
    }
}

/// Opens a TLS connection, and says nothing.
async fn silence(client: &Client) -> Result {
    let mut stream = client.tls("h2").await?;
    let _ = stream.read(&mut [0; 1]).await;
    Ok(())
}

/// Sends the head of a request, a byte a second.
async fn half_a_request(client: &Client) -> Result {
    let mut stream = client.tls("http/1.1").await?;
    for byte in b"GET /api/v1/namespaces HTTP/1.1\r\nhost: x\r\nx-long: ".iter().chain([b'x'; 600].iter()) {
        stream.write_all(&[*byte]).await?;
        stream.flush().await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}

/// Sends requests as fast as the server answers.
async fn flood(client: &Client, path: &str, work: &Work) -> Result {
    let connection = client.connect().await?;
    for _ in 0..1_000 {
        let reply = connection.send(Call::get(path)).await?;
        work.count(reply.code);
    }
    Ok(())
}

/// Sends a hostile body.
async fn send_body(client: &Client, call: &Call, work: &Work) -> Result {
    let connection = client.connect().await?;
    for _ in 0..10 {
        let reply = connection.send(call.clone()).await?;
        work.count(reply.code);
    }
    Ok(())
}

/// Opens watches, and leaves without reading.
async fn watches(client: &Client, work: &Work) -> Result {
    let connection = client.connect().await?;
    let mut open = Vec::new();
    for _ in 0..100 {
        let path = format!("{MAPS}?watch=true");
        let response = connection.begin(Call::get(path)).await?;
        work.count(response.status().as_u16());
        open.push(response);
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    Ok(())
}

/// Begins writes, and closes the connection before the replies.
async fn resets(client: &Client, work: &Work) -> Result {
    let connection = client.connect().await?;
    for _ in 0..100 {
        let object = json!({"metadata": {"generateName": "x-", "labels": {LABEL: ""}}});
        let begun = connection.begin(Call::post(MAPS, &object));
        let _ = tokio::time::timeout(Duration::from_millis(1), begun).await;
        work.requests.fetch_add(1, Ordering::Relaxed);
    }
    connection.kill();
    Ok(())
}

impl Work {
    fn count(&self, code: u16) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if code == 429 {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }
}
