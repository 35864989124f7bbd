//! Compiles the program of an image.

use std::env::consts::ARCH;
use std::path::{Path, PathBuf};
use std::process::Command;

use windlass_image::Platform;

use crate::error::{Advice, Result};
use crate::output::Output;
use crate::project::{Cargo, program};

/// The C library of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linking {
    /// musl, in the program.
    Static,
    /// glibc, beside the program.
    Dynamic,
}

/// The separator of flags in `CARGO_ENCODED_RUSTFLAGS`.
const SEPARATOR: &str = "\x1f";

/// A way to compile for a platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Toolchain {
    pub(super) target: String,
    pub(super) linking: Linking,
    /// The subcommand of cargo: `build` or `zigbuild`.
    subcommand: &'static str,
    /// The C compiler and linker, if cargo does not know them.
    compiler: Option<String>,
}

impl Toolchain {
    /// Chooses the first way to compile for a platform whose tools are installed.
    pub(super) fn choose(platform: &Platform, linking: Option<Linking>, notes: &mut Output) -> Result<Self> {
        let targets = installed_targets();
        let chosen = candidates(platform).into_iter().find(|candidate| {
            linking.is_none_or(|linking| candidate.linking == linking)
                && targets.contains(&candidate.target)
                && candidate.tools().iter().all(|tool| is_installed(tool))
        });
        let architecture = platform.rust_architecture();
        let musl = format!("{architecture}-unknown-linux-musl");
        let is_host = *platform == Platform::host();
        let advice = if is_host {
            format!("`rustup target add {musl}`, and install musl-gcc (Debian: apt-get install musl-tools)")
        } else {
            format!(
                "`rustup target add {musl}`, and install zig and cargo-zigbuild (`pip install ziglang cargo-zigbuild`)"
            )
        };
        let Some(chosen) = chosen else {
            return Err(Advice::new(format!("no linker for {platform} is installed"), advice));
        };
        match chosen.linking {
            Linking::Static => {
                notes.line(format_args!("{platform}: a static program, with {}", chosen.with()));
            }
            Linking::Dynamic => notes.line(format_args!(
                "{platform}: a program with a copy of the C library, with {}. For a smaller image: {advice}",
                chosen.with()
            )),
        }
        Ok(chosen)
    }

    fn tools(&self) -> Vec<String> {
        let zig = (self.subcommand == "zigbuild").then(|| "cargo-zigbuild".to_owned());
        zig.into_iter().chain(self.compiler.clone()).collect()
    }

    fn with(&self) -> String {
        match (&self.compiler, self.subcommand) {
            (Some(compiler), _) => format!("{compiler} for {}", self.target),
            (None, "build") => format!("the linker of this machine for {}", self.target),
            (None, subcommand) => format!("cargo {subcommand} for {}", self.target),
        }
    }

    /// Compiles a program. Returns the path of the program.
    pub(super) async fn compile(&self, root: &Path, name: &str, profile: &str) -> Result<PathBuf> {
        let mut cargo = Cargo::new(root, self.subcommand).args([
            "--bin",
            name,
            "--profile",
            profile,
            "--target",
            &self.target,
            "--message-format",
            "json-render-diagnostics",
        ]);
        if root.join("Cargo.lock").is_file() {
            cargo = cargo.args(["--locked"]);
        }
        cargo = cargo.env("CARGO_ENCODED_RUSTFLAGS", flags(root));
        if let Some(compiler) = &self.compiler {
            let under = self.target.replace('-', "_");
            cargo = cargo.env(&format!("CC_{under}"), compiler);
            let linker = format!("CARGO_TARGET_{}_LINKER", under.to_uppercase());
            // Rust brings what a static program needs beside the compiler. As a linker, Debian's compiler for musl links dynamically.
            let links_itself = self.linking == Linking::Static && self.target.starts_with(ARCH);
            if !links_itself {
                cargo = cargo.env(&linker, compiler);
            }
        }
        let messages = cargo.printed().await.map_err(|error| {
            Advice::new(format!("{name} does not compile: {error}"), "the messages of the compiler are above")
        })?;
        program(&messages, name).ok_or_else(|| format!("cargo built no program {name}").into())
    }

    fn host_musl(target: &str) -> Self {
        Self {
            target: target.to_owned(),
            linking: Linking::Static,
            subcommand: "build",
            compiler: Some("musl-gcc".to_owned()),
        }
    }
}

/// Returns the ways to compile for a platform, the best way first.
fn candidates(platform: &Platform) -> Vec<Toolchain> {
    let architecture = platform.rust_architecture();
    let musl = format!("{architecture}-unknown-linux-musl");
    let gnu = format!("{architecture}-unknown-linux-gnu");
    let is_host = platform.architecture == Platform::host().architecture && cfg!(target_os = "linux");
    let of = |target: &str, linking, subcommand, compiler: Option<String>| Toolchain {
        target: target.to_owned(),
        linking,
        subcommand,
        compiler,
    };
    let short = architecture.trim_end_matches("gc");
    let mut found = Vec::new();
    if is_host {
        found.push(Toolchain::host_musl(&musl));
    }
    found.push(of(&musl, Linking::Static, "build", Some(format!("{short}-linux-musl-gcc"))));
    found.push(of(&musl, Linking::Static, "zigbuild", None));
    let compiler = (!is_host).then(|| format!("{short}-linux-gnu-gcc"));
    found.push(of(&gnu, Linking::Dynamic, "build", compiler));
    found
}

/// Returns the flags of rustc: those of the environment, and the removal of this machine's folders from the program.
fn flags(root: &Path) -> String {
    let encoded = std::env::var("CARGO_ENCODED_RUSTFLAGS").ok();
    let plain = || {
        std::env::var("RUSTFLAGS")
            .ok()
            .map(|flags| flags.split_whitespace().collect::<Vec<_>>().join(SEPARATOR))
    };
    let given = encoded.or_else(plain).filter(|flags| !flags.is_empty());
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(home?.join(".cargo")));
    let folders = [Some((root.to_owned(), "/src")), cargo.map(|folder| (folder, "/cargo"))];
    let remaps = folders.into_iter().flatten();
    let remaps = remaps.map(|(folder, name)| format!("--remap-path-prefix={}={name}", folder.display()));
    given.into_iter().chain(remaps).collect::<Vec<_>>().join(SEPARATOR)
}

/// Returns the targets whose standard library is installed.
fn installed_targets() -> Vec<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let sysroot = Command::new(rustc).args(["--print", "sysroot"]).output();
    let Some(sysroot) = sysroot.ok().and_then(|output| String::from_utf8(output.stdout).ok()) else {
        return Vec::new();
    };
    let entries = std::fs::read_dir(Path::new(sysroot.trim()).join("lib/rustlib")).into_iter().flatten();
    let folders = entries.flatten().filter(|entry| entry.path().join("lib").is_dir());
    folders.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Returns whether a program is on the PATH.
fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
