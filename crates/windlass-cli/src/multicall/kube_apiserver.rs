//! `kube-apiserver`: the server by the flags of the original.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

use clap::Parser;
use windlass_apiserver::{
    AdmissionPlugin, Identity, Listen, Server, ServerBuilder, ServerCertificate, ServiceClusterIpRange,
    TokenKeyError, TokenKeys,
};

use super::etcd_health::EtcdHealth;
use super::flags;
use crate::error::Result;
use crate::logging;
use crate::open_files;
use crate::output::Output;
use crate::signals::ShutdownSignal;

/// The issuer of service account tokens without --service-account-issuer.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// How long etcd is waited for.
const ETCD_LIMIT: Duration = Duration::from_secs(60);

/// The API server of windlass, by the flags of kube-apiserver. Objects are kept in the memory of this process, not in etcd.
#[derive(Parser)]
#[command(name = "kube-apiserver", version, disable_version_flag = true)]
struct KubeApiserver {
    /// Listen on this address. Without the flag, the server listens on the loopback address only.
    #[arg(long, value_name = "IP")]
    bind_address: Option<IpAddr>,

    /// Listen on this port; 0 chooses a free port.
    #[arg(long, value_name = "PORT", default_value_t = 6443)]
    secure_port: u16,

    /// Read apiserver.crt and apiserver.key from this folder. Missing files are made.
    #[arg(long, value_name = "DIR", default_value = "/var/run/kubernetes")]
    cert_dir: PathBuf,

    /// Show this certificate (PEM) to clients.
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    tls_cert_file: Option<PathBuf>,

    /// The private key of --tls-cert-file.
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_private_key_file: Option<PathBuf>,

    /// Authenticate clients by certificates of these authorities (PEM).
    #[arg(long, value_name = "FILE")]
    client_ca_file: Option<PathBuf>,

    /// Authenticate the bearer tokens of this file: token,user,uid,"group1,group2" in each line.
    #[arg(long, value_name = "FILE")]
    token_auth_file: Option<PathBuf>,

    /// The modes of authorization: RBAC, Node (no effect beside RBAC) or AlwaysAllow.
    #[arg(long, value_name = "MODES", value_delimiter = ',', default_value = "AlwaysAllow")]
    authorization_mode: Vec<AuthorizationMode>,

    /// The issuer of service account tokens; the first one signs.
    #[arg(long, value_name = "ISSUER")]
    service_account_issuer: Vec<String>,

    /// Verify service account tokens by these keys.
    #[arg(long, value_name = "FILE")]
    service_account_key_file: Vec<PathBuf>,

    /// Sign service account tokens by this key.
    #[arg(long, value_name = "FILE")]
    service_account_signing_key_file: Vec<PathBuf>,

    /// The audiences of the server's own tokens; by default the issuer.
    #[arg(long, value_name = "AUDIENCES", value_delimiter = ',')]
    api_audiences: Vec<String>,

    /// Let requests without credentials in, as system:anonymous.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    anonymous_auth: Option<bool>,

    /// Admission plugins to switch off.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    disable_admission_plugins: Vec<String>,

    /// Admission plugins to switch on.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    enable_admission_plugins: Vec<String>,

    /// Wait until an etcd server is healthy before serving, and fail /readyz and /livez while no etcd server
    /// is healthy. Objects are kept in memory, not in etcd. The check of an https server only opens a
    /// connection.
    #[arg(long, value_name = "URLS", value_delimiter = ',')]
    etcd_servers: Vec<String>,

    /// Allocate the cluster addresses of services from this range of IPv4 addresses. The first address of the
    /// range is the address of the Service kubernetes.
    #[arg(long, value_name = "CIDR", default_value_t = ServiceClusterIpRange::default())]
    service_cluster_ip_range: ServiceClusterIpRange,

    /// Show this address of the server in the Endpoints of the Service kubernetes; by default that of the listener.
    #[arg(long, value_name = "IP")]
    advertise_address: Option<IpAddr>,

    /// Allow privileged containers.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    allow_privileged: Option<bool>,

