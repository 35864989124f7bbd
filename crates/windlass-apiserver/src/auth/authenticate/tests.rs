use http::HeaderValue;

use super::*;

fn tokens() -> Tokens {
    let mut tokens = Tokens::default();
    tokens.add("s3cret", Identity::admin());
    tokens
}

fn headers(authorization: &'static str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::from_static(authorization));
    headers
}

fn with(certificate: &ClientAuth, headers: &HeaderMap) -> Authenticated {
    authenticate(certificate, headers, |token| tokens().find(token).cloned())
}

#[test]
fn a_known_token_names_its_user() {
    for header in ["Bearer s3cret", "bearer s3cret", "  BEARER s3cret ", "Bearer s3cret more"] {
        for certificate in [ClientAuth::NoOpinion, ClientAuth::Invalid] {
            let who = with(&certificate, &headers(header));
            assert_eq!(who, Authenticated::As(Identity::admin()), "{header} {certificate:?}");
        }
    }
}

#[test]
fn wrong_credentials_are_refused() {
    assert_eq!(with(&ClientAuth::NoOpinion, &headers("Bearer wrong")), Authenticated::Refused);
    assert_eq!(with(&ClientAuth::Invalid, &headers("Bearer wrong")), Authenticated::Refused);
    assert_eq!(with(&ClientAuth::Invalid, &HeaderMap::new()), Authenticated::Refused);
    assert_eq!(with(&ClientAuth::Invalid, &headers("Basic czNjcmV0")), Authenticated::Refused);
}

#[test]
fn without_credentials_a_request_is_anonymous() {
    let anonymous = Authenticated::As(Identity::anonymous());
    assert_eq!(with(&ClientAuth::NoOpinion, &HeaderMap::new()), anonymous);
    for header in ["", "Bearer ", "Bearer", "Basic czNjcmV0", "s3cret"] {
        assert_eq!(with(&ClientAuth::NoOpinion, &headers(header)), anonymous, "{header}");
    }
    let warned = with(&ClientAuth::NoOpinion, &headers("Bearer  s3cret"));
    assert_eq!(warned, Authenticated::AnonymousWithWarning(EXTRA_SPACE));
}

#[test]
fn a_token_may_come_as_a_subprotocol_of_a_websocket() {
    let asking = |protocols: &'static str| {
        let mut headers = HeaderMap::new();
        headers.insert("upgrade", HeaderValue::from_static("websocket"));
        headers.insert("connection", HeaderValue::from_static("Upgrade"));
        headers.insert("sec-websocket-protocol", HeaderValue::from_static(protocols));
        headers
    };
    let known = asking("base64url.bearer.authorization.k8s.io.czNjcmV0, binary.k8s.io");
    assert_eq!(with(&ClientAuth::NoOpinion, &known), Authenticated::As(Identity::admin()));
    let unknown = asking("base64url.bearer.authorization.k8s.io.d3Jvbmc, binary.k8s.io");
    assert_eq!(with(&ClientAuth::NoOpinion, &unknown), Authenticated::Refused);
    let alone = asking("base64url.bearer.authorization.k8s.io.czNjcmV0");
    assert_eq!(with(&ClientAuth::NoOpinion, &alone), Authenticated::Refused);
    let mut wrong_header = known;
    wrong_header.insert(AUTHORIZATION, HeaderValue::from_static("Bearer wrong"));
    assert_eq!(with(&ClientAuth::NoOpinion, &wrong_header), Authenticated::As(Identity::admin()));
}

#[test]
fn a_certificate_counts_before_a_token() {
    let jane = Identity::user("jane");
    for header in ["Bearer s3cret", "Bearer wrong"] {
        let who = with(&ClientAuth::Verified(jane.clone()), &headers(header));
        assert_eq!(who, Authenticated::As(jane.clone()));
    }
}

#[test]
fn the_subject_of_a_certificate_is_the_user() {
    let authority = crate::serve::CertificateAuthority::generate().unwrap();
    let client = authority.client("jane", Some("developers")).unwrap();
    let ClientAuth::Verified(jane) = certificate_user(client.certificate_der()) else { panic!("nobody") };
    assert_eq!(jane.name(), "jane");
    assert_eq!(jane.groups(), ["developers", "system:authenticated"]);
    let credential = &jane.extra()["authentication.kubernetes.io/credential-id"][0];
    let digest = credential.strip_prefix("X509SHA256=").unwrap();
    assert!(digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{credential}");
}

#[test]
fn bytes_that_are_not_a_certificate_name_nobody() {
    assert_eq!(certificate_user(b"not a certificate"), ClientAuth::NoOpinion);
    assert_eq!(certificate_user(b""), ClientAuth::NoOpinion);
}

#[test]
fn the_common_name_and_the_only_uid_of_a_certificate_count() {
    let user = |subject: &[(&[u64], &str)]| {
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (id, value) in subject {
            params.distinguished_name.push(rcgen::DnType::from_oid(id), *value);
        }
        let key = rcgen::KeyPair::generate().unwrap();
        certificate_user(params.self_signed(&key).unwrap().der())
    };
    let (name, uid): (&[u64], &[u64]) = (&[2, 5, 4, 3], &[1, 3, 6, 1, 4, 1, 57683, 2]);
    let ClientAuth::Verified(jane) = user(&[(name, "jane"), (uid, "7")]) else { panic!("nobody") };
    assert_eq!((jane.name(), jane.uid()), ("jane", Some("7")));
    let organization: &[u64] = &[2, 5, 4, 10];
    let ClientAuth::Verified(jane) = user(&[(name, "jane"), (organization, "system:unauthenticated")]) else {
        panic!("nobody")
    };
    assert_eq!(jane.groups(), ["system:unauthenticated"]);
    assert_eq!(user(&[(name, "jane"), (uid, "")]), ClientAuth::Invalid);
    assert_eq!(user(&[(name, "")]), ClientAuth::NoOpinion);
    assert_eq!(user(&[(uid, "7")]), ClientAuth::NoOpinion);
}
