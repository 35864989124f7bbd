//! Starts, stops and describes the instance.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::StartArgs;
use super::layout::{Layout, PROGRAMS};
use super::process::{Lifetime, Process};
use crate::Result;

/// The time that the API server has to become ready.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The running instance, as saved in `instance.json`.
#[derive(Serialize, Deserialize)]
pub(super) struct Instance {
    url: String,
    /// In start order.
    pub(super) processes: Vec<Process>,
    #[serde(skip)]
    lifetime: Lifetime,
}

pub(super) fn start(layout: &Layout, args: &StartArgs) -> Result {
    if let Some(instance) = Instance::running(layout) {
        return Err(format!(
            "already running at {}; stop it with `cargo xtask control-plane stop`",
            instance.url
        )
        .into());
    }
    let begin = Instant::now();
    let instance = launch(layout, args, Lifetime::Detached)?;
    println!(
        "Kubernetes {} is ready at {} after {:.1} s.",
        layout.release,
        instance.url,
        begin.elapsed().as_secs_f32()
    );
    println!("  export KUBECONFIG={}", layout.kubeconfig().display());
    println!("  {} get namespaces", layout.program("kubectl").display());
    println!("  cargo xtask control-plane stop");
    Ok(())
}

/// Starts the programs in an empty folder and waits until the API server is ready.
pub(super) fn launch(layout: &Layout, args: &StartArgs, lifetime: Lifetime) -> Result<Instance> {
    let folder = layout.run();
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let port = if args.port == 0 { free_port()? } else { args.port };
    let mut instance = Instance { url: format!("https://127.0.0.1:{port}"), processes: Vec::new(), lifetime };
    let started = instance.start_all(layout, port, args);
    if let Err(error) = started {
        // Stop the processes that were started before the error.
        for process in instance.processes.iter().rev() {
            let _ = process.stop();
        }
        return Err(error);
    }
    Ok(instance)
}

impl Instance {
    fn read(layout: &Layout) -> Option<Self> {
        serde_json::from_slice(&fs::read(layout.run().join("instance.json")).ok()?).ok()
    }

    /// Returns the instance in the folder of `layout`, if a process of the instance runs.
    pub(super) fn running(layout: &Layout) -> Option<Self> {
        Self::read(layout).filter(|instance| instance.processes.iter().any(Process::runs))
    }

    fn start_all(&mut self, layout: &Layout, port: u16, args: &StartArgs) -> Result {
        let folder = layout.run();
        let token = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        write_secret(&folder.join("tokens.csv"), &format!("{token},admin,admin,system:masters\n"))?;
        let key = rcgen::KeyPair::generate()?;
        write_secret(&folder.join("service-accounts.key"), &key.serialize_pem())?;
        fs::write(folder.join("service-accounts.pub"), key.public_key_pem())?;
        write_signer(&folder)?;

        eprintln!("starting etcd {} …", layout.release.etcd);
        let etcd = format!("http://127.0.0.1:{}", free_port()?);
        let peers = format!("http://127.0.0.1:{}", free_port()?);
        self.spawn(layout, "etcd", &etcd_flags(&etcd, &peers))?;

        eprintln!("starting kube-apiserver …");
        self.spawn(layout, "kube-apiserver", &apiserver_flags(&etcd, port))?;
        self.wait_for(layout, "the certificate of kube-apiserver", |folder| {
            folder.join("certificates/apiserver.crt").exists()
        })?;
        write_secret(&layout.kubeconfig(), &kubeconfig(&self.url, &folder, &token))?;
        let (kubectl, config) = (layout.program("kubectl"), layout.kubeconfig());
        self.wait_for(layout, "kube-apiserver to be ready", |_| {
            let mut command = Command::new(&kubectl);
            command.arg("--kubeconfig").arg(&config).args(["get", "--raw", "/readyz"]);
            command.output().is_ok_and(|output| output.status.success())
        })?;

        let common = ["--kubeconfig=kubeconfig", "--leader-elect=false", "--secure-port=0"];
        if !args.no_controllers {
            eprintln!("starting kube-controller-manager …");
            let mut flags = common.to_vec();
            flags.push("--service-account-private-key-file=service-accounts.key");
            flags.push("--root-ca-file=certificates/apiserver.crt");
            flags.push("--cluster-signing-cert-file=signer.crt");
            flags.push("--cluster-signing-key-file=signer.key");
            // A script of an autoscaler need not wait.
            flags.push("--horizontal-pod-autoscaler-sync-period=1s");
            self.spawn(layout, "kube-controller-manager", &owned(&flags))?;
        }
        if args.scheduler {
            eprintln!("starting kube-scheduler …");
            self.spawn(layout, "kube-scheduler", &owned(&common))?;
        }
        Ok(())
    }