    /// Answer this many reading requests at the same time.
    #[arg(long, value_name = "COUNT", default_value_t = 4_000)]
    max_requests_inflight: u32,

    /// Answer this many writing requests at the same time. The priority levels share the sum of both numbers.
    #[arg(long, value_name = "COUNT", default_value_t = 2_000)]
    max_mutating_requests_inflight: u32,

    /// Log more, to stderr.
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 0)]
    verbosity: u8,
}

/// A value of --authorization-mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum AuthorizationMode {
    #[value(name = "RBAC")]
    Rbac,
    #[value(name = "Node")]
    Node,
    #[value(name = "AlwaysAllow")]
    AlwaysAllow,
}

pub(super) async fn run() -> Result<()> {
    let (arguments, flags) = flags::parse::<KubeApiserver>(flags::APISERVER_WITHOUT_EFFECT, env::args_os());
    logging::start(arguments.verbosity.min(2));
    let shutdown = ShutdownSignal::listen()?;
    open_files::raise_limit();
    let listen = arguments.listen()?;
    let mut builder = arguments.server()?;
    for (name, value) in flags {
        builder = builder.flag(name, value);
    }
    let etcd = EtcdHealth::of(&arguments.etcd_servers)?;
    if let Some(etcd) = &etcd {
        builder = builder.health_check(etcd.clone());
    }
    let server = builder.build()?;
    let start = async {
        if let Some(etcd) = etcd {
            etcd.wait(ETCD_LIMIT).await?;
            tokio::spawn(etcd.watch());
        }
        Ok::<_, crate::error::Error>(server.listen(listen).await?)
    };
    let listening = tokio::select! {
        biased;
        () = shutdown.received() => return Ok(()),
        listening = start => listening?,
    };
    Output::stderr().line(format_args!("serving securely on {}", listening.local_addr()));
    shutdown.received().await;
    listening.shutdown().await;
    Ok(())
}

impl KubeApiserver {
    fn always_allows(&self) -> bool {
        self.authorization_mode.contains(&AuthorizationMode::AlwaysAllow)
    }

    /// Returns the sum of both limits. As in kube-apiserver, the sum must be positive.
    fn requests_in_flight(&self) -> u32 {
        self.max_requests_inflight.saturating_add(self.max_mutating_requests_inflight).max(1)
    }

    /// Makes the settings of the server.
    fn server(&self) -> Result<ServerBuilder> {
        let mut builder = Server::builder()
            .admission_plugin(AdmissionPlugin::ServiceAccount, true)
            .service_range(self.service_cluster_ip_range)
            .requests_in_flight(self.requests_in_flight());
        let switched = [(&self.disable_admission_plugins, false), (&self.enable_admission_plugins, true)];
        for (names, enabled) in switched {
            for name in names {
                match AdmissionPlugin::from_name(name) {
                    Some(plugin) => builder = builder.admission_plugin(plugin, enabled),
                    None => Output::stderr()
                        .line(format_args!("the admission plugin {name} cannot be switched on this server")),
                }
            }
        }
        if let Some(keys) = self.token_keys()? {
            builder = builder.token_keys(keys);
        }
        if self.always_allows() {
            builder = builder.always_allow();
        }
        if let Some(address) = self.advertise_address {
            builder = builder.advertise_address(address);
        }
        if self.allow_privileged != Some(true) {
            builder = builder.forbid_privileged();
        }
        Ok(builder)
    }

