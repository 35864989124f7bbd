//! The name servers of the machine, for names outside of the cluster.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::resolver::{MACHINE, parse};
use crate::kubelet::running_pods::dial_udp;

/// How long a name server may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
/// The most name servers that are asked, one after the other.
const MAX_SERVERS: usize = 2;
/// The longest datagram.
const LONGEST: usize = 1 << 16;

/// Passes a question on to the name servers of the machine. Returns `None` if the machine has no name server, or none answers.
pub(super) async fn ask(question: &[u8], is_datagram: bool) -> Option<Vec<u8>> {
    let text = tokio::fs::read_to_string(MACHINE).await.ok()?;
    for server in parse(&text).servers.into_iter().take(MAX_SERVERS) {
        let answer = async {
            if is_datagram { ask_udp(question, server).await } else { ask_tcp(question, server).await }
        };
        let answer = timeout(ANSWER_WITHIN, answer).await.ok().flatten();
        // The number of an answer is the number of its question.
        if let Some(answer) = answer.filter(|answer| answer.get(..2) == question.get(..2)) {
            return Some(answer);
        }
    }
    None
}

async fn ask_udp(question: &[u8], server: IpAddr) -> Option<Vec<u8>> {
    let socket = dial_udp(SocketAddr::new(server, 53)).await.ok()?;
    socket.send(question).await.ok()?;
    let mut answer = vec![0; LONGEST];
    let length = socket.recv(&mut answer).await.ok()?;
    answer.truncate(length);
    Some(answer)
}

async fn ask_tcp(question: &[u8], server: IpAddr) -> Option<Vec<u8>> {
    let mut stream = TcpStream::connect(SocketAddr::new(server, 53)).await.ok()?;
    write_message(&mut stream, question).await?;
    read_message(&mut stream).await
}

/// Reads a message with its length from a TCP connection.
pub(super) async fn read_message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let length = stream.read_u16().await.ok()?;
    let mut message = vec![0; usize::from(length)];
    stream.read_exact(&mut message).await.ok()?;
    Some(message)
}

/// Writes a message with its length to a TCP connection.
pub(super) async fn write_message(stream: &mut TcpStream, message: &[u8]) -> Option<()> {
    let length = u16::try_from(message.len()).ok()?;
    let framed = [&length.to_be_bytes(), message].concat();
    stream.write_all(&framed).await.ok()
}
