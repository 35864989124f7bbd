//! Another program reads the kinds with the generated clientset, informers and listers.

use std::{sync::Arc, time::Duration};

use ip_pool::{
    IPAddress,
    client::{clientset::Clientset, informers::GroupInformers as _},
};
use parking_lot::Mutex;
use windlass_client::{GetOptions, ResourceEventHandlerFuncs, SharedInformerFactory};
use windlass_test::{eventually, stretched};

use crate::{SOON, claims::Fixture};

#[tokio::test]
async fn addresses_are_followed_with_an_informer_and_pools_read_with_the_clientset() {
    let fixture = Fixture::start().await;
    let client = fixture.cluster.client();
    let factory = SharedInformerFactory::new(client.clone(), Duration::ZERO);
    let addresses = factory.tsi().v1alpha1().ip_addresses();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (held, freed) = (seen.clone(), seen.clone());
    addresses.informer().expect("an informer").add_event_handler(
        ResourceEventHandlerFuncs::new()
            .add_func(move |address: &Arc<IPAddress>| {
                held.lock().push(format!("{} held by {}", address.spec.address, address.spec.claim.key()));
            })
            .delete_func(move |address| freed.lock().push(format!("{} free", address.spec.address))),
    );
    factory.start();
    factory.wait_for_cache_sync(stretched(SOON)).await.expect("in sync");

    fixture.user.create_pool("one", &["10.0.0.7/32"], &[]).await;
    fixture.user.claim("first", "one", None).await;
    fixture.user.bound("first").await;
    fixture.user.counts("one", [1, 1, 0, 0], ["Exhausted", "AllInside"]).await;
    let pools = Clientset::new(client).tsi_v1alpha1().ip_pools();
    let pool = pools.get("one", &GetOptions::default()).await.expect("the pool");
    assert_eq!(pool.status.map(|status| (status.total, status.available)), Some((1, 0)));
    let lister = addresses.lister().expect("a lister");
    eventually(SOON, || async { lister.get("10.0.0.7").ok().flatten().ok_or("not in the cache") }).await;

    fixture.user.release("first").await;
    let wanted = ["10.0.0.7 held by default/first", "10.0.0.7 free"];
    eventually(SOON, || async {
        let seen = seen.lock();
        if *seen == wanted { Ok(()) } else { Err(seen.join(", ")) }
    })
    .await;
    factory.shutdown().await;
    fixture.stop().await;
}
