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
    /// The C compiler and linker, if cargo does not know the tools.
    compiler: Option<String>,
}

impl Toolchain {
    /// Returns the first way to compile for a platform with installed tools.
    pub(super) fn choose(platform: &Platform, linking: Option<Linking>, notes: &mut Output) -> Result<Self> {
        let chosen = Self::first_of(platform, linking, &installed_targets(), is_installed);
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

    /// Returns the first way to compile for a platform with an installed target and tools.
    fn first_of(
        platform: &Platform,
        linking: Option<Linking>,
        targets: &[String],
        is_installed: impl Fn(&str) -> bool,
    ) -> Option<Self> {
        candidates(platform).into_iter().find(|candidate| {
            linking.is_none_or(|linking| candidate.linking == linking)
                && targets.contains(&candidate.target)
                && candidate.tools().iter().all(|tool| is_installed(tool))
        })
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
    pub(super) async fn compile(
        &self,
        root: &Path,
        name: &str,
        profile: &str,
        notes: &mut Output,
    ) -> Result<PathBuf> {
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
        match flags(root, &self.target) {
            Some(flags) => cargo = cargo.env("CARGO_ENCODED_RUSTFLAGS", flags),
            None => notes.line(
                "note: the program names folders of this machine, because the configuration of cargo has rustflags; the variable RUSTFLAGS \
                 has no such effect",
            ),
        }
        for (name, value) in self.variables() {
            cargo = cargo.env(&name, value);
        }
        let messages = cargo.printed().await.map_err(|error| {
            Advice::new(format!("{name} does not compile: {error}"), "the messages of the compiler are above")
        })?;
        program(&messages, name).ok_or_else(|| format!("cargo built no program {name}").into())
    }

    /// Returns the variables that name the C compiler and the linker to cargo and to build scripts.
    fn variables(&self) -> Vec<(String, &str)> {
        let Some(compiler) = self.compiler.as_deref() else { return Vec::new() };
        let under = self.target.replace('-', "_");
        let linker = format!("CARGO_TARGET_{}_LINKER", under.to_uppercase());
        // Rust brings the parts of a static program that the compiler does not have. As a linker, Debian's compiler for musl links dynamically.
        let links_itself = self.linking == Linking::Static && self.target.starts_with(ARCH);
        let mut variables = vec![(format!("CC_{under}"), compiler)];
        variables.extend((!links_itself).then_some((linker, compiler)));
        variables
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

/// Returns the flags of rustc: the flags of the environment, and flags that remove this machine's folders
/// from the program. Returns `None` if a configuration of cargo has flags, which flags of the environment would replace.
fn flags(root: &Path, target: &str) -> Option<String> {
    let encoded = std::env::var("CARGO_ENCODED_RUSTFLAGS").ok();
    let plain = || {
        std::env::var("RUSTFLAGS")
            .ok()
            .map(|flags| flags.split_whitespace().collect::<Vec<_>>().join(SEPARATOR))
    };
    let given = encoded.or_else(plain).filter(|flags| !flags.is_empty());
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(home?.join(".cargo")));
    if given.is_none() && has_configured_flags(root, cargo.as_deref(), target) {
        return None;
    }
    let folders = [Some((root.to_owned(), "/src")), cargo.map(|folder| (folder, "/cargo"))];
    let remaps = folders.into_iter().flatten();
    let remaps = remaps.map(|(folder, name)| format!("--remap-path-prefix={}={name}", folder.display()));
    Some(given.into_iter().chain(remaps).collect::<Vec<_>>().join(SEPARATOR))
}

/// Returns whether a configuration of cargo has flags of rustc for a target: a file, or a variable of the environment.
fn has_configured_flags(root: &Path, cargo_home: Option<&Path>, target: &str) -> bool {
    let folders = root.ancestors().map(|folder| folder.join(".cargo")).chain(cargo_home.map(Path::to_owned));
    let mut files = folders.flat_map(|folder| ["config.toml", "config"].map(|name| folder.join(name)));
    let of_target = format!("CARGO_TARGET_{}_RUSTFLAGS", target.replace('-', "_").to_uppercase());
    files.any(|file| std::fs::read_to_string(file).is_ok_and(|text| has_flags(&text, target)))
        || ["CARGO_BUILD_RUSTFLAGS", &of_target].into_iter().any(|name| std::env::var_os(name).is_some())
}

/// Returns whether a configuration file of cargo has flags of rustc for a target. Flags for `cfg(…)` count as flags for all targets.
fn has_flags(configuration: &str, target: &str) -> bool {
    let Ok(configuration) = configuration.parse::<toml::Table>() else { return false };
    let has = |section: &toml::Value| section.get("rustflags").is_some();
    let targets = configuration.get("target").and_then(toml::Value::as_table);
    configuration.get("build").is_some_and(has)
        || targets
            .into_iter()
            .flatten()
            .any(|(name, section)| (name == target || name.starts_with("cfg(")) && has(section))
}

/// Returns the targets with an installed standard library.
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

#[cfg(test)]
mod tests {
    use super::*;

    const X86: &str = "x86_64-unknown-linux";
    const ARM: &str = "aarch64-unknown-linux";

    /// Returns the target, the compiler and the subcommand that are chosen if all targets and the named tools are installed.
    fn chosen(platform: &str, linking: Option<Linking>, tools: &[&str]) -> Option<String> {
        let targets = [X86, ARM].map(|target| [format!("{target}-musl"), format!("{target}-gnu")]).concat();
        let platform = platform.parse().expect("a platform");
        let found = Toolchain::first_of(&platform, linking, &targets, |tool| tools.contains(&tool))?;
        Some(format!("{} {} {}", found.target, found.compiler.as_deref().unwrap_or("-"), found.subcommand))
    }

    fn variables(platform: &str, tools: &[&str]) -> Vec<String> {
        let targets = [X86, ARM].map(|target| [format!("{target}-musl"), format!("{target}-gnu")]).concat();
        let platform = platform.parse().expect("a platform");
        let found = Toolchain::first_of(&platform, None, &targets, |tool| tools.contains(&tool));
        let found = found.expect("a way to compile");
        found.variables().into_iter().map(|(name, value)| format!("{name}={value}")).collect()
    }

    #[test]
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn a_static_program_is_preferred_and_debians_second_name_of_musl_gcc_is_known() {
        let static_by = |compiler: &str| Some(format!("{X86}-musl {compiler} build"));
        assert_eq!(
            chosen("linux/amd64", None, &["musl-gcc", "x86_64-linux-musl-gcc"]),
            static_by("musl-gcc")
        );
        let second = ["x86_64-linux-musl-gcc", "cargo-zigbuild"];
        assert_eq!(chosen("linux/amd64", None, &second), static_by("x86_64-linux-musl-gcc"));
        assert_eq!(chosen("linux/amd64", None, &["cargo-zigbuild"]), Some(format!("{X86}-musl - zigbuild")));
        assert_eq!(chosen("linux/amd64", None, &[]), Some(format!("{X86}-gnu - build")));
        assert_eq!(chosen("linux/amd64", Some(Linking::Static), &[]), None);
        let dynamic = chosen("linux/amd64", Some(Linking::Dynamic), &["musl-gcc"]);
        assert_eq!(dynamic, Some(format!("{X86}-gnu - build")));
    }

    #[test]
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn another_architecture_needs_a_tool() {
        let all = ["aarch64-linux-musl-gcc", "cargo-zigbuild", "aarch64-linux-gnu-gcc", "musl-gcc"];
        let of = |tools: &[&str]| chosen("linux/arm64", None, tools);
        assert_eq!(of(&all), Some(format!("{ARM}-musl aarch64-linux-musl-gcc build")));
        assert_eq!(of(&all[1..]), Some(format!("{ARM}-musl - zigbuild")));
        assert_eq!(of(&all[2..]), Some(format!("{ARM}-gnu aarch64-linux-gnu-gcc build")));
        assert_eq!(of(&all[3..]), None, "musl-gcc compiles for this machine only");
    }

    #[test]
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn a_static_program_of_this_machine_is_linked_by_rust_and_another_program_by_its_compiler() {
        for compiler in ["musl-gcc", "x86_64-linux-musl-gcc"] {
            let cc = format!("CC_x86_64_unknown_linux_musl={compiler}");
            assert_eq!(variables("linux/amd64", &[compiler]), [cc]);
        }
        assert!(variables("linux/amd64", &[]).is_empty());
        assert_eq!(
            variables("linux/arm64", &["aarch64-linux-gnu-gcc"]),
            [
                "CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc",
                "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc",
            ]
        );
    }

    #[test]
    fn flags_of_a_configuration_of_cargo_are_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let (root, home) = (folder.path().join("a/b"), folder.path().join("home"));
        for folder in [&root.join(".cargo"), &home] {
            std::fs::create_dir_all(folder).expect("a folder");
        }
        let target = "x86_64-unknown-linux-musl";
        let has_flags = |home: Option<&Path>| has_configured_flags(&root, home, target);
        assert!(!has_flags(Some(&home)));
        for other in [
            "[build]\njobs = 1\n",
            "# rustflags = ['-Cx']\n[target.aarch64-apple-darwin]\nrustflags = ['-Cx']\n",
            "[profile.image]\nrustflags = ['-Cx']\n",
        ] {
            std::fs::write(root.join(".cargo/config.toml"), other).expect("written");
            assert!(!has_flags(Some(&home)), "{other}");
        }
        for own in [
            "[target.'cfg(unix)']\nrustflags = ['-Cx']\n",
            "[target.x86_64-unknown-linux-musl]\nrustflags = ['-Cx']\n",
            "build.rustflags = '-Cx'\n",
        ] {
            std::fs::write(home.join("config.toml"), own).expect("written");
            assert!(has_flags(Some(&home)) && !has_flags(None), "{own}");
        }
    }

    #[test]
    fn a_platform_without_the_standard_library_of_rust_has_no_way() {
        let platform = "linux/arm64".parse().expect("a platform");
        assert_eq!(Toolchain::first_of(&platform, None, &[], |_| true), None);
    }
}
