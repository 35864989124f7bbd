//! exec, attach and terminals.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windlass_node::probe::{self, Check, CheckResult};
use windlass_node::{Command, ContainerSpec, Runtime, TerminalSize};
use windlass_patience::stretched;

use crate::fixture::{finish, fixture};

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_inside_the_container() {
    let Some(fixture) = fixture().await else { return };
    let pod = fixture.sandbox("exec").await;
    let id = fixture.runtime.start(&pod, fixture.script("sleep 1000")).await.unwrap();
    let (code, text) =
        fixture.exec(&id, &["sh", "-c", "id -u; hostname; grep CapEff /proc/self/status; exit 4"]).await;
    assert_eq!((code, text.as_str()), (4, "65532\npod-exec\nCapEff:\t0000000000000000\n"));
    let (code, text) = fixture.exec(&id, &["nothing"]).await;
    assert_eq!(code, 127);
    assert!(text.contains("exec: \"nothing\": executable file not found in $PATH"), "{text}");
    let (code, text) = fixture.exec(&id, &["/etc/passwd"]).await;
    assert_eq!(code, 126);
    assert!(text.contains("exec: \"/etc/passwd\": permission denied"), "{text}");
    fixture.runtime.signal(&id, 9).await.unwrap();
    fixture.ended(&id).await;
    let words = vec!["true".to_owned()];
    assert!(fixture.runtime.exec(&id, Command { words, terminal: None, stdin: false }).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_input_comes_back_unchanged_and_its_end_is_seen() {
    let Some(fixture) = fixture().await else { return };
    let pod = fixture.sandbox("input").await;
    let id = fixture.runtime.start(&pod, fixture.script("sleep 1000")).await.unwrap();
    let command = Command { words: vec!["cat".into()], terminal: None, stdin: true };
    let mut session = fixture.runtime.exec(&id, command).await.unwrap();
    let bytes: Vec<u8> = (0..20_000_000_u32).map(|number| (number % 251) as u8).collect();
    let mut stdin = session.stdin.take().unwrap();
    let sent = bytes.clone();
    let sender = tokio::spawn(async move { stdin.write_all(&sent).await.unwrap() });
    let mut received = Vec::new();
    session.stdout.take().unwrap().read_to_end(&mut received).await.unwrap();
    sender.await.unwrap();
    assert!(received == bytes);
    assert_eq!(finish(session).await.0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_has_a_size_that_changes() {
    let Some(fixture) = fixture().await else { return };
    let pod = fixture.sandbox("terminal").await;
    let id = fixture.runtime.start(&pod, fixture.script("sleep 1000")).await.unwrap();
    let terminal = Some(TerminalSize { width: 81, height: 25 });
    let words =
        ["sh", "-c", "tty; stty size; read line; stty size; echo got $line"].map(str::to_owned).to_vec();
    let mut session = fixture.runtime.exec(&id, Command { words, terminal, stdin: true }).await.unwrap();
    let mut output = session.stdout.take().unwrap();
    let mut text = String::new();
    let mut chunk = [0; 1024];
    while !text.contains("25 81") {
        let length = output.read(&mut chunk).await.unwrap();
        assert!(length > 0, "{text}");
        text += std::str::from_utf8(&chunk[..length]).unwrap();
    }
    assert!(text.starts_with("/dev/pts/0"), "{text}");
    session.resize.as_ref().unwrap().send(TerminalSize { width: 100, height: 30 }).await.unwrap();
    // The change is made by another task: an input follows the change only if the change is seen.
    let start = Instant::now();
    loop {
        let (_, size) = fixture.exec(&id, &["sh", "-c", "stty size < /dev/pts/0"]).await;
        if size.contains("30 100") {
            break;
        }
        assert!(start.elapsed() < stretched(Duration::from_secs(10)), "{size}");
    }
    session.stdin.as_mut().unwrap().write_all(b"line\n").await.unwrap();
    let mut rest = Vec::new();
    output.read_to_end(&mut rest).await.unwrap();
    let rest = String::from_utf8_lossy(&rest);
    assert!(rest.contains("30 100") && rest.contains("got line"), "{rest}");
    assert_eq!(session.exit.await.unwrap().code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_attach_to_the_first_process() {
    let Some(fixture) = fixture().await else { return };
    let pod = fixture.sandbox("attach").await;
    let spec = ContainerSpec { stdin: true, stdin_once: true, ..fixture.script("cat; echo end") };
    let id = fixture.runtime.start(&pod, spec).await.unwrap();
    let mut session = fixture.runtime.attach(&id).await.unwrap();
    let watcher = fixture.runtime.attach(&id).await.unwrap();
    session.stdin.as_mut().unwrap().write_all(b"hello\n").await.unwrap();
    let (code, text) = finish(session).await;
    assert_eq!((code, text.as_str()), (0, "hello\nend\n"));
    assert_eq!(finish(watcher).await.1, "hello\nend\n");
    fixture.logged("hello\nend").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_that_takes_too_long_leaves_no_process() {
    let Some(fixture) = fixture().await else { return };
    let pod = fixture.sandbox("late").await;
    let id = fixture.runtime.start(&pod, fixture.script("echo ready; sleep 1000")).await.unwrap();
    fixture.logged("ready").await;
    let words = ["sh", "-c", "echo > /dev/shm/begun; sleep 777; true"].map(str::to_owned).to_vec();
    let check = Check::Exec { words };
    let mut has_begun = false;
    // A longer limit if the machine is too busy to begin the command in time.
    for limit in [500, 5_000, 50_000].map(Duration::from_millis) {
        let result = probe::run(&fixture.runtime, &pod, &id, &check, limit).await;
        assert!(
            matches!(&result, CheckResult::Failure(why) if why.starts_with("command timed out")),
            "{result:?}"
        );
        has_begun = fixture.exec(&id, &["sh", "-c", "test -e /dev/shm/begun"]).await.0 == 0;
        if has_begun {
            break;
        }
    }
    assert!(has_begun, "the command never begins");
    let begun = Instant::now();
    loop {
        // The words of the search are not found: `7[7]7` does not match itself.
        let (_, found) = fixture.exec(&id, &["sh", "-c", "grep -l '7[7]7' /proc/[0-9]*/cmdline"]).await;
        if found.is_empty() {
            break;
        }
        assert!(begun.elapsed() < stretched(Duration::from_secs(10)), "processes are left: {found}");
    }
    let check =
        Check::Exec { words: ["sh", "-c", "echo out; echo no >&2; exit 3"].map(str::to_owned).to_vec() };
    let result = probe::run(&fixture.runtime, &pod, &id, &check, stretched(Duration::from_secs(10))).await;
    assert_eq!(result, CheckResult::Failure("out\nno\n".into()));
}
