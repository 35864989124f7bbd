//! `windlass image load`, with programs that stand in for the container engines.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use windlass_image::build::{Compression, Files, Recipe, image};
use windlass_image::{Config, Platform, Store};

const IMAGE: &str = "registry.example.com/op:v1";

/// Keeps the arguments and the archive.
const STAND_IN: &str = r#"#!/bin/sh
PATH=/usr/bin:/bin
folder=$(dirname "$0")
echo "$(basename "$0") $*" >"$folder/arguments"
for argument in "$@"; do case $argument in *.tar) cp "$argument" "$folder/archive" ;; esac; done
"#;

struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    /// Returns a machine with an image in the store.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("store")).unwrap();
        let mut files = Files::new();
        files.bytes("manager", 0o755, "a program");
        let recipe = Recipe {
            files,
            config: Config { entrypoint: vec!["/manager".to_owned()], ..Config::default() },
            platform: Platform::host(),
            time: 0,
            created: "1970-01-01T00:00:00Z".to_owned(),
            created_by: "test".to_owned(),
            compression: Compression::Gzip,
        };
        let built = image(&store, &recipe).unwrap();
        store.tag(&IMAGE.parse().unwrap(), &built).unwrap();
        let machine = Self { folder };
        fs::create_dir(machine.path("bin")).unwrap();
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Installs a program, as a script.
    fn install(&self, name: &str, script: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn load(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(["image", "load", IMAGE]).args(arguments).current_dir(self.folder.path());
        // The engines of this machine are not asked.
        command.env("PATH", self.path("bin")).env("WINDLASS_IMAGES", self.path("store")).output().unwrap()
    }
}

/// Returns the command that loads an image, with `ARCHIVE` in place of the path of the archive.
fn command_of(program: &str, arguments: &[&str]) -> String {
    let machine = Machine::new();
    machine.install(program, STAND_IN);
    let output = machine.load(arguments);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(&format!("loaded {IMAGE}")), "{said}");
    let archive = fs::read(machine.path("bin/archive")).unwrap();
    let names = names_of(&archive);
    for name in ["oci-layout", "index.json", "manifest.json"] {
        assert!(names.contains(&name.to_owned()), "the archive of {program} has no {name}: {names:?}");
    }
    let words = fs::read_to_string(machine.path("bin/arguments")).unwrap();
    let words = words.split_whitespace().map(|word| match word.strip_suffix(".tar") {
        Some(archive) => {
            assert!(!PathBuf::from(format!("{archive}.tar")).exists(), "the archive is left behind");
            "ARCHIVE"
        }
        None => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the names of the files in an archive.
fn names_of(archive: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    let mut at = 0;
    while let Some(header) = archive.get(at..at + 512).filter(|header| header[0] != 0) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches(['\0', ' ']).to_owned();
        names.push(text(&header[..100]));
        let size = usize::from_str_radix(&text(&header[124..136]), 8).unwrap();
        at += 512 + size.next_multiple_of(512);
    }
    names
}

#[test]
fn an_image_is_loaded_by_the_command_of_each_engine() {
    for (program, arguments, command) in [
        ("docker", &["--docker"][..], "docker load --input ARCHIVE"),
        ("podman", &["--podman"], "podman load --input ARCHIVE"),
        ("kind", &["--kind"], "kind load image-archive ARCHIVE --name kind"),
        ("kind", &["--kind", "dev"], "kind load image-archive ARCHIVE --name dev"),
        ("k3d", &["--k3d"], "k3d image import ARCHIVE --cluster k3s-default"),
        ("k3d", &["--k3d", "dev"], "k3d image import ARCHIVE --cluster dev"),
        ("minikube", &["--minikube"], "minikube image load ARCHIVE"),
        (
            "ctr",
            &["--containerd"],
            "ctr --address /run/containerd/containerd.sock --namespace k8s.io images import --all-platforms ARCHIVE",
        ),
    ] {
        assert_eq!(command_of(program, arguments), command);
    }
}

#[test]
fn an_engine_that_fails_fails_the_load_with_its_command() {
    let machine = Machine::new();
    machine.install("docker", "#!/bin/sh\necho 'no space left' >&2\nexit 3\n");
    let output = machine.load(&["--docker"]);
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("no space left") && said.contains("docker load --input"), "{said}");
    assert!(said.contains("exit status: 3"), "{said}");
}

#[test]
fn an_engine_that_is_not_installed_is_named() {
    let machine = Machine::new();
    let output = machine.load(&["--k3d"]);
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("cannot run k3d") && said.contains("put k3d on the PATH"), "{said}");
}

#[test]
fn a_push_after_a_build_needs_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut build = crate::process::windlass(&["image", "build", "--push"]);
    let output = build.current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && said.contains("--tag"), "{said}");
}
