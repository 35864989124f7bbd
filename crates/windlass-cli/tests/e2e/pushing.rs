//! `windlass image build --push`, to a registry that asks for a password.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::mpsc::{self, Sender};

use crate::process::windlass;

/// `me:secret` in base64.
const LOGIN: &str = "authorization: Basic bWU6c2VjcmV0";

/// Answers a request as a registry that has all blobs.
fn answer(stream: TcpStream, puts: &Sender<String>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let size =
        head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    std::io::copy(&mut reader.by_ref().take(size.unwrap_or(0)), &mut std::io::sink())?;
    let line = head.lines().next().unwrap_or_default();
    let status = if !head.lines().any(|line| line.eq_ignore_ascii_case(LOGIN)) {
        "401 Unauthorized\r\nwww-authenticate: Basic"
    } else if line.starts_with("PUT ") {
        let _ = puts.send(line.split(' ').nth(1).unwrap_or_default().to_owned());
        "201 Created"
    } else {
        "200 OK"
    };
    write!(reader.get_mut(), "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

#[test]
fn all_names_are_pushed_with_the_password_of_standard_input() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let (puts, put) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client may try TLS first.
            let _ = answer(stream, &puts);
        }
    });
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("bundle/metadata")).unwrap();
    fs::write(folder.path().join("bundle/metadata/annotations.yaml"), "annotations: { a: b }\n").unwrap();
    let (one, two) = (format!("{address}/op:1"), format!("{address}/op:2"));
    let words = ["image", "--store", "store", "build", "--bundle", "--push", "--plain-http"];
    let names = ["--tag", &one, "--tag", &two, "--username", "me", "--password-stdin"];
    let mut command = windlass(&[&words[..], &names].concat());
    command.current_dir(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"secret\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(put.try_iter().collect::<Vec<_>>(), ["/v2/op/manifests/1", "/v2/op/manifests/2"]);
}
