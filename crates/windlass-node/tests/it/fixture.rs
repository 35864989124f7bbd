//! A runtime with the image `busybox`, a static program with many names.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use windlass_node::{
    Command, ContainerId, ContainerSpec, DirectoryImages, ImageConfig, Limits, Namespaces, NamespacesConfig,
    Runtime, RuntimeError, SandboxId, SandboxSpec, Session, User,
};
use windlass_patience::stretched;

/// Fails the tests, instead of skipping the tests, where the machine does not allow namespaces.
const REQUIRED: &str = "WINDLASS_TEST_NAMESPACES";

/// The names of busybox that the tests use.
const NAMES: [&str; 24] = [
    "sh", "cat", "echo", "id", "ls", "sleep", "env", "hostname", "nc", "touch", "head", "seq", "mount",
    "grep", "stat", "tty", "stty", "true", "false", "dd", "kill", "pwd", "wget", "tail",
];

pub(crate) struct Fixture {
    pub(crate) runtime: Namespaces,
    pub(crate) folder: TempDir,
}

/// The path of a static busybox.
fn busybox() -> Option<PathBuf> {
    ["/bin/busybox", "/usr/bin/busybox"].iter().map(PathBuf::from).find(|path| path.exists())
}

/// Writes the files of the image.
pub(crate) fn image(folder: &Path) -> Option<PathBuf> {
    let Some(busybox) = busybox() else {
        println!("skipped: there is no busybox (apt-get install busybox-static)");
        return None;
    };
    let root = folder.join("busybox");
    for name in ["bin", "etc", "tmp"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    fs::copy(busybox, root.join("bin/busybox")).unwrap();
    for name in NAMES {
        symlink("busybox", root.join("bin").join(name)).unwrap();
    }
    fs::write(root.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\nweb:x:1234:1234::/srv:/bin/sh\n")
        .unwrap();
    fs::write(root.join("etc/group"), "root:x:0:\nweb:x:1234:\n").unwrap();
    Some(root)
}

/// The launcher of the tests.
pub(crate) fn launcher() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_windlass-node-launcher"))
}

/// Makes a runtime, or prints why the test is skipped.
pub(crate) async fn fixture() -> Option<Fixture> {
    let folder = tempfile::tempdir().unwrap();
    let root = image(folder.path())?;
    let config = ImageConfig { user: "65532:65532".into(), ..ImageConfig::default() };
    let named = ImageConfig { user: "web".into(), ..ImageConfig::default() };
    let images = DirectoryImages::default().with("busybox", &root, config).with("named", &root, named).with(
        "root",
        &root,
        ImageConfig::default(),
    );
    let config = NamespacesConfig {
        launcher: launcher(),
        state_dir: folder.path().join("state"),
        images: Arc::new(images),
    };
    match Namespaces::new(config).await {
        Ok(runtime) => Some(Fixture { runtime, folder }),
        Err(RuntimeError::Unsupported(reason)) => {
            assert!(std::env::var_os(REQUIRED).is_none(), "{reason}");
            println!("skipped: {reason}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

impl Fixture {
    /// Creates a sandbox.
    pub(crate) async fn sandbox(&self, name: &str) -> SandboxId {
        let id = SandboxId(name.into());
        self.runtime.create_sandbox(sandbox_spec(&id)).await.unwrap();
        id
    }

    /// A container that runs a script of the shell.
    pub(crate) fn script(&self, text: &str) -> ContainerSpec {
        spec(&self.log(), text)
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.path().join("logs/0.log")
    }

    /// Runs a script to its end, and returns the exit code and the log.
    pub(crate) async fn run(&self, sandbox: &SandboxId, spec: ContainerSpec) -> (i32, String) {
        let _ = windlass_node::log::remove(&spec.log);
        let log = spec.log.clone();
        let id = self.runtime.start(sandbox, spec).await.unwrap();
        let exit = self.ended(&id).await;
        (exit.code, windlass_node::log::last_lines(&log, 1000, 1 << 20).unwrap())
    }

    pub(crate) async fn ended(&self, id: &ContainerId) -> windlass_node::Exit {
        let limit = stretched(Duration::from_secs(30));
        tokio::time::timeout(limit, self.runtime.wait(id)).await.expect("the container did not end").unwrap()
    }

    /// Runs a command without a terminal, and returns the exit code and the output.
    pub(crate) async fn exec(&self, id: &ContainerId, words: &[&str]) -> (i32, String) {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let session = self.runtime.exec(id, Command { words, terminal: None, stdin: false }).await.unwrap();
        finish(session).await
    }

    /// Waits until the log has a text.
    pub(crate) async fn logged(&self, text: &str) {
        let start = std::time::Instant::now();
        while !windlass_node::log::last_lines(&self.log(), 1000, 1 << 20).unwrap_or_default().contains(text) {
            assert!(start.elapsed() < stretched(Duration::from_secs(20)), "the log has no {text:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Reads all output of a session, and waits for its end.
pub(crate) async fn finish(mut session: Session) -> (i32, String) {
    drop(session.stdin.take());
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let output = async {
        if let Some(stream) = &mut session.stdout {
            stream.read_to_end(&mut stdout).await.unwrap();
        }
        if let Some(stream) = &mut session.stderr {
            stream.read_to_end(&mut stderr).await.unwrap();
        }
        session.exit.await.unwrap().code
    };
    let code = tokio::time::timeout(stretched(Duration::from_secs(30)), output)
        .await
        .expect("the command did not end");
    stdout.extend(stderr);
    (code, String::from_utf8_lossy(&stdout).into_owned())
}

pub(crate) fn sandbox_spec(id: &SandboxId) -> SandboxSpec {
    SandboxSpec {
        id: id.clone(),
        host_name: format!("pod-{}", id.0),
        address: "10.244.0.7".parse().unwrap(),
        host_network: false,
        hosts: Vec::new(),
        ranges: vec!["10.0.0.0/16".into(), "10.244.0.0/16".into()],
        resolver: None,
    }
}

pub(crate) fn spec(log: &Path, text: &str) -> ContainerSpec {
    ContainerSpec {
        name: "main".into(),
        attempt: 0,
        image: "busybox".into(),
        command: vec!["/bin/sh".into(), "-c".into(), text.into()],
        arguments: vec![],
        working_directory: None,
        environment: vec![],
        mounts: vec![],
        user: User::default(),
        read_only_root: false,
        limits: Limits::default(),
        log: log.to_owned(),
        terminal: false,
        stdin: false,
        stdin_once: false,
    }
}
