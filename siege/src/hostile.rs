//! Attacks one by one, with the memory and the processor time that each takes.

use std::time::{Duration, Instant};

use futures::future::join_all;

use crate::attack::{self, Attack};
use crate::usage::Process;
use crate::{Connection, Result, Target};

/// The memory that a request may take beyond the size of the request, in bytes.
const MAX_MEMORY: u64 = 64 << 20;
/// The processor time that a request may take.
const MAX_PROCESSOR: f64 = 1.0;
/// The longest wait for work that goes on after a reply.
const AFTERWARDS: Duration = Duration::from_secs(20);

/// Sends the attacks with `name` in the name, and prints a table. Returns whether all requests kept the limits.
///
/// Several copies of a request have the limits of so many requests for the processor time, and twice the limit for the memory.
///
/// # Errors
/// The server does not answer, or is not a process of its own.
pub async fn run(target: &Target, name: &str) -> Result<bool> {
    let admin = target.admin.connect().await?;
    attack::prepare(&admin).await?;
    let process = target.process().ok_or("the server is not a process of its own")?;
    println!(
        "{:52} {:>5} {:>7} {:>8} {:>8} {:>8} {:>8}",
        "request", "code", "size", "wait", "cpu", "peak", "after"
    );
    let mut is_right = true;
    for attack in attack::all().into_iter().filter(|attack| attack.name.contains(name)) {
        is_right &= measure(&admin, process, attack).await?;
    }
    Ok(is_right)
}

async fn measure(admin: &Connection, process: Process, attack: Attack) -> Result<bool> {
    process.settle(AFTERWARDS).await;
    process.reset_peak();
    let (memory, processor) = (process.resident(), process.processor());
    let start = Instant::now();
    let Attack { name, call, copies } = attack;
    let size = call.body.len() + call.path.len();
    let replies = join_all((0..copies).map(|_| admin.send(call.clone()))).await;
    let wait = start.elapsed();
    process.settle(AFTERWARDS).await;
    let processor = process.processor() - processor;
    let peak = process.peak().saturating_sub(memory);
    let after = process.resident().saturating_sub(memory);
    let code = match &replies[0] {
        Ok(reply) => reply.code.to_string(),
        Err(_) => "ended".to_owned(),
    };
    let times = copies as u64;
    let allowed = MAX_MEMORY * times.min(2) + size as u64 * times;
    let is_right = process.is_running() && peak <= allowed && processor <= MAX_PROCESSOR * copies as f64;
    let mark = if is_right { "" } else { "  <- over the limit" };
    println!(
        "{name:52} {code:>5} {:>5} K {:>6.2} s {processor:>6.2} s {:>6} M {:>6} M{mark}",
        size >> 10,
        wait.as_secs_f64(),
        peak >> 20,
        after >> 20
    );
    if !process.is_running() {
        return Err(format!("the server has ended: {name}").into());
    }
    Ok(is_right)
}
