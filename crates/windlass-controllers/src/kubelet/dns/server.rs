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
use super::zone::{Lookup, Zone};
use crate::kubelet::services::accept;

/// The most questions over UDP that wait for the machine's name servers. Further questions are dropped, and asked again by the client.
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
            // Names of the cluster are answered, however many questions wait for the machine's name servers.
            if let Alone::Done(answer) = self.answer_alone(&buffer[..length], true) {
                if let Some(answer) = answer {
                    let _ = socket.try_send_to(&answer, client);
                }
                continue;
            }
            let Ok(permit) = Arc::clone(&free).try_acquire_owned() else { continue };
            let (server, socket, question) =
                (Arc::clone(&self), Arc::clone(&socket), buffer[..length].to_vec());
            tokio::spawn(async move {
                if let Some(answer) = server.answer_with_others(&question, true).await {
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
        match self.answer_alone(question, is_datagram) {
            Alone::Done(answer) => answer,
            Alone::Outside => self.answer_with_others(question, is_datagram).await,
        }
    }

    /// Answers a question about the names of the cluster.
    fn answer_alone(&self, question: &[u8], is_datagram: bool) -> Alone {
        let query = match message::read(question) {
            Ok(query) => query,
            Err(refusal) => return Alone::Done(refusal),
        };
        match self.lookup(&query) {
            Lookup::Found { records, follow: None } => {
                Alone::Done(query.reply(RCODE::NoError, &records, None, is_datagram))
            }
            Lookup::NoSuchName => Alone::Done(query.reply(RCODE::NameError, &[], None, is_datagram)),
            Lookup::Found { .. } | Lookup::NotOurs => Alone::Outside,
        }
    }

    /// Answers a question about other names, with the help of the machine's name servers.
    async fn answer_with_others(&self, question: &[u8], is_datagram: bool) -> Option<Vec<u8>> {
        let query = message::read(question).ok()?;
        let (records, target) = match self.lookup(&query) {
            Lookup::Found { records, follow } => (records, follow),
            Lookup::NoSuchName => return query.reply(RCODE::NameError, &[], None, is_datagram),
            Lookup::NotOurs => {
                return match upstream::ask(question, is_datagram).await {
                    Some(answer) => Some(answer),
                    None => query.reply(RCODE::ServerFailure, &[], None, is_datagram),
                };
            }
        };
        // An alias, and the records of the alias's target as the machine's name servers know the target.
        let further = match target.and_then(|target| query.about(&target)) {
            Some(question) => upstream::ask(&question, is_datagram).await,
            None => None,
        };
        query.reply(RCODE::NoError, &records, further.as_deref(), is_datagram)
    }

    fn lookup(&self, query: &Query<'_>) -> Lookup {
        self.zone.lock().unwrap_or_else(PoisonError::into_inner).lookup(&query.name, query.kind)
    }
}

/// The answer of this server without other name servers.
enum Alone {
    Done(Option<Vec<u8>>),
    /// Other name servers have to be asked.
    Outside,
}
