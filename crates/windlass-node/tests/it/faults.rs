//! Hostile images, wrong specifications, and the end of the runtime.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_node::{
    ContainerSpec, DirectoryImages, ImageConfig, Limits, Mount, Namespaces, NamespacesConfig, Runtime,
    RuntimeError, User,
};
use windlass_patience::stretched;

use crate::fixture::{Fixture, fixture, image, launcher, sandbox_spec, spec};

#[tokio::test(flavor = "multi_thread")]
async fn wrong_specifications_have_a_reason_and_leave_nothing() {
    let Some(fixture) = fixture().await else { return };
    let pod = fixture.sandbox("wrong").await;
    let refused = async |spec: ContainerSpec| fixture.runtime.start(&pod, spec).await.unwrap_err();
    let non_root = User { must_not_be_root: true, ..User::default() };
    let error =
        refused(ContainerSpec { image: "root".into(), user: non_root, ..fixture.script("true") }).await;
    assert!(
        matches!(error, RuntimeError::Config(text) if text == "container has runAsNonRoot and image will run as root")
    );
    let error =
        refused(ContainerSpec { command: vec!["/nothing".into()], ..fixture.script("") }).await.to_string();
    assert_eq!(
        error,
        "unable to start container process: exec: \"/nothing\": stat /nothing: no such file or directory"
    );
    let error = refused(ContainerSpec { image: "none".into(), ..fixture.script("") }).await;
    assert!(matches!(error, RuntimeError::NotFound(text) if text == "image none"));
    let mount = Mount { source: "/nowhere/at/all".into(), target: "/x".into(), read_only: true };
    let error = refused(ContainerSpec { mounts: vec![mount], ..fixture.script("") }).await.to_string();
    assert!(error.contains("/nowhere/at/all"), "{error}");
    let link = fixture.folder.path().join("link");
    symlink("/etc", &link).unwrap();
    let mount = Mount { source: link, target: "/x".into(), read_only: true };
    assert!(matches!(
        refused(ContainerSpec { mounts: vec![mount], ..fixture.script("") }).await,
        RuntimeError::Config(_)
    ));
    let left = walk(&fixture.folder.path().join("state"), "containers");
    assert_eq!(left, Some(0), "directories of containers are left");
}

/// Counts the entries of the first directory with a name.
fn walk(folder: &Path, name: &str) -> Option<usize> {
    let found = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let mut below: Vec<_> = found.filter(|path| path.is_dir()).collect();
    below.sort();
    let own = below
        .iter()
        .find(|path| path.ends_with(name))
        .and_then(|path| Some(fs::read_dir(path).ok()?.count()));
    own.or_else(|| below.iter().find_map(|path| walk(path, name)))
}

