//! The name server: questions over UDP and TCP.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use simple_dns::RCODE;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use windlass_runtime::ObjectKey;

use super::DNS_SERVER;
use super::message::{self, Query};
use super::records::ServiceRecords;
use super::upstream::{self, read_message, write_message};
use super::zone::{Lookup, Record, Zone};
use crate::kubelet::services::accept;

/// The most questions over UDP that are answered at a time. Further questions are dropped, and asked again by the client.
const MAX_QUESTIONS: usize = 256;
/// The most TCP connections.
const MAX_CONNECTIONS: usize = 64;
/// How long a TCP connection may be silent.
const IDLE: Duration = Duration::from_secs(10);
/// The pause after a datagram that was not received.
const RECEIVE_AGAIN: Duration = Duration::from_millis(100);
/// The longest question over UDP.
const LONGEST: usize = 4096;

/// The name server of a cluster.
#[derive(Default)]
pub(in crate::kubelet) struct NameServer {
    zone: Mutex<Zone>,
}

impl NameServer {
    /// Replaces the records of a Service.
    pub(in crate::kubelet) fn replace(&self, service: &ObjectKey, records: Option<ServiceRecords>) {
        self.zone.lock().unwrap_or_else(PoisonError::into_inner).replace(service, records);
    }

    /// Answers questions over UDP until the task is aborted.
    pub(in crate::kubelet) async fn serve_datagrams(self: Arc<Self>, socket: UdpSocket) {
        let socket = Arc::new(socket);
        let free = Arc::new(Semaphore::new(MAX_QUESTIONS));
        let mut buffer = vec![0; LONGEST];
        loop {
            let Ok((length, client)) = socket.recv_from(&mut buffer).await else {
                tokio::time::sleep(RECEIVE_AGAIN).await;
                continue;
            };
            let Ok(permit) = Arc::clone(&free).try_acquire_owned() else { continue };
            let (server, socket, question) =
                (Arc::clone(&self), Arc::clone(&socket), buffer[..length].to_vec());
            tokio::spawn(async move {
                if let Some(answer) = server.answer(&question, true).await {
                    let _ = socket.send_to(&answer, client).await;
                }
                drop(permit);
            });
        }
    }

    /// Answers questions over TCP until the task is aborted.
    pub(in crate::kubelet) async fn serve_streams(self: Arc<Self>, listener: TcpListener) {
        let free = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let address = SocketAddr::from((DNS_SERVER, 53));
        loop {
            let Ok(permit) = Arc::clone(&free).acquire_owned().await else { return };
            let Some(stream) = accept(&listener, address).await else { continue };
            let server = Arc::clone(&self);
            tokio::spawn(async move {
                server.serve_stream(stream).await;
                drop(permit);
            });
        }
    }

    async fn serve_stream(&self, mut stream: TcpStream) {
        while let Ok(Some(question)) = timeout(IDLE, read_message(&mut stream)).await {
            let Some(answer) = self.answer(&question, false).await else { return };
            let written = timeout(IDLE, write_message(&mut stream, &answer)).await;
            if !matches!(written, Ok(Some(()))) {
                return;
            }
        }
    }

    /// Answers a question. Returns `None` for a message that deserves no answer.
    async fn answer(&self, question: &[u8], is_datagram: bool) -> Option<Vec<u8>> {
        let query = match message::read(question) {
            Ok(query) => query,
            Err(refusal) => return refusal,
        };
        let found = self.zone.lock().unwrap_or_else(PoisonError::into_inner).lookup(&query.name, query.kind);
        match found {
            Lookup::Found { records, follow: None } => {
                query.reply(RCODE::NoError, &records, None, is_datagram)
            }
            Lookup::Found { records, follow: Some(target) } => {
                follow(&query, &records, &target, is_datagram).await
            }
            Lookup::NoSuchName => query.reply(RCODE::NameError, &[], None, is_datagram),
            Lookup::NotOurs => match upstream::ask(question, is_datagram).await {
                Some(answer) => Some(answer),
                None => query.reply(RCODE::ServerFailure, &[], None, is_datagram),
            },
        }
    }
}

/// Answers with an alias, and with the records of the alias's target as the machine's name servers know the target.
async fn follow(query: &Query<'_>, records: &[Record], target: &str, is_datagram: bool) -> Option<Vec<u8>> {
    let further = match query.about(target) {
        Some(question) => upstream::ask(&question, is_datagram).await,
        None => None,
    };
    query.reply(RCODE::NoError, records, further.as_deref(), is_datagram)
}
