//! `windlass registry`

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use clap::Args;
use windlass_image::RegistryServer;

use crate::error::Result;
use crate::output::Output;
use crate::signals::ShutdownSignal;

/// Run a registry of container images on this machine, until Ctrl-C.
///
/// The registry serves the store of `windlass image`: an image that was built with a name of this registry can be pulled without a push.
/// The registry has no TLS and no passwords, and listens on the loopback address.
#[derive(Args)]
#[command(after_help = "\
Examples:
  windlass registry --port 5000
  windlass image build --tag 127.0.0.1:5000/operator-demo:v1 --push
  skopeo inspect --tls-verify=false docker://127.0.0.1:5000/operator-demo:v1")]
pub(crate) struct Registry {
    /// Listen on this port. 0 chooses a free port.
    #[arg(long, default_value_t = 5000)]
    port: u16,

    /// Listen on this address. All programs that reach the address may read and write images.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    address: IpAddr,

    /// The folder of the store. Default: windlass/images in $XDG_CACHE_HOME, or in ~/.cache
    #[arg(long, value_name = "DIR", env = "WINDLASS_IMAGES")]
    store: Option<PathBuf>,
}

impl Registry {
    pub(crate) async fn run(self, out: &mut Output) -> Result<()> {
        let shutdown = ShutdownSignal::listen()?;
        let store = crate::image::open(self.store.as_deref())?;
        let server = RegistryServer::bind(store, (self.address, self.port).into()).await?;
        out.line(format_args!("registry at http://{}", server.address()));
        server.run(shutdown.received()).await;
        Ok(())
    }
}
