//! The channels of a WebSocket, for `exec` and `attach`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf, Bytes};

use super::outlet::Address;

/// The channel of the standard input.
pub(super) const STDIN: u8 = 0;
/// The channel of the standard output.
pub(super) const STDOUT: u8 = 1;
/// The channel of the standard error.
pub(super) const STDERR: u8 = 2;
/// The channel of the `Status` at the end.
pub(super) const ERROR: u8 = 3;
/// The channel of the sizes of the terminal.
pub(super) const RESIZE: u8 = 4;
/// The channel with which a client of version 5 closes another channel.
const CLOSE: u8 = 255;

/// The version of the protocol, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The name in the handshake. Empty for a client that offers no name.
    pub name: &'static str,
    /// True if messages are text in base64.
    is_base64: bool,
    /// True if clients may close a channel.
    closes: bool,
    /// True if the error channel has a `Status`, not only a text.
    pub has_status: bool,
}

const fn version(name: &'static str, is_base64: bool, closes: bool, has_status: bool) -> Version {
    Version { name, is_base64, closes, has_status }
}

/// The versions for `exec` and `attach`.
pub(super) const VERSIONS: [Version; 6] = [
    version("v5.channel.k8s.io", false, true, true),
    version("v4.channel.k8s.io", false, false, true),
    version("v4.base64.channel.k8s.io", true, false, true),
    version("channel.k8s.io", false, false, false),
    version("base64.channel.k8s.io", true, false, false),
    version("", false, false, false),
];

/// The meaning of a client's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// Bytes for a channel.
    Data(u8, Bytes),
    /// The client has closed this channel.
    Closed(u8),
    /// The message is empty, or cannot be parsed.
    Nothing,
}

impl Version {
    /// Returns the version with this name.
    pub fn named(name: &str) -> Option<Self> {
        VERSIONS.into_iter().find(|version| version.name == name)
    }

    /// Returns whether the real server connects to the kubelet after the handshake. Errors then go to the
    /// error channel.
    pub(super) fn is_translated(self) -> bool {
        self.closes
    }

    /// Returns the address of a channel.
    pub(super) fn address(self, channel: u8) -> Address {
        if self.is_base64 { Address::Base64(channel) } else { Address::Channel(channel) }
    }

    /// Reads a message.
    pub fn read(self, mut message: Bytes) -> Received {
        if message.is_empty() {
            return Received::Nothing;
        }
        let first = message.get_u8();
        if self.closes && first == CLOSE {
            return message.first().map_or(Received::Nothing, |channel| Received::Closed(*channel));
        }
        if !self.is_base64 {
            return Received::Data(first, message);
        }
        let Some(channel) = char::from(first).to_digit(10) else { return Received::Nothing };
        let Ok(bytes) = STANDARD.decode(&message) else { return Received::Nothing };
        Received::Data(channel as u8, bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, message: &'static [u8]) -> Received {
        Version::named(name).unwrap().read(Bytes::from_static(message))
    }

    #[test]
    fn a_byte_before_the_data_names_the_channel() {
        let data = Received::Data(4, Bytes::from_static(b"abc"));
        assert_eq!(read("v4.channel.k8s.io", b"\x04abc"), data);
        assert_eq!(read("v4.base64.channel.k8s.io", b"4YWJj"), data);
        assert_eq!(read("", b""), Received::Nothing);
        assert_eq!(read("base64.channel.k8s.io", b"4!"), Received::Nothing);
        assert_eq!(read("base64.channel.k8s.io", b"x"), Received::Nothing);
    }

    #[test]
    fn only_version_5_closes_channels() {
        assert_eq!(read("v5.channel.k8s.io", b"\xff\x00"), Received::Closed(STDIN));
        assert_eq!(read("v5.channel.k8s.io", b"\xff"), Received::Nothing);
        assert_eq!(read("v4.channel.k8s.io", b"\xff\x00"), Received::Data(255, Bytes::from_static(b"\0")));
    }
}
