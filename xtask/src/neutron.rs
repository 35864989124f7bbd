//! `cargo xtask neutron`: a real OpenStack Neutron, without authentication, for the example `network`.
//!
//! Neutron is installed from PyPI into a virtual environment in the cache, with a database of SQLite and a
//! driver that moves no packets.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use clap::Subcommand;

use crate::Result;
use crate::control_plane::{Lifetime, Process, cache_folder};

/// The release. Neutron 27 has no program `neutron-server`; newer releases of neutron-lib do not fit.
const NEUTRON: &str = "26.0.3";
const NEUTRON_LIB: &str = "3.18.*";

/// The time that the server has to answer.
const TIMEOUT: Duration = Duration::from_mins(2);

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Install Neutron unless installed (needs Python 3 and a network; about a minute), and start Neutron
    /// with an empty database
    Start {
        /// Port of the API; 0 picks a free port
        #[arg(long, default_value_t = 0)]
        port: u16,
    },
    /// Stop it
    Stop,
    /// Show whether Neutron runs (the default)
    Status,
}

/// The folder of the installation and of the running instance.
struct Home(PathBuf);

pub(crate) fn run(args: Args) -> Result {
    let home = Home(cache_folder()?.join(format!("neutron-{NEUTRON}")));
    match args.action.unwrap_or(Action::Status) {
        Action::Start { port } => home.start(port),
        Action::Stop => home.stop(),
        Action::Status => {
            match home.running() {
                Some((url, _)) => println!("Neutron {NEUTRON} runs at {url}"),
                None => println!("Neutron does not run; start it with `cargo xtask neutron start`"),
            }
            Ok(())
        }
    }
}

impl Home {
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn program(&self, name: &str) -> PathBuf {
        self.path("venv/bin").join(name)
    }

    fn start(&self, port: u16) -> Result {
        if let Some((url, _)) = self.running() {
            return Err(format!("already running at {url}; stop it with `cargo xtask neutron stop`").into());
        }
        let begin = Instant::now();
        self.install()?;
        let port = if port == 0 { free_port()? } else { port };
        self.configure(port)?;
        self.create_tables()?;
        let arguments = ["--config-file", "neutron.conf", "--config-file", "ml2.ini"].map(str::to_owned);
        let server = self.program("neutron-server");
        let process = Process::spawn(&server, &arguments, &self.path("run"), Lifetime::Detached)?;
        let url = format!("http://127.0.0.1:{port}");
        fs::write(self.path("run/instance.json"), serde_json::to_vec(&(&url, &process))?)?;
        self.wait(port, &process)?;
        println!("Neutron {NEUTRON} is ready at {url} after {:.1} s.", begin.elapsed().as_secs_f32());
        println!("  NEUTRON_TEST_URL={url} cargo test -p network --test it neutron:: -- --test-threads=1");
        println!("  cargo run -p network -- dev --neutron-url {url}");
        println!("  cargo xtask neutron stop");
        Ok(())
    }

    fn stop(&self) -> Result {
        let Some((_, process)) = self.running() else {
            println!("Neutron does not run");
            return Ok(());
        };
        process.stop()
    }

    /// Returns the URL and the process of the running instance.
    fn running(&self) -> Option<(String, Process)> {
        let text = fs::read(self.path("run/instance.json")).ok()?;
        let instance: (String, Process) = serde_json::from_slice(&text).ok()?;
        instance.1.runs().then_some(instance)
    }

    fn install(&self) -> Result {
        if self.program("neutron-server").is_file() {
            return Ok(());
        }
        fs::create_dir_all(&self.0)?;
        println!("installing Neutron {NEUTRON} into {}", self.0.display());
        let venv = self.path("venv").display().to_string();
        command(Path::new("python3"), &["-m", "venv", &venv], &self.0)?;
        let (neutron, library) = (format!("neutron=={NEUTRON}"), format!("neutron-lib=={NEUTRON_LIB}"));
        command(&self.program("pip"), &["install", "--quiet", &neutron, &library], &self.0)
    }

    /// Writes the configuration into an empty folder.
    fn configure(&self, port: u16) -> Result {
        let run = self.path("run");
        if run.exists() {
            fs::remove_dir_all(&run)?;
        }
        fs::create_dir_all(&run)?;
        let (run_path, venv) = (run.display(), self.path("venv"));
        let venv = venv.display();
        let neutron = format!(
            "[DEFAULT]\nauth_strategy = noauth\ncore_plugin = ml2\nservice_plugins =\ntransport_url = fake://\nstate_path = \
             {run_path}\napi_paste_config = {venv}/etc/neutron/api-paste.ini\nbind_host = 127.0.0.1\nbind_port = {port}\napi_workers = \
             1\nrpc_workers = 0\nnotify_nova_on_port_status_changes = false\nnotify_nova_on_port_data_changes = \
             false\n[database]\nconnection = sqlite:///{run_path}/neutron.sqlite\n[oslo_concurrency]\nlock_path = \
             {run_path}/lock\n[oslo_messaging_notifications]\ndriver = noop\n"
        );
        fs::write(run.join("neutron.conf"), neutron)?;
        let ml2 = "[ml2]\ntype_drivers = local,flat,vlan,vxlan,geneve\ntenant_network_types = vxlan\nmechanism_drivers = \
                   logger\nextension_drivers =\n[ml2_type_vxlan]\nvni_ranges = 1:100000\n";
        Ok(fs::write(run.join("ml2.ini"), ml2)?)
    }

    /// Creates the tables of the newest schema; the migrations of older schemas do not run on SQLite.
    fn create_tables(&self) -> Result {
        let script = format!(
            "from neutron.db.migration.models import head\nfrom sqlalchemy import create_engine\n\
             head.get_metadata().create_all(create_engine('sqlite:///{}/neutron.sqlite'))\n",
            self.path("run").display()
        );
        command(&self.program("python"), &["-W", "ignore", "-c", &script], &self.path("run"))
    }

    fn wait(&self, port: u16, process: &Process) -> Result {
        let started = process.wait_for_port(port, TIMEOUT, &self.path("run"), &[]);
        started.map_err(|error| format!("Neutron did not start: {error}").into())
    }
}

/// Runs a program to the end.
///
/// # Errors
/// The program cannot be run, or fails.
pub(crate) fn command(program: &Path, arguments: &[&str], folder: &Path) -> Result {
    let output = Command::new(program).args(arguments).current_dir(folder).output();
    let output = output.map_err(|error| format!("cannot run {}: {error}", program.display()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{} failed:\n{}", program.display(), String::from_utf8_lossy(&output.stderr)).into())
}

pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
