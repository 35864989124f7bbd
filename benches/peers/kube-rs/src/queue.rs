//! The scheduler of kube-runtime, the queue of a controller. The scheduler is a stream, with a single
//! consumer.

use crate::{Cell, number};
use futures::channel::mpsc;
use futures::StreamExt;
use kube::runtime::scheduler::{ScheduleRequest, scheduler};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

pub async fn run(options: &BTreeMap<&str, &str>) -> Cell {
    let adds = number(options, "adds");
    let keys: Vec<Arc<str>> =
        (0..adds).map(|n| format!("team-{:02}-prod/payments-{:09}", n % 25, n).into()).collect();
    let (sender, requests) = mpsc::unbounded();
    let began = Instant::now();
    let adding = tokio::spawn(async move {
        for key in &keys {
            let request = ScheduleRequest { message: Arc::clone(key), run_at: tokio::time::Instant::now() };
            sender.unbounded_send(request).expect("the queue is there");
        }
        sender
    });
    let mut queue = Box::pin(scheduler(requests));
    for _ in 0..adds {
        queue.next().await.expect("the queue is open");
    }
    let elapsed = began.elapsed().as_secs_f64();
    drop(adding.await);
    Cell::from([("rate", adds as f64 / elapsed), ("worked", adds as f64)])
}
