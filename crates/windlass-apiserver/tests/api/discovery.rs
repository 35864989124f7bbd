//! The first requests of a client.

use expect_test::expect;
use http::Method;
use serde_json::{Value, json};

use crate::fixtures::{group, widgets};
use crate::harness::Api;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn named(list: &Value, name: &str) -> Value {
    let found = list
        .as_array()
        .into_iter()
        .flatten()
        .find(|item| item["name"] == name || item["metadata"]["name"] == name);
    found.cloned().unwrap_or_else(|| panic!("no {name}"))
}

/// A resource as discovered, in lines that compare well.
pub(crate) fn resource(list: &Value, name: &str) -> String {
    let mut resource = named(list, name);
    // Clients do not read the value of the hash.
    resource.as_object_mut().unwrap().remove("storageVersionHash");
    if let Some(verbs) = resource["verbs"].as_array_mut() {
        verbs.sort_by_key(ToString::to_string);
    }
    resource.to_string()
}

#[tokio::test]
async fn the_version_is_known() {
    let api = Api::start();
    let version = api.get("/version").await.is(200).json();
    assert_eq!(version["major"], "1");
    assert!(version["minor"].as_str().unwrap().parse::<u32>().unwrap() >= 36);
    assert!(version["gitVersion"].as_str().unwrap().starts_with("v1."));
    for field in ["gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"] {
        assert!(version[field].is_string(), "{field}");
    }
}

#[tokio::test]
async fn it_says_when_it_is_well() {
    let api = Api::start();
    for path in ["/healthz", "/livez", "/readyz", "/readyz/ping", "/livez/ping"] {
        let reply = api.eventually(path, |reply| reply.code == 200).await;
        assert_eq!(reply.body, "ok", "{path}");
    }
    let verbose = api.get("/readyz?verbose").await.is(200);
    let text = String::from_utf8(verbose.body.to_vec()).unwrap();
    assert!(text.contains("[+]ping ok\n") && text.ends_with("readyz check passed\n"), "{text}");
}