    fn spawn(&mut self, layout: &Layout, program: &str, flags: &[String]) -> Result {
        self.processes.push(Process::spawn(&layout.program(program), flags, &layout.run(), self.lifetime)?);
        // Saved after every step: `stop` finds the processes even if this task is killed.
        Ok(fs::write(layout.run().join("instance.json"), serde_json::to_vec(self)?)?)
    }

    fn wait_for(&self, layout: &Layout, what: &str, is_there: impl Fn(&Path) -> bool) -> Result {
        let (folder, start) = (layout.run(), Instant::now());
        while !is_there(&folder) {
            if let Some(dead) = self.processes.iter().find(|process| !process.runs()) {
                return Err(format!("{} exited:\n{}", dead.name, dead.log_tail(&folder)).into());
            }
            if start.elapsed() > TIMEOUT {
                return Err(format!(
                    "timed out after {} s waiting for {what}; see the logs in {}",
                    TIMEOUT.as_secs(),
                    folder.display()
                )
                .into());
            }
            sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

/// Writes the authority with which the controller manager signs client certificates.
fn write_signer(folder: &Path) -> Result {
    let key = rcgen::KeyPair::generate()?;
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, "signer");
    params.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign, rcgen::KeyUsagePurpose::DigitalSignature];
    fs::write(folder.join("signer.crt"), params.self_signed(&key)?.pem())?;
    write_secret(&folder.join("signer.key"), &key.serialize_pem())
}

fn etcd_flags(clients: &str, peers: &str) -> Vec<String> {
    vec![
        "--data-dir=etcd".into(),
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--initial-cluster=default={peers}"),
        // The data need not survive a crash.
        "--unsafe-no-fsync".into(),
    ]
}

fn apiserver_flags(etcd: &str, port: u16) -> Vec<String> {
    let fixed = [
        "--bind-address=127.0.0.1",
        "--cert-dir=certificates",
        "--token-auth-file=tokens.csv",
        "--authorization-mode=RBAC",
        "--client-ca-file=signer.crt",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-account-key-file=service-accounts.pub",
        "--service-account-signing-key-file=service-accounts.key",
        "--service-cluster-ip-range=10.0.0.0/24",
        // With this plugin, a Pod is rejected until the controller has created the service account of the
        // Pod's namespace.
        "--disable-admission-plugins=ServiceAccount",
    ];
    let mut flags = owned(&fixed);
    flags.extend([format!("--etcd-servers={etcd}"), format!("--secure-port={port}")]);
    flags
}

fn owned(flags: &[&str]) -> Vec<String> {
    flags.iter().map(|flag| (*flag).to_owned()).collect()
}

fn kubeconfig(url: &str, folder: &Path, token: &str) -> String {
    let authority = folder.join("certificates/apiserver.crt");
    serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "control-plane",
        "clusters": [{"name": "control-plane", "cluster": {"server": url, "certificate-authority": authority}}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "control-plane", "context": {"cluster": "control-plane", "user": "admin"}}]
    })
    .to_string()
}

/// Writes a file that only the owner may read.
fn write_secret(path: &Path, text: &str) -> Result {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    Ok(options.open(path)?.write_all(text.as_bytes())?)
}

/// Returns a free port. Another program could bind the port first, but the time is short.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

pub(super) fn stop(layout: &Layout) -> Result {
    let Some(instance) = Instance::read(layout) else {
        println!("Not running.");
        return Ok(());
    };
    let mut problems = Vec::new();
    // In reverse start order, because later processes depend on earlier processes.
    for process in instance.processes.iter().rev().filter(|process| process.runs()) {
        println!("stopping {} …", process.name);
        problems.extend(process.stop().err().map(|error| error.to_string()));
    }
    fs::remove_dir_all(layout.run())?;
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ").into()) }
}

pub(super) fn status(layout: &Layout) {
    if !layout.is_built() {
        let missing = PROGRAMS.iter().filter(|name| !layout.program(name).is_file());
        let missing: Vec<&str> = missing.copied().collect();
        println!("Not built: {} missing in {}", missing.join(", "), layout.bin().display());
        println!("  cargo xtask control-plane build");
        return;
    }
    let release = layout.release;
    println!("Built: Kubernetes {release}, etcd {} in {}", release.etcd, layout.bin().display());
    let Some(instance) = Instance::read(layout) else {
        println!("Not running (cargo xtask control-plane start)");
        return;
    };
    println!("Instance at {}", instance.url);
    for process in &instance.processes {
        let state = if process.runs() { "running" } else { "exited" };
        println!("  {} {state}, process {}", process.name, process.id);
    }
    println!("  export KUBECONFIG={}", layout.kubeconfig().display());
}
