//! The TLS configuration, read again when its files change.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use futures::{FutureExt, channel::oneshot, future::Shared};
use kube_client::{Config, client::ConfigExt};
use parking_lot::Mutex;
use rustls::ClientConfig;
use tokio::{
    task::JoinError,
    time::{Instant, timeout_at},
};

use crate::{
    plugin::{self, PluginPermit, PluginRuns},
    source::{LONGEST_RUN, MIN_AGE},
};

/// How long the files are trusted to be unchanged.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// The TLS configurations of new connections.
#[derive(Clone)]
pub(crate) struct TlsConfigs {
    /// Offers HTTP/2 and HTTP/1.1.
    pub(crate) any: Arc<ClientConfig>,
    /// Offers HTTP/1.1 only.
    pub(crate) http1: Arc<ClientConfig>,
    /// Grows when the files change: connections of an earlier generation get no further requests.
    pub(crate) generation: u64,
}

/// The TLS settings of the client's configuration.
pub(crate) struct TlsFiles {
    config: Arc<Config>,
    paths: Vec<PathBuf>,
    loaded: Mutex<Loaded>,
    runs: PluginRuns,
}

struct Loaded {
    configs: TlsConfigs,
    /// A hash of the files' contents.
    contents: u64,
    made_at: Instant,
    checked_at: Instant,
    /// The run of the credential plugin that is under way.
    run: Option<PluginRun>,
    /// A run took longer than [`LONGEST_RUN`], and no run has succeeded since.
    hangs: bool,
    /// The begin of the last run, if the run failed.
    failed_run: Option<Instant>,
    /// The begin of the run that returned the client certificate.
    made_by: Option<Instant>,
}

/// A run of the credential plugin, as the callers that wait for the run see the run.
#[derive(Clone)]
struct PluginRun {
    began_at: Instant,
    /// Cancelled at the end of the run.
    end: Shared<oneshot::Receiver<()>>,
}

impl TlsFiles {
    /// Reads the certificates of a configuration. Runs its credential plugin, which may return a certificate.
    pub(crate) fn new(config: &Arc<Config>) -> Result<Self, kube_client::Error> {
        let auth = &config.auth_info;
        let identity = [&auth.client_certificate, &auth.client_key].into_iter().flatten().map(PathBuf::from);
        let paths: Vec<PathBuf> = identity.chain(config.root_cert_file.clone()).collect();
        let contents = hash(&paths);
        let configs = TlsConfigs::new(config)?;
        let now = Instant::now();
        let loaded = Loaded {
            configs,
            contents,
            made_at: now,
            checked_at: now,
            run: None,
            hangs: false,
            failed_run: None,
            made_by: None,
        };
        Ok(Self { config: config.clone(), paths, loaded: Mutex::new(loaded), runs: PluginRuns::new() })
    }

    /// Returns the configurations of new connections.
    pub(crate) fn configs(&self) -> TlsConfigs {
        self.loaded.lock().configs.clone()
    }

    /// Returns the generation of new connections.
    pub(crate) fn generation(&self) -> u64 {
        self.loaded.lock().configs.generation
    }

    /// Returns true once per minute if there are files that may have changed.
    pub(crate) fn is_check_due(&self, now: Instant) -> bool {
        if self.paths.is_empty() {
            return false;
        }
        let mut loaded = self.loaded.lock();
        let is_due = now.saturating_duration_since(loaded.checked_at) >= CHECK_INTERVAL;
        if is_due {
            loaded.checked_at = now;
        }
        is_due
    }

    /// Reads the files again, and the certificate of a credential plugin. Files that cannot be used, and a plugin that fails, leave the last
    /// certificates in use.
    ///
    /// Callers share a run of the plugin. The run goes on if the callers leave. A failed plugin runs again after [`MIN_AGE`] at the earliest,
    /// and a plugin that hangs runs again after [`LONGEST_RUN`]. From then on, callers do not wait until a run succeeds.
    ///
    /// # Errors
    /// The runtime has shut down, or reading panicked.
    pub(crate) async fn reload(self: &Arc<Self>) -> Result<(), JoinError> {
        let this = self.clone();
        if let Some(run) = tokio::task::spawn_blocking(move || this.begin_reload()).await? {
            let _ = timeout_at(run.began_at + LONGEST_RUN, run.end).await;
        }
        Ok(())
    }

