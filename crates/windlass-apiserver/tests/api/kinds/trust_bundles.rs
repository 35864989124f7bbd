//! ClusterTrustBundles.

use expect_test::expect;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use serde_json::{Value, json};

use super::{Objects, named};
use crate::harness::Api;

const BUNDLES: &str = "/apis/certificates.k8s.io/v1/clustertrustbundles";

/// A certificate in PEM: of an authority, or not.
fn certificate(is_authority: bool) -> String {
    let mut params = CertificateParams::default();
    if is_authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
}

fn bundle(signer: &str, text: &str) -> Value {
    let mut spec = json!({"trustBundle": text});
    if !signer.is_empty() {
        spec["signerName"] = json!(signer);
    }
    json!({"spec": spec})
}

#[tokio::test]
async fn a_bundle_has_certificates_of_authorities_only() {
    let api = Api::start();
    let mut seen = Objects::new(&api, BUNDLES);
    let (good, other) = (certificate(true), certificate(true));
    let key = KeyPair::generate().unwrap().serialize_pem();
    let with_header = good.replacen("-----\n", "-----\nA: b\n\n", 1);
    let broken = "-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n";
    for (what, text) in [
        ("empty", String::new()),
        ("text", "hello".to_owned()),
        ("no authority", certificate(false)),
        ("a key", format!("{good}{key}")),
        ("a header", with_header),
        ("no certificate", broken.to_owned()),
        ("twice", format!("{good}{other}{good}")),
        ("large", "a".repeat((1 << 20) + 1)),
    ] {
        seen.try_create(what, named("a", bundle("", &text))).await;
    }
    seen.seen = seen.seen.replace(&good, "PEM").replace(&other, "PEM");
    seen.are(expect![[r#"
        empty: 422 Invalid: ClusterTrustBundle.certificates.k8s.io "a" is invalid: spec.trustBundle: Invalid value: "<value omitted>": at least one trust anchor must be provided
        group="certificates.k8s.io" kind="ClusterTrustBundle" name="a"
        - FieldValueInvalid spec.trustBundle: Invalid value: "<value omitted>": at least one trust anchor must be provided
        text: 422 Invalid: ClusterTrustBundle.certificates.k8s.io "a" is invalid: spec.trustBundle: Invalid value: "<value omitted>": at least one trust anchor must be provided
        group="certificates.k8s.io" kind="ClusterTrustBundle" name="a"
        - FieldValueInvalid spec.trustBundle: Invalid value: "<value omitted>": at least one trust anchor must be provided
        no authority: 422 Invalid: ClusterTrustBundle.certificates.k8s.io "a" is invalid: spec.trustBundle: Invalid value: "<value omitted>": entry 0 does not have the CA bit set
        group="certificates.k8s.io" kind="ClusterTrustBundle" name="a"
        - FieldValueInvalid spec.trustBundle: Invalid value: "<value omitted>": entry 0 does not have the CA bit set
        a key: 422 Invalid: ClusterTrustBundle.certificates.k8s.io "a" is invalid: spec.trustBundle: Invalid value: "<value omitted>": entry 1 has bad block type: PRIVATE KEY
        group="certificates.k8s.io" kind="ClusterTrustBundle" name="a"
        - FieldValueInvalid spec.trustBundle: Invalid value: "<value omitted>": entry 1 has bad block type: PRIVATE KEY
        a header: 422 Invalid: ClusterTrustBundle.certificates.k8s.io "a" is invalid: spec.trustBundle: Invalid value: "<value omitted>": entry 0 has PEM block headers
        group="certificates.k8s.io" kind="ClusterTrustBundle" name="a"
        - FieldValueInvalid spec.trustBundle: Invalid value: "<value omitted>": entry 0 has PEM block headers
        no certificate: 422 Invalid: ClusterTrustBundle.certificates.k8s.io "a" is invalid: spec.trustBundle: Invalid value: "<value omitted>": entry 0 does not parse as X.509
        group="certificates.k8s.io" kind="ClusterTrustBundle" name="a"
        - FieldValueInvalid spec.trustBundle: Invalid value: "<value omitted>": entry 0 does not parse as X.509
        twice: 422 Invalid: ClusterTrustBundle.certificates.k8s.io "a" is invalid: spec.trustBundle: Invalid value: "<value omitted>": duplicate trust anchor (indices [0 2])
        group="certificates.k8s.io" kind="ClusterTrustBundle" name="a"
        - FieldValueInvalid spec.trustBundle: Invalid value: "<value omitted>": duplicate trust anchor (indices [0 2])
        large: 422 Invalid: ClusterTrustBundle.certificates.k8s.io "a" is invalid: spec.trustBundle: Too long: may not be more than 1048576 bytes
        group="certificates.k8s.io" kind="ClusterTrustBundle" name="a"
        - FieldValueTooLong spec.trustBundle: Too long: may not be more than 1048576 bytes
    "#]]);
}

#[tokio::test]
async fn the_name_of_a_bundle_begins_with_the_signer() {
    let api = Api::start();
    let mut seen = Objects::new(&api, BUNDLES);
    let text = certificate(true);
    for (what, name, signer) in [
        ("a signer that the name lacks", "a", "example.com/signer"),
        ("a signer with another name", "example.com:other:a", "example.com/signer"),
        ("a name with a signer that the bundle lacks", "example.com:signer:a", ""),
        ("an odd signer", "a:b:c", "a b"),
        ("no name after the signer", "example.com:signer:", "example.com/signer"),
    ] {
        seen.try_create(what, named(name, bundle(signer, &text))).await;
    }
    let signer = format!("{}.example.com/signer", api.id);
    let name = format!("{}.example.com:signer:a", api.id);
    seen.create("good", named(&name, bundle(&signer, &text))).await;
    seen.change("another signer", &name, json!({"spec": {"signerName": "example.com/signer"}})).await;
    seen.change("no signer", &name, json!({"spec": {"signerName": null}})).await;
    seen.change("broken text", &name, json!({"spec": {"trustBundle": "x"}})).await;
    seen.row(&name).await;
    let jane = api.impersonating(&format!("jane-{}", api.id), &["system:masters"]);
    let selected = jane.get(&format!("{BUNDLES}?fieldSelector=spec.signerName={signer}")).await.is(200);
    assert_eq!(selected.names(), [name]);
    seen.seen = seen.seen.replace(&json!(text).to_string(), "PEM");
    seen.are(expect![[r#"
        a signer that the name lacks: 422 Invalid: ClusterTrustBundle.certificates.k8s.io "a" is invalid: metadata.name: Invalid value: "a": ClusterTrustBundle for signerName example.com/signer must be named with prefix example.com:signer:
        group="certificates.k8s.io" kind="ClusterTrustBundle" name="a"
        - FieldValueInvalid metadata.name: Invalid value: "a": ClusterTrustBundle for signerName example.com/signer must be named with prefix example.com:signer:
        a signer with another name: 422 Invalid: ClusterTrustBundle.certificates.k8s.io "example.com:other:a" is invalid: metadata.name: Invalid value: "example.com:other:a": ClusterTrustBundle for signerName example.com/signer must be named with prefix example.com:signer:
        group="certificates.k8s.io" kind="ClusterTrustBundle" name="example.com:other:a"
        - FieldValueInvalid metadata.name: Invalid value: "example.com:other:a": ClusterTrustBundle for signerName example.com/signer must be named with prefix example.com:signer:
        a name with a signer that the bundle lacks: 422 Invalid: ClusterTrustBundle.certificates.k8s.io "example.com:signer:a" is invalid: metadata.name: Invalid value: "example.com:signer:a": ClusterTrustBundle without signer name must not have ":" in its name
        group="certificates.k8s.io" kind="ClusterTrustBundle" name="example.com:signer:a"
        - FieldValueInvalid metadata.name: Invalid value: "example.com:signer:a": ClusterTrustBundle without signer name must not have ":" in its name
        an odd signer: 422 Invalid: ClusterTrustBundle.certificates.k8s.io "a:b:c" is invalid: [as below]
        group="certificates.k8s.io" kind="ClusterTrustBundle" name="a:b:c"
        - FieldValueInvalid metadata.name: Invalid value: "a:b:c": ClusterTrustBundle for signerName a b must be named with prefix a b:
        - FieldValueInvalid spec.signerName: Invalid value: "a b": must be a fully qualified domain and path of the form 'example.com/signer-name'
        no name after the signer: 422 Invalid: ClusterTrustBundle.certificates.k8s.io "example.com:signer:" is invalid: metadata.name: Invalid value: "example.com:signer:": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        group="certificates.k8s.io" kind="ClusterTrustBundle" name="example.com:signer:"
        - FieldValueInvalid metadata.name: Invalid value: "example.com:signer:": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        good: 201 {"spec":{"signerName":"ID.example.com/signer","trustBundle":PEM}}
        another signer: 422 Invalid: ClusterTrustBundle.certificates.k8s.io "ID.example.com:signer:a" is invalid: [as below]
        group="certificates.k8s.io" kind="ClusterTrustBundle" name="ID.example.com:signer:a"
        - FieldValueInvalid metadata.name: Invalid value: "ID.example.com:signer:a": ClusterTrustBundle for signerName example.com/signer must be named with prefix example.com:signer:
        - FieldValueInvalid spec.signerName: Invalid value: "example.com/signer": field is immutable
        no signer: 422 Invalid: ClusterTrustBundle.certificates.k8s.io "ID.example.com:signer:a" is invalid: [as below]
        group="certificates.k8s.io" kind="ClusterTrustBundle" name="ID.example.com:signer:a"
        - FieldValueInvalid metadata.name: Invalid value: "ID.example.com:signer:a": ClusterTrustBundle without signer name must not have ":" in its name
        - FieldValueInvalid spec.signerName: Invalid value: "": field is immutable
        broken text: 422 Invalid: ClusterTrustBundle.certificates.k8s.io "ID.example.com:signer:a" is invalid: spec.trustBundle: Invalid value: "<value omitted>": at least one trust anchor must be provided
        group="certificates.k8s.io" kind="ClusterTrustBundle" name="ID.example.com:signer:a"
        - FieldValueInvalid spec.trustBundle: Invalid value: "<value omitted>": at least one trust anchor must be provided
        row: Name="ID.example.com:signer:a" SignerName="ID.example.com/signer"
    "#]]);
}

#[tokio::test]
async fn a_bundle_of_a_signer_needs_the_right_to_attest() {
    let api = Api::start();
    let jane_name = format!("jane-{}", api.id);
    let role = format!("bundles-{}", api.id);
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let group = "certificates.k8s.io";
    let rules = json!([{"apiGroups": [group], "resources": ["clustertrustbundles"], "verbs": ["*"]}]);
    api.discard(format!("{rbac}/clusterroles/{role}"));
    api.post(&format!("{rbac}/clusterroles"), named(&role, json!({"rules": rules}))).await.is(201);
    let binding = json!({
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": jane_name}]
    });
    api.discard(format!("{rbac}/clusterrolebindings/{role}"));
    api.post(&format!("{rbac}/clusterrolebindings"), named(&role, binding)).await.is(201);
    let jane = api.impersonating(&jane_name, &[]);
    jane.eventually(BUNDLES, |reply| reply.code == 200).await;
    let name = format!("{}.example.com:signer:a", api.id);
    let object = named(&name, bundle(&format!("{}.example.com/signer", api.id), &certificate(true)));
    let mut seen = Objects::new(&jane, BUNDLES);
    seen.try_create("no right", object.clone()).await;
    seen.are(expect![[r#"
        no right: 403 Forbidden: clustertrustbundles.certificates.k8s.io "ID.example.com:signer:a" is forbidden: user not permitted to attest for signerName "ID.example.com/signer"
        group="certificates.k8s.io" kind="clustertrustbundles" name="ID.example.com:signer:a"
    "#]]);
    let path = format!("{rbac}/clusterroles/{role}");
    let attest = json!({"apiGroups": [group], "resources": ["signers"], "verbs": ["attest"], "resourceNames": [format!("{}.example.com/*", api.id)]});
    let rules = json!({"rules": [rules[0], attest]});
    api.patch(&path, crate::harness::MERGE_PATCH, rules).await.is(200);
    let start = std::time::Instant::now();
    while jane.post(&format!("{BUNDLES}?dryRun=All"), object.clone()).await.code != 201 {
        assert!(start.elapsed() < crate::harness::deadline(), "the right has no effect");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
