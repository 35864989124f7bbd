//! The two servers.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use kube_client::Client;
use kube_client::client::Body;
use kube_client::config::{Config, KubeConfigOptions, Kubeconfig};
use windlass_apiserver::{Identity, Server};
use windlass_siege::HttpsServer;

use crate::op::PLACEHOLDER;
use crate::webhook;

/// How to reach a server.
#[derive(Clone, Debug)]
pub enum Backend {
    /// A fresh embedded server for each script.
    Embedded,
    /// A running server with a kubeconfig.
    Real(PathBuf),
}

/// A server for one script.
pub(crate) struct Session {
    pub(crate) client: Client,
    /// The replacement of [`PLACEHOLDER`]. Both have the same length.
    pub(crate) id: String,
    /// True if other runs use the server. Some parts of the server then follow writes with a delay.
    pub(crate) shared: bool,
    /// The webhook server of the script.
    pub(crate) webhook: HttpsServer,
}

impl Backend {
    /// Returns whether a controller manager runs beside the server. A controller manager creates an object in
    /// each namespace.
    pub async fn has_controllers(&self) -> Result<bool, Box<dyn std::error::Error>> {
        let path = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt";
        let request = http::Request::get(path).body(Body::empty())?;
        Ok(self.open().await?.client.send(request).await?.status().is_success())
    }

    /// Opens the server for a script.
    pub(crate) async fn open(&self) -> Result<Session, Box<dyn std::error::Error>> {
        let webhook = webhook::start().await.map_err(|error| -> Box<dyn std::error::Error> { error })?;
        match self {
            Backend::Embedded => {
                // The real server has no controller that aggregates cluster roles.
                let server = Server::builder().aggregate_cluster_roles(false).build()?;
                let client = Client::new(server.service(Identity::admin()), "default");
                Ok(Session { client, id: PLACEHOLDER.to_owned(), shared: false, webhook })
            }
            Backend::Real(path) => {
                Ok(Session { client: connect(path).await?, id: unique_id(), shared: true, webhook })
            }
        }
    }
}

async fn connect(path: &Path) -> Result<Client, Box<dyn std::error::Error>> {
    let kubeconfig = Kubeconfig::read_from(path)?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    // A reply with 429 or 504 is a result.
    config.default_retry = false;
    config.read_timeout = Some(Duration::from_secs(60));
    Ok(Client::try_from(config)?)
}

/// Returns an id of the placeholder's length, different at each call. Other processes hardly use the same id.
fn unique_id() -> String {
    static NEXT: LazyLock<AtomicUsize> = LazyLock::new(|| {
        let millis = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.as_millis());
        AtomicUsize::new(fastrand::Rng::with_seed(millis as u64).usize(..1 << 20))
    });
    let mut number = NEXT.fetch_add(1, Ordering::Relaxed);
    let letters = b"bcdfghjklmnpqrstvwxz2456789";
    let letter = |_| {
        let letter = letters[number % letters.len()];
        number /= letters.len();
        char::from(letter)
    };
    let suffix: String = (0..4).map(letter).collect();
    format!("tw{suffix}")
}
