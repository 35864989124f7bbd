//! PodCertificateRequests.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use expect_test::expect;
use jiff::{SignedDuration, Timestamp};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PublicKeyData, SigningKey};
use serde_json::{Value, json};

use super::{Objects, named};
use crate::harness::{Api, MERGE_PATCH};

const POD_UID: &str = "6d1b1c1e-0000-4000-8000-000000000000";

/// A request in PKCS#10 for a key, in base64.
fn stub(key: &KeyPair) -> String {
    STANDARD.encode(CertificateParams::default().serialize_request(key).unwrap().der())
}

fn spec(fields: Value) -> Value {
    let mut spec = json!({
        "signerName": "example.com/signer", "podName": "p", "podUID": POD_UID,
        "serviceAccountName": "default", "serviceAccountUID": "u", "nodeName": "n", "nodeUID": "u"
    });
    let all = spec.as_object_mut().unwrap();
    for (name, value) in fields.as_object().unwrap() {
        all.insert(name.clone(), value.clone());
    }
    json!({"spec": spec})
}

async fn requests(api: &Api) -> Objects<'_> {
    let ns = api.namespace().await;
    Objects::new(api, format!("/apis/certificates.k8s.io/v1/namespaces/{ns}/podcertificaterequests"))
}

#[tokio::test]
async fn a_request_names_the_pod_and_proves_the_key() {
    let api = Api::start();
    let mut seen = requests(&api).await;
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let request = stub(&key);
    seen.try_create("no spec", named("a", json!({}))).await;
    let odd = json!({
        "signerName": "a", "podName": "A", "podUID": "", "serviceAccountName": "A", "serviceAccountUID": "x".repeat(129),
        "nodeName": "", "nodeUID": "", "stubPKCS10Request": request
    });
    seen.try_create("odd", named("a", spec(odd))).await;
    seen.try_create("no key", named("a", spec(json!({})))).await;
    let both = json!({"stubPKCS10Request": request, "pkixPublicKey": "YWJj", "proofOfPossession": "YWJj"});
    seen.try_create("two keys", named("a", spec(both))).await;
    seen.try_create("broken request", named("a", spec(json!({"stubPKCS10Request": "YWJj"})))).await;
    let mut bytes = STANDARD.decode(&request).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let forged = json!({"stubPKCS10Request": STANDARD.encode(&bytes)});
    seen.try_create("bad signature", named("a", spec(forged))).await;
    for (what, signer, seconds) in [
        ("short", "example.com/signer", 3599),
        ("long", "example.com/signer", 7_862_401),
        ("long for a signer of Kubernetes", "kubernetes.io/kube-apiserver-client-pod", 86_401),
    ] {
        let fields =
            json!({"stubPKCS10Request": request, "signerName": signer, "maxExpirationSeconds": seconds});
        seen.try_create(what, named("a", spec(fields))).await;
    }
    let annotations = json!({"example.com/a": "b", "a": "b", "x y/z": "c"});
    let fields = json!({"stubPKCS10Request": request, "unverifiedUserAnnotations": annotations});
    seen.try_create("annotations", named("a", spec(fields))).await;
    let ed = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let public = STANDARD.encode(ed.subject_public_key_info());
    let unproved = json!({"pkixPublicKey": public, "proofOfPossession": "YWJj"});
    seen.try_create("no proof", named("a", spec(unproved))).await;
    let broken = json!({"pkixPublicKey": "YWJj", "proofOfPossession": "YWJj"});
    seen.try_create("no public key", named("a", spec(broken))).await;
    let proof = STANDARD.encode(ed.sign(POD_UID.as_bytes()).unwrap());
    let proved = json!({"pkixPublicKey": public, "proofOfPossession": proof});
    seen.try_create("proof", named("a", spec(proved))).await;
    seen.seen = seen.seen.replace(&request, "REQUEST").replace(&public, "KEY").replace(&proof, "PROOF");
    seen.are(expect![[r#"
        no spec: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: [as below]
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid spec.nodeName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid spec.nodeUID: Invalid value: "": must not be empty
        - FieldValueInvalid spec.podName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid spec.podUID: Invalid value: "": must not be empty
        - FieldValueInvalid spec.serviceAccountName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid spec.serviceAccountUID: Invalid value: "": must not be empty
        - FieldValueInvalid spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set
        - FieldValueRequired spec.signerName: Required value
        odd: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: [as below]
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid spec.nodeName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid spec.nodeUID: Invalid value: "": must not be empty
        - FieldValueInvalid spec.podName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid spec.podUID: Invalid value: "": must not be empty
        - FieldValueInvalid spec.serviceAccountName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid spec.signerName: Invalid value: "a": must be a fully qualified domain and path of the form 'example.com/signer-name'
        - FieldValueTooLong spec.serviceAccountUID: Too long: may not be more than 128 bytes
        no key: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set
        two keys: 201 {"spec":{"maxExpirationSeconds":86400,"nodeName":"n","nodeUID":"u","podName":"p","podUID":"UID","serviceAccountName":"default","serviceAccountUID":"u","signerName":"example.com/signer","stubPKCS10Request":"REQUEST"},"status":{}}
        broken request: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: spec.stubPKCS10Request: Invalid value: must be a valid PKCS#10 CSR
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid spec.stubPKCS10Request: Invalid value: must be a valid PKCS#10 CSR
        bad signature: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: spec.stubPKCS10Request: Invalid value: invalid signature
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid spec.stubPKCS10Request: Invalid value: invalid signature
        short: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: spec.maxExpirationSeconds: Invalid value: 3599: must be in the range [3600, 7862400]
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid spec.maxExpirationSeconds: Invalid value: 3599: must be in the range [3600, 7862400]
        long: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: spec.maxExpirationSeconds: Invalid value: 7862401: must be in the range [3600, 7862400]
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid spec.maxExpirationSeconds: Invalid value: 7862401: must be in the range [3600, 7862400]
        long for a signer of Kubernetes: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: spec.maxExpirationSeconds: Invalid value: 86401: must be in the range [3600, 86400]
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid spec.maxExpirationSeconds: Invalid value: 86401: must be in the range [3600, 86400]
        annotations: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: [as below]
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid spec.unverifiedUserAnnotations: Invalid value: "a": must be a domain-prefixed key (such as "acme.io/foo")
        - FieldValueInvalid spec.unverifiedUserAnnotations: Invalid value: "x y/z": prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        no proof: 422
        Warning: 299 - "unknown field \"spec.pkixPublicKey\""
        Warning: 299 - "unknown field \"spec.proofOfPossession\"" Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set
        no public key: 422
        Warning: 299 - "unknown field \"spec.pkixPublicKey\""
        Warning: 299 - "unknown field \"spec.proofOfPossession\"" Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set
        proof: 422
        Warning: 299 - "unknown field \"spec.pkixPublicKey\""
        Warning: 299 - "unknown field \"spec.proofOfPossession\"" Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set
    "#]]);
}

fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status, "reason": "Test", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

#[tokio::test]
async fn the_spec_does_not_change_and_an_end_is_final() {
    let api = Api::start();
    let mut seen = requests(&api).await;
    let request = stub(&KeyPair::generate_for(&PKCS_ED25519).unwrap());
    let mut object = named("a", spec(json!({"stubPKCS10Request": request})));
    object["status"] = json!({"conditions": [condition("Denied", "True")]});
    seen.create("good", object).await;
    seen.row("a").await;
    seen.change("other pod", "a", json!({"spec": {"podName": "q"}})).await;
    seen.change("spec by status", "a/status", json!({"spec": {"podName": "q"}})).await;
    let conditions = |list: Value| json!({"status": {"conditions": list}});
    seen.change("unknown end", "a/status", conditions(json!([condition("Other", "True")]))).await;
    seen.change("no end", "a/status", conditions(json!([condition("Denied", "False")]))).await;
    let two = json!([condition("Denied", "True"), condition("Failed", "True")]);
    seen.change("two ends", "a/status", conditions(two)).await;
    let mut denied = conditions(json!([condition("Denied", "True")]));
    denied["status"]["certificateChain"] = json!("x");
    seen.change("denied with a certificate", "a/status", denied).await;
    seen.change("denied", "a/status", conditions(json!([condition("Denied", "True")]))).await;
    seen.row("a").await;
    seen.change("denied again", "a/status", conditions(json!([condition("Failed", "True")]))).await;
    seen.seen = seen.seen.replace(&request, "REQUEST");
    seen.are(expect![[r#"
        good: 201 {"spec":{"maxExpirationSeconds":86400,"nodeName":"n","nodeUID":"u","podName":"p","podUID":"UID","serviceAccountName":"default","serviceAccountUID":"u","signerName":"example.com/signer","stubPKCS10Request":"REQUEST"},"status":{}}
        row: Name="a" PodName="p" ServiceAccountName="default" NodeName="n" SignerName="example.com/signer" State="Pending" UnverifiedUserAnnotations="<none>"
        other pod: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: spec: Invalid value: (the object): field is immutable
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid spec: Invalid value: (the object): field is immutable
        spec by status: 200 {"spec":{"maxExpirationSeconds":86400,"nodeName":"n","nodeUID":"u","podName":"p","podUID":"UID","serviceAccountName":"default","serviceAccountUID":"u","signerName":"example.com/signer","stubPKCS10Request":"REQUEST"},"status":{}}
        unknown end: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: status.conditions.[0].type: Unsupported value: "Other": supported values: "Issued", "Denied", "Failed"
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueNotSupported status.conditions.[0].type: Unsupported value: "Other": supported values: "Issued", "Denied", "Failed"
        no end: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: status.conditions.[0].status: Unsupported value: "False": supported values: "True"
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueNotSupported status.conditions.[0].status: Unsupported value: "False": supported values: "True"
        two ends: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: status.conditions.[1].type: Invalid value: "Failed": There may be at most one condition with type "Issued", "Denied", or "Failed"
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid status.conditions.[1].type: Invalid value: "Failed": There may be at most one condition with type "Issued", "Denied", or "Failed"
        denied with a certificate: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: status: Invalid value: non-condition status fields must be empty when denying or failing the PodCertificateRequest
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid status: Invalid value: non-condition status fields must be empty when denying or failing the PodCertificateRequest
        denied: 200 {"spec":{"maxExpirationSeconds":86400,"nodeName":"n","nodeUID":"u","podName":"p","podUID":"UID","serviceAccountName":"default","serviceAccountUID":"u","signerName":"example.com/signer","stubPKCS10Request":"REQUEST"},"status":{"conditions":[{"lastTransitionTime":"TIME","message":"m","reason":"Test","status":"True","type":"Denied"}]}}
        row: Name="a" PodName="p" ServiceAccountName="default" NodeName="n" SignerName="example.com/signer" State="Denied" UnverifiedUserAnnotations="<none>"
        denied again: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: status: Invalid value: immutable after PodCertificateRequest is issued, denied, or failed
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid status: Invalid value: immutable after PodCertificateRequest is issued, denied, or failed
    "#]]);
}

#[tokio::test]
async fn an_issued_certificate_fits_the_request() {
    let api = Api::start();
    let mut seen = requests(&api).await;
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let request = stub(&key);
    seen.create("good", named("a", spec(json!({"stubPKCS10Request": request})))).await;
    let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
    let at = |minutes: i64| (now + SignedDuration::from_mins(minutes)).to_string();
    let certificate = |key: &KeyPair, from: i64, to: i64| {
        let mut params = CertificateParams::default();
        let date = |minutes: i64| rcgen::date_time_ymd(1970, 1, 1) + time_of(now, minutes);
        params.not_before = date(from);
        params.not_after = date(to);
        params.self_signed(key).unwrap().pem()
    };
    let issued = |chain: &str, from: i64, to: i64, refresh: i64| {
        let conditions = json!([condition("Issued", "True")]);
        json!({"status": {
            "conditions": conditions, "certificateChain": chain,
            "notBefore": at(from), "notAfter": at(to), "beginRefreshAt": at(refresh)
        }})
    };
    let other = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let good = certificate(&key, 0, 120);
    let nothing = json!({"status": {"conditions": [condition("Issued", "True")]}});
    seen.change("no certificate", "a/status", nothing).await;
    seen.change("no PEM", "a/status", issued("x", 0, 120, 60)).await;
    seen.change("a key", "a/status", issued(&key.serialize_pem(), 0, 120, 60)).await;
    let text = "-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n";
    seen.change("no X.509", "a/status", issued(text, 0, 120, 60)).await;
    seen.change("another key", "a/status", issued(&certificate(&other, 0, 120), 0, 120, 60)).await;
    let timeless = json!({"status": {"conditions": [condition("Issued", "True")], "certificateChain": good}});
    seen.change("no times", "a/status", timeless).await;
    seen.change("another start", "a/status", issued(&good, 1, 120, 60)).await;
    seen.change("another end", "a/status", issued(&good, 0, 121, 60)).await;
    seen.change("an old certificate", "a/status", issued(&certificate(&key, -10, 120), -10, 120, 60)).await;
    seen.change("a short life", "a/status", issued(&certificate(&key, 0, 59), 0, 59, 30)).await;
    seen.change("a long life", "a/status", issued(&certificate(&key, 0, 1441), 0, 1441, 60)).await;
    seen.change("an early refresh", "a/status", issued(&good, 0, 120, 9)).await;
    seen.change("a late refresh", "a/status", issued(&good, 0, 120, 111)).await;
    seen.change("a broken chain", "a/status", issued(&format!("{good}{text}"), 0, 120, 60)).await;
    seen.change("issued", "a/status", issued(&good, 0, 120, 60)).await;
    let text: Vec<&str> = seen.seen.split("-----BEGIN").collect();
    seen.seen = text.join("\n-----BEGIN").replace(&request, "REQUEST");
    let certificates =
        regex::Regex::new(r#"-----BEGIN ([A-Z ]*)-----.*?-----END [A-Z ]*-----(\\+n)?"#).unwrap();
    seen.seen = certificates.replace_all(&seen.seen, "($1)").into_owned();
    seen.are(expect![[r#"
        good: 201 {"spec":{"maxExpirationSeconds":86400,"nodeName":"n","nodeUID":"u","podName":"p","podUID":"UID","serviceAccountName":"default","serviceAccountUID":"u","signerName":"example.com/signer","stubPKCS10Request":"REQUEST"},"status":{}}
        no certificate: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: status.certificateChain: Invalid value: "": issued certificate chain must contain at least one certificate
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid status.certificateChain: Invalid value: "": issued certificate chain must contain at least one certificate
        no PEM: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: status.certificateChain: Invalid value: "x": issued certificate chain must contain at least one certificate
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid status.certificateChain: Invalid value: "x": issued certificate chain must contain at least one certificate
        a key: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: status.certificateChain: Invalid value: "
        (PRIVATE KEY)": issued certificate chain must consist entirely of CERTIFICATE PEM blocks
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid status.certificateChain: Invalid value: "
        (PRIVATE KEY)": issued certificate chain must consist entirely of CERTIFICATE PEM blocks
        no X.509: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: status.certificateChain: Invalid value: "
        (CERTIFICATE)": leaf certificate does not parse as valid X.509
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid status.certificateChain: Invalid value: "
        (CERTIFICATE)": leaf certificate does not parse as valid X.509
        another key: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: status.certificateChain: Invalid value: "
        (CERTIFICATE)": leaf certificate was not issued to the requested public key
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid status.certificateChain: Invalid value: "
        (CERTIFICATE)": leaf certificate was not issued to the requested public key
        no times: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: [as below]
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueRequired status.beginRefreshAt: Required value: must be present and in the range [notbefore+10min, notafter-10min]
        - FieldValueRequired status.notAfter: Required value: must be present and consistent with the issued certificate
        - FieldValueRequired status.notBefore: Required value: must be present and consistent with the issued certificate
        another start: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: status.notBefore: Invalid value: "TIME": must be set to the NotBefore time encoded in the leaf certificate
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid status.notBefore: Invalid value: "TIME": must be set to the NotBefore time encoded in the leaf certificate
        another end: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: status.notAfter: Invalid value: "TIME": must be set to the NotAfter time encoded in the leaf certificate
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid status.notAfter: Invalid value: "TIME": must be set to the NotAfter time encoded in the leaf certificate
        an old certificate: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: status.notBefore: Invalid value: "TIME": must be set to within 5 minutes of kube-apiserver's current time
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid status.notBefore: Invalid value: "TIME": must be set to within 5 minutes of kube-apiserver's current time
        a short life: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: status.certificateChain: Invalid value: 3540000000000: leaf certificate lifetime must be >= 1 hour
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid status.certificateChain: Invalid value: 3540000000000: leaf certificate lifetime must be >= 1 hour
        a long life: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: status.certificateChain: Invalid value: 86460000000000: leaf certificate lifetime must be <= spec.maxExpirationSeconds (86400)
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid status.certificateChain: Invalid value: 86460000000000: leaf certificate lifetime must be <= spec.maxExpirationSeconds (86400)
        an early refresh: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: status.beginRefreshAt: Invalid value: "TIME": must be at least 10 minutes after status.notBefore
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid status.beginRefreshAt: Invalid value: "TIME": must be at least 10 minutes after status.notBefore
        a late refresh: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: status.beginRefreshAt: Invalid value: "TIME": must be at least 10 minutes before status.notAfter
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid status.beginRefreshAt: Invalid value: "TIME": must be at least 10 minutes before status.notAfter
        a broken chain: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: status.certificateChain: Invalid value: "
        (CERTIFICATE)
        (CERTIFICATE)": intermediate certificate does not parse as valid X.509
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueInvalid status.certificateChain: Invalid value: "
        (CERTIFICATE)
        (CERTIFICATE)": intermediate certificate does not parse as valid X.509
        issued: 200 {"spec":{"maxExpirationSeconds":86400,"nodeName":"n","nodeUID":"u","podName":"p","podUID":"UID","serviceAccountName":"default","serviceAccountUID":"u","signerName":"example.com/signer","stubPKCS10Request":"REQUEST"},"status":{"beginRefreshAt":"TIME","certificateChain":"
        (CERTIFICATE)","conditions":[{"lastTransitionTime":"TIME","message":"m","reason":"Test","status":"True","type":"Issued"}],"notAfter":"TIME","notBefore":"TIME"}}
    "#]]);
}

/// Returns the time since the epoch of a time some minutes after another.
fn time_of(now: Timestamp, minutes: i64) -> std::time::Duration {
    let seconds = now.as_second() + minutes * 60;
    std::time::Duration::from_secs(u64::try_from(seconds).unwrap())
}

#[tokio::test]
async fn only_a_signer_writes_the_status() {
    let api = Api::start();
    let mut seen = requests(&api).await;
    let request = stub(&KeyPair::generate_for(&PKCS_ED25519).unwrap());
    seen.create("good", named("a", spec(json!({"stubPKCS10Request": request})))).await;
    let jane_name = format!("jane-{}", api.id);
    let role = format!("requests-{}", api.id);
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let group = "certificates.k8s.io";
    let rules = json!([{"apiGroups": [group], "resources": ["podcertificaterequests", "podcertificaterequests/status"], "verbs": ["*"]}]);
    api.discard(format!("{rbac}/clusterroles/{role}"));
    api.post(&format!("{rbac}/clusterroles"), named(&role, json!({"rules": rules}))).await.is(201);
    let binding = json!({
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": jane_name}]
    });
    api.discard(format!("{rbac}/clusterrolebindings/{role}"));
    api.post(&format!("{rbac}/clusterrolebindings"), named(&role, binding)).await.is(201);
    let jane = api.impersonating(&jane_name, &[]);
    jane.eventually(&seen.collection, |reply| reply.code == 200).await;
    let denied = json!({"status": {"conditions": [condition("Denied", "True")]}});
    let path = format!("{}/a/status", seen.collection);
    let reply = jane.patch(&path, MERGE_PATCH, denied.clone()).await;
    seen.note("no signer", &reply);
    let reply = jane.patch(&path, MERGE_PATCH, json!({"metadata": {"labels": {"a": "b"}}})).await;
    seen.note("no change of the status", &reply);
    let sign = json!({"apiGroups": [group], "resources": ["signers"], "verbs": ["sign"], "resourceNames": ["example.com/*"]});
    let more = json!({"rules": [rules[0], sign]});
    api.patch(&format!("{rbac}/clusterroles/{role}"), MERGE_PATCH, more).await.is(200);
    let start = std::time::Instant::now();
    while jane.patch(&path, MERGE_PATCH, denied.clone()).await.code != 200 {
        assert!(start.elapsed() < crate::harness::deadline(), "the right has no effect");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    seen.seen = seen.seen.replace(&request, "REQUEST");
    seen.are(expect![[r#"
        good: 201 {"spec":{"maxExpirationSeconds":86400,"nodeName":"n","nodeUID":"u","podName":"p","podUID":"UID","serviceAccountName":"default","serviceAccountUID":"u","signerName":"example.com/signer","stubPKCS10Request":"REQUEST"},"status":{}}
        no signer: 422 Invalid: PodCertificateRequest.certificates.k8s.io "a" is invalid: spec.signerName: Forbidden: User "jane-ID" is not permitted to "sign" for signer "example.com/signer"
        group="certificates.k8s.io" kind="PodCertificateRequest" name="a"
        - FieldValueForbidden spec.signerName: Forbidden: User "jane-ID" is not permitted to "sign" for signer "example.com/signer"
        no change of the status: 200 {"spec":{"maxExpirationSeconds":86400,"nodeName":"n","nodeUID":"u","podName":"p","podUID":"UID","serviceAccountName":"default","serviceAccountUID":"u","signerName":"example.com/signer","stubPKCS10Request":"REQUEST"},"status":{}}
    "#]]);
}
