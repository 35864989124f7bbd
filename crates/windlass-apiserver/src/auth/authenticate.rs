//! Authentication: client certificates and bearer tokens.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Weak};

use http::HeaderMap;
use http::header::AUTHORIZATION;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use windlass_kinds::{organizations, subject_attributes};
use x509_cert::{
    Certificate,
    der::{Decode, asn1::ObjectIdentifier},
};

use super::Identity;
use super::subprotocol::{self, SubprotocolToken};

/// Bearer tokens and users.
///
/// Only digests of the tokens are kept: the time of a look-up and a memory dump reveal no token.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tokens(BTreeMap<[u8; 32], Identity>);

impl Tokens {
    pub(crate) fn add(&mut self, token: &str, identity: Identity) {
        self.0.insert(digest(token), identity);
    }

    pub(crate) fn find(&self, token: &str) -> Option<&Identity> {
        self.0.get(&digest(token))
    }
}

/// The bearer tokens of all listeners. The tokens of a listener are valid as long as the listener's
/// [`Tokens`] exist.
#[derive(Debug, Default)]
pub(crate) struct ListenerTokens(Mutex<Vec<Weak<Tokens>>>);

impl ListenerTokens {
    pub(crate) fn add(&self, tokens: &Arc<Tokens>) {
        let mut listeners = self.0.lock();
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(Arc::downgrade(tokens));
    }

    /// Returns the user of a token.
    pub(crate) fn find(&self, token: &str) -> Option<Identity> {
        let listeners = self.0.lock();
        listeners.iter().rev().find_map(|listener| listener.upgrade()?.find(token).cloned())
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// The user of a connection's client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClientAuth {
    /// There is no certificate, or the certificate names no user.
    NoOpinion,
    Verified(Identity),
    /// The certificate is not valid, or not of this server's authority.
    Invalid,
}

/// The result of authentication.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Authenticated {
    As(Identity),
    /// As the anonymous user, with a text for a `Warning` header.
    AnonymousWithWarning(&'static str),
    /// Invalid credentials. The request is refused, and does not become anonymous.
    Refused,
}

/// The outcome of authentication, for metrics.
pub(crate) enum AuthenticationResult<'a> {
    /// The request is of the user of this name.
    Success(&'a str),
    /// The request has no credentials, and may not be anonymous.
    Failure,
    /// The credentials are not valid.
    Error,
}

const EXTRA_SPACE: &str =
    "the provided Authorization header contains extra space before the bearer token, and is ignored";

/// Authenticates a request by the client certificate or else by the bearer token, as the real server does.
///
/// The first valid credentials win: the certificate, the token of the header `Authorization`, the token that a client of a WebSocket
/// offers as a subprotocol. Without any credentials the request is anonymous; a header `Authorization` without
/// a bearer token does not count as credentials.
pub(crate) fn authenticate(
    certificate: &ClientAuth,
    headers: &HeaderMap,
    identity_of: impl Fn(&str) -> Option<Identity>,
) -> Authenticated {
    if let ClientAuth::Verified(identity) = certificate {
        return Authenticated::As(identity.clone());
    }
    let header = headers.get(AUTHORIZATION).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let token = header.as_deref().map_or(Token::None, bearer_token);
    let by_header = if let Token::Given(token) = token { Some(identity_of(token)) } else { None };
    let by_subprotocol = match subprotocol::token(headers) {
        SubprotocolToken::None => None,
        SubprotocolToken::Malformed => Some(None),
        SubprotocolToken::Given(token) => Some(identity_of(&token)),
    };
    if by_header.is_some() || by_subprotocol.is_some() {
        let identity = by_header.flatten().or(by_subprotocol.flatten());
        return identity.map_or(Authenticated::Refused, Authenticated::As);
    }
    match (certificate, token) {
        (ClientAuth::Invalid, _) => Authenticated::Refused,
        (_, Token::AfterExtraSpace) => Authenticated::AnonymousWithWarning(EXTRA_SPACE),
        _ => Authenticated::As(Identity::anonymous()),
    }
}

/// The bearer token in a header `Authorization`.
enum Token<'a> {
    None,
    /// There is an empty word where the token is expected.
    AfterExtraSpace,
    Given(&'a str),
}

fn bearer_token(header: &str) -> Token<'_> {
    let mut words = header.trim().splitn(3, ' ');
    let scheme = words.next().unwrap_or_default();
    match words.next() {
        Some(token) if scheme.eq_ignore_ascii_case("bearer") => match token {
            "" if words.next().is_some() => Token::AfterExtraSpace,
            "" => Token::None,
            token => Token::Given(token),
        },
        _ => Token::None,
    }
}

/// Returns the user of a client certificate that is valid.
///
/// The name is the last common name, the groups are the organizations. A certificate with several UIDs, or an
/// empty UID, is not accepted; a certificate without a common name names no user.
pub(crate) fn certificate_user(der: &[u8]) -> ClientAuth {
    let Ok(certificate) = Certificate::from_der(der) else { return ClientAuth::NoOpinion };
    let subject = certificate.tbs_certificate.subject;
    let Some(name) = subject_attributes(&subject, COMMON_NAME).last().filter(|name| !name.is_empty()) else {
        return ClientAuth::NoOpinion;
    };
    let user = Identity::user(&name).with_groups(organizations(&subject));
    let user = user.with_extra(CREDENTIAL_ID, format!("X509SHA256={}", hex(&Sha256::digest(der))));
    let uids: Vec<_> = subject_attributes(&subject, UID).collect();
    match &uids[..] {
        [] => ClientAuth::Verified(user),
        [uid] if !uid.is_empty() => ClientAuth::Verified(user.with_uid(uid)),
        _ => ClientAuth::Invalid,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
/// The UID of a Kubernetes user.
const UID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.57683.2");
/// The key of the extra value that identifies the credential of a user.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

#[cfg(test)]
mod tests;
