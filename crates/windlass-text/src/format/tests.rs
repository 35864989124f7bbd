use super::{is_known, matches};

fn check(format: &str, good: &[&str], bad: &[&str]) {
    for text in good {
        assert!(matches(format, text), "{text:?} is a {format}");
    }
    for text in bad {
        assert!(!matches(format, text), "{text:?} is no {format}");
    }
}

#[test]
fn dashes_in_names_do_not_count() {
    assert!(is_known("date-time") && is_known("datetime") && is_known("k8s-short-name"));
    assert!(!is_known("int-or-string") && !is_known("quantity"));
}

#[test]
fn dates_and_durations() {
    check("date", &["2026-02-28", "2024-02-29"], &["2026-02-29", "2026-13-01", "26-01-01", ""]);
    check(
        "date-time",
        &["2014-12-15T19:30:20.000Z", "2014-12-15t19:30:20+02:00"],
        &["2014-12-15", "2014-12-15T24:00:00Z", "2014-12-15T19:30:20", "2014-12-15T19:30"],
    );
    check("duration", &["1h30m", "-1.5s", "22 ns", "3 days", "0"], &["", "5", "1x", "h"]);
}

#[test]
fn addresses() {
    check("ipv4", &["10.0.0.1", "010.0.0.1"], &["10.0.0", "10.0.0.256", "::1"]);
    check("ipv6", &["::1", "fe80::1"], &["10.0.0.1", "g::"]);
    check("cidr", &["10.0.0.0/8", "fd00::/64"], &["10.0.0.0", "10.0.0.0/33", "x/8"]);
    check("mac", &["00:1a:2b:3c:4d:5e", "001a.2b3c.4d5e"], &["00:1a:2b", "zz:1a:2b:3c:4d:5e"]);
    check("uri", &["http://a.b/c?d", "/x", "mailto:a@b"], &["", "a/b", "http://a:b/", "/%zz"]);
    check("hostname", &["a", "a-b.example.com"], &["-a", "a..b", "a_b", ""]);
    check("email", &["a@b.c", "A <a@b>"], &["a", "@b", "a b@c"]);
}

#[test]
fn identifiers() {
    check("uuid", &["00000000-0000-0000-0000-000000000000"], &["0", "00000000-0000-0000-0000-00000000000g"]);
    check("uuid4", &["9b2f3f0e-6b1e-4b5e-8f0e-6b1e4b5e8f0e"], &["9b2f3f0e-6b1e-3b5e-8f0e-6b1e4b5e8f0e"]);
    check("byte", &["YQ==", "YWJj"], &["", "YQ", "Y*=="]);
    check("isbn", &["0321751043", "978-0321751041"], &["0321751044"]);
    check("creditcard", &["4111 1111 1111 1111"], &["4111 1111 1111 1112"]);
    check("ssn", &["123-45-6789"], &["123-45-678"]);
    check("hexcolor", &["#fff", "00FF00"], &["#ffff"]);
    check("rgbcolor", &["rgb(1, 2,255)"], &["rgb(1,2,256)"]);
    check("k8s-short-name", &["a-1"], &["A", "a-", ""]);
    check("k8s-long-name", &["a.b-1"], &["a..b"]);
}