#[tokio::test(flavor = "multi_thread")]
async fn links_of_a_hostile_image_do_not_leave_its_root() {
    let folder = tempfile::tempdir().unwrap();
    let Some(root) = image(folder.path()) else { return };
    let outside = folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::remove_file(root.join("etc/passwd")).unwrap();
    symlink(&outside, root.join("data")).unwrap();
    symlink("../../../../../../../../../../..", root.join("up")).unwrap();
    symlink("../../run/hosts", root.join("etc/hosts")).unwrap();
    let pipe = Command::new("mkfifo").arg(root.join("etc/passwd")).status();
    println!("a pipe as /etc/passwd: {pipe:?}");
    let images = DirectoryImages::default().with("busybox", &root, ImageConfig::default());
    let config = NamespacesConfig {
        launcher: launcher(),
        state_dir: folder.path().join("state"),
        images: Arc::new(images),
    };
    let runtime = match Namespaces::new(config).await {
        Ok(runtime) => runtime,
        Err(error) => return println!("skipped: {error}"),
    };
    let pod = windlass_node::SandboxId("hostile".into());
    runtime.create_sandbox(sandbox_spec(&pod)).await.unwrap();
    let volume = folder.path().join("volume");
    fs::create_dir(&volume).unwrap();
    let mount = |target: &str| Mount { source: volume.clone(), target: target.into(), read_only: false };
    let spec = ContainerSpec {
        mounts: vec![mount("/data/made"), mount("/up/made")],
        ..spec(&folder.path().join("log"), "ls -d /made; echo end")
    };
    let result = runtime.start(&pod, spec).await;
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "a mount point was made outside of the root");
    assert!(!Path::new("/made").exists());
    let exit = runtime.wait(&result.unwrap()).await.unwrap();
    let log = windlass_node::log::last_lines(&folder.path().join("log"), 100, 4096).unwrap();
    assert_eq!((exit.code, log.as_str()), (0, "/made\nend\n"));
    runtime.remove_sandbox(&pod).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_of_a_hostile_image_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let Some(root) = image(folder.path()) else { return };
    let user = |user: &str| ImageConfig { user: user.into(), ..ImageConfig::default() };
    let range = "uids and gids must be in range 0-2147483647";
    let configurations = [
        ("range", user("9999999999"), range),
        ("wrapped", user("4294967295"), range),
        ("group", user("1:4294967295"), range),
        ("stranger", user("stranger"), "unable to find user stranger: no matching entries in passwd file"),
        (
            "relative",
            ImageConfig { working_directory: "../..".into(), ..ImageConfig::default() },
            "the working directory \"../..\" is not an absolute path",
        ),
        (
            "file",
            ImageConfig { working_directory: "/bin/busybox".into(), ..ImageConfig::default() },
            "create the working directory /bin/busybox",
        ),
        (
            "above",
            ImageConfig { working_directory: "/../../etc".into(), ..ImageConfig::default() },
            "create the working directory /../../etc",
        ),
    ];
    let mut images = DirectoryImages::default().with("empty", &root, ImageConfig::default());
    for (name, config, _) in &configurations {
        images = images.with(name, &root, config.clone());
    }
    let environment = vec![("A".into(), "1".into()), (String::new(), "x".into()), ("B\0".into(), "x".into())];
    let odd = ImageConfig { environment, working_directory: "/etc".into(), ..ImageConfig::default() };
    let images = images.with("odd", &root, odd);
    let config = NamespacesConfig {
        launcher: launcher(),
        state_dir: folder.path().join("state"),
        images: Arc::new(images),
    };
    let runtime = match Namespaces::new(config).await {
        Ok(runtime) => runtime,
        Err(error) => return println!("skipped: {error}"),
    };
    let pod = windlass_node::SandboxId("absurd".into());
    runtime.create_sandbox(sandbox_spec(&pod)).await.unwrap();
    let log = folder.path().join("log");
    let of = |image: &str, text: &str| ContainerSpec { image: image.into(), ..spec(&log, text) };
    for (name, _, words) in configurations {
        let error = runtime.start(&pod, of(name, "id -u")).await.unwrap_err().to_string();
        assert!(error.contains(words), "{name}: {error}");
    }
    let no_command = ContainerSpec { command: Vec::new(), ..of("empty", "") };
    let error = runtime.start(&pod, no_command).await.unwrap_err();
    assert!(matches!(&error, RuntimeError::Create(text) if text == "no command specified"), "{error:?}");
    // Variables without a name are left out.
    let id = runtime.start(&pod, of("odd", "pwd; echo $A; env | grep -c =x")).await.unwrap();
    runtime.wait(&id).await.unwrap();
    assert_eq!(windlass_node::log::last_lines(&log, 100, 4096).unwrap(), "/etc\n1\n0\n");
    runtime.remove(&id).await.unwrap();
    assert_eq!(
        walk(&folder.path().join("state"), "containers"),
        Some(0),
        "directories of containers are left"
    );
    runtime.remove_sandbox(&pod).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_is_made_where_an_attempt_was_given_up() {
    let Some(fixture) = fixture().await else { return };
    let state = fixture.folder.path().join("state");
    let runtime = fs::read_dir(&state).unwrap().next().unwrap().unwrap().path();
    fs::create_dir_all(runtime.join("sandboxes/again/containers")).unwrap();
    let pod = fixture.sandbox("again").await;
    assert_eq!(fixture.run(&pod, fixture.script("echo end")).await, (0, "end\n".into()));
    let twice = fixture.runtime.create_sandbox(sandbox_spec(&pod)).await.unwrap_err().to_string();
    assert_eq!(twice, "sandbox again exists");
    fixture.runtime.remove_sandbox(&pod).await.unwrap();
    assert!(!runtime.join("sandboxes/again").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_output_does_not_fill_the_disk_or_the_memory() {
    let Some(fixture) = fixture().await else { return };
    let pod = fixture.sandbox("flood").await;
    let before = resident();
    let (code, _) = fixture
        .run(&pod, fixture.script("dd if=/dev/zero bs=1M count=200 2>/dev/null; echo; echo end"))
        .await;
    assert_eq!(code, 0);
    let files = fs::read_dir(fixture.folder.path().join("logs")).unwrap().flatten();
    let size: u64 = files.map(|file| file.metadata().unwrap().len()).sum();
    assert!(size <= 51_000_000, "{size}");
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown}");
}

/// The memory of this process, in bytes.
fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_limit_ends_a_container() {
    let Some(fixture) = fixture().await else { return };
    if let Some(reason) = fixture.runtime.limits_missing() {
        println!("skipped: {reason}");
        return;
    }
    let pod = fixture.sandbox("memory").await;
    let limits = Limits { memory: Some(20 << 20), ..Limits::default() };
    let spec =
        ContainerSpec { limits, ..fixture.script("exec dd if=/dev/zero of=/dev/null bs=200M count=1") };
    let id = fixture.runtime.start(&pod, spec).await.unwrap();
    let exit = fixture.ended(&id).await;
    assert!(exit.out_of_memory, "{exit:?}");
    assert_eq!(exit.code, 137);
}

/// Runs pods in a process of its own, which the test below kills.
#[tokio::test(flavor = "multi_thread")]
async fn victim() {
    let Ok(marker) = std::env::var("WINDLASS_NODE_VICTIM") else { return };
    let Some(fixture) = fixture().await else { return };
    let pod = fixture.sandbox("victim").await;
    let memory = std::env::var("WINDLASS_NODE_VICTIM_MEMORY").unwrap().parse().ok();
    let limits = Limits { memory, ..Limits::default() };
    let script = format!("echo ready; while :; do sleep {marker}; done");
    fixture.runtime.start(&pod, ContainerSpec { limits, ..fixture.script(&script) }).await.unwrap();
    fixture.logged("ready").await;
    println!("the victim is ready in {}", fixture.folder.path().display());
    std::future::pending::<()>().await;
}

#[test]
fn nothing_outlives_a_runtime_that_is_killed() {
    kill_a_runtime(&format!("{}", 100_000 + std::process::id()), "52428800");
    // Without a limit, no container has control groups.
    kill_a_runtime(&format!("{}", 200_000 + std::process::id()), "none");
}

fn kill_a_runtime(marker: &str, memory: &str) {
    use std::io::{BufRead, BufReader};
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["faults::victim", "--exact", "--nocapture"])
        .env("WINDLASS_NODE_VICTIM", marker)
        .env("WINDLASS_NODE_VICTIM_MEMORY", memory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("the victim is ready") || line.contains("skipped:"));
    let line = line.unwrap_or_default();
    let ready = line.contains("is ready");
    if ready {
        assert!(!with_text(marker).is_empty(), "the program is not there");
    }
    let folder = line.split_once(" ready in ").map(|(_, folder)| PathBuf::from(folder)).unwrap_or_default();
    let groups = cgroups(&folder);
    println!("control groups: {groups:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    if !ready {
        println!("{line}");
        return;
    }
    let start = Instant::now();
    let left = || (with_text(marker), groups.iter().filter(|group| group.exists()).collect::<Vec<_>>());
    while left() != (Vec::new(), Vec::new()) {
        let left = left();
        assert!(start.elapsed() < stretched(Duration::from_secs(10)), "{left:?} are left");
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = fs::remove_dir_all(folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_that_shuts_down_leaves_nothing() {
    let Some(fixture) = fixture().await else { return };
    let pod = fixture.sandbox("end").await;
    let id = fixture.runtime.start(&pod, fixture.script("echo ready; sleep 100000")).await.unwrap();
    fixture.logged("ready").await;
    let groups = cgroups(fixture.folder.path());
    fixture.runtime.shut_down().await;
    assert!(matches!(fixture.runtime.wait(&id).await, Err(RuntimeError::NotFound(_))));
    assert_eq!(fs::read_dir(fixture.folder.path().join("state")).unwrap().count(), 0);
    assert_eq!(groups.iter().filter(|group| group.exists()).count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_runtime_forgets_no_control_group() {
    let Some(fixture) = fixture().await else { return };
    let pod = fixture.sandbox("dropped").await;
    let marker = format!("{}", 300_000 + std::process::id());
    let limits = Limits { memory: Some(52_428_800), ..Limits::default() };
    let spec = ContainerSpec { limits, ..fixture.script(&format!("echo ready; sleep {marker}")) };
    fixture.runtime.start(&pod, spec).await.unwrap();
    fixture.logged("ready").await;
    let Fixture { runtime, folder } = fixture;
    let groups = cgroups(folder.path());
    drop(runtime);
    // The helper and the next runtime remove the groups of programs that still run.
    let forgotten = groups.iter().filter(|group| group.exists() && !cgroups(folder.path()).contains(group));
    assert_eq!(forgotten.collect::<Vec<_>>(), Vec::<&PathBuf>::new());
    let programs = with_text(&marker).iter().map(ToString::to_string).collect::<Vec<_>>();
    Command::new("kill").arg("-9").args(programs).status().unwrap();
    let start = Instant::now();
    while groups.iter().any(|group| group.exists()) {
        assert!(start.elapsed() < stretched(Duration::from_secs(10)), "{groups:?} are in use");
        for group in &groups {
            let children = fs::read_dir(group).into_iter().flatten().flatten();
            children.for_each(|child| drop(fs::remove_dir(child.path())));
            let _ = fs::remove_dir(group);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The processes whose command line has a text.
fn with_text(text: &str) -> Vec<u32> {
    let own = std::process::id();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        *pid != own && String::from_utf8_lossy(&line).contains(text)
    };
    numbers.filter(has).collect()
}

/// The control groups of the runtime whose files are in a folder.
fn cgroups(folder: &Path) -> Vec<PathBuf> {
    let states = fs::read_dir(folder.join("state")).into_iter().flatten().flatten();
    let lists = states.filter_map(|state| fs::read_to_string(state.path().join("cgroups")).ok());
    lists.flat_map(|list| list.lines().map(PathBuf::from).collect::<Vec<_>>()).collect()
}

/// A measurement: `cargo test -p windlass-node --test it many_pods -- --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn many_pods() {
    let Some(fixture) = fixture().await else { return };
    let memory = || {
        let text = fs::read_to_string("/proc/meminfo").unwrap();
        let line = text.lines().find(|line| line.starts_with("MemAvailable")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<i64>().unwrap()
    };
    let before = memory();
    let start = Instant::now();
    for number in 0..200 {
        let pod = fixture.sandbox(&format!("pod-{number}")).await;
        let log = fixture.folder.path().join(format!("{number}.log"));
        let command = vec!["/bin/sleep".into(), "1000".into()];
        fixture.runtime.start(&pod, ContainerSpec { log, command, ..fixture.script("") }).await.unwrap();
    }
    println!("200 pods: {:?}, {} KiB of memory for each pod", start.elapsed(), (before - memory()) / 200);
    let start = Instant::now();
    for number in 0..200 {
        fixture.runtime.remove_sandbox(&windlass_node::SandboxId(format!("pod-{number}"))).await.unwrap();
    }
    println!("removed in {:?}", start.elapsed());
}

/// Returns the parent of the process with these words, by the files of the kernel.
fn parent_of(words: &str) -> Option<String> {
    let wanted = words.replace(' ', "\0") + "\0";
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let mut found =
        processes.filter(|path| fs::read_to_string(path.join("cmdline")).is_ok_and(|text| text == wanted));
    let status = fs::read_to_string(found.next()?.join("status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:\t")).map(str::to_owned)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_runs_again_after_the_end_of_the_helper() {
    let Some(fixture) = fixture().await else { return };
    let pod = fixture.sandbox("helper").await;
    let words = format!("sleep {}", 1_000_000 + std::process::id());
    let id = fixture.runtime.start(&pod, fixture.script(&format!("echo ready; exec {words}"))).await.unwrap();
    fixture.logged("ready").await;
    let begun = Instant::now();
    let helper = loop {
        if let Some(helper) = parent_of(&words) {
            break helper;
        }
        assert!(begun.elapsed() < stretched(Duration::from_secs(10)), "the program does not run");
    };
    assert!(Command::new("kill").args(["-9", &helper]).status().unwrap().success());
    assert_eq!(fixture.ended(&id).await.code, 137);
    let error = fixture.runtime.start(&pod, fixture.script("true")).await.unwrap_err();
    assert!(matches!(&error, RuntimeError::SandboxEnded(name) if *name == pod.0), "{error:?}");
    fixture.runtime.remove_sandbox(&pod).await.unwrap();
    let pod = fixture.sandbox("helper").await;
    let (code, log) = fixture.run(&pod, fixture.script("echo again")).await;
    assert_eq!((code, log.as_str()), (0, "again\n"));
}
