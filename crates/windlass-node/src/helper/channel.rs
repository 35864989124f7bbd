//! Messages with file descriptors over a Unix stream socket.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest message, in bytes.
const LONGEST: usize = 16 << 20;

/// The most file descriptors of a message.
const MOST_DESCRIPTORS: usize = 8;

/// The length of the header: the length of the message, and the number of its file descriptors.
const HEADER: usize = 8;

/// A message as received: the text, and the file descriptors.
pub(crate) type Received<T> = (T, Vec<OwnedFd>);

/// Encodes a message with its header.
pub(crate) fn encode<T: Serialize>(message: &T, descriptors: usize) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; HEADER];
    serde_json::to_writer(&mut frame, message)?;
    let length = frame.len() - HEADER;
    if length > LONGEST || descriptors > MOST_DESCRIPTORS {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("a message of {length} bytes is too long"),
        ));
    }
    frame[..4].copy_from_slice(&(length as u32).to_le_bytes());
    frame[4..HEADER].copy_from_slice(&(descriptors as u32).to_le_bytes());
    Ok(frame)
}

/// Sends the rest of a frame, and `descriptors` with its first byte. Returns the number of bytes sent.
pub(crate) fn send_part(
    socket: BorrowedFd<'_>,
    rest: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many file descriptors"));
    }
    Ok(sendmsg(socket, &[IoSlice::new(rest)], &mut control, SendFlags::NOSIGNAL)?)
}

/// Sends a message over a blocking socket.
pub(crate) fn send<T: Serialize>(
    socket: BorrowedFd<'_>,
    message: &T,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let frame = encode(message, descriptors.len())?;
    let mut sent = 0;
    while sent < frame.len() {
        let with = if sent == 0 { descriptors } else { &[] };
        match send_part(socket, &frame[sent..], with) {
            Ok(more) => sent += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Collects the bytes and file descriptors of incoming messages.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    descriptors: VecDeque<OwnedFd>,
}

impl Inbox {
    /// Receives once. Returns `false` at the end of the stream.
    pub(crate) fn fill(&mut self, socket: BorrowedFd<'_>) -> io::Result<bool> {
        let mut chunk = [0_u8; 16 << 10];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received =
            recvmsg(socket, &mut [IoSliceMut::new(&mut chunk)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                self.descriptors.extend(descriptors);
            }
        }
        self.bytes.extend_from_slice(&chunk[..received.bytes]);
        Ok(received.bytes > 0)
    }

    /// Returns the next message that is complete.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<Received<T>>> {
        let Some(header) = self.bytes.first_chunk::<HEADER>() else { return Ok(None) };
        let number = |part: &[u8]| part.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte));
        let (length, descriptors) = (number(&header[..4]), number(&header[4..]));
        if length > LONGEST || descriptors > MOST_DESCRIPTORS {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message with a wrong header"));
        }
        if self.bytes.len() < HEADER + length {
            return Ok(None);
        }
        if self.descriptors.len() < descriptors {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message without its file descriptors"));
        }
        let message = serde_json::from_slice(&self.bytes[HEADER..HEADER + length])?;
        self.bytes.drain(..HEADER + length);
        Ok(Some((message, self.descriptors.drain(..descriptors).collect())))
    }
}

/// Both directions of a blocking socket.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: OwnedFd,
    inbox: Inbox,
}

impl Channel {
    /// Sends and receives messages over `socket`.
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { socket, inbox: Inbox::default() }
    }

    /// Sends a message.
    pub(crate) fn send<T: Serialize>(&self, message: &T, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        send(self.socket.as_fd(), message, descriptors)
    }

    /// Returns the next message that has been received already.
    pub(crate) fn ready<T: DeserializeOwned>(&mut self) -> io::Result<Option<Received<T>>> {
        self.inbox.next()
    }

    /// Receives once. Returns `false` at the end of the stream.
    pub(crate) fn fill(&mut self) -> io::Result<bool> {
        self.inbox.fill(self.socket.as_fd())
    }

    /// Waits for the next message. Returns `None` at the end of the stream.
    pub(crate) fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<Received<T>>> {
        loop {
            if let Some(message) = self.ready()? {
                return Ok(Some(message));
            }
            match self.fill() {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_message_longer_than_a_socket_buffer_arrives_with_its_descriptors() {
        let (near, far) = UnixStream::pair().unwrap();
        let text = "x".repeat(1 << 20);
        let sent = text.clone();
        let sender = std::thread::spawn(move || {
            let file = File::open("/dev/null").unwrap();
            send(near.as_fd(), &"first", &[]).unwrap();
            send(near.as_fd(), &sent, &[file.as_fd()]).unwrap();
        });
        let mut channel = Channel::new(far.into());
        let (first, none): Received<String> = channel.receive().unwrap().unwrap();
        assert_eq!((first.as_str(), none.len()), ("first", 0));
        let (second, mut files): Received<String> = channel.receive().unwrap().unwrap();
        assert_eq!(second, text);
        let mut bytes = Vec::new();
        File::from(files.remove(0)).read_to_end(&mut bytes).unwrap();
        assert!(bytes.is_empty());
        sender.join().unwrap();
        assert!(channel.receive::<String>().unwrap().is_none());
    }

    #[test]
    fn a_header_that_promises_too_much_is_an_error() {
        let mut inbox = Inbox { bytes: vec![0xff; 64], descriptors: VecDeque::new() };
        assert!(inbox.next::<String>().is_err());
    }
}
