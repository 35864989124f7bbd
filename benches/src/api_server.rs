//! The start-up time and memory of the embedded API server.

use crate::cell::Cell;
use crate::process;
use kube_client::Client;
use kube_client::config::{Config, KubeConfigOptions, Kubeconfig};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use windlass_apiserver::{Identity, Server};

#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Scenario {
    /// Time from the start of a process to `/readyz` over TLS
    Ready,
    /// Time from the creation of an in-process server to the first response
    InProcess,
    /// Memory of an idle server
    AtRest,
}

pub(crate) fn run(of: Scenario) -> Cell {
    match of {
        Scenario::Ready => crate::runtime().block_on(ready(false)),
        Scenario::AtRest => crate::runtime().block_on(ready(true)),
        Scenario::InProcess => crate::runtime().block_on(in_process()),
    }
}

async fn ready(rest: bool) -> Cell {
    let program = std::env::current_exe().expect("this program has a path").with_file_name("api-server");
    let began = Instant::now();
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program starts");
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    let lines = output.lines().map_while(Result::ok).take_while(|line| !line.is_empty());
    let kubeconfig: String = lines.flat_map(|line| [line, "\n".to_owned()]).collect();
    let client = remote(&kubeconfig).await;
    ask(&client).await;
    let seconds = began.elapsed().as_secs_f64();
    let mut cell = Cell::default().with("seconds", seconds);
    if rest {
        tokio::time::sleep(Duration::from_secs(2)).await;
        cell = cell.with("resident", process::resident_of(child.id()) as f64);
    }
    drop(child.stdin.take());
    let _ = child.wait();
    cell
}

async fn remote(kubeconfig: &str) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("a configuration")).expect("a client")
}

async fn ask(client: &Client) {
    let request = http::Request::get("/readyz").body(Vec::new()).expect("a request");
    let answer = client.request_text(request).await.expect("the server is ready");
    assert_eq!(answer, "ok");
}

/// Measures the second server of a process, because the first server initialises shared state.
async fn in_process() -> Cell {
    ask(&Client::new(server().service(Identity::admin()), "default")).await;
    let (before, began) = (process::anonymous(), Instant::now());
    let server = server();
    let client = Client::new(server.service(Identity::admin()), "default");
    ask(&client).await;
    let seconds = began.elapsed().as_secs_f64();
    Cell::default()
        .with("seconds", seconds)
        .with("anonymous", process::anonymous().saturating_sub(before) as f64)
        .with("process", process::resident() as f64)
}

fn server() -> Server {
    Server::builder().build().expect("the server starts")
}
