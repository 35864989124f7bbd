use super::*;

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
    }
    headers
}

#[test]
fn headers_name_the_user() {
    assert_eq!(RequestedUser::read(&headers(&[])).unwrap(), None);
    let wanted = RequestedUser::read(&headers(&[
        ("impersonate-user", "jane"),
        ("impersonate-group", "a"),
        ("impersonate-group", "b"),
        ("impersonate-uid", "7"),
        ("impersonate-extra-example.com%2fscopes", "x"),
        ("impersonate-extra-broken%2", "y"),
    ]));
    let wanted = wanted.unwrap().unwrap();
    assert_eq!((wanted.name.as_str(), wanted.uid.as_str()), ("jane", "7"));
    assert_eq!(wanted.groups, ["a", "b"]);
    let keys: Vec<&str> = wanted.extra.keys().map(String::as_str).collect();
    assert_eq!(keys, ["broken%2", "example.com/scopes"]);
}

#[test]
fn a_group_needs_a_user() {
    let error = RequestedUser::read(&headers(&[("impersonate-group", "a")])).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"a"}, Extra:map[string][]string(nil)} without impersonating a user name"#
    );
}

#[test]
fn everybody_is_authenticated_but_the_anonymous_user() {
    let as_user = |name: &str, groups: &[&str]| {
        let wanted = RequestedUser { name: name.to_owned(), ..RequestedUser::default() };
        wanted.identity(groups.iter().map(|group| (*group).to_owned()).collect()).groups().join(",")
    };
    assert_eq!(as_user("jane", &["a"]), "a,system:authenticated");
    assert_eq!(as_user("system:anonymous", &[]), "system:unauthenticated");
    assert_eq!(as_user("jane", &["system:unauthenticated"]), "system:unauthenticated");
}
