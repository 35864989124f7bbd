//! A project with this test program as the operator, without a compilation: the project's `cargo` is a script
//! that names another script.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Parser;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::json;
use tempfile::TempDir;
use windlass::cli::{FromArgs, ManagerArgs};
use windlass::webhook::{Converter, WebhookServer, Webhooks};
use windlass::{Action, Context, Controller, Manager, ObjectKey};

use crate::process::{Windlass, windlass};

/// The variable with the arguments of the operator, an argument a line.
const ARGUMENTS: &str = "WINDLASS_TEST_OPERATOR";

/// The line in the log of the operator for each object that decodes.
pub(crate) const SETTLED: &str = "settled ";

/// The kind Bar. The field has another name in v2.
pub(crate) mod v1 {
    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
    #[kube(group = "foo.abc.com", version = "v1", kind = "Bar", namespaced, storage = false)]
    pub(crate) struct BarSpec {
        pub(crate) size: u32,
    }
}

pub(crate) mod v2 {
    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
    #[kube(group = "foo.abc.com", version = "v2", kind = "Bar", namespaced)]
    pub(crate) struct BarSpec {
        pub(crate) width: u32,
    }
}

/// Returns the CRD of v2 alone.
pub(crate) fn one_version() -> Vec<CustomResourceDefinition> {
    vec![v2::Bar::crd()]
}

/// Returns the CRDs of both versions.
pub(crate) fn two_versions() -> Vec<CustomResourceDefinition> {
    vec![v1::Bar::crd(), v2::Bar::crd()]
}

/// A project `demo` with an operator.
pub(crate) struct Project {
    folder: TempDir,
}

impl Project {
    /// Begins a project with an operator that declares CRDs and runs a command line.
    pub(crate) fn new(crds: &[CustomResourceDefinition], run: &str) -> Self {
        let project = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(project.path("demo")).unwrap();
        project.ok(&["init", "--domain", "abc.com"]);
        let operator = project.script(
            "operator",
            &format!(
                "case $1 in\ncrds) cat \"$0.crds\" ;;\nmanifests) cat \"$0.manifests\" ;;\n*) {run} ;;\nesac"
            ),
        );
        let message = json!({
            "reason": "compiler-artifact",
            "target": { "name": "demo", "kind": ["bin"] },
            "executable": operator,
        });
        project.script("cargo", &format!("echo '{message}'"));
        project.declare(crds);
        project
    }

    /// Begins a project with this test program as the operator: see [`serve`].
    pub(crate) fn with_operator(crds: &[CustomResourceDefinition]) -> Self {
        let program = env::current_exe().unwrap().display().to_string();
        let arguments = format!("export {ARGUMENTS}=\"$(printf '%s\\n' \"$@\")\"");
        let run =
            format!("{arguments}\nexec '{program}' --exact operator::serve --include-ignored --nocapture");
        Self::new(crds, &run)
    }

    /// Lets the operator declare other CRDs.
    pub(crate) fn declare(&self, crds: &[CustomResourceDefinition]) {
        let texts: Vec<String> = crds.iter().map(|crd| serde_saphyr::to_string(crd).unwrap()).collect();
        fs::write(self.path("operator.crds"), texts.join("---\n")).unwrap();
        let conversion = json!({
            "group": "foo.abc.com", "kind": "Bar", "plural": "bars", "versions": ["v1", "v2"], "hub": "v2", "path": "/convert",
        });
        let webhooks = json!({ "port": 9443, "certificates": "selfIssued", "conversions": [conversion] });
        let inventory = json!({
            "format": 1, "name": "demo", "crds": crds,
            "webhooks": if crds.len() > 1 { webhooks } else { serde_json::Value::Null },
        });
        fs::write(self.path("operator.manifests"), inventory.to_string()).unwrap();
    }

    /// Changes the declarations of the operator.
    pub(crate) fn edit_inventory(&self, edit: impl FnOnce(&mut serde_json::Value)) {
        let path = self.path("operator.manifests");
        let mut inventory = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        edit(&mut inventory);
        fs::write(path, inventory.to_string()).unwrap();
    }

    /// Lets a save of a source make another operator, which declares other CRDs.
    pub(crate) fn build(&self, crds: &[CustomResourceDefinition]) {
        self.declare(crds);
        let operator = self.path("operator");
        fs::write(&operator, fs::read_to_string(&operator).unwrap()).unwrap();
        let text = fs::read_to_string(self.path("demo/src/setup.rs")).unwrap();
        fs::write(self.path("demo/src/setup.rs"), text + "\n").unwrap();
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// The command in the folder of the project, not started yet.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = windlass(arguments);
        command.current_dir(self.path("demo")).env("CARGO", self.path("cargo")).stdin(Stdio::null());
        // The project compiles into the project's folder, unlike CI.
        command.env_remove("CARGO_TARGET_DIR");
        command
    }

    /// Runs the command, and returns the text on stdout.
    #[track_caller]
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let (out, error) = (text(output.stdout), text(output.stderr));
        assert!(output.status.success(), "{arguments:?}: {out}{error}");
        out
    }

    /// Starts the command, with stderr among the lines of stdout.
    pub(crate) fn start(&self, arguments: &[&str]) -> Windlass {
        let command = self.command(arguments);
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$0\" \"$@\" 2>&1"]).arg(command.get_program()).args(command.get_args());
        shell
            .current_dir(self.path("demo"))
            .env("CARGO", self.path("cargo"))
            .env_remove("RUST_LOG")
            .env_remove("KUBECONFIG");
        Windlass::of(shell)
    }

    /// Returns the process ids in the records of operators that run.
    pub(crate) fn operators(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("demo/.windlass/operators")).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).collect()
    }

    fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        write_script(&path, text);
        path
    }
}

fn write_script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The arguments of an operator.
#[derive(Parser)]
struct Line {
    #[command(flatten)]
    manager: ManagerArgs,
}

async fn reconcile(key: ObjectKey, cx: Context<v1::Bar>) -> windlass::Result<Action> {
    if let Some(bar) = cx.get(&key)? {
        tracing::info!("{SETTLED}{key} {}", bar.spec.size);
    }
    Ok(Action::done())
}

/// The operator of [`Project::with_operator`]: a controller of v1, and conversion to v2, the storage version.
#[tokio::test]
#[ignore = "other tests start it with arguments"]
async fn serve() {
    let Ok(arguments) = env::var(ARGUMENTS) else { return };
    // The first argument is the command `run`.
    let line = Line::parse_from(["operator"].into_iter().chain(arguments.lines().skip(1)));
    line.manager.init_logging();
    let to_hub = |bar: v1::Bar| {
        Ok::<_, std::convert::Infallible>(v2::Bar {
            metadata: bar.metadata,
            spec: v2::BarSpec { width: bar.spec.size },
        })
    };
    let from_hub = |bar: v2::Bar| {
        Ok::<_, std::convert::Infallible>(v1::Bar {
            metadata: bar.metadata,
            spec: v1::BarSpec { size: bar.spec.width },
        })
    };
    let converter = Converter::hub::<v2::Bar>().spoke_with(to_hub, from_hub);
    let manager = Manager::with_args(line.manager)
        .crd(v1::Bar::crd())
        .crd(v2::Bar::crd())
        .controller(Controller::of::<v1::Bar>(reconcile))
        .webhooks(WebhookServer::new(Webhooks::new().converter(converter)));
    manager.run().await.unwrap();
}