    /// Makes the listener of the flags.
    fn listen(&self) -> Result<Listen> {
        let ip = self.bind_address.unwrap_or(Ipv4Addr::LOCALHOST.into());
        let mut listen = Listen::on(SocketAddr::from((ip, self.secure_port)));
        if self.bind_address.is_some() {
            // A user who names an address wants connections from other machines.
            listen = listen.allow_remote();
        }
        // As in kube-apiserver, requests without credentials may not do everything.
        if self.anonymous_auth == Some(false) || self.always_allows() {
            listen = listen.without_anonymous();
        }
        listen = listen.certificate(self.certificate(ip)?);
        if let Some(path) = &self.client_ca_file {
            let pem = read(path, "--client-ca-file")?;
            listen =
                listen.client_authorities(&pem).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        if let Some(path) = &self.token_auth_file {
            let text = String::from_utf8_lossy(&read(path, "--token-auth-file")?).into_owned();
            for (token, identity) in tokens(&text, path)? {
                listen = listen.with_token(&token, identity);
            }
        }
        Ok(listen)
    }

    /// Returns the keys of service account tokens. The last of several signing keys counts.
    fn token_keys(&self) -> Result<Option<TokenKeys>> {
        let Some(path) = self.service_account_signing_key_file.last() else { return Ok(None) };
        let issuer = self.service_account_issuer.first().map_or(ISSUER, String::as_str);
        let in_file = |path: &Path| {
            let path = path.display().to_string();
            move |error: TokenKeyError| format!("{path}: {error}")
        };
        let key = read(path, "--service-account-signing-key-file")?;
        let mut keys = TokenKeys::new(issuer, &key).map_err(in_file(path))?;
        for path in &self.service_account_key_file {
            let text = read(path, "--service-account-key-file")?;
            keys = keys.verify_with(&text).map_err(in_file(path))?;
        }
        if !self.api_audiences.is_empty() {
            keys = keys.with_audiences(self.api_audiences.clone());
        }
        Ok(Some(keys))
    }

    /// Returns the certificate of the flags, or the certificate of the folder. Writes a new certificate to a
    /// folder without a certificate.
    fn certificate(&self, ip: IpAddr) -> Result<ServerCertificate> {
        let in_folder = (self.cert_dir.join("apiserver.crt"), self.cert_dir.join("apiserver.key"));
        let (certificate, key) = match (&self.tls_cert_file, &self.tls_private_key_file) {
            (Some(certificate), Some(key)) => (certificate.clone(), key.clone()),
            _ if in_folder.0.exists() && in_folder.1.exists() => in_folder,
            _ => {
                let service = IpAddr::from(self.service_cluster_ip_range.first());
                let addresses: Vec<_> = [ip, service].into_iter().chain(self.advertise_address).collect();
                let certificate = ServerCertificate::generate(&addresses)?;
                if let Err(error) = write_certificate(&certificate, &in_folder.0, &in_folder.1) {
                    let folder = self.cert_dir.display();
                    Output::stderr()
                        .line(format_args!("the certificate is not kept in {folder} (--cert-dir): {error}"));
                }
                return Ok(certificate);
            }
        };
        let (text, key_text) = (read(&certificate, "the certificate")?, read(&key, "the private key")?);
        let certificate = ServerCertificate::from_pem(&text, &key_text)
            .map_err(|error| format!("{} and {}: {error}", certificate.display(), key.display()))?;
        Ok(certificate)
    }
}

/// Writes a certificate and the key to new files. Only the owner may read the key: a file or a link at the path, with other
/// permissions, is removed.
fn write_certificate(certificate: &ServerCertificate, path: &Path, key_path: &Path) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    match fs::remove_file(key_path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(key_path)?.write_all(certificate.key_pem().as_bytes())?;
    fs::write(path, certificate.certificate_pem())
}

fn read(path: &Path, what: &str) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| format!("cannot read {} ({what}): {error}", path.display()).into())
}

