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

#[test]
fn a_known_token_names_its_user() {
    for header in ["Bearer s3cret", "bearer s3cret", "BEARER  s3cret"] {
        let who = authenticate(None, &headers(header), |token| tokens().find(token).cloned());
        assert_eq!(who, Authenticated::As(Identity::admin()), "{header}");
    }
}

#[test]
fn wrong_credentials_are_refused_and_never_anonymous() {
    for header in ["Bearer wrong", "Bearer ", "Bearer", "Basic czNjcmV0", "s3cret"] {
        assert_eq!(
            authenticate(None, &headers(header), |token| tokens().find(token).cloned()),
            Authenticated::Refused,
            "{header}"
        );
    }
}

#[test]
fn no_credentials_are_anonymous() {
    let who = authenticate(None, &HeaderMap::new(), |token| tokens().find(token).cloned());
    assert_eq!(who, Authenticated::As(Identity::anonymous()));
}

#[test]
fn a_certificate_counts_before_a_token() {
    let jane = Identity::user("jane");
    let who = authenticate(Some(&jane), &headers("Bearer s3cret"), |token| tokens().find(token).cloned());
    assert_eq!(who, Authenticated::As(jane));
}

#[test]
fn the_subject_of_a_certificate_is_the_user() {
    let authority = crate::serve::Authority::generate().unwrap();
    let client = authority.client("jane", Some("developers")).unwrap();
    let jane = certificate_identity(client.certificate_der()).unwrap();
    assert_eq!(jane.name(), "jane");
    assert_eq!(jane.groups(), ["developers", "system:authenticated"]);
}

#[test]
fn what_is_no_certificate_is_nobody() {
    assert_eq!(certificate_identity(b"not a certificate"), None);
    assert_eq!(certificate_identity(b""), None);
}
