use super::*;

fn path(path: &str) -> Attributes<'_> {
    Attributes { verb: "get", path, ..Attributes::default() }
}

#[test]
fn masters_may_do_everything() {
    let delete = Attributes { verb: "delete", resource: "nodes", name: "n", ..Attributes::default() };
    assert!(allowed(&Identity::admin(), &delete));
    assert!(allowed(&Identity::admin(), &path("/metrics")));
}

#[test]
fn health_is_everybodys_and_discovery_is_for_those_with_credentials() {
    let (nobody, jane) = (Identity::anonymous(), Identity::user("jane"));
    for open in ["/healthz", "/livez", "/readyz", "/version"] {
        assert!(allowed(&nobody, &path(open)) && allowed(&jane, &path(open)), "{open}");
    }
    for discovery in ["/api", "/apis/apps/v1", "/openapi/v3"] {
        assert!(!allowed(&nobody, &path(discovery)), "{discovery}");
        assert!(allowed(&jane, &path(discovery)), "{discovery}");
    }
    for closed in ["/metrics", "/", "/apisfoo"] {
        assert!(!allowed(&jane, &path(closed)), "{closed}");
    }
}

#[test]
fn everybody_may_ask_about_themselves_and_nothing_else() {
    let jane = Identity::user("jane");
    let create = |group, resource| Attributes { verb: "create", group, resource, ..Attributes::default() };
    assert!(allowed(&jane, &create("authorization.k8s.io", "selfsubjectaccessreviews")));
    assert!(!allowed(&jane, &create("authorization.k8s.io", "subjectaccessreviews")));
    assert!(!allowed(&Identity::anonymous(), &create("authentication.k8s.io", "selfsubjectreviews")));
}

#[test]
fn a_refusal_names_who_what_and_where() {
    let attributes = Attributes {
        verb: "get",
        group: "apps",
        resource: "deployments",
        subresource: "scale",
        namespace: "default",
        name: "x",
        path: "",
    };
    let error = authorize(&Identity::anonymous(), &attributes).unwrap_err();
    assert_eq!(error.code(), 403);
    assert_eq!(
        error.to_string(),
        r#"deployments.apps "x" is forbidden: User "system:anonymous" cannot get resource "deployments/scale" in API group "apps" in the namespace "default""#
    );
    let error = authorize(&Identity::anonymous(), &path("/metrics")).unwrap_err();
    assert_eq!(error.to_string(), r#"forbidden: User "system:anonymous" cannot get path "/metrics""#);
}
