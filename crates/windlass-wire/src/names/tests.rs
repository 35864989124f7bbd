use super::*;

#[test]
fn complaints_are_the_real_servers() {
    assert_eq!(
        dns_1123_subdomain("A_b"),
        [
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        ]
    );
    assert_eq!(dns_1123_label("a.b"), ["must not contain dots"]);
    assert_eq!(
        label_value("-b"),
        [
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
        ]
    );
    assert_eq!(label_key("/a"), ["prefix part must be non-empty"]);
    assert_eq!(label_key("").len(), 2);
    assert_eq!(config_map_key(".."), ["must not be '..'"]);
    assert_eq!(path_segment_name("a/b%", false), ["may not contain '/'", "may not contain '%'"]);
}

#[test]
fn good_names_pass() {
    for name in ["a", "a-b", "123-abc", "x".repeat(63).as_str()] {
        assert!(dns_1123_label(name).is_empty(), "{name}");
    }
    assert!(dns_1123_subdomain("a.b-c.d1").is_empty());
    assert!(dns_1035_label("abc-1").is_empty() && !dns_1035_label("1abc").is_empty());
    assert!(label_key("example.com/My_Name.1").is_empty());
    assert!(label_value("").is_empty());
    assert!(port_name("http-2").is_empty() && !port_name("80").is_empty());
    assert!(env_var_name("a.b-C").is_empty() && !env_var_name("a=b").is_empty());
    assert!(subdomain_name("web-", true).is_empty() && !subdomain_name("web-", false).is_empty());
}
