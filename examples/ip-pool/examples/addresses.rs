//! A program that uses the kinds of this operator: prints the holder of each address, and follows changes.
//!
//! ```text
//! cargo run -p ip-pool --example addresses
//! ```
#![allow(clippy::print_stdout, reason = "the program prints what it reads")]

use std::{sync::Arc, time::Duration};

use ip_pool::{
    IPAddress,
    client::{clientset::Clientset, informers::GroupInformers as _},
};
use windlass::{
    client::{ClientBuilder, ConfigSource},
    prelude::*,
};
use windlass_client::{ListOptions, ResourceEventHandlerFuncs, Selector, SharedInformerFactory};

#[tokio::main]
async fn main() -> Result<()> {
    let config = ConfigSource::default().load().await?;
    let client = ClientBuilder::new(config).build()?;
    print_pools(&Clientset::new(client.clone())).await?;

    let factory = SharedInformerFactory::new(client, Duration::ZERO);
    let addresses = factory.tsi().v1alpha1().ip_addresses();
    addresses.informer()?.add_event_handler(
        ResourceEventHandlerFuncs::new()
            .add_func(|address: &Arc<IPAddress>| {
                println!("{} is held by {}", address.spec.address, address.spec.claim.key());
            })
            .delete_func(|address| println!("{} is free", address.spec.address)),
    );
    factory.start();
    factory.wait_for_cache_sync(Duration::from_secs(30)).await?;
    println!("{} addresses are held", addresses.lister()?.list(&Selector::everything())?.len());

    tokio::signal::ctrl_c().await.ok();
    factory.shutdown().await;
    Ok(())
}

/// Prints the counts of all pools, read from the API server.
async fn print_pools(clientset: &Clientset) -> Result<()> {
    let pools = clientset.tsi_v1alpha1().ip_pools().list(&ListOptions::default()).await?;
    for pool in pools {
        let counts = pool.status.unwrap_or_default();
        println!(
            "{}: {} of {} addresses are free",
            pool.metadata.name.unwrap_or_default(),
            counts.available,
            counts.total
        );
    }
    Ok(())
}
