//! Attacks one by one, with the memory and the processor time that each takes.

use std::time::{Duration, Instant};

use futures::future::join_all;

use crate::attack::{self, Attack, Means, Sent};
use crate::usage::Process;
use crate::{Connection, Result, Target};

/// The memory that a request may take beyond the sizes of the request and the reply, in bytes.
const MAX_MEMORY: u64 = 64 << 20;
/// The processor time that a request may take.
const MAX_PROCESSOR: f64 = 1.0;
/// The memory after an attack, compared with the memory before the attack.
const MAX_GROWTH: f64 = 1.5;
/// The longest wait for work that goes on after a reply.
const AFTERWARDS: Duration = Duration::from_secs(20);

/// Sends the attacks with `name` in the name, and prints a table. Returns whether all attacks kept the limits.
///
/// Several requests have the limits of so many requests for the processor time, and twice the limit for the memory.
///
/// # Errors
/// The server does not answer, or is not a process of its own.
pub async fn run(target: &Target, name: &str) -> Result<bool> {
    let process = target.process().ok_or("the server is not a process of its own")?;
    println!(
        "{:60} {:>6} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "request", "code", "size", "wait", "cpu", "peak", "after"
    );
    let mut broken = Vec::new();
    for group in attack::groups() {
        let attacks: Vec<Attack> =
            group.attacks.into_iter().filter(|attack| attack.name.contains(name)).collect();
        if attacks.is_empty() {
            continue;
        }
        let _servers = (group.prepare)(target.admin.clone()).await?;
        for attack in attacks {
            let name = attack.name;
            if !measure(target, process, attack).await? {
                broken.push(name);
            }
        }
    }
    println!("{} over a limit{}", broken.len(), if broken.is_empty() { "" } else { ":" });
    broken.iter().for_each(|name| println!("  {name}"));
    Ok(broken.is_empty())
}

async fn measure(target: &Target, process: Process, attack: Attack) -> Result<bool> {
    let admin = target.admin.connect().await?;
    process.settle(AFTERWARDS).await;
    process.reset_peak();
    let (memory, processor) = (process.resident(), process.processor());
    let start = Instant::now();
    let Attack { name, means } = attack;
    let sent = attack_by(target, &admin, means).await;
    let wait = start.elapsed();
    process.settle(AFTERWARDS).await;
    let processor = process.processor() - processor;
    let peak = process.peak().saturating_sub(memory);
    drop(admin);
    let most_after = (memory as f64 * MAX_GROWTH) as u64;
    process.shrink(most_after, AFTERWARDS).await;
    let after = process.resident();
    let allowed = MAX_MEMORY * (sent.requests as u64).min(2) + sent.bytes as u64;
    let is_over = [
        peak > allowed,
        processor > MAX_PROCESSOR * sent.requests as f64,
        after > most_after,
        !process.is_running(),
    ];
    let words = ["memory", "processor", "memory afterwards", "ended"];
    let marks: Vec<&str> =
        words.into_iter().zip(is_over).filter(|(_, is_over)| *is_over).map(|(word, _)| word).collect();
    let mark =
        if marks.is_empty() { String::new() } else { format!("  <- over the limit: {}", marks.join(", ")) };
    println!(
        "{name:60} {:>6} {:>6} K {:>6.2} s {processor:>6.2} s {:>6} M {:>6} M{mark}",
        sent.outcome,
        sent.bytes >> 10,
        wait.as_secs_f64(),
        peak >> 20,
        after >> 20
    );
    if !process.is_running() {
        return Err(format!("the server has ended: {name}").into());
    }
    Ok(marks.is_empty())
}

async fn attack_by(target: &Target, admin: &Connection, means: Means) -> Sent {
    let ended = || "ended".to_owned();
    match means {
        Means::Requests { call, copies } => {
            let replies = join_all((0..copies).map(|_| admin.send(call.clone()))).await;
            let received: usize = replies.iter().flatten().map(|reply| reply.body.len()).sum();
            let bytes = (call.body.len() + call.path.len()) * copies + received;
            let outcome = replies[0].as_ref().map_or_else(|_| ended(), |reply| reply.code.to_string());
            Sent { outcome, bytes, requests: copies }
        }
        Means::Conversation(talk) => {
            let sent = talk(target.admin.clone()).await;
            sent.unwrap_or_else(|_| Sent { outcome: ended(), bytes: 0, requests: 1 })
        }
    }
}
