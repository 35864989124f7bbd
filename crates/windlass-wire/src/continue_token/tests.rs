use proptest::prelude::*;

use super::*;

fn position(revision: i64, start_key: &str) -> Position {
    Position { revision, start_key: start_key.to_owned(), remaining: None, began: None }
}

fn refusal(token: &str) -> String {
    decode(token, "/p/").expect_err("refused").to_string()
}

#[test]
fn broken_tokens_are_refused_with_the_real_words() {
    let head = "invalid continue token: continue key is not valid: ";
    assert_eq!(refusal("!!"), format!("{head}illegal base64 data at input byte 0"));
    assert_eq!(refusal("eyJhIjoxfQ"), format!("{head}server does not recognize this encoded version "));
    assert_eq!(refusal("abc"), format!("{head}invalid character 'i' looking for beginning of value"));
    let token = URL_SAFE_NO_PAD.encode(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#);
    assert_eq!(
        refusal(&token),
        format!("{head}incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    );
    let token = URL_SAFE_NO_PAD.encode(r#"{"v":"meta.k8s.io/v1","rv":4,"start":""}"#);
    assert_eq!(refusal(&token), format!("{head}encoded start key empty (version meta.k8s.io/v1)"));
    assert_eq!(refusal(&encode(&position(5, "../secrets/a"))), format!("{head}../secrets/a"));
}

#[test]
fn a_token_is_the_real_servers() {
    let text = URL_SAFE_NO_PAD.decode(encode(&position(7, "default/a\0"))).expect("base64");
    assert_eq!(
        String::from_utf8(text).expect("text"),
        r#"{"v":"meta.k8s.io/v1","rv":7,"start":"default/a\u0000"}"#
    );
}

proptest! {
    #[test]
    fn any_token_is_read_or_refused(token in ".{0,80}") {
        let _ = decode(&token, "/p/");
    }

    #[test]
    fn round_trip(
        revision in 1..i64::MAX,
        namespace in "[a-z0-9]{1,9}",
        name in "[a-z0-9.-]{0,9}[a-z]",
        remaining in prop::option::of(any::<u32>().prop_map(u64::from)),
        began in prop::option::of(any::<i32>().prop_map(i64::from)),
    ) {
        let key = format!("{namespace}/{name}\0");
        let position = Position { remaining, began, ..position(revision, &key) };
        let decoded = decode(&encode(&position), "/p/").expect("own token");
        prop_assert_eq!(decoded, Position { start_key: format!("/p/{key}"), ..position });
    }
}