    /// Reads the files. Returns the run of the plugin that the caller must wait for. Blocks.
    fn begin_reload(self: &Arc<Self>) -> Option<PluginRun> {
        let contents = hash(&self.paths);
        let now = Instant::now();
        let mut loaded = self.loaded.lock();
        if contents == loaded.contents && !self.has_old_plugin_certificate(&loaded) {
            return None;
        }
        if self.config.auth_info.exec.is_none() {
            drop(loaded);
            self.read_files(contents);
            return None;
        }
        if let Some(run) = loaded.run.clone() {
            if now < run.began_at + LONGEST_RUN {
                return (!loaded.hangs).then_some(run);
            }
            if !std::mem::replace(&mut loaded.hangs, true) {
                warn(&"the credential plugin hangs");
            }
        }
        if loaded.failed_run.is_some_and(|began_at| now < began_at + MIN_AGE) {
            return None;
        }
        let permit = self.runs.begin()?;
        let (end, ended) = oneshot::channel();
        let run = PluginRun { began_at: now, end: ended.shared() };
        loaded.run = Some(run.clone());
        let waits = !loaded.hangs;
        drop(loaded);
        // A run without a thread is dropped at once, which locks the state.
        let running =
            RunningPlugin { files: self.clone(), began_at: now, contents, _permit: permit, _end: end };
        plugin::spawn(move || running.run());
        waits.then_some(run)
    }

    /// Reads the certificates of a configuration without a plugin. Blocks.
    fn read_files(&self, contents: u64) {
        match TlsConfigs::new(&self.config) {
            Ok(configs) => {
                let mut loaded = self.loaded.lock();
                // Another caller may have read the files meanwhile.
                if loaded.contents != contents {
                    loaded.replace(configs, contents);
                }
            }
            Err(error) => warn(&error),
        }
    }

    /// Returns true if a credential plugin returned the client certificate, a minute ago or earlier.
    fn has_old_plugin_certificate(&self, loaded: &Loaded) -> bool {
        self.has_plugin_certificate(loaded) && loaded.made_at.elapsed() >= CHECK_INTERVAL
    }

    /// Returns true if a credential plugin returned the client certificate.
    fn has_plugin_certificate(&self, loaded: &Loaded) -> bool {
        let auth = &self.config.auth_info;
        auth.exec.is_some()
            && auth.client_certificate.is_none()
            && auth.client_certificate_data.is_none()
            && loaded.configs.has_client_certificate()
    }
}

impl Loaded {
    fn replace(&mut self, configs: TlsConfigs, contents: u64) {
        let generation = self.configs.generation + 1;
        self.configs = TlsConfigs { generation, ..configs };
        self.contents = contents;
        self.made_at = Instant::now();
    }
}

/// A run of the credential plugin. A run that is dropped, by a panic too, counts as failed.
struct RunningPlugin {
    files: Arc<TlsFiles>,
    began_at: Instant,
    /// A hash of the files' contents before the run.
    contents: u64,
    _permit: PluginPermit,
    /// Dropped at the end of the run.
    _end: oneshot::Sender<()>,
}

impl RunningPlugin {
    /// Runs the plugin. Blocks.
    fn run(self) {
        match TlsConfigs::new(&self.files.config) {
            Ok(configs) => self.replace(configs),
            Err(error) => warn(&error),
        }
    }

    /// Replaces the certificates, except those of a later run. kube ignores the error of a plugin, and returns no certificate.
    fn replace(&self, configs: TlsConfigs) {
        let mut loaded = self.files.loaded.lock();
        if self.files.has_plugin_certificate(&loaded) && !configs.has_client_certificate() {
            warn(&"the credential plugin returned no client certificate");
        } else if loaded.made_by < Some(self.began_at) {
            loaded.replace(configs, self.contents);
            loaded.made_by = Some(self.began_at);
            loaded.hangs = false;
        }
    }
}

impl Drop for RunningPlugin {
    fn drop(&mut self) {
        let mut loaded = self.files.loaded.lock();
        // A later run may be under way.
        if loaded.run.as_ref().is_some_and(|run| run.began_at == self.began_at) {
            loaded.run = None;
            loaded.failed_run = (loaded.made_by != Some(self.began_at)).then_some(self.began_at);
        }
    }
}

fn warn(error: &dyn std::fmt::Display) {
    tracing::warn!(%error, "certificates cannot be read again; the last certificates are used");
}

impl TlsConfigs {
    fn new(config: &Config) -> Result<Self, kube_client::Error> {
        let mut any = config.rustls_client_config()?;
        let mut http1 = any.clone();
        any.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        http1.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { any: Arc::new(any), http1: Arc::new(http1), generation: 0 })
    }

    fn has_client_certificate(&self) -> bool {
        self.any.client_auth_cert_resolver.has_certs()
    }
}