#[tokio::test]
async fn health_checks_are_excluded_by_name() {
    let api = Api::start();
    let text = async |path: &str| {
        let reply = api.get(path).await.is(200);
        let text = String::from_utf8(reply.body.to_vec()).unwrap();
        // A real server has more checks.
        let is_shared =
            |line: &&str| !line.starts_with("[+]") || line.contains("ping") || line.contains("etcd ");
        text.lines().filter(is_shared).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(text("/healthz?exclude=ping").await, "ok");
    assert_eq!(
        text("/livez?exclude=ping&exclude=x%26&verbose").await,
        "[+]ping excluded: ok\n[+]etcd ok\nwarn: some health checks cannot be excluded: no matches for \"x&\"\nlivez check passed"
    );
    // A single check has no verbose form, and no header about the type.
    for path in ["/readyz/ping", "/readyz/ping?verbose", "/readyz/ping?exclude=ping"] {
        assert_eq!(text(path).await, "ok", "{path}");
        assert_eq!(api.get(path).await.header("x-content-type-options"), None, "{path}");
    }
    assert_eq!(api.get("/readyz").await.header("x-content-type-options"), Some("nosniff"));
}

#[tokio::test]
async fn the_core_group_has_one_version() {
    let api = Api::start();
    let versions = api.get("/api").await.is(200).json();
    assert_eq!(versions["kind"], "APIVersions");
    assert_eq!(versions["versions"], json!(["v1"]));
}

#[tokio::test]
async fn groups_are_listed() {
    let api = Api::start();
    let list = api.get("/apis").await.is(200).json();
    assert_eq!(list["kind"], "APIGroupList");
    assert_eq!(list["apiVersion"], "v1");
    let names: Vec<&str> =
        list["groups"].as_array().unwrap().iter().map(|group| group["name"].as_str().unwrap()).collect();
    for name in [
        "apps",
        "batch",
        "coordination.k8s.io",
        "events.k8s.io",
        "rbac.authorization.k8s.io",
        "apiextensions.k8s.io",
        "policy",
        "networking.k8s.io",
        "autoscaling",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "storage.k8s.io",
        "certificates.k8s.io",
        "scheduling.k8s.io",
        "discovery.k8s.io",
        "node.k8s.io",
        "admissionregistration.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "apiregistration.k8s.io",
    ] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    assert_eq!(
        names[..5],
        ["apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io"],
        "in order of importance"
    );
    assert_eq!(
        named(&list["groups"], "autoscaling"),
        json!({
            "name": "autoscaling",
            "preferredVersion": {"groupVersion": "autoscaling/v2", "version": "v2"},
            "versions": [{"groupVersion": "autoscaling/v2", "version": "v2"}, {"groupVersion": "autoscaling/v1", "version": "v1"}]
        })
    );
}

#[tokio::test]
async fn one_group_and_its_resources() {
    let api = Api::start();
    api.get("/apis/apps").await.shows(expect![[r#"
        200
        {
          "apiVersion": "v1",
          "kind": "APIGroup",
          "name": "apps",
          "preferredVersion": {
            "groupVersion": "apps/v1",
            "version": "v1"
          },
          "versions": [
            {
              "groupVersion": "apps/v1",
              "version": "v1"
            }
          ]
        }"#]]);
    let list = api.get("/apis/apps/v1").await.is(200).json();
    assert_eq!(
        (&list["kind"], &list["groupVersion"], &list["apiVersion"]),
        (&json!("APIResourceList"), &json!("apps/v1"), &json!("v1"))
    );
    expect![[r#"{"categories":["all"],"kind":"Deployment","name":"deployments","namespaced":true,"shortNames":["deploy"],"singularName":"deployment","verbs":["create","delete","deletecollection","get","list","patch","update","watch"]}"#]].assert_eq(&resource(&list["resources"], "deployments"));
    expect![[r#"{"group":"autoscaling","kind":"Scale","name":"deployments/scale","namespaced":true,"singularName":"","verbs":["get","patch","update"],"version":"v1"}"#]].assert_eq(&resource(&list["resources"], "deployments/scale"));
    expect![[r#"{"kind":"Deployment","name":"deployments/status","namespaced":true,"singularName":"","verbs":["get","patch","update"]}"#]].assert_eq(&resource(&list["resources"], "deployments/status"));
}

#[tokio::test]
async fn the_core_resources() {
    let api = Api::start();
    let list = api.get("/api/v1").await.is(200).json();
    assert_eq!((&list["kind"], &list["groupVersion"]), (&json!("APIResourceList"), &json!("v1")));
    let names: Vec<&str> = list["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| resource["name"].as_str().unwrap())
        .collect();
    expect!["bindings componentstatuses configmaps endpoints events limitranges namespaces namespaces/finalize namespaces/status nodes nodes/proxy nodes/status persistentvolumeclaims persistentvolumeclaims/status persistentvolumes persistentvolumes/status pods pods/attach pods/binding pods/ephemeralcontainers pods/eviction pods/exec pods/log pods/portforward pods/proxy pods/resize pods/status podtemplates replicationcontrollers replicationcontrollers/scale replicationcontrollers/status resourcequotas resourcequotas/status secrets serviceaccounts serviceaccounts/token services services/proxy services/status"].assert_eq(&names.join(" "));
    expect![[r#"{"categories":["all"],"kind":"Pod","name":"pods","namespaced":true,"shortNames":["po"],"singularName":"pod","verbs":["create","delete","deletecollection","get","list","patch","update","watch"]}"#]].assert_eq(&resource(&list["resources"], "pods"));
    expect![[r#"{"group":"policy","kind":"Eviction","name":"pods/eviction","namespaced":true,"singularName":"","verbs":["create"],"version":"v1"}"#]].assert_eq(&resource(&list["resources"], "pods/eviction"));
    expect![[r#"{"kind":"Namespace","name":"namespaces","namespaced":false,"shortNames":["ns"],"singularName":"namespace","verbs":["create","delete","get","list","patch","update","watch"]}"#]].assert_eq(&resource(&list["resources"], "namespaces"));
    expect![[r#"{"kind":"Event","name":"events","namespaced":true,"shortNames":["ev"],"singularName":"event","verbs":["create","delete","deletecollection","get","list","patch","update","watch"]}"#]].assert_eq(&resource(&list["resources"], "events"));
}

#[tokio::test]
async fn all_at_once_for_clients_that_can() {
    let api = Api::start();
    api.crd(widgets(&api)).await;
    let core = api.request(Method::GET, "/api").accept(AGGREGATED).send().await.is(200);
    assert_eq!(core.header("content-type"), Some(AGGREGATED));
    assert_eq!(core.header("vary"), Some("Accept"));
    let core = core.json();
    assert_eq!(
        (&core["kind"], &core["apiVersion"]),
        (&json!("APIGroupDiscoveryList"), &json!("apidiscovery.k8s.io/v2"))
    );
    let resources = &core["items"][0]["versions"][0]["resources"];
    let pods = resources.as_array().unwrap().iter().find(|resource| resource["resource"] == "pods").unwrap();
    let mut pods = pods.clone();
    pods["verbs"].as_array_mut().unwrap().sort_by_key(ToString::to_string);
    pods["subresources"].as_array_mut().unwrap().truncate(3);
    expect![[r#"
        {
          "categories": [
            "all"
          ],
          "resource": "pods",
          "responseKind": {
            "group": "",
            "kind": "Pod",
            "version": ""
          },
          "scope": "Namespaced",
          "shortNames": [
            "po"
          ],
          "singularResource": "pod",
          "subresources": [
            {
              "responseKind": {
                "group": "",
                "kind": "PodAttachOptions",
                "version": ""
              },
              "subresource": "attach",
              "verbs": [
                "create",
                "get"
              ]
            },
            {
              "responseKind": {
                "group": "",
                "kind": "Binding",
                "version": ""
              },
              "subresource": "binding",
              "verbs": [
                "create"
              ]
            },
            {
              "responseKind": {
                "group": "",
                "kind": "Pod",
                "version": ""
              },
              "subresource": "ephemeralcontainers",
              "verbs": [
                "get",
                "patch",
                "update"
              ]
            }
          ],
          "verbs": [
            "create",
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "update",
            "watch"
          ]
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&pods).unwrap());
    let own = group(&api);
    let path = "/apis";
    let groups = api
        .request(Method::GET, path)
        .accept(&format!("{AGGREGATED},application/json"))
        .send()
        .await
        .is(200)
        .json();
    let mut mine = named(&groups["items"], &own);
    mine["metadata"].as_object_mut().unwrap().remove("creationTimestamp");
    let text = serde_json::to_string_pretty(&mine).unwrap().replace(&api.id, "ID");
    expect![[r#"
        {
          "metadata": {
            "name": "ID.example.com"
          },
          "versions": [
            {
              "freshness": "Current",
              "resources": [
                {
                  "resource": "widgets",
                  "responseKind": {
                    "group": "ID.example.com",
                    "kind": "Widget",
                    "version": "v1"
                  },
                  "scope": "Namespaced",
                  "shortNames": [
                    "wd"
                  ],
                  "singularResource": "widget",
                  "subresources": [
                    {
                      "responseKind": {
                        "group": "ID.example.com",
                        "kind": "Widget",
                        "version": "v1"
                      },
                      "subresource": "status",
                      "verbs": [
                        "get",
                        "patch",
                        "update"
                      ]
                    },
                    {
                      "responseKind": {
                        "group": "autoscaling",
                        "kind": "Scale",
                        "version": "v1"
                      },
                      "subresource": "scale",
                      "verbs": [
                        "get",
                        "patch",
                        "update"
                      ]
                    }
                  ],
                  "verbs": [
                    "delete",
                    "deletecollection",
                    "get",
                    "list",
                    "patch",
                    "create",
                    "update",
                    "watch"
                  ]
                }
              ],
              "version": "v1"
            }
          ]
        }"#]]
    .assert_eq(&text);
}

#[tokio::test]
async fn an_old_form_of_all_at_once_is_not_acceptable_alone() {
    let api = Api::start();
    let old = AGGREGATED.replace("v=v2", "v=v2beta1");
    api.request(Method::GET, "/apis").accept(&old).send().await.shows(expect!["406 NotAcceptable: only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"]);
    let list =
        api.request(Method::GET, "/apis").accept(&format!("{old},application/json")).send().await.is(200);
    assert_eq!(list.text_at("/kind"), "APIGroupList");
}

#[tokio::test]
async fn all_at_once_has_three_media_types() {
    let api = Api::start();
    let send =
        async |path: &str, accept: &str| api.request(Method::GET, path).accept(accept).send().await.is(200);
    let yaml = AGGREGATED.replace("json", "yaml");
    let protobuf = AGGREGATED.replace("json", "vnd.kubernetes.protobuf");

    let reply = send("/api", &yaml).await;
    assert_eq!(reply.header("content-type"), Some(&*yaml));
    let text = String::from_utf8(reply.body.to_vec()).unwrap();
    assert!(
        text.starts_with("apiVersion: apidiscovery.k8s.io/v2\nitems:\n- metadata: {}\n  versions:\n"),
        "{text}"
    );

    let reply = send("/api", &protobuf).await;
    assert_eq!(reply.header("content-type"), Some(&*protobuf));
    let head = b"k8s\0\n/\n\x16apidiscovery.k8s.io/v2\x12\x15APIGroupDiscoveryList\x12";
    assert!(reply.body.starts_with(head), "{:?}", &reply.body[..80]);
    for part in [
        &b"\n\x06\n\0\x12\0\x1a\0\x12"[..],
        b"\n\x10\n\0\x12\0\x1a\0\"\0*\x002\x008\0B\0\x12",
        b"\n\x02v1\x126\n\x08bindings\x12\r\n\0\x12\0\x1a\x07Binding\x1a\nNamespaced\"\x07binding*\x06create\x12",
    ] {
        assert!(memchr::memmem::find(&reply.body, part).is_some(), "{part:?}");
    }

    // The first media type with the document wins over media types without.
    for (accept, expected) in [
        (format!("application/json,{AGGREGATED};q=0.1"), AGGREGATED),
        (format!("{protobuf},{AGGREGATED},application/json"), &*protobuf),
        (AGGREGATED.replace("application/json", "*/*"), AGGREGATED),
        (format!("{AGGREGATED};stream=watch;profile=nopeer"), AGGREGATED),
    ] {
        assert_eq!(send("/apis", &accept).await.header("content-type"), Some(expected), "{accept}");
    }
    let pretty = send("/apis", &format!("{AGGREGATED};pretty=1")).await;
    assert!(pretty.body.starts_with(b"{\n  \"kind\": \"APIGroupDiscoveryList\""), "{pretty}");
    for (path, parameter) in [("/api", ";sv=v1"), ("/apis", ";stream=x"), ("/apis/", "")] {
        let reply = api.request(Method::GET, path).accept(&format!("{AGGREGATED}{parameter}")).send().await;
        assert_eq!(reply.code, 406, "{path} {parameter}");
    }
}

#[tokio::test]
async fn the_fields_of_a_group_are_in_the_order_of_the_type() {
    let api = Api::start();
    let apps = api.get("/apis/apps").await.is(200);
    let version = r#"{"groupVersion":"apps/v1","version":"v1"}"#;
    let expected = format!(
        r#"{{"kind":"APIGroup","apiVersion":"v1","name":"apps","versions":[{version}],"preferredVersion":{version}}}"#
    );
    assert_eq!(String::from_utf8_lossy(&apps.body), expected + "\n");
    for (path, start) in [
        ("/api", r#"{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":["#),
        ("/apis", r#"{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"#),
    ] {
        let reply = api.get(path).await.is(200);
        assert!(reply.body.starts_with(start.as_bytes()), "{reply}");
    }
    let yaml = api.request(Method::GET, "/apis/apps/v1").accept("application/yaml").send().await.is(200);
    assert!(
        yaml.body.starts_with(b"apiVersion: v1\ngroupVersion: apps/v1\nkind: APIResourceList\n"),
        "{yaml}"
    );
}

#[tokio::test]
async fn an_entity_tag_stands_for_a_document_in_every_media_type() {
    let api = Api::start();
    if api.is_shared() {
        // Other tests change the groups all the time.
        return;
    }
    let first = api.request(Method::GET, "/apis").accept(AGGREGATED).send().await.is(200);
    let tag = first.header("etag").expect("an ETag").to_owned();
    let protobuf = AGGREGATED.replace("json", "vnd.kubernetes.protobuf");
    for (accept, none_match, code) in [
        (&*protobuf, tag.clone(), 304),
        (AGGREGATED, format!("\"x\", {tag}"), 200),
        (AGGREGATED, format!("W/{tag}"), 200),
        (AGGREGATED, "*".to_owned(), 200),
        ("application/json", tag.clone(), 200),
    ] {
        let request = api.request(Method::GET, "/apis").accept(accept).header("if-none-match", &none_match);
        let reply = request.send().await;
        assert_eq!(reply.code, code, "{accept} {none_match}");
        assert_eq!(reply.header("content-type").is_some(), code == 200, "{accept} {none_match}");
    }
}

#[tokio::test]
async fn what_has_not_changed_is_not_sent_again() {
    let api = Api::start();
    if api.is_shared() {
        // Other tests change the groups all the time.
        return;
    }
    let first = api.request(Method::GET, "/apis").accept(AGGREGATED).send().await.is(200);
    let tag = first.header("etag").expect("an ETag").to_owned();
    let again =
        api.request(Method::GET, "/apis").accept(AGGREGATED).header("if-none-match", &tag).send().await;
    assert_eq!(again.code, 304);
    assert!(again.body.is_empty());
    api.crd(widgets(&api)).await;
    let changed = api
        .request(Method::GET, "/apis")
        .accept(AGGREGATED)
        .header("if-none-match", &tag)
        .send()
        .await
        .is(200);
    assert_ne!(changed.header("etag"), Some(tag.as_str()));
}

#[tokio::test]
async fn the_root_lists_paths() {
    let api = Api::start();
    let paths = api.get("/").await.is(200).at("/paths");
    for path in [
        "/api",
        "/api/v1",
        "/apis",
        "/apis/apps",
        "/apis/apps/v1",
        "/flagz",
        "/healthz",
        "/healthz/ping",
        "/livez",
        "/livez/etcd",
        "/readyz",
        "/readyz/log",
        "/openapi/v2",
        "/openapi/v3",
        "/statusz",
        "/version",
    ] {
        assert!(paths.as_array().unwrap().contains(&json!(path)), "{path}");
    }
}

#[tokio::test]
async fn the_aggregated_form_has_a_group_and_a_version() {
    let api = Api::start();
    for parameters in
        ["as=APIGroupDiscoveryList", "as=APIGroupDiscoveryList;v=v2", "g=apidiscovery.k8s.io;v=v2;as=Other"]
    {
        let accept = format!("application/json;{parameters}");
        api.request(Method::GET, "/apis").accept(&accept).send().await.is(406);
        let or_plain = format!("{accept},application/json");
        let plain = api.request(Method::GET, "/apis").accept(&or_plain).send().await.is(200);
        assert_eq!(plain.at("/kind"), "APIGroupList", "{parameters}");
    }
}

#[tokio::test]
async fn an_empty_accept_header_takes_the_documents_of_openid() {
    let api = Api::start();
    for path in ["/.well-known/openid-configuration", "/openid/v1/jwks"] {
        api.request(Method::GET, path).accept("").send().await.is(200);
        api.request(Method::GET, path).accept("text/plain").send().await.is(406);
    }
}
