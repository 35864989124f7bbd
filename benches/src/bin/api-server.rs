//! The measured API server, with the allocator of the `windlass` command. Runs until standard input ends;
//! prints the kubeconfig and an empty line.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "standard output is the result")]

use std::io::{Read, Write};

use windlass_apiserver::{Listen, Server};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    windlass_apiserver::allocator_is_mimalloc();
    // An error means that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("tokio starts");
    runtime.block_on(async {
        let server = Server::builder().build().expect("the server starts");
        let listening = server.listen(Listen::default()).await.expect("a port is free");
        let kubeconfig: String = listening.kubeconfig().lines().flat_map(|line| [line, "\n"]).collect();
        print!("{kubeconfig}\n\n");
        let _ = std::io::stdout().flush();
        let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        let _ = ended.await;
    });
}
