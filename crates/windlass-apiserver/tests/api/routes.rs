//! Requests that are refused before an object is read: paths, methods and media types, including unusual
//! values.

use expect_test::expect;
use http::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fixtures::{config_map, deployment, group, pod, widgets_path};
use crate::harness::{Api, MERGE_PATCH, Reply, STRATEGIC_PATCH, deadline, lines};

/// Returns the code of a reply, and the message or the kind of the object.
fn brief(reply: &Reply) -> String {
    let text = String::from_utf8_lossy(&reply.body).into_owned();
    let json: serde_json::Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let shown = [&json["message"], &json["kind"]].into_iter().find_map(|value| value.as_str());
    let shown = match shown {
        Some(shown) => shown.to_owned(),
        None if json.is_object() => "a document".to_owned(),
        None => text,
    };
    format!("{} {}", reply.code, shown.trim().replace("\n\n", " "))
}

#[tokio::test]
async fn paths_are_decoded_and_then_found_as_they_are() {
    let api = Api::start();
    let ns = api.namespace_named(&format!("routes-{}", api.id)).await;
    widgets_path(&api).await;
    let group = group(&api);
    let mut seen = Vec::new();
    for path in [
        "/api/v1/namespaces/NS%2Fconfigmaps",
        "/api/v1/namespaces/NS/configmaps/a%2Fb",
        "/%61pi/v1/nodes/none",
        "/api%2Fv1/nodes/none",
        "/apis//apps/v1/deployments",
        "/apis/apps//v1/deployments",
        "/apis/GROUP/v1//widgets",
        "//apis/GROUP/v1/widgets",
        "//apis/apps/v1/deployments",
        "//api/v1/pods",
        "/api//v1/pods",
        "/api/v1//pods",
        "/api/v1/../v1/pods",
        "/api/v1/namespaces/NS/configmaps/",
        "/api/v1/namespaces/NS/configmaps//",
        "/api/v1/namespaces/NS/pods//status",
        "/api/v1/namespaces/NS/configmaps/..",
        "/api/v1/namespaces/NS/configmaps/a%25b",
        "/apis/GROUP/v1/namespaces/NS/widgets/..",
        "/apis/GROUP/v1/namespaces/NS/widgets/../nothing",
        "/api/v1/namespaces/../configmaps",
        "/api/v1/namespaces/../configmaps/x",
        "/apis/apps/v1/namespaces/./deployments?watch=1",
        "/api/v1/namespaces/NS/configmaps?resourceVersion=99999999999999999999",
        "/api/v1/namespaces/NS/pods/x/status/more",
        "/api/v1/namespaces/NS/pods/x//y",
        "/api/v1/namespaces/NS/pods/x/nothing",
        "/api/v1/watch",
        "/apis/apps/v1/watch",
        "/api/v1/proxy/nodes/none",
        "/apis/authentication.k8s.io/v1/tokenreviews/none",
        "/apis/apps/none",
        "/apis/none",
        "//healthz",
        "/healthz/",
        "/healthz/ping/",
        "/livez/ping/none",
        "/version/",
        "/version/none",
        "/api//",
        "/apis//",
        "/apis/apps//",
        "/apis/apps/v1//",
        "/openapi/v2/",
        "/openapi/v3/",
        "/metrics/",
        "//",
        "/index.html",
        "/index.html/",
        "/.well-known/openid-configuration/",
    ] {
        let reply = api.get(&path.replace("NS", &ns).replace("GROUP", &group)).await;
        seen.push(format!("{path}: {}", brief(&reply)));
    }
    expect![[r#"
        /api/v1/namespaces/NS%2Fconfigmaps: 200 ConfigMapList
        /api/v1/namespaces/NS/configmaps/a%2Fb: 404 the server could not find the requested resource
        /%61pi/v1/nodes/none: 404 nodes "none" not found
        /api%2Fv1/nodes/none: 404 nodes "none" not found
        /apis//apps/v1/deployments: 404 404 page not found
        /apis/apps//v1/deployments: 404 the server could not find the requested resource
        /apis/GROUP/v1//widgets: 404 404 page not found
        //apis/GROUP/v1/widgets: 404 404 page not found
        //apis/apps/v1/deployments: 404 404 page not found
        //api/v1/pods: 404 404 page not found
        /api//v1/pods: 404 the server could not find the requested resource
        /api/v1//pods: 404 the server could not find the requested resource
        /api/v1/../v1/pods: 404 the server could not find the requested resource
        /api/v1/namespaces/NS/configmaps/: 200 ConfigMapList
        /api/v1/namespaces/NS/configmaps//: 200 ConfigMapList
        /api/v1/namespaces/NS/pods//status: 400 name must be provided
        /api/v1/namespaces/NS/configmaps/..: 400 Name parameter invalid: "..": may not be '..'
        /api/v1/namespaces/NS/configmaps/a%25b: 400 Name parameter invalid: "a%b": may not contain '%'
        /apis/GROUP/v1/namespaces/NS/widgets/..: 400 Name parameter invalid: "..": may not be '..'
        /apis/GROUP/v1/namespaces/NS/widgets/../nothing: 404 widgets.ID.example.com ".." not found
        /api/v1/namespaces/../configmaps: 500 invalid key: "/configmaps/.."
        /api/v1/namespaces/../configmaps/x: 500 invalid key: "/configmaps/../x"
        /apis/apps/v1/namespaces/./deployments?watch=1: 500 invalid key: "/deployments/."
        /api/v1/namespaces/NS/configmaps?resourceVersion=99999999999999999999: 400 invalid resource version: resourceVersion: Invalid value: "99999999999999999999": strconv.ParseUint: parsing "99999999999999999999": value out of range
        /api/v1/namespaces/NS/pods/x/status/more: 404 the server could not find the requested resource
        /api/v1/namespaces/NS/pods/x//y: 404 the server could not find the requested resource
        /api/v1/namespaces/NS/pods/x/nothing: 404 the server could not find the requested resource
        /api/v1/watch: 500 Internal Server Error: "/api/v1/watch": failed to create RequestInfo: unable to determine kind and namespace from url, /api/v1/watch
        /apis/apps/v1/watch: 500 Internal Server Error: "/apis/apps/v1/watch": failed to create RequestInfo: unable to determine kind and namespace from url, /apis/apps/v1/watch
        /api/v1/proxy/nodes/none: 404 the server could not find the requested resource
        /apis/authentication.k8s.io/v1/tokenreviews/none: 404 the server could not find the requested resource
        /apis/apps/none: 404 the server could not find the requested resource
        /apis/none: 404 404 page not found
        //healthz: 404 404 page not found
        /healthz/: 404 404 page not found
        /healthz/ping/: 404 404 page not found
        /livez/ping/none: 404 404 page not found
        /version/: 200 a document
        /version/none: 404 the server could not find the requested resource
        /api//: 200 APIVersions
        /apis//: 404 404 page not found
        /apis/apps//: 200 APIGroup
        /apis/apps/v1//: 200 APIResourceList
        /openapi/v2/: 404 404 page not found
        /openapi/v3/: 404 
        /metrics/: 404 404 page not found
        //: 404 404 page not found
        /index.html: 200 a document
        /index.html/: 404 404 page not found
        /.well-known/openid-configuration/: 200 a document
    "#]].assert_eq(&lines(&seen).replace(&api.id, "ID"));
}

#[tokio::test]
async fn a_path_is_looked_at_before_a_method() {
    let api = Api::start();
    let ns = api.namespace_named(&format!("routes-{}", api.id)).await;
    let widgets = widgets_path(&api).await;
    let group = group(&api);
    let core = format!("/api/v1/namespaces/{ns}");
    let mut seen = Vec::new();
    for (method, path) in [
        ("HEAD", format!("{core}/configmaps/x")),
        ("DELETE", format!("{core}/configmaps/..")),
        ("DELETE", format!("{widgets}/..")),
        ("HEAD", format!("{core}/configmaps/x/nothing")),
        ("TRACE", format!("{core}/pods/x/rollback")),
        ("OPTIONS", format!("{core}/pods/x/status/more")),
        ("PUT", format!("{core}/configmaps")),
        ("PUT", format!("/api/v1/watch/namespaces/{ns}/configmaps/x")),
        ("POST", "/apis/authorization.k8s.io/v1/localsubjectaccessreviews".to_owned()),
        ("GET", "/api/v1/bindings".to_owned()),
        ("POST", "/healthz/ping/".to_owned()),
        ("OPTIONS", widgets.clone()),
        ("TRACE", format!("{widgets}/x")),
        ("POST", "/apis/apps".to_owned()),
        ("OPTIONS", "/apis/apps/v1".to_owned()),
        ("OPTIONS", format!("/apis/{group}")),
        ("PUT", format!("/apis/{group}/v1")),
        ("POST", "/openapi/v2".to_owned()),
        ("TRACE", "/openapi/v3/apis/none/v1".to_owned()),
        ("POST", "/openid/v1/jwks".to_owned()),
        ("POST", "/%6Fpenid/v1/jwks".to_owned()),
    ] {
        let reply = api.request(method.parse().unwrap(), &path).send().await;
        let path = path.replace(&ns, "NS").replace(&group, "GROUP");
        seen.push(format!("{method} {path}: {}", brief(&reply)));
    }
    expect![[r#"
        HEAD /api/v1/namespaces/NS/configmaps/x: 405 
        DELETE /api/v1/namespaces/NS/configmaps/..: 400 Name parameter invalid: "..": may not be '..'
        DELETE /apis/GROUP/v1/namespaces/ns-ID/widgets/..: 400 Name parameter invalid: "..": may not be '..'
        HEAD /api/v1/namespaces/NS/configmaps/x/nothing: 404 
        TRACE /api/v1/namespaces/NS/pods/x/rollback: 404 the server could not find the requested resource
        OPTIONS /api/v1/namespaces/NS/pods/x/status/more: 404 the server could not find the requested resource
        PUT /api/v1/namespaces/NS/configmaps: 405 the server does not allow this method on the requested resource
        PUT /api/v1/watch/namespaces/NS/configmaps/x: 405 the server does not allow this method on the requested resource
        POST /apis/authorization.k8s.io/v1/localsubjectaccessreviews: 404 the server could not find the requested resource
        GET /api/v1/bindings: 404 the server could not find the requested resource
        POST /healthz/ping/: 404 404 page not found
        OPTIONS /apis/GROUP/v1/namespaces/ns-ID/widgets: 405 is not supported on resources of kind "widgets.ID.example.com"
        TRACE /apis/GROUP/v1/namespaces/ns-ID/widgets/x: 405 is not supported on resources of kind "widgets.ID.example.com"
        POST /apis/apps: 200 APIGroup
        OPTIONS /apis/apps/v1: 405 the server does not allow this method on the requested resource
        OPTIONS /apis/GROUP: 200 APIGroup
        PUT /apis/GROUP/v1: 200 APIResourceList
        POST /openapi/v2: 200 a document
        TRACE /openapi/v3/apis/none/v1: 404 
        POST /openid/v1/jwks: 405 the server does not allow this method on the requested resource
        POST /%6Fpenid/v1/jwks: 405 the server does not allow this method on the requested resource
    "#]].assert_eq(&lines(&seen).replace(&api.id, "ID"));
}

#[tokio::test]
async fn an_accept_header_is_read_as_go_does() {
    let api = Api::start();
    let ns = api.namespace_named(&format!("routes-{}", api.id)).await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let (widgets, group) = (widgets_path(&api).await, group(&api));
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let mut seen = Vec::new();
    for path in [
        &maps,
        &format!("{maps}/none"),
        &widgets,
        "/apis/apps",
        "/apis/apps/v1",
        &format!("/apis/{group}/v1"),
    ] {
        for accept in [
            "application/*",
            "Application/JSON",
            "application/json;as=\"Table\";v=v1;g=meta.k8s.io",
            &format!("{table},application/yaml"),
            "application/json;q=0.1,application/yaml",
            "*/*;q=0.9,application/yaml;q=0.1",
            "application/yaml;q=x,application/json;q=0.1",
            "text/plain",
        ] {
            let reply = api.request(Method::GET, path).accept(accept).send().await;
            let message = if reply.code == 406 { brief(&reply) } else { reply.code.to_string() };
            let message = message.chars().take(40).collect::<String>();
            let path = path.replace(&ns, "NS").replace(&group, "GROUP");
            seen.push(format!("{path} {accept}: {message} in {}", reply.header("content-type").unwrap()));
        }
    }
    expect![[r#"
        /api/v1/namespaces/NS/configmaps application/*: 406 406: Not Acceptable Available repres in application/json
        /api/v1/namespaces/NS/configmaps Application/JSON: 406 406: Not Acceptable Available repres in application/json
        /api/v1/namespaces/NS/configmaps application/json;as="Table";v=v1;g=meta.k8s.io: 406 only the following media types are a in application/json
        /api/v1/namespaces/NS/configmaps application/json;as=Table;v=v1;g=meta.k8s.io,application/yaml: 200 in application/json
        /api/v1/namespaces/NS/configmaps application/json;q=0.1,application/yaml: 200 in application/yaml
        /api/v1/namespaces/NS/configmaps */*;q=0.9,application/yaml;q=0.1: 200 in application/yaml
        /api/v1/namespaces/NS/configmaps application/yaml;q=x,application/json;q=0.1: 200 in application/json
        /api/v1/namespaces/NS/configmaps text/plain: 406 406: Not Acceptable Available repres in application/json
        /api/v1/namespaces/NS/configmaps/none application/*: 406 406: Not Acceptable Available repres in application/json
        /api/v1/namespaces/NS/configmaps/none Application/JSON: 406 406: Not Acceptable Available repres in application/json
        /api/v1/namespaces/NS/configmaps/none application/json;as="Table";v=v1;g=meta.k8s.io: 406 only the following media types are a in application/json
        /api/v1/namespaces/NS/configmaps/none application/json;as=Table;v=v1;g=meta.k8s.io,application/yaml: 404 in application/yaml
        /api/v1/namespaces/NS/configmaps/none application/json;q=0.1,application/yaml: 404 in application/yaml
        /api/v1/namespaces/NS/configmaps/none */*;q=0.9,application/yaml;q=0.1: 404 in application/yaml
        /api/v1/namespaces/NS/configmaps/none application/yaml;q=x,application/json;q=0.1: 404 in application/json
        /api/v1/namespaces/NS/configmaps/none text/plain: 406 406: Not Acceptable Available repres in application/json
        /apis/GROUP/v1/namespaces/ns-ID/widgets application/*: 200 in application/json
        /apis/GROUP/v1/namespaces/ns-ID/widgets Application/JSON: 406 only the following media types are a in application/json
        /apis/GROUP/v1/namespaces/ns-ID/widgets application/json;as="Table";v=v1;g=meta.k8s.io: 406 only the following media types are a in application/json
        /apis/GROUP/v1/namespaces/ns-ID/widgets application/json;as=Table;v=v1;g=meta.k8s.io,application/yaml: 200 in application/json
        /apis/GROUP/v1/namespaces/ns-ID/widgets application/json;q=0.1,application/yaml: 200 in application/yaml
        /apis/GROUP/v1/namespaces/ns-ID/widgets */*;q=0.9,application/yaml;q=0.1: 200 in application/yaml
        /apis/GROUP/v1/namespaces/ns-ID/widgets application/yaml;q=x,application/json;q=0.1: 200 in application/json
        /apis/GROUP/v1/namespaces/ns-ID/widgets text/plain: 406 only the following media types are a in application/json
        /apis/apps application/*: 200 in application/json
        /apis/apps Application/JSON: 406 only the following media types are a in application/json
        /apis/apps application/json;as="Table";v=v1;g=meta.k8s.io: 406 only the following media types are a in application/json
        /apis/apps application/json;as=Table;v=v1;g=meta.k8s.io,application/yaml: 200 in application/yaml
        /apis/apps application/json;q=0.1,application/yaml: 200 in application/yaml
        /apis/apps */*;q=0.9,application/yaml;q=0.1: 200 in application/yaml
        /apis/apps application/yaml;q=x,application/json;q=0.1: 200 in application/json
        /apis/apps text/plain: 406 only the following media types are a in application/json
        /apis/apps/v1 application/*: 406 406: Not Acceptable Available repres in application/json
        /apis/apps/v1 Application/JSON: 406 406: Not Acceptable Available repres in application/json
        /apis/apps/v1 application/json;as="Table";v=v1;g=meta.k8s.io: 406 only the following media types are a in application/json
        /apis/apps/v1 application/json;as=Table;v=v1;g=meta.k8s.io,application/yaml: 200 in application/yaml
        /apis/apps/v1 application/json;q=0.1,application/yaml: 200 in application/yaml
        /apis/apps/v1 */*;q=0.9,application/yaml;q=0.1: 200 in application/yaml
        /apis/apps/v1 application/yaml;q=x,application/json;q=0.1: 200 in application/json
        /apis/apps/v1 text/plain: 406 406: Not Acceptable Available repres in application/json
        /apis/GROUP/v1 application/*: 200 in application/json
        /apis/GROUP/v1 Application/JSON: 406 only the following media types are a in application/json
        /apis/GROUP/v1 application/json;as="Table";v=v1;g=meta.k8s.io: 406 only the following media types are a in application/json
        /apis/GROUP/v1 application/json;as=Table;v=v1;g=meta.k8s.io,application/yaml: 200 in application/yaml
        /apis/GROUP/v1 application/json;q=0.1,application/yaml: 200 in application/yaml
        /apis/GROUP/v1 */*;q=0.9,application/yaml;q=0.1: 200 in application/yaml
        /apis/GROUP/v1 application/yaml;q=x,application/json;q=0.1: 200 in application/json
        /apis/GROUP/v1 text/plain: 406 only the following media types are a in application/json
    "#]].assert_eq(&lines(&seen).replace(&api.id, "ID"));
    let watch = api.request(Method::GET, &format!("{maps}?watch=1&timeoutSeconds=1"));
    assert_eq!(watch.accept("application/yaml,application/json").send().await.code, 406);
    let watch = api.request(Method::GET, &format!("{maps}?watch=1&resourceVersion=x"));
    assert_eq!(watch.accept("application/yaml").send().await.code, 500);
    for path in ["/openapi/v2", "/openapi/v3/apis/apps/v1"] {
        let reply = api.request(Method::GET, path).accept("application/yaml").send().await;
        assert_eq!((reply.code, reply.body.len(), reply.header("content-type")), (406, 0, None));
    }
    let keys = api.request(Method::GET, "/openid/v1/jwks").accept("application/json").send().await;
    assert_eq!(brief(&keys), "406 406: Not Acceptable Available representations: application/jwk-set+json");
}

#[tokio::test]
async fn a_content_type_is_read_as_go_does() {
    let api = Api::start();
    let ns = api.namespace_named(&format!("routes-{}", api.id)).await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let widgets = widgets_path(&api).await;
    api.post(&maps, config_map("a")).await.is(201);
    let mut seen = Vec::new();
    for media in [
        "APPLICATION/JSON",
        "application/json ; charset=utf-8",
        "application/json;",
        "application/json;x",
        "application/json;a=1;a=2",
        "application/json,application/yaml",
        "json",
    ] {
        let post = api.request(Method::POST, &format!("{maps}?dryRun=All"));
        let code = post.body(media, config_map("b").to_string()).send().await.code;
        seen.push(format!("POST {media}: {code}"));
    }
    for media in [
        "APPLICATION/merge-patch+json",
        "application/merge-patch+json ; charset=utf-8",
        "application/merge-patch+json;x",
        "text/plain,application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/json",
    ] {
        for path in [format!("{maps}/a"), format!("{widgets}/none")] {
            let reply = api.request(Method::PATCH, &path).body(media, "{}").send().await;
            let path = path.replace(&ns, "NS").replace(&api.id, "ID");
            let name = path.rsplit('/').next().unwrap().to_owned();
            seen.push(format!("PATCH {name} {media}: {}", brief(&reply).replace(&api.id, "ID")));
        }
    }
    expect![[r#"
        POST APPLICATION/JSON: 201
        POST application/json ; charset=utf-8: 201
        POST application/json;: 201
        POST application/json;x: 415
        POST application/json;a=1;a=2: 415
        POST application/json,application/yaml: 415
        POST json: 415
        PATCH a APPLICATION/merge-patch+json: 415 415: Unsupported Media Type
        PATCH none APPLICATION/merge-patch+json: 415 the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml
        PATCH a application/merge-patch+json ; charset=utf-8: 415 the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml
        PATCH none application/merge-patch+json ; charset=utf-8: 415 the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml
        PATCH a application/merge-patch+json;x: 200 ConfigMap
        PATCH none application/merge-patch+json;x: 404 widgets.ID.example.com "none" not found
        PATCH a text/plain,application/merge-patch+json: 415 the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml
        PATCH none text/plain,application/merge-patch+json: 415 the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml
        PATCH a application/strategic-merge-patch+json: 200 ConfigMap
        PATCH none application/strategic-merge-patch+json: 415 the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml
        PATCH a application/json: 415 415: Unsupported Media Type
        PATCH none application/json: 415 the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn the_body_of_a_scale_is_a_scale() {
    let api = Api::start();
    let ns = api.namespace_named(&format!("routes-{}", api.id)).await;
    let deployments = format!("/apis/apps/v1/namespaces/{ns}/deployments");
    let mut owned = deployment("a");
    owned["spec"]["replicas"] = json!(0);
    let scale = format!("{deployments}/a/scale");
    api.post(&deployments, owned).await.is(201);
    let mut seen = Vec::new();
    for (version, kind) in [
        ("apps/v1", "Deployment"),
        ("autoscaling/v2", "Scale"),
        ("a/v9", "Other"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ] {
        let body =
            json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": {"replicas": 1}});
        seen.push(brief(&api.put(&scale, body).await));
    }
    let without_kind = json!({"metadata": {"name": "a"}, "spec": {"replicas": 0, "more": 1}});
    seen.push(api.put(&scale, without_kind).await.warnings().join(" "));
    for media in [MERGE_PATCH, STRATEGIC_PATCH] {
        let reply = api.patch(&scale, media, json!({"spec": {"selector": {"a": []}}, "more": 1})).await;
        seen.push(format!("{} {}", reply.code, reply.warnings().join(" ")));
    }
    expect![[r#"
        400 Deployment in version "v1" cannot be handled as a Scale: converting (v1.Deployment) to (autoscaling.Scale): unknown conversion
        400 Scale in version "v2" cannot be handled as a Scale: no kind "Scale" is registered for version "autoscaling/v2" in scheme "pkg/runtime/scheme.go:111"
        400 Other in version "v9" cannot be handled as a Scale: no kind "Other" is registered for version "a/v9" in scheme "pkg/runtime/scheme.go:111"
        400 CustomResourceDefinition in version "v1" cannot be handled as a Scale: no kind "CustomResourceDefinition" is registered for version "apiextensions.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"
        299 - "unknown field \"spec.more\""
        200 299 - "unknown field \"more\"" 299 - "unknown field \"spec.selector\""
        200 299 - "unknown field \"more\"" 299 - "unknown field \"spec.selector\""
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn unusual_requests_have_unusual_replies() {
    let api = Api::start();
    let ns = api.namespace_named(&format!("routes-{}", api.id)).await;
    let core = format!("/api/v1/namespaces/{ns}");
    let mut seen = Vec::new();
    assert_eq!(api.get("/openapi/v3").await.header("content-type"), Some("text/plain; charset=utf-8"));
    api.post(&format!("{core}/secrets"), json!({"metadata": {"name": "a"}})).await.is(201);
    for validation in ["Ignore", "Warn"] {
        let path = format!("{core}/secrets/a?fieldValidation={validation}");
        seen.push(brief(&api.request(Method::PATCH, &path).body(MERGE_PATCH, "{").send().await));
    }
    for query in ["limit=99999999999999999999", "timeoutSeconds=x", "limit=1;x=2&limit=%zz"] {
        seen.push(brief(&api.get(&format!("{core}/configmaps?{query}")).await));
    }
    let revisions = format!("/apis/apps/v1/namespaces/{ns}/controllerrevisions");
    let revision = json!({"metadata": {"name": "a"}, "revision": 1, "data": {"a": {"b": 1}, "c": [1]}});
    api.post(&revisions, revision).await.is(201);
    for data in [json!({"a": {"b": 2}}), json!({"c": [2]})] {
        let reply = api.patch(&format!("{revisions}/a"), STRATEGIC_PATCH, json!({"data": data})).await;
        seen.push(format!("{} {}", brief(&reply), reply.at("/data")));
    }
    let mut heavy = pod("a.b");
    heavy["spec"]["overhead"] = json!({"cpu": "1"});
    seen.push(api.post(&format!("{core}/pods"), heavy).await.to_string());
    api.post(&format!("{core}/configmaps"), config_map("a")).await.is(201);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "a", "annotations": {"a": 1}}
    });
    seen.push(brief(&api.put(&format!("{core}/configmaps/a"), definition).await));
    let group = json!({"apiVersion": "v1", "kind": "APIGroup", "metadata": {"name": "a"}});
    seen.push(brief(&api.put(&format!("{core}/configmaps/a"), group).await));
    let service = json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}});
    api.post(&format!("{core}/services"), service).await.is(201);
    let external =
        json!({"spec": {"type": "ExternalName", "externalName": "a.example.com", "clusterIPs": null}});
    let external = api.patch(&format!("{core}/services/a"), MERGE_PATCH, external).await.is(200);
    seen.push(external.at("/spec/clusterIP").to_string());
    let limited = api.impersonating(&format!("user-{}", api.id), &["system:authenticated"]);
    seen.push(brief(&limited.get(&format!("/api/v1//namespaces/{ns}/pods")).await));
    expect![[r#"
        400 invalid JSON patch
        400 invalid JSON patch
        400 strconv.ParseInt: parsing "99999999999999999999": value out of range
        400 strconv.ParseInt: parsing "x": invalid syntax
        200 ConfigMapList
        500 unable to find api field in struct RawExtension for the json field "a" null
        500 unable to find api field in struct RawExtension for the json field "c" null
        403
        Warning: 299 - "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]" Forbidden: pods "a.b" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead
        kind="pods" name="a.b"
        400 CustomResourceDefinition in version "v1" cannot be handled as a ConfigMap: no kind "CustomResourceDefinition" is registered for version "apiextensions.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"
        400 APIGroup in version "v1" cannot be handled as a ConfigMap: converting (v1.APIGroup) to (core.ConfigMap): unknown conversion
        null
        403 forbidden: User "user-ID" cannot get resource "/NS" in API group "" at the cluster scope
    "#]].assert_eq(&lines(&seen).replace(&ns, "NS").replace(&api.id, "ID"));
}

#[tokio::test]
async fn a_query_is_read_as_go_does() {
    let api = Api::start();
    let ns = api.namespace().await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let mut seen = Vec::new();
    for (method, query) in [
        ("GET", "?limit="),
        ("GET", "?limit=%2B1"),
        ("GET", "?limit=1.5"),
        ("GET", "?timeoutSeconds="),
        ("GET", "?watch=faLse"),
        ("GET", "?resourceVersion=%2B1"),
        ("GET", "/x?resourceVersion=%2B1"),
        ("DELETE", "?gracePeriodSeconds="),
        ("DELETE", "/x?gracePeriodSeconds="),
        ("DELETE", "/x?gracePeriodSeconds=%2B1"),
        ("DELETE", "/x?propagationPolicy="),
        ("DELETE", "/x?orphanDependents=&propagationPolicy=Orphan"),
    ] {
        let reply = api.request(method.parse().unwrap(), &format!("{maps}{query}")).send().await;
        seen.push(format!("{method} {query}: {}", brief(&reply)));
    }
    for pretty in ["", "x", "t", "tRue", "1", "f", "0"] {
        let reply = api.get(&format!("{maps}?pretty={pretty}")).await.is(200);
        let is_indented = reply.body.starts_with(b"{\n");
        seen.push(format!("pretty={pretty}: {}", if is_indented { "indented" } else { "compact" }));
    }
    expect![[r#"
        GET ?limit=: 400 strconv.ParseInt: parsing "": invalid syntax
        GET ?limit=%2B1: 200 ConfigMapList
        GET ?limit=1.5: 400 strconv.ParseInt: parsing "1.5": invalid syntax
        GET ?timeoutSeconds=: 400 strconv.ParseInt: parsing "": invalid syntax
        GET ?watch=faLse: 200 ConfigMapList
        GET ?resourceVersion=%2B1: 400 invalid resource version: resourceVersion: Invalid value: "+1": strconv.ParseUint: parsing "+1": invalid syntax
        GET /x?resourceVersion=%2B1: 500 resourceVersion: Invalid value: "+1": strconv.ParseUint: parsing "+1": invalid syntax
        DELETE ?gracePeriodSeconds=: 400 strconv.ParseInt: parsing "": invalid syntax
        DELETE /x?gracePeriodSeconds=: 400 strconv.ParseInt: parsing "": invalid syntax
        DELETE /x?gracePeriodSeconds=%2B1: 404 configmaps "x" not found
        DELETE /x?propagationPolicy=: 422 DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "": supported values: "Foreground", "Background", "Orphan", "nil"
        DELETE /x?orphanDependents=&propagationPolicy=Orphan: 422 DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set
        pretty=: compact
        pretty=x: compact
        pretty=t: indented
        pretty=tRue: compact
        pretty=1: indented
        pretty=f: compact
        pretty=0: compact
    "#]]
    .assert_eq(&lines(&seen));
}

#[tokio::test]
async fn the_empty_name_of_a_namespace_stands_for_all() {
    let api = Api::start();
    let ns = api.namespace().await;
    api.post(&format!("/api/v1/namespaces/{ns}/configmaps"), config_map("twin")).await.is(201);
    let all = api.get("/api/v1/namespaces//configmaps?fieldSelector=metadata.name%3Dtwin").await.is(200);
    assert!(!all.names().is_empty());
    api.get(&format!("/api/v1/namespaces/{ns}/namespaces")).await.is(404);
}

#[tokio::test]
async fn methods_that_are_no_verb_are_not_allowed() {
    let api = Api::start();
    let ns = api.namespace().await;
    let mut seen = Vec::new();
    for path in [
        format!("/api/v1/namespaces/{ns}"),
        format!("/api/v1/namespaces/{ns}/configmaps"),
        "/apis/apps/v1/deployments".to_owned(),
        "/api".to_owned(),
        "/apis".to_owned(),
        "/apis/apps/v1".to_owned(),
        "/version".to_owned(),
        "/healthz".to_owned(),
    ] {
        let head = api.request(Method::HEAD, &path).send().await;
        let options = api.request(Method::OPTIONS, &path).send().await;
        seen.push(format!("{path}: {} {:?} {}", head.code, head.header("content-type"), options.code));
    }
    let name = format!("/{ns}");
    expect![[r#"
        /api/v1/namespaces/NS: 405 Some("application/json") 405
        /api/v1/namespaces/NS/configmaps: 405 Some("application/json") 405
        /apis/apps/v1/deployments: 405 Some("application/json") 405
        /api: 405 Some("application/json") 405
        /apis: 200 Some("application/json") 200
        /apis/apps/v1: 405 Some("application/json") 405
        /version: 405 Some("application/json") 405
        /healthz: 200 Some("text/plain; charset=utf-8") 200
    "#]]
    .assert_eq(&lines(&seen).replace(&name, "/NS"));
    api.request(Method::OPTIONS, "/api/v1/nodes").send().await.shows(expect![
        "405 MethodNotAllowed: the server does not allow this method on the requested resource"
    ]);
}

#[tokio::test]
async fn a_group_without_a_name_has_no_versions() {
    let api = Api::start();
    for method in [Method::GET, Method::POST] {
        let reply = api.request(method, "/apis//v1").send().await.is(404);
        assert_eq!(reply.body, "404 page not found\n");
    }
    // The server fails before the other headers are set.
    let unclear = api.get("/api/v1/watch").await.is(500);
    assert_eq!(unclear.header("cache-control"), None);
}

#[tokio::test]
async fn the_parameter_export_is_gone() {
    let api = Api::start();
    for (value, code) in [("true", 400), ("x", 400), ("false", 200), ("0", 200)] {
        let reply = api.get(&format!("/api/v1/namespaces/default?export={value}")).await.is(code);
        if code == 400 {
            let why = "the export parameter, deprecated since v1.14, is no longer supported";
            assert_eq!(reply.text_at("/message"), why);
        }
    }
    api.get("/api/v1/namespaces?export=true").await.is(200);
}

#[tokio::test]
async fn a_malformed_request_is_refused_before_authentication() {
    let api = Api::start_over_tls();
    let mut seen = Vec::new();
    for (head, host) in [
        ("GET /version", ""),
        ("GET /version", "Host: a\r\nHost: b\r\n"),
        ("GET /version", "Host: a b\r\n"),
        ("GET /version%zz", "Host: a\r\n"),
        ("GET /version?a=%zz", "Host: a\r\n"),
        ("GET version", "Host: a\r\n"),
        ("OPTIONS *", "Host: a\r\n"),
        ("GET *", "Host: a\r\n"),
        ("CONNECT a:1", "Host: a\r\n"),
        ("GET /version", "Host: a\r\nExpect: something\r\n"),
    ] {
        let mut connection = api.connect().await;
        let authorization = api.authorization().await;
        let request = format!("{head} HTTP/1.1\r\n{host}{authorization}Connection: close\r\n\r\n");
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut reply = Vec::new();
        // Some servers end the connection without the end of TLS.
        let _ = tokio::time::timeout(deadline(), connection.read_to_end(&mut reply)).await.unwrap();
        let reply = String::from_utf8_lossy(&reply).into_owned();
        let (status, body) =
            (reply.get(9..12).unwrap_or_default(), reply.split("\r\n\r\n").nth(1).unwrap_or_default());
        let body = if body.starts_with('{') { "a document" } else { body.trim() };
        seen.push(format!("{head} {host:?}: {status} {body}").trim_end().to_owned());
    }
    expect![[r#"
        GET /version "": 400 400 Bad Request: missing required Host header
        GET /version "Host: a\r\nHost: b\r\n": 400 400 Bad Request
        GET /version "Host: a b\r\n": 400 400 Bad Request: malformed Host header
        GET /version%zz "Host: a\r\n": 400 400 Bad Request
        GET /version?a=%zz "Host: a\r\n": 200 a document
        GET version "Host: a\r\n": 400 400 Bad Request
        OPTIONS * "Host: a\r\n": 200
        GET * "Host: a\r\n": 404 404 page not found
        CONNECT a:1 "Host: a\r\n": 404 404 page not found
        GET /version "Host: a\r\nExpect: something\r\n": 417
    "#]]
    .assert_eq(&lines(&seen));
}
