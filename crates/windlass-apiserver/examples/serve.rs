//! A bare API server on loopback: prints its kubeconfig and serves until it is interrupted.
//!
//! `cargo run -p windlass-apiserver --example serve > kubeconfig`

use windlass_apiserver::{Listen, Server};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the kubeconfig is the output")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::args().nth(1).map_or(Ok(0), |text| text.parse())?;
    let listening = Server::builder().build()?.listen(Listen::port(port)).await?;
    println!("{}", listening.kubeconfig());
    tokio::signal::ctrl_c().await?;
    listening.shutdown().await;
    Ok(())
}
