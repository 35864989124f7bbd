//! The surroundings of a program.

use std::fs;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windlass_node::{ContainerSpec, Mount, Runtime, RuntimeError, User};
use windlass_patience::stretched;

use crate::fixture::fixture;

#[tokio::test(flavor = "multi_thread")]
async fn a_program_has_its_user_without_capabilities_and_its_own_host() {
    let Some(fixture) = fixture().await else { return };
    let pod = fixture.sandbox("user").await;
    let script = "id -u; id -g; hostname; echo $HOSTNAME $HOME $$; grep -E 'CapEff|NoNewPrivs' /proc/self/status; \
                  cat /etc/hosts | grep pod-user; ls -d /proc/[0-9]* | head -1; pwd";
    let spec = ContainerSpec { working_directory: Some("/made/here".into()), ..fixture.script(script) };
    let (code, log) = fixture.run(&pod, spec).await;
    let expected = "65532\n65532\npod-user\npod-user / 1\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\n\
                    10.244.0.7\tpod-user\n/proc/1\n/made/here\n";
    assert_eq!((code, log.as_str()), (0, expected));
    let (_, log) = fixture
        .run(&pod, ContainerSpec { image: "named".into(), ..fixture.script("id -u; echo $HOME") })
        .await;
    assert_eq!(log, "1234\n/srv\n");
    let user = User { user: Some(7), group: Some(8), ..User::default() };
    let (_, log) = fixture.run(&pod, ContainerSpec { user, ..fixture.script("id -u; id -g") }).await;
    assert_eq!(log, "7\n8\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn root_in_a_container_cannot_leave_the_container() {
    let Some(fixture) = fixture().await else { return };
    let pod = fixture.sandbox("root").await;
    let script = "id -u; mount -t tmpfs x /tmp && echo mounted; mount -o remount,rw /proc/sys && echo remounted; \
                  echo x > /proc/sys/kernel/core_pattern && echo written; echo end";
    let (code, log) = fixture
        .run(
            &pod,
            ContainerSpec { image: "root".into(), ..fixture.script(&format!("({script}) 2>/dev/null")) },
        )
        .await;
    assert_eq!((code, log.as_str()), (0, "0\nend\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_root_is_writable_for_one_container_or_for_none() {
    let Some(fixture) = fixture().await else { return };
    let pod = fixture.sandbox("write").await;
    let script =
        "(echo a > /tmp/new) 2>&1 && echo written; echo b > /dev/null; echo c > /dev/shm/x && echo shm";
    let image = || ContainerSpec { image: "root".into(), ..fixture.script(script) };
    assert_eq!(fixture.run(&pod, image()).await, (0, "written\nshm\n".into()));
    let (_, log) = fixture.run(&pod, ContainerSpec { read_only_root: true, ..image() }).await;
    assert_eq!(log, "/bin/sh: can't create /tmp/new: Read-only file system\nshm\n");
    assert!(!fixture.folder.path().join("busybox/tmp/new").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_are_mounted_also_below_a_read_only_root() {
    let Some(fixture) = fixture().await else { return };
    let pod = fixture.sandbox("volumes").await;
    let volume = fixture.folder.path().join("volume");
    fs::create_dir(&volume).unwrap();
    fs::write(volume.join("file"), "text\n").unwrap();
    #[cfg(unix)]
    fs::set_permissions(&volume, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let mount = |target: &str, read_only| Mount { source: volume.clone(), target: target.into(), read_only };
    let file = Mount { source: volume.join("file"), target: "/etc/deep/one".into(), read_only: true };
    let spec = ContainerSpec {
        mounts: vec![mount("/var/data", false), mount("/var/fixed", true), file],
        read_only_root: true,
        ..fixture.script("cat /var/data/file /etc/deep/one; echo x > /var/data/out; (echo y > /var/fixed/out2) 2>&1 || echo refused")
    };
    let (code, log) = fixture.run(&pod, spec).await;
    assert_eq!(code, 0);
    assert_eq!(log, "text\ntext\n/bin/sh: can't create /var/fixed/out2: Read-only file system\nrefused\n");
    assert_eq!(fs::read_to_string(volume.join("out")).unwrap(), "x\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_pods_listen_on_the_same_port_and_reach_services() {
    let Some(fixture) = fixture().await else { return };
    for name in ["one", "two"] {
        let pod = fixture.sandbox(name).await;
        let service = fixture.runtime.listen("10.0.0.1:443".parse().unwrap()).await.unwrap();
        let served = tokio::spawn(async move {
            let (mut stream, peer) = service.accept().await.unwrap();
            stream.write_all(b"answer\n").await.unwrap();
            peer.ip()
        });
        let log = fixture.folder.path().join(name);
        let text = format!("nc 10.0.0.1 443; echo hello {name} | nc -l -p 8081");
        let id = fixture.runtime.start(&pod, ContainerSpec { log, ..fixture.script(&text) }).await.unwrap();
        assert_eq!(served.await.unwrap().to_string(), "10.244.0.7");
        let mut text = String::new();
        let start = Instant::now();
        let mut stream = loop {
            match fixture.runtime.connect(&pod, 8081).await {
                Ok(stream) => break stream,
                Err(error) => assert!(start.elapsed() < stretched(Duration::from_secs(10)), "{error}"),
            }
        };
        stream.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, format!("hello {name}\n"));
        drop(stream);
        fixture.ended(&id).await;
        let refused = fixture.runtime.connect(&pod, 8082).await.unwrap_err();
        assert!(
            matches!(&refused, RuntimeError::Io { error, .. } if error.kind() == std::io::ErrorKind::ConnectionRefused)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_and_exit_codes_are_reported() {
    let Some(fixture) = fixture().await else { return };
    let pod = fixture.sandbox("signals").await;
    assert_eq!(fixture.run(&pod, fixture.script("exit 3")).await.0, 3);
    let id = fixture
        .runtime
        .start(&pod, fixture.script("trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done"))
        .await
        .unwrap();
    fixture.logged("ready").await;
    fixture.runtime.signal(&id, 15).await.unwrap();
    assert_eq!(fixture.ended(&id).await.code, 9);
    let id = fixture.runtime.start(&pod, fixture.script("echo more; sleep 1000")).await.unwrap();
    fixture.runtime.signal(&id, 9).await.unwrap();
    let exit = fixture.ended(&id).await;
    assert_eq!((exit.code, exit.signal), (137, Some(9)));
    fixture.runtime.signal(&id, 9).await.unwrap();
    fixture.runtime.remove(&id).await.unwrap();
    assert!(matches!(fixture.runtime.wait(&id).await, Err(RuntimeError::NotFound(_))));
}