/// Returns a hash of the contents of files. A file that cannot be read counts as empty.
fn hash(paths: &[PathBuf]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for path in paths {
        std::fs::read(path).unwrap_or_default().hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use kube_client::config::ExecConfig;
    use tempfile::TempDir;

    use super::*;

    /// A credential plugin that returns a certificate. The plugin hangs or fails while a file with this name exists.
    struct Plugin(TempDir);

    impl Plugin {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let made = rcgen::generate_simple_self_signed(["client".to_owned()]).expect("a certificate");
            let credential = format!(
                r#"{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{{"clientCertificateData":{:?},"clientKeyData":{:?}}}}}"#,
                made.cert.pem(),
                made.signing_key.serialize_pem()
            );
            let plugin = Self(folder);
            plugin.write("credential", &credential);
            plugin
        }

        fn write(&self, name: &str, text: &str) {
            std::fs::write(self.0.path().join(name), text).expect("written");
        }

        fn remove(&self, name: &str) {
            std::fs::remove_file(self.0.path().join(name)).expect("removed");
        }

        fn files(&self) -> Arc<TlsFiles> {
            let script = "cd $0; echo run >> runs; while [ -e hang ]; do sleep 0.02; done; \
                          [ -e fail ] && exit 1; cat credential 2> /dev/null";
            let folder = self.0.path().display().to_string();
            let mut config = Config::new(http::Uri::from_static("https://127.0.0.1"));
            config.accept_invalid_certs = true;
            config.auth_info.exec = Some(ExecConfig {
                api_version: Some("client.authentication.k8s.io/v1".to_owned()),
                command: Some("sh".to_owned()),
                args: Some(vec!["-c".to_owned(), script.to_owned(), folder]),
                ..ExecConfig::default()
            });
            Arc::new(TlsFiles::new(&Arc::new(config)).expect("certificates"))
        }

        fn runs(&self) -> usize {
            std::fs::read_to_string(self.0.path().join("runs")).unwrap_or_default().lines().count()
        }

        /// Waits, in real time, until the plugin has begun this many runs.
        async fn has_run(&self, runs: usize) {
            while self.runs() < runs {
                std::thread::sleep(Duration::from_millis(2));
                tokio::task::yield_now().await;
            }
        }
    }

    /// Waits without letting the paused clock advance.
    async fn in_real_time<T>(wait: impl Future<Output = T>) -> T {
        let busy = async {
            loop {
                std::thread::sleep(Duration::from_millis(1));
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            outcome = wait => outcome,
            () = busy => unreachable!("an endless loop"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_plugin_that_hangs_holds_up_connections_for_two_minutes_once() {
        let plugin = Plugin::new();
        let files = plugin.files();
        plugin.write("hang", "");
        tokio::time::advance(CHECK_INTERVAL).await;
        let now = Instant::now();
        let time = async {
            plugin.has_run(2).await;
            tokio::time::advance(LONGEST_RUN).await;
        };
        let (first, second, ()) = tokio::join!(files.reload(), files.reload(), time);
        first.and(second).expect("the runtime runs");
        assert_eq!(plugin.runs(), 2, "connections share the run");
        assert!(files.configs().has_client_certificate() && files.generation() == 0, "the last certificate");

        in_real_time(files.reload()).await.expect("the runtime runs");
        plugin.has_run(3).await;
        assert_eq!(now.elapsed(), LONGEST_RUN, "connections do not wait for the second run");
        for _ in 0..5 {
            tokio::time::advance(LONGEST_RUN).await;
            in_real_time(files.reload()).await.expect("the runtime runs");
        }
        assert_eq!(now.elapsed(), 6 * LONGEST_RUN, "connections do not wait any more");
        assert_eq!(plugin.runs(), 3, "two runs hang, and no third run begins");

        plugin.remove("hang");
        in_real_time(async {
            while files.runs.begin().zip(files.runs.begin()).is_none() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert!(files.generation() > 0, "a later run works");
        tokio::time::advance(CHECK_INTERVAL).await;
        let generation = files.generation();
        in_real_time(files.reload()).await.expect("the runtime runs");
        assert!(files.generation() > generation, "connections wait for the plugin again");
    }

    #[test]
    fn a_plugin_that_hangs_does_not_hold_up_the_shutdown() {
        let plugin = Plugin::new();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let files = plugin.files();
            plugin.write("hang", "");
            files.loaded.lock().contents ^= 1;
            tokio::select! {
                _ = files.reload() => unreachable!("the plugin hangs"),
                () = plugin.has_run(2) => {}
            }
        });
        let (sender, end) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            drop(runtime);
            sender.send(())
        });
        let end = end.recv_timeout(Duration::from_secs(20));
        plugin.remove("hang");
        end.expect("the runtime ends while the plugin hangs");
    }

    #[tokio::test(start_paused = true)]
    async fn a_plugin_that_fails_leaves_the_last_certificate_in_use_and_runs_every_ten_seconds() {
        let plugin = Plugin::new();
        let files = plugin.files();
        plugin.write("fail", "");
        tokio::time::advance(CHECK_INTERVAL).await;
        for runs in [2, 3] {
            for _ in 0..20 {
                in_real_time(files.reload()).await.expect("the runtime runs");
            }
            assert_eq!(plugin.runs(), runs);
            assert!(files.configs().has_client_certificate() && files.generation() == 0);
            tokio::time::advance(MIN_AGE).await;
        }
        plugin.remove("fail");
        in_real_time(files.reload()).await.expect("the runtime runs");
        assert_eq!((plugin.runs(), files.generation()), (4, 1));
    }
}
