//! The life of a project: the command lines of the articles, and refused commands. No project is compiled
//! here; the tutorials compile projects.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A folder with a space in its path.
struct Folder {
    _directory: TempDir,
    path: PathBuf,
}

impl Folder {
    fn new(name: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("my projects").join(name);
        fs::create_dir_all(&path).unwrap();
        Self { _directory: directory, path }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.path.join(path)
    }

    /// Types a command line in a shell, with `windlass` on the PATH. Returns whether the command succeeded,
    /// and the output.
    fn type_(&self, line: &str) -> (bool, String) {
        let program = Path::new(env!("CARGO_BIN_EXE_windlass")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("{line} 2>&1")])
            .current_dir(&self.path)
            .env("PATH", path)
            .stdin(Stdio::null());
        let output = shell.env_remove("WINDLASS_CHECKOUT").output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    }

    #[track_caller]
    fn ok(&self, line: &str) -> String {
        let (success, said) = self.type_(line);
        assert!(success, "{line}: {said}");
        said
    }

    #[track_caller]
    fn refused(&self, line: &str, part: &str) {
        let (success, said) = self.type_(line);
        assert!(!success && said.contains(part), "{line}: {said}");
    }

    fn bar() -> Self {
        let folder = Self::new("operator-demo");
        folder.ok("windlass init --domain abc.com --license apache2 --owner \"zhangsan\"");
        folder.ok("windlass create api --group foo --version v1 --kind Bar");
        folder
    }

    fn commit(&self) {
        self.ok("git init -q && git add -A && git -c user.name=a -c user.email=a@b commit -qm scaffold");
    }
}

#[test]
fn the_command_lines_of_the_articles_work_as_typed() {
    let custom_pod = Folder::new("kubebuilder-demo");
    assert!(custom_pod.ok("windlass version").starts_with("windlass 0."));
    custom_pod.ok("windlass init --domain mock.com --repo github.com/zhhnzw/k8s-demo/kubebuilder-demo");
    custom_pod.ok(
        "windlass create api --group zhhnzw --version v1 --kind=CustomPod --resource=true --controller=true",
    );
    assert!(custom_pod.at("config/samples/zhhnzw_v1_custompod.yaml").is_file());
    let manifest = fs::read_to_string(custom_pod.at("Cargo.toml")).unwrap();
    assert!(manifest.contains("https://github.com/zhhnzw/k8s-demo/kubebuilder-demo"), "{manifest}");

    let pool = Folder::new("guestbook");
    pool.ok("windlass init --domain tiduyun.com --repo git.tiduyun.com/tsi-controller");
    pool.ok("windlass create api --group tsi --version v1alpha1 --kind IPPool");
    let kind = fs::read_to_string(pool.at("api/src/v1alpha1/ip_pool.rs")).unwrap();
    assert!(kind.contains("group = \"tsi.tiduyun.com\""), "{kind}");

    let bar = Folder::bar();
    let header = fs::read_to_string(bar.at("src/controllers/bar.rs")).unwrap();
    assert!(
        header.starts_with("// Copyright") && header.lines().next().unwrap().ends_with("zhangsan."),
        "{header}"
    );
    assert!(bar.ok("make help").contains("Install the CRDs"));
}

#[test]
fn flags_of_kubebuilder_without_a_meaning_are_accepted_with_a_note() {
    let folder = Folder::new("demo");
    let said = folder
        .ok("windlass init --plugins go/v4 --component-config --fetch-deps=false --skip-go-version-check");
    for flag in ["--plugins", "--component-config", "--fetch-deps", "--skip-go-version-check"] {
        assert!(said.contains(&format!("note: {flag} has no effect here: ")), "{said}");
    }
    assert!(
        folder
            .ok("windlass create api --group a --version v1 --kind B --make=false")
            .contains("note: --make")
    );
}

#[test]
fn flags_of_kubebuilder_have_its_forms() {
    let bar = Folder::bar();
    let kind = "--group foo --version v1 --kind Bar";
    bar.ok(&format!(
        "windlass create webhook {kind} --defaulting=true --programmatic-validation=false --make=false --legacy \
         --defaulting-path=/set-bar --force=false"
    ));
    assert!(!bar.at("src/webhooks/bar/validation.rs").exists());
    assert!(fs::read_to_string(bar.at("src/webhooks/bar/defaulting.rs")).unwrap().contains("/set-bar"));
    let said = bar.ok(&format!(
        "windlass create api {kind} --resource=false --controller=true --controller-name bar-backup"
    ));
    assert!(said.contains("src/controllers/bar_backup.rs has the function"), "{said}");
    bar.ok("windlass create webhook --group core --version v1 --kind Pod --programmatic-validation");
    bar.ok(
        "windlass create webhook --group cert-manager --version v1 --kind Certificate --defaulting --external-api-path cert_manager::v1 \
         --external-api-domain io --external-api-module cert-manager@1",
    );
    assert!(bar.ok("windlass completion bash").contains("uninstall"));
}

#[test]
fn a_cloned_repository_keeps_its_readme() {
    let folder = Folder::new("demo");
    fs::write(folder.at("README.md"), "# Demo\n").unwrap();
    assert!(
        folder.ok("windlass init").contains("left as they are, because they were there before: README.md")
    );
    assert_eq!(fs::read_to_string(folder.at("README.md")).unwrap(), "# Demo\n");
    let other = Folder::new("demo");
    fs::write(other.at("Cargo.toml"), "[package]\n").unwrap();
    other.refused(
        "windlass init",
        "a file exists already: Cargo.toml. Move it away, or overwrite it with --force",
    );
    other.ok("windlass init --force");
}

