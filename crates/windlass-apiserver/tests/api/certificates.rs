//! Certificate signing requests: the requester, approval, signing.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use expect_test::expect;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ED25519};
use serde_json::{Value, json};

use crate::harness::{Api, MERGE_PATCH, Reply, lines};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

fn params(name: &str, group: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// A request for a certificate in PEM and base64.
fn encoded(name: &str, group: Option<&str>) -> String {
    let key = KeyPair::generate().unwrap();
    STANDARD.encode(params(name, group).serialize_request(&key).unwrap().pem().unwrap())
}

/// A certificate in PEM and base64.
fn certificate() -> String {
    let key = KeyPair::generate().unwrap();
    STANDARD.encode(params("jane", None).self_signed(&key).unwrap().pem())
}

fn csr(api: &Api, signer: &str) -> Value {
    json!({
        "metadata": {"name": format!("csr-{}", api.id)},
        "spec": {"request": encoded("jane", None), "signerName": signer, "usages": ["client auth"]}
    })
}

async fn create(api: &Api, signer: &str) -> String {
    let path = format!("{REQUESTS}/csr-{}", api.id);
    api.discard(path.clone());
    api.post(REQUESTS, csr(api, signer)).await.is(201);
    path
}

fn condition(kind: &str) -> Value {
    json!({"status": {"conditions": [{"type": kind, "status": "True", "reason": "Test"}]}})
}

/// Returns the reply without the request, which differs between runs, and without warnings about the request.
fn shown(reply: &Reply) -> String {
    let text = reply.to_string();
    let lines = text.lines().filter(|line| !line.contains("stored, but not enforced"));
    let lines: Vec<&str> = lines.filter(|line| !line.contains("\"request\":")).collect();
    lines.join("\n")
}

#[tokio::test]
async fn the_requester_is_the_user() {
    let api = Api::start();
    let jane = api.impersonating(&format!("jane-{}", api.id), &["a", "system:masters"]);
    let mut request = csr(&api, "example.com/signer");
    request["spec"]["username"] = json!("root");
    request["spec"]["groups"] = json!(["system:nodes"]);
    request["spec"]["extra"] = json!({"a": ["b"]});
    request["status"] = condition("Approved")["status"].clone();
    api.discard(format!("{REQUESTS}/csr-{}", api.id));
    let created = jane.post(REQUESTS, request).await.is(201);
    let spec = created.at("/spec");
    assert_eq!(spec["username"], format!("jane-{}", api.id));
    assert_eq!(spec["groups"], json!(["a", "system:masters", "system:authenticated"]));
    assert_eq!((&spec["extra"], &spec["uid"]), (&json!(null), &json!(null)));
    assert_eq!(created.at("/status"), json!({}));
}

#[tokio::test]
async fn a_request_is_validated() {
    let api = Api::start();
    let mut seen = Vec::new();
    let request = encoded("jane", None);
    let usages = json!(["client auth"]);
    for spec in [
        json!({"request": "", "signerName": "", "usages": []}),
        json!({"request": STANDARD.encode("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), "signerName": "example.com/a", "usages": usages}),
        json!({"request": request, "signerName": "a/b", "usages": ["client auth", "nonsense", "client auth"]}),
        json!({"request": request, "signerName": "example.com", "usages": usages}),
        json!({"request": request, "signerName": "example.com/a/b", "usages": usages}),
        json!({"request": request, "signerName": "Example.com/B_c", "usages": usages}),
        json!({"request": request, "signerName": "kubernetes.io/legacy-unknown", "usages": usages}),
        json!({"request": request, "signerName": "example.com/a", "usages": usages, "expirationSeconds": 599}),
        json!({"request": encoded("jane", Some("system:masters")), "signerName": "kubernetes.io/kube-apiserver-client", "usages": usages}),
    ] {
        let name = format!("csr-{}", api.id);
        let reply = api.post(REQUESTS, json!({"metadata": {"name": name}, "spec": spec})).await;
        seen.push(shown(&reply).replace(&request, "REQUEST"));
    }
    expect![[r#"
        422 Invalid: CertificateSigningRequest.certificates.k8s.io "csr-ID" is invalid: [as below]
        group="certificates.k8s.io" kind="CertificateSigningRequest" name="csr-ID"
        - FieldValueInvalid spec.request: Invalid value: "": PEM block type must be CERTIFICATE REQUEST
        - FieldValueRequired spec.signerName: Required value
        - FieldValueRequired spec.usages: Required value
        422 Invalid: CertificateSigningRequest.certificates.k8s.io "csr-ID" is invalid: spec.request: Invalid value: "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCi0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K": PEM block type must be CERTIFICATE REQUEST
        group="certificates.k8s.io" kind="CertificateSigningRequest" name="csr-ID"
        - FieldValueInvalid spec.request: Invalid value: "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCi0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K": PEM block type must be CERTIFICATE REQUEST
        422 Invalid: CertificateSigningRequest.certificates.k8s.io "csr-ID" is invalid: [as below]
        group="certificates.k8s.io" kind="CertificateSigningRequest" name="csr-ID"
        - FieldValueDuplicate spec.usages[2]: Duplicate value: "client auth"
        - FieldValueInvalid spec.signerName: Invalid value: "a": should be a domain with at least two segments separated by dots
        - FieldValueNotSupported spec.usages[1]: Unsupported value: "nonsense": supported values: "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment", "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel", "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime", "server auth", "signing", "timestamping"
        422 Invalid: CertificateSigningRequest.certificates.k8s.io "csr-ID" is invalid: spec.signerName: Invalid value: "example.com": must be a fully qualified domain and path of the form 'example.com/signer-name'
        group="certificates.k8s.io" kind="CertificateSigningRequest" name="csr-ID"
        - FieldValueInvalid spec.signerName: Invalid value: "example.com": must be a fully qualified domain and path of the form 'example.com/signer-name'
        422 Invalid: CertificateSigningRequest.certificates.k8s.io "csr-ID" is invalid: spec.signerName: Invalid value: "example.com/a/b": must be a fully qualified domain and path of the form 'example.com/signer-name'
        group="certificates.k8s.io" kind="CertificateSigningRequest" name="csr-ID"
        - FieldValueInvalid spec.signerName: Invalid value: "example.com/a/b": must be a fully qualified domain and path of the form 'example.com/signer-name'
        422 Invalid: CertificateSigningRequest.certificates.k8s.io "csr-ID" is invalid: [as below]
        group="certificates.k8s.io" kind="CertificateSigningRequest" name="csr-ID"
        - FieldValueInvalid spec.signerName: Invalid value: "B_c": validating label "B_c": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid spec.signerName: Invalid value: "Example.com": validating label "Example": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
        422 Invalid: CertificateSigningRequest.certificates.k8s.io "csr-ID" is invalid: spec.signerName: Invalid value: "kubernetes.io/legacy-unknown": the legacy signerName is not allowed via this API version
        group="certificates.k8s.io" kind="CertificateSigningRequest" name="csr-ID"
        - FieldValueInvalid spec.signerName: Invalid value: "kubernetes.io/legacy-unknown": the legacy signerName is not allowed via this API version
        422 Invalid: CertificateSigningRequest.certificates.k8s.io "csr-ID" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)
        group="certificates.k8s.io" kind="CertificateSigningRequest" name="csr-ID"
        - FieldValueInvalid spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)
        403 Forbidden: certificatesigningrequests.certificates.k8s.io "csr-ID" is forbidden: use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed
        group="certificates.k8s.io" kind="certificatesigningrequests" name="csr-ID"
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn the_signature_is_checked() {
    let api = Api::start();
    let send = async |pem: String| {
        let mut request = csr(&api, "example.com/a");
        request["spec"]["request"] = json!(STANDARD.encode(pem));
        api.post(&format!("{REQUESTS}?dryRun=All"), request).await
    };
    let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let request = params("jane", None).serialize_request(&key).unwrap();
    send(request.pem().unwrap()).await.is(201);
    let mut der = request.der().to_vec();
    let at = der.len() - 1;
    der[at] ^= 1;
    let changed = format!(
        "-----BEGIN CERTIFICATE REQUEST-----\n{}\n-----END CERTIFICATE REQUEST-----\n",
        STANDARD.encode(der)
    );
    send(changed).await.is(422);
}

#[tokio::test]
async fn an_approval_is_final() {
    let api = Api::start();
    let path = create(&api, "example.com/signer").await;
    let approval = format!("{path}/approval");
    api.get(&approval).await.is(200);
    let both = json!({"status": {"conditions": [{"type": "Approved", "status": "True"}, {"type": "Denied", "status": "True"}]}});
    let mut seen = vec![
        shown(&api.patch(&approval, MERGE_PATCH, both).await),
        shown(
            &api.patch(
                &approval,
                MERGE_PATCH,
                json!({"status": {"conditions": [{"type": "Approved", "status": "False"}]}}),
            )
            .await,
        ),
        shown(&api.patch(&format!("{path}/status"), MERGE_PATCH, condition("Approved")).await),
    ];
    let approved = api.patch(&approval, MERGE_PATCH, condition("Approved")).await.is(200);
    assert!(!approved.text_at("/status/conditions/0/lastUpdateTime").is_empty());
    assert!(!approved.text_at("/status/conditions/0/lastTransitionTime").is_empty());
    seen.push(shown(&api.patch(&approval, MERGE_PATCH, json!({"status": {"conditions": []}})).await));
    seen.push(shown(&api.patch(&approval, MERGE_PATCH, condition("Denied")).await));
    expect![[r#"
        422 Invalid: CertificateSigningRequest.certificates.k8s.io "csr-ID" is invalid: status.conditions: Invalid value: "{conditions[{\"type\": \"Approved\"}], conditions[{\"type\": \"Denied\"}]}": must specify at most one of: `conditions[{"type": "Approved"}]`, `conditions[{"type": "Denied"}]`
        group="certificates.k8s.io" kind="CertificateSigningRequest" name="csr-ID"
        - FieldValueInvalid status.conditions: Invalid value: "{conditions[{\"type\": \"Approved\"}], conditions[{\"type\": \"Denied\"}]}": must specify at most one of: `conditions[{"type": "Approved"}]`, `conditions[{"type": "Denied"}]`
        422 Invalid: CertificateSigningRequest.certificates.k8s.io "csr-ID" is invalid: status.conditions[0].status: Unsupported value: "False": supported values: "True"
        group="certificates.k8s.io" kind="CertificateSigningRequest" name="csr-ID"
        - FieldValueNotSupported status.conditions[0].status: Unsupported value: "False": supported values: "True"
        422 Invalid: CertificateSigningRequest.certificates.k8s.io "csr-ID" is invalid: status.conditions: Forbidden: updates may not add a condition of type "Approved"
        group="certificates.k8s.io" kind="CertificateSigningRequest" name="csr-ID"
        - FieldValueForbidden status.conditions: Forbidden: updates may not add a condition of type "Approved"
        422 Invalid: CertificateSigningRequest.certificates.k8s.io "csr-ID" is invalid: status.conditions: Forbidden: updates may not remove a condition of type "Approved"
        group="certificates.k8s.io" kind="CertificateSigningRequest" name="csr-ID"
        - FieldValueForbidden status.conditions: Forbidden: updates may not remove a condition of type "Approved"
        422 Invalid: CertificateSigningRequest.certificates.k8s.io "csr-ID" is invalid: status.conditions: Forbidden: updates may not remove a condition of type "Approved"
        group="certificates.k8s.io" kind="CertificateSigningRequest" name="csr-ID"
        - FieldValueForbidden status.conditions: Forbidden: updates may not remove a condition of type "Approved"
    "#]].assert_eq(&lines(&seen));
    // An approval changes only conditions, and the main resource changes no condition.
    let more = json!({"spec": {"signerName": "other.com/a"}, "status": {"certificate": certificate()}});
    let kept = api.patch(&approval, MERGE_PATCH, more).await.is(200);
    assert_eq!(
        (kept.text_at("/spec/signerName"), kept.at("/status/certificate")),
        ("example.com/signer".to_owned(), json!(null))
    );
    let kept = api.patch(&path, MERGE_PATCH, json!({"status": {"conditions": []}})).await.is(200);
    assert_eq!(kept.text_at("/status/conditions/0/type"), "Approved");
}

#[tokio::test]
async fn a_certificate_is_set_once() {
    let api = Api::start();
    let status = format!("{}/status", create(&api, "example.com/signer").await);
    let with = |certificate: &str| json!({"status": {"certificate": certificate}});
    let mut seen = Vec::new();
    for wrong in ["junk", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"] {
        seen.push(shown(&api.patch(&status, MERGE_PATCH, with(&STANDARD.encode(wrong))).await));
    }
    let issued = certificate();
    let signed = api.patch(&status, MERGE_PATCH, with(&issued)).await.is(200);
    assert_eq!(signed.text_at("/status/certificate"), issued);
    seen.push(shown(&api.patch(&status, MERGE_PATCH, with(&certificate())).await));
    expect![[r#"
        422 Invalid: CertificateSigningRequest.certificates.k8s.io "csr-ID" is invalid: status.certificate: Invalid value: "<certificate data>": must contain at least one CERTIFICATE PEM block
        group="certificates.k8s.io" kind="CertificateSigningRequest" name="csr-ID"
        - FieldValueInvalid status.certificate: Invalid value: "<certificate data>": must contain at least one CERTIFICATE PEM block
        422 Invalid: CertificateSigningRequest.certificates.k8s.io "csr-ID" is invalid: status.certificate: Invalid value: "<certificate data>": only CERTIFICATE PEM blocks are allowed, found "PUBLIC KEY"
        group="certificates.k8s.io" kind="CertificateSigningRequest" name="csr-ID"
        - FieldValueInvalid status.certificate: Invalid value: "<certificate data>": only CERTIFICATE PEM blocks are allowed, found "PUBLIC KEY"
        422 Invalid: CertificateSigningRequest.certificates.k8s.io "csr-ID" is invalid: status.certificate: Forbidden: updates may not modify existing certificate content
        group="certificates.k8s.io" kind="CertificateSigningRequest" name="csr-ID"
        - FieldValueForbidden status.certificate: Forbidden: updates may not modify existing certificate content
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn signers_are_protected() {
    let api = Api::start();
    let path = create(&api, "example.com/signer").await;
    let (name, user) = (format!("csr-{}", api.id), format!("jane-{}", api.id));
    let jane = api.impersonating(&user, &[]);
    let group = "certificates.k8s.io";
    let rules = |more: Option<Value>| {
        let all = [
            "certificatesigningrequests",
            "certificatesigningrequests/approval",
            "certificatesigningrequests/status",
        ];
        let own = json!({"verbs": ["get", "patch"], "apiGroups": [group], "resources": all});
        let rules: Vec<Value> = [Some(own), more].into_iter().flatten().collect();
        json!({"metadata": {"name": name}, "rules": rules})
    };
    api.post(&format!("{RBAC}/clusterroles"), rules(None)).await.is(201);
    api.discard(format!("{RBAC}/clusterroles/{name}"));
    let subject = json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name});
    let binding = json!({"metadata": {"name": name}, "subjects": [subject], "roleRef": role});
    api.post(&format!("{RBAC}/clusterrolebindings"), binding).await.is(201);
    api.discard(format!("{RBAC}/clusterrolebindings/{name}"));
    jane.eventually(&path, |reply| reply.code == 200).await;
    let (approval, status) = (format!("{path}/approval"), format!("{path}/status"));
    jane.patch(&approval, MERGE_PATCH, condition("Approved")).await.shows(expect![[r#"
        403 Forbidden: certificatesigningrequests.certificates.k8s.io "csr-ID" is forbidden: user not permitted to approve requests with signerName "example.com/signer"
        group="certificates.k8s.io" kind="certificatesigningrequests" name="csr-ID""#]]);
    jane.patch(&status, MERGE_PATCH, condition("Failed")).await.shows(expect![[r#"
        403 Forbidden: certificatesigningrequests.certificates.k8s.io "csr-ID" is forbidden: user not permitted to sign requests with signerName "example.com/signer"
        group="certificates.k8s.io" kind="certificatesigningrequests" name="csr-ID""#]]);
    jane.patch(&status, MERGE_PATCH, json!({"metadata": {"labels": {"a": "b"}}})).await.is(200);
    let signers = json!({"verbs": ["approve"], "apiGroups": [group], "resources": ["signers"], "resourceNames": ["example.com/*"]});
    api.patch(&format!("{RBAC}/clusterroles/{name}"), MERGE_PATCH, rules(Some(signers))).await.is(200);
    let start = std::time::Instant::now();
    while jane.patch(&approval, MERGE_PATCH, condition("Approved")).await.code != 200 {
        assert!(api.is_shared() && start.elapsed() < crate::harness::deadline());
    }
    jane.patch(&status, MERGE_PATCH, json!({"status": {"certificate": certificate()}})).await.is(403);
}
