//! The contenders, and the builds of the contenders' programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, project};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Contender {
    Ours,
    /// Our program, linked with musl and mimalloc.
    Musl,
    /// Our program, linked with musl and musl's allocator.
    MuslAllocator,
    Go,
    KubeRs,
}

/// The programs with musl, below the folder of compiled code: with mimalloc, and with musl's allocator.
const MUSL_PROGRAMS: [&str; 2] = ["release/bench-musl", "release/bench-musl-allocator"];

/// The programs of the contenders; `None` for a program that could not be built.
pub(crate) struct Programs {
    ours: PathBuf,
    musl: Option<PathBuf>,
    musl_allocator: Option<PathBuf>,
    go: Option<PathBuf>,
    kube_rs: Option<PathBuf>,
}

impl Programs {
    /// Builds our program and the peers that are needed. A peer that cannot be built is left out with a message.
    pub(crate) fn build(needed: impl Fn(Contender) -> bool) -> Result<Self> {
        let benches = project::root().join("benches");
        eprintln!("building our benchmarks and the peers (minutes, the first time)");
        let ours = cargo(&benches, "bench", "release")?;
        cargo(&benches, "api-server", "release")?;
        let kube_rs =
            || optional("kube-rs", cargo(&benches.join("peers/kube-rs"), "peer-kube-rs", "release"));
        let go = || optional("client-go and controller-runtime", go(&benches.join("peers/go")));
        let kube_rs = if needed(Contender::KubeRs) { kube_rs() } else { None };
        let go = if needed(Contender::Go) { go() } else { None };
        let musl = |contender| {
            let built = || optional("musl", musl(&benches, contender == Contender::Musl));
            if needed(contender) { built() } else { None }
        };
        let (musl, musl_allocator) = (musl(Contender::Musl), musl(Contender::MuslAllocator));
        Ok(Self { ours, musl, musl_allocator, go, kube_rs })
    }

    /// Returns the programs of the last build.
    pub(crate) fn built() -> Self {
        let benches = project::root().join("benches");
        let there = |folder: &str, program: &str| {
            Some(target(&benches.join(folder)).join(program)).filter(|file| file.exists())
        };
        Self {
            ours: target(&benches).join("release/bench"),
            musl: there("", MUSL_PROGRAMS[0]),
            musl_allocator: there("", MUSL_PROGRAMS[1]),
            go: there("peers/go", "peer-go"),
            kube_rs: there("peers/kube-rs", "release/peer-kube-rs"),
        }
    }

    /// Builds our program only, with the profile for instruction counts.
    pub(crate) fn counted() -> Result<Self> {
        Ok(Self {
            ours: cargo(&project::root().join("benches"), "bench", "counted")?,
            musl: None,
            musl_allocator: None,
            go: None,
            kube_rs: None,
        })
    }

    pub(crate) fn program(&self, contender: Contender) -> Option<&Path> {
        match contender {
            Contender::Ours => Some(&self.ours),
            Contender::Musl => self.musl.as_deref(),
            Contender::MuslAllocator => self.musl_allocator.as_deref(),
            Contender::Go => self.go.as_deref(),
            Contender::KubeRs => self.kube_rs.as_deref(),
        }
    }
}

fn optional(name: &str, built: Result<PathBuf>) -> Option<PathBuf> {
    built.inspect_err(|why| eprintln!("skipping {name}: {why}")).ok()
}

fn target(folder: &Path) -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(target) if folder.ends_with("benches") => PathBuf::from(target),
        Some(target) => PathBuf::from(target).join("peers"),
        None if folder.ends_with("benches") => project::root().join("target"),
        None => project::root().join("target/peers"),
    }
}

fn cargo(folder: &Path, binary: &str, profile: &str) -> Result<PathBuf> {
    let target = target(folder);
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--profile", profile, "--bin", binary]).current_dir(folder);
    succeed(build.env("CARGO_TARGET_DIR", &target))?;
    Ok(target.join(profile).join(binary))
}

/// Builds our program as `windlass image build` builds a static program.
fn musl(benches: &Path, with_mimalloc: bool) -> Result<PathBuf> {
    let triple = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let compiler = format!("CC_{}", triple.replace('-', "_"));
    let target = target(benches);
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--release", "--bin", "bench", "--target", &triple]).current_dir(benches);
    if with_mimalloc {
        build.args(["--features", "mimalloc"]);
    }
    succeed(build.env("CARGO_TARGET_DIR", &target).env(compiler, "musl-gcc"))?;
    // The next build has the same path.
    let program = target.join(MUSL_PROGRAMS[usize::from(!with_mimalloc)]);
    std::fs::copy(target.join(&triple).join("release/bench"), &program)?;
    Ok(program)
}

fn go(folder: &Path) -> Result<PathBuf> {
    let program = target(folder).join("peer-go");
    std::fs::create_dir_all(target(folder))?;
    succeed(Command::new("go").args(["build", "-o"]).arg(&program).arg(".").current_dir(folder))?;
    Ok(program)
}

fn succeed(command: &mut Command) -> Result {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|error| format!("cannot run {name}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} failed").into()) }
}
