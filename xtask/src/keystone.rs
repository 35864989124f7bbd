//! `cargo xtask keystone`: a real OpenStack Keystone for the client of the example `network`.
//!
//! Keystone is installed from PyPI into a virtual environment in the cache, with a database of SQLite and
//! Fernet tokens.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use clap::Subcommand;

use crate::Result;
use crate::control_plane::{Lifetime, Process, cache_folder};
use crate::neutron::{command, free_port};

/// The release.
const KEYSTONE: &str = "30.0.0";
/// The password of the user `admin` in the project `admin`.
const PASSWORD: &str = "secret";

/// The time that the server has to answer.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Serves Keystone's WSGI application. Arguments: the port, the configuration.
const SERVER: &str = "import sys
port, configuration = int(sys.argv[1]), sys.argv[2]
sys.argv = sys.argv[:1]
from keystone.server.flask import core
from werkzeug.serving import run_simple
run_simple('127.0.0.1', port, core.initialize_application(name='public', config_files=[configuration]), threaded=True)
";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Install Keystone unless installed (needs Python 3 and a network), and start Keystone with an empty
    /// database
    Start {
        /// Port of the API; 0 picks a free port
        #[arg(long, default_value_t = 0)]
        port: u16,
    },
    /// Stop it
    Stop,
    /// Show whether Keystone runs (the default)
    Status,
}

/// The folder of the installation and of the running instance.
struct Home(PathBuf);

pub(crate) fn run(args: Args) -> Result {
    let home = Home(cache_folder()?.join(format!("keystone-{KEYSTONE}")));
    match args.action.unwrap_or(Action::Status) {
        Action::Start { port } => home.start(port),
        Action::Stop => home.stop(),
        Action::Status => {
            match home.running() {
                Some((url, _)) => println!("Keystone {KEYSTONE} runs at {url}"),
                None => println!("Keystone does not run; start it with `cargo xtask keystone start`"),
            }
            Ok(())
        }
    }
}

impl Home {
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns the URL and the process of the running instance.
    fn running(&self) -> Option<(String, Process)> {
        let text = fs::read(self.path("run/instance.json")).ok()?;
        let instance: (String, Process) = serde_json::from_slice(&text).ok()?;
        instance.1.runs().then_some(instance)
    }

    fn start(&self, port: u16) -> Result {
        if let Some((url, _)) = self.running() {
            return Err(format!("already running at {url}; stop it with `cargo xtask keystone stop`").into());
        }
        let begin = Instant::now();
        self.install()?;
        let port = if port == 0 { free_port()? } else { port };
        let url = format!("http://127.0.0.1:{port}/v3");
        self.initialize(&url)?;
        let arguments = ["-W", "ignore", "server.py", &port.to_string(), "keystone.conf"].map(str::to_owned);
        let python = self.path("venv/bin/python");
        let process = Process::spawn(&python, &arguments, &self.path("run"), Lifetime::Detached)?;
        fs::write(self.path("run/instance.json"), serde_json::to_vec(&(&url, &process))?)?;
        self.wait(port, &process)?;
        println!("Keystone {KEYSTONE} is ready at {url} after {:.1} s.", begin.elapsed().as_secs_f32());
        println!("  KEYSTONE_TEST_URL={url} cargo test -p network --lib keystone");
        println!("  OS_AUTH_URL={url} OS_USERNAME=admin OS_PASSWORD={PASSWORD} OS_PROJECT_NAME=admin");
        println!("  cargo xtask keystone stop");
        Ok(())
    }

    fn stop(&self) -> Result {
        let Some((_, process)) = self.running() else {
            println!("Keystone does not run");
            return Ok(());
        };
        process.stop()
    }

    fn install(&self) -> Result {
        if self.path("venv/bin/keystone-manage").is_file() {
            return Ok(());
        }
        fs::create_dir_all(&self.0)?;
        println!("installing Keystone {KEYSTONE} into {}", self.0.display());
        let venv = self.path("venv").display().to_string();
        command(Path::new("python3"), &["-m", "venv", &venv], &self.0)?;
        let release = format!("keystone=={KEYSTONE}");
        command(&self.path("venv/bin/pip"), &["install", "--quiet", &release, "werkzeug"], &self.0)
    }

    /// Makes an empty folder with a configuration, keys, and a database with a single user.
    fn initialize(&self, url: &str) -> Result {
        let run = self.path("run");
        if run.exists() {
            fs::remove_dir_all(&run)?;
        }
        for keys in ["fernet", "credential"] {
            fs::create_dir_all(run.join(keys))?;
        }
        let folder = run.display();
        let configuration = format!(
            "[DEFAULT]\nlog_file = {folder}/keystone.log\n[database]\nconnection = sqlite:///{folder}/keystone.sqlite\n[token]\nprovider = \
             fernet\n[fernet_tokens]\nkey_repository = {folder}/fernet\n[credential]\nkey_repository = {folder}/credential\n"
        );
        fs::write(run.join("keystone.conf"), configuration)?;
        fs::write(run.join("server.py"), SERVER)?;
        let manage = |arguments: &[&str]| {
            let all = [&["--config-file", "keystone.conf"], arguments].concat();
            command(&self.path("venv/bin/keystone-manage"), &all, &run)
        };
        manage(&["db_sync"])?;
        // The keys belong to the user that runs the server.
        let (user, group) = (id("-un")?, id("-gn")?);
        for keys in ["fernet_setup", "credential_setup"] {
            manage(&[keys, "--keystone-user", &user, "--keystone-group", &group])?;
        }
        manage(&["bootstrap", "--bootstrap-password", PASSWORD, "--bootstrap-public-url", url])
    }

    fn wait(&self, port: u16, process: &Process) -> Result {
        let started = process.wait_for_port(port, TIMEOUT, &self.path("run"), &["keystone.log"]);
        started.map_err(|error| format!("Keystone did not start: {error}").into())
    }
}

/// Returns what the program `id` says about the user.
fn id(flag: &str) -> Result<String> {
    let output = Command::new("id").arg(flag).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
