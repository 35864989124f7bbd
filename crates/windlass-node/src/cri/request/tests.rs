use super::*;
use crate::{Mount as PodMount, SandboxId};

fn sandbox_spec() -> SandboxSpec {
    SandboxSpec {
        id: SandboxId("uid".into()),
        host_name: "web-0".into(),
        address: "10.244.0.7".parse().unwrap(),
        host_network: false,
        hosts: vec![],
        ranges: vec![],
        resolver: None,
    }
}

fn spec() -> ContainerSpec {
    ContainerSpec {
        name: "main".into(),
        attempt: 2,
        image: "sha256:1".into(),
        command: vec!["/manager".into()],
        arguments: vec!["--flag".into()],
        working_directory: None,
        environment: vec![("A".into(), "1".into())],
        mounts: vec![],
        user: User::default(),
        read_only_root: true,
        limits: Limits::default(),
        log: "/var/log/pods/0.log".into(),
        terminal: false,
        stdin: true,
        stdin_once: true,
    }
}

fn created(spec: &ContainerSpec, user: &ImageUser) -> Result<ContainerConfig, RuntimeError> {
    let sandbox_config = sandbox(&sandbox_spec(), BTreeMap::from([("a".into(), "b".into())]));
    let surroundings = Surroundings {
        sandbox: "s1",
        sandbox_config: &sandbox_config,
        user,
        hosts: Path::new("/state/hosts"),
        host_network: false,
    };
    let request = container(spec, &surroundings)?;
    assert_eq!(request.sandbox, "s1");
    assert_eq!(request.sandbox_config.as_ref(), Some(&sandbox_config));
    Ok(request.config.unwrap())
}

fn security_of(user: User, image: &ImageUser) -> ContainerSecurity {
    created(&ContainerSpec { user, ..spec() }, image).unwrap().linux.unwrap().security_context.unwrap()
}

#[test]
fn a_sandbox_has_a_network_of_its_own_and_each_container_its_own_processes() {
    let config = sandbox(&sandbox_spec(), BTreeMap::from([("a".into(), "b".into())]));
    let metadata = config.metadata.unwrap();
    assert_eq!(
        (metadata.name.as_str(), metadata.uid.as_str(), config.hostname.as_str()),
        ("web-0", "uid", "web-0")
    );
    assert_eq!(config.labels["a"], "b");
    let linux = config.linux.unwrap();
    let (network, pid) = (NamespaceMode::Pod as i32, NamespaceMode::Container as i32);
    let expected = Namespaces { network, pid, ipc: network };
    assert_eq!(linux.security_context.unwrap().namespaces, Some(expected));
    assert_eq!(linux.sysctls["net.ipv4.ip_unprivileged_port_start"], "0");
}

#[test]
fn a_sandbox_in_the_network_of_the_machine_changes_no_setting_of_the_machine() {
    let config = sandbox(&SandboxSpec { host_network: true, ..sandbox_spec() }, BTreeMap::new());
    let linux = config.linux.unwrap();
    assert_eq!(linux.sysctls, BTreeMap::new());
    assert_eq!(linux.security_context.unwrap().namespaces.unwrap().network, NamespaceMode::Node as i32);
    assert_eq!(config.hostname, "");
}

#[test]
fn a_container_has_its_command_environment_log_and_labels() {
    let config = created(&spec(), &ImageUser::Number(0)).unwrap();
    assert_eq!(config.metadata, Some(ContainerMetadata { name: "main".into(), attempt: 2 }));
    assert_eq!((config.command, config.arguments), (vec!["/manager".into()], vec!["--flag".into()]));
    assert_eq!(config.environment, [Variable { name: "A".into(), value: "1".into() }]);
    assert_eq!((config.log_path.as_str(), config.labels["a"].as_str()), ("var/log/pods/0.log", "b"));
    assert!(config.stdin && config.stdin_once && !config.terminal);
}

#[test]
fn mounts_are_in_the_order_of_their_paths_and_a_volume_replaces_the_hosts() {
    let mount = |target: &str| PodMount { source: "/v".into(), target: target.into(), read_only: true };
    let targets = |mounts: Vec<PodMount>| -> Vec<(String, String)> {
        let config = created(&ContainerSpec { mounts, ..spec() }, &ImageUser::Number(0)).unwrap();
        config.mounts.into_iter().map(|mount| (mount.target, mount.source)).collect()
    };
    let pair = |target: &str, source: &str| (target.to_owned(), source.to_owned());
    let below = targets(vec![mount("/a/b"), mount("/a")]);
    assert_eq!(below, [pair("/a", "/v"), pair("/a/b", "/v"), pair("/etc/hosts", "/state/hosts")]);
    assert_eq!(targets(vec![mount("/etc/hosts")]), [pair("/etc/hosts", "/v")]);
    let relative = ContainerSpec { mounts: vec![mount("a")], ..spec() };
    assert!(matches!(created(&relative, &ImageUser::Number(0)), Err(RuntimeError::Config(_))));
}

#[test]
fn a_user_is_that_of_the_pod_and_a_group_alone_goes_with_the_user_of_the_image() {
    let image = ImageUser::Number(65532);
    let own = security_of(User { user: Some(7), group: Some(8), ..User::default() }, &image);
    assert_eq!((own.user, own.group), (Some(Int64 { value: 7 }), Some(Int64 { value: 8 })));
    let group = security_of(User { group: Some(8), ..User::default() }, &image);
    assert_eq!((group.user, group.group), (Some(Int64 { value: 65532 }), Some(Int64 { value: 8 })));
    let name = security_of(User { group: Some(8), ..User::default() }, &ImageUser::Name("web".into()));
    assert_eq!((name.user, name.user_name.as_str()), (None, "web"));
    let groups = security_of(User { supplementary_groups: vec![9], ..User::default() }, &image);
    assert_eq!((groups.user, groups.supplementary_groups), (None, vec![9]));
    assert!(groups.no_new_privileges && groups.read_only_root);
}

#[test]
fn root_is_refused_if_the_pod_must_not_be_root() {
    let refused = |image: ImageUser| {
        let user = User { must_not_be_root: true, ..User::default() };
        created(&ContainerSpec { user, ..spec() }, &image).err().map(|error| error.to_string())
    };
    assert!(refused(ImageUser::Number(0)).unwrap().contains("image will run as root"));
    assert!(refused(ImageUser::Name("web".into())).unwrap().contains("non-numeric user (web)"));
    assert_eq!(refused(ImageUser::Number(65532)), None);
}

#[test]
fn limits_are_those_of_control_groups() {
    let of = |limits: Limits| {
        created(&ContainerSpec { limits, ..spec() }, &ImageUser::Number(0)).unwrap().linux.unwrap().resources
    };
    assert_eq!(of(Limits::default()), None);
    let limits = of(Limits { memory: Some(1 << 20), cpu: Some(1500), processes: Some(9) }).unwrap();
    assert_eq!((limits.cpu_period, limits.cpu_quota, limits.cpu_shares), (100_000, 150_000, 1536));
    assert_eq!((limits.memory_limit, limits.unified["pids.max"].as_str()), (1 << 20, "9"));
    let smallest = of(Limits { cpu: Some(1), ..Limits::default() }).unwrap();
    assert_eq!((smallest.cpu_quota, smallest.cpu_shares), (1000, 2));
    assert_eq!(of(Limits { memory: Some(u64::MAX), ..Limits::default() }).unwrap().memory_limit, i64::MAX);
}