/// Reads the lines of a token file.
fn tokens(text: &str, path: &Path) -> Result<Vec<(String, Identity)>> {
    let mut tokens = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let mut fields = line.splitn(4, ',').map(|field| field.trim().trim_matches('"'));
        let (Some(token), Some(user), Some(uid)) = (fields.next(), fields.next(), fields.next()) else {
            let line = number + 1;
            return Err(
                format!("{}:{line}: a token needs three columns: token,user,uid", path.display()).into()
            );
        };
        let groups = fields.next().unwrap_or_default().split(',').filter(|group| !group.is_empty());
        let identity = Identity::user(user).with_uid(uid).with_groups(groups.map(str::to_owned));
        tokens.push((token.to_owned(), identity));
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;

    fn parse(arguments: &str) -> Result<KubeApiserver, clap::Error> {
        let words = std::iter::once("kube-apiserver").chain(arguments.split_whitespace());
        let matches =
            flags::command::<KubeApiserver>(flags::APISERVER_WITHOUT_EFFECT).try_get_matches_from(words)?;
        KubeApiserver::from_arg_matches(&matches)
    }

    #[test]
    fn the_flags_of_envtest_are_accepted() {
        let parsed = parse(
            "--allow-privileged=true --authorization-mode=RBAC --bind-address=127.0.0.1 --cert-dir=/c \
             --client-ca-file=/c/ca.crt --disable-admission-plugins=ServiceAccount --etcd-servers=http://127.0.0.1:1 \
             --secure-port=7 --service-account-issuer=https://127.0.0.1:7/ --service-account-key-file=/c/sa.crt \
             --service-account-signing-key-file=/c/sa.key --service-cluster-ip-range=10.0.0.0/24 --v=4 \
             --feature-gates=AggregatedDiscoveryEndpoint=false",
        );
        let parsed = parsed.unwrap();
        assert_eq!((parsed.secure_port, parsed.verbosity), (7, 4));
        assert_eq!(parsed.disable_admission_plugins, ["ServiceAccount"]);
        assert!(!parsed.always_allows());
        assert_eq!(parsed.etcd_servers, ["http://127.0.0.1:1"]);
        assert_eq!(
            (parsed.allow_privileged, parsed.service_cluster_ip_range.to_string()),
            (Some(true), "10.0.0.0/24".into())
        );
    }

    #[test]
    fn the_flags_of_jenvtest_are_accepted() {
        let parsed = parse(
            "--cert-dir /c --secure-port 7 --etcd-servers http://0.0.0.0:1 --authorization-mode RBAC \
             --service-account-issuer https://localhost --service-account-signing-key-file /a \
             --service-account-signing-key-file /b --service-account-key-file /b --service-account-issuer /c \
             --disable-admission-plugins ServiceAccount --client-ca-file /d --service-cluster-ip-range 10.0.0.0/24 \
             --allow-privileged",
        );
        assert_eq!(parsed.unwrap().service_account_signing_key_file.len(), 2);
    }

    #[test]
    fn requests_in_flight_are_the_sum_of_both_flags() {
        let sum = |arguments: &str| parse(arguments).unwrap().requests_in_flight();
        assert_eq!(sum("--max-requests-inflight=30 --max-mutating-requests-inflight=12"), 42);
        assert_eq!(sum("--max-requests-inflight=0 --max-mutating-requests-inflight=0"), 1);
        assert_eq!(sum(""), 6_000);
    }

    #[test]
    fn a_new_certificate_is_kept_in_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("certificates");
        let arguments = parse(&format!("--cert-dir={}", folder.display())).unwrap();
        let made = arguments.certificate(Ipv4Addr::LOCALHOST.into()).unwrap();
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(read("apiserver.crt"), made.certificate_pem());
        assert_eq!(read("apiserver.crt").matches("BEGIN CERTIFICATE").count(), 2);
        let again = arguments.certificate(Ipv4Addr::LOCALHOST.into()).unwrap();
        assert_eq!(
            (again.certificate_pem(), again.key_pem()),
            (made.certificate_pem(), read("apiserver.key"))
        );
    }

    #[test]
    fn an_unknown_flag_is_refused_by_name() {
        let error = parse("--secure-prot=7").err().unwrap().to_string();
        assert!(error.contains("--secure-prot"), "{error}");
    }

    #[test]
    fn tokens_are_read_line_by_line() {
        let path = Path::new("tokens.csv");
        let read = tokens("# admins\nt1,jane,u1,\"a,b\"\n\nt2,bot,u2\n", path).unwrap();
        assert!(read[0].1.is_in("a") && read[0].1.is_in("b"));
        assert_eq!((read[1].0.as_str(), read[1].1.name()), ("t2", "bot"));
        let error = tokens("t1,jane", path).unwrap_err().to_string();
        assert!(error.starts_with("tokens.csv:1: "), "{error}");
    }
}