#[test]
fn a_new_project_has_its_manifests_without_a_build() {
    let folder = Folder::new("demo");
    fs::create_dir_all(folder.at("config/manager")).unwrap();
    fs::write(folder.at("config/manager/manager.yaml"), "mine: true\n").unwrap();
    let said = folder.ok("windlass init");
    assert!(said.contains("created config/default/kustomization.yaml"), "{said}");
    for path in ["config/prometheus/monitor.yaml", "config/rbac/leader_election_role.yaml"] {
        assert!(folder.at(path).is_file(), "{path}");
    }
    assert_eq!(fs::read_to_string(folder.at("config/manager/manager.yaml")).unwrap(), "mine: true\n");
}

#[test]
fn a_webhook_of_a_built_in_kind_that_does_not_exist_is_refused() {
    let bar = Folder::bar();
    bar.refused(
        "windlass create webhook --group apps --version v1 --kind Deploymnet --defaulting",
        "Kubernetes has no kind Deploymnet in apps/v1: did you mean Deployment?",
    );
}

#[test]
fn the_installer_has_the_image_of_make() {
    let bar = Folder::bar();
    let said = bar.ok("make --dry-run build-installer IMG=example.com/bar:v1");
    assert!(said.contains("windlass manifests install --image example.com/bar:v1"), "{said}");
}

#[test]
fn a_dry_run_and_a_diff_write_nothing() {
    let folder = Folder::new("demo");
    assert!(folder.ok("windlass init --dry-run").contains("would create Cargo.toml"));
    assert!(folder.ok("windlass init --diff").contains("+++ b/windlass.toml"));
    assert_eq!(fs::read_dir(&folder.path).unwrap().count(), 0);
}

#[test]
fn a_request_that_does_not_fit_is_refused_with_a_reason() {
    let outside = Folder::new("outside");
    outside.refused("windlass create api --group foo --version v1 --kind Bar", "is not in a project");
    fs::write(outside.at("Makefile"), "all:\n").unwrap();
    outside.refused("windlass init", "a file exists already: Makefile");
    Folder::new("My Operator").refused("windlass init", "--project-name");
    Folder::new("demo").refused("windlass init --path /nowhere", "--path /nowhere");

    let bar = Folder::bar();
    assert!(bar.ok("windlass create api --group foo --version v1 --kind Bar").contains("nothing to write"));
    bar.refused("windlass init --domain other.com", "change it with `windlass edit`");
    bar.refused("windlass create api --group foo --version v1 --kind bar", "try Bar");
    bar.refused("windlass create api --version v1 --kind Bar", "the group is empty");
    // From a folder inside of the project.
    bar.refused(
        "cd src && windlass create webhook --group foo --version v1 --kind Baz --defaulting",
        "the project has no Baz",
    );
}

#[test]
fn edited_files_are_deleted_when_git_has_them() {
    let bar = Folder::bar();
    let kind = bar.at("api/src/v1/bar.rs");
    fs::write(&kind, fs::read_to_string(&kind).unwrap().replace("foo", "colour")).unwrap();
    bar.refused(
        "windlass delete api --group foo --version v1 --kind Bar",
        "not committed: api/src/v1/bar.rs",
    );
    bar.commit();
    bar.ok("windlass delete api --group foo --version v1 --kind Bar");
    assert!(!kind.exists() && !bar.at("src/controllers").exists());
}

#[test]
fn an_edit_wants_a_clean_tree_and_keeps_what_the_user_wrote() {
    let bar = Folder::bar();
    bar.commit();
    let controller = bar.at("src/controllers/bar.rs");
    let edited = fs::read_to_string(&controller).unwrap().replace("// Your logic: read", "// Mine: read");
    fs::write(&controller, edited).unwrap();
    bar.refused("windlass edit --multigroup", "not committed: src/controllers/bar.rs");
    bar.ok("git -c user.name=a -c user.email=a@b commit -qam mine");
    assert!(bar.ok("windlass edit --multigroup").contains("created src/controllers/foo/bar.rs"));
    assert!(fs::read_to_string(bar.at("src/controllers/foo/bar.rs")).unwrap().contains("// Mine: read"));
    bar.ok("git add -A && git -c user.name=a -c user.email=a@b commit -qm moved");
    assert!(bar.ok("windlass update").contains("nothing to write"));
}

#[test]
fn a_change_of_the_settings_alone_is_told() {
    let folder = Folder::new("empty");
    folder.ok("windlass init");
    let said = folder.ok("windlass edit --multigroup --dry-run");
    assert!(said.contains("would change windlass.toml"), "{said}");
    assert!(folder.ok("windlass edit --multigroup").contains("changed windlass.toml"));
    assert!(folder.ok("windlass edit --multigroup").contains("nothing to write"));
}

#[test]
fn the_next_command_clears_what_a_killed_one_left() {
    let bar = Folder::bar();
    let drafts = bar.at(".windlass/stage-killed");
    let leave = || {
        fs::create_dir_all(&drafts).unwrap();
        fs::write(drafts.join("0"), "half").unwrap();
    };
    leave();
    bar.ok("windlass create api --group foo --version v1 --kind Baz --dry-run");
    assert!(drafts.exists());
    bar.ok("windlass create api --group foo --version v1 --kind Baz");
    assert!(!drafts.exists());
    leave();
    assert!(bar.ok("windlass create api --group foo --version v1 --kind Baz").contains("nothing to write"));
    assert!(!drafts.exists());
}
