use std::{fs, os::unix::fs::symlink, path::Path, time::Duration};

use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};
use windlass_patience::stretched;

use super::{
    CertificateDurations, CertificateFiles, CertificateMetrics, CertificateState, CertificateStore, Plan,
    Rotation, SecretState, ServedAt, ServingCertificate,
    authority::{Issued, create_authority, issue_server, read_bundle},
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn location() -> ServedAt {
    ServedAt::Service { namespace: "ops".to_owned(), name: "hooks".to_owned() }
}

/// A cluster, and a function that performs every write of a plan.
struct Cluster {
    secret: Option<SecretState>,
    objects: Vec<Value>,
    version: u64,
}

/// A replica of the operator.
struct Replica {
    rotation: Rotation,
    serving: Option<ServingCertificate>,
}

impl Replica {
    fn new() -> Self {
        Self { rotation: Rotation::new(location(), CertificateDurations::default()), serving: None }
    }

    fn plan(&self, now: Timestamp, secret: Option<&SecretState>, objects: &[Value]) -> Plan {
        let observed = CertificateState { secret, objects, serving: self.serving.as_ref() };
        self.rotation.plan(now, observed).expect("a plan")
    }

    /// Plans and performs writes until the plan is empty, and returns the reasons of the writes.
    fn settle(&mut self, now: Timestamp, cluster: &mut Cluster) -> Vec<&'static str> {
        let mut reasons = Vec::new();
        for _ in 0..20 {
            let plan = self.plan(now, cluster.secret.as_ref(), &cluster.objects);
            if plan.serve.is_none() && plan.secret.is_none() && plan.patches.is_empty() {
                return reasons;
            }
            reasons.extend(self.carry_out(plan, cluster));
            if let Some(serving) = &self.serving {
                assert!(cluster.trusts(serving), "a certificate is served that a bundle does not trust");
            }
        }
        panic!("the rotation does not settle: {reasons:?}");
    }

    fn carry_out(&mut self, plan: Plan, cluster: &mut Cluster) -> Option<&'static str> {
        for (at, patch) in plan.patches {
            cluster.patch(at, &patch);
        }
        if plan.serve.is_some() {
            self.serving = plan.serve;
        }
        let write = plan.secret?;
        let current = cluster.secret.as_ref().map(|secret| secret.resource_version.clone());
        if current != write.resource_version {
            return Some("conflict");
        }
        cluster.version += 1;
        cluster.secret =
            Some(SecretState { resource_version: cluster.version.to_string(), data: write.data });
        Some(write.reason)
    }
}

impl Cluster {
    fn new() -> Self {
        let ours =
            json!({"service": {"namespace": "ops", "name": "hooks", "path": "/a"}, "caBundle": "Cg=="});
        let foreign = json!({"service": {"namespace": "other", "name": "hooks"}, "caBundle": "Zm9yZWlnbg=="});
        let objects = vec![
            json!({"webhooks": [
                {"name": "a", "clientConfig": ours}, {"name": "b", "clientConfig": foreign}, {"name": "c", "clientConfig": ours}
            ]}),
            json!({"spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": ours}}}}),
            json!({"spec": {"conversion": {"strategy": "None"}}}),
        ];
        Self { secret: None, objects, version: 0 }
    }

    fn patch(&mut self, at: usize, patch: &Value) {
        let patch: json_patch::Patch = serde_json::from_value(patch.clone()).expect("a patch");
        json_patch::patch(&mut self.objects[at], &patch).expect("it applies");
    }

    fn bundle(&self, at: usize, pointer: &str) -> Vec<String> {
        use base64::Engine as _;
        let encoded = self.objects[at].pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let pem = base64::engine::general_purpose::STANDARD.decode(encoded).unwrap_or_default();
        read_bundle(&pem).into_iter().map(|(_, facts)| facts.common_name).collect()
    }

    fn bundles(&self) -> [Vec<String>; 3] {
        [
            self.bundle(0, "/webhooks/0/clientConfig/caBundle"),
            self.bundle(0, "/webhooks/2/clientConfig/caBundle"),
            self.bundle(1, "/spec/conversion/webhook/clientConfig/caBundle"),
        ]
    }

    /// Returns whether the issuer of the certificate is in all bundles.
    fn trusts(&self, serving: &ServingCertificate) -> bool {
        let leaf = super::bundle::pem([serving.leaf()]);
        let issuer = &read_bundle(leaf.as_bytes())[0].1.issuer;
        self.bundles().iter().all(|bundle| bundle.contains(issuer))
    }
}

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().expect("a time")
}

fn days(days: i64) -> Timestamp {
    start() + (days * 24).hours()
}

#[test]
fn the_first_replica_issues_and_the_second_takes_over_what_there_is() {
    let mut cluster = Cluster::new();
    let (mut first, mut second) = (Replica::new(), Replica::new());
    assert_eq!(first.settle(start(), &mut cluster), ["a new certificate authority"]);
    let bundles = cluster.bundles();
    assert!(bundles.iter().all(|bundle| bundle.len() == 1 && *bundle == bundles[0]), "{bundles:?}");
    assert_eq!(cluster.objects[0]["webhooks"][1]["clientConfig"]["caBundle"], "Zm9yZWlnbg==");
    assert!(second.settle(start(), &mut cluster).is_empty());
    assert!(second.serving.expect("one").is_same(&first.serving.expect("one")));
}

#[test]
fn replicas_that_race_end_with_one_secret() {
    let mut cluster = Cluster::new();
    let (mut first, mut second) = (Replica::new(), Replica::new());
    let plans = [&first, &second].map(|replica| replica.plan(start(), None, &cluster.objects));
    let [one, other] = plans;
    assert_eq!(first.carry_out(one, &mut cluster), Some("a new certificate authority"));
    assert_eq!(second.carry_out(other, &mut cluster), Some("conflict"));
    assert!(second.settle(start(), &mut cluster).is_empty());
    assert!(first.settle(start(), &mut cluster).is_empty());
    assert!(second.serving.expect("one").is_same(&first.serving.expect("one")));
}

#[test]
fn a_serving_certificate_is_renewed_after_two_thirds_of_its_life() {
    let mut cluster = Cluster::new();
    let mut replica = Replica::new();
    replica.settle(start(), &mut cluster);
    let before = cluster.bundles();
    assert!(replica.settle(days(59), &mut cluster).is_empty());
    assert_eq!(replica.settle(days(61), &mut cluster), ["a new serving certificate"]);
    assert_eq!(cluster.bundles(), before);
    assert!(replica.serving.expect("one").not_after() > days(150));
}

#[test]
fn a_new_authority_is_in_all_bundles_before_it_signs() {
    let mut cluster = Cluster::new();
    let mut replica = Replica::new();
    // The last certificate of the first authority is issued on day 200.
    for day in [0, 61, 122, 200] {
        replica.settle(days(day), &mut cluster);
    }
    let old = replica.serving.clone().expect("one");
    let plan = replica.plan(days(244), cluster.secret.as_ref(), &cluster.objects);
    assert_eq!(plan.secret.as_ref().map(|write| write.reason), Some("a new certificate authority"));
    replica.carry_out(plan, &mut cluster);
    assert!(replica.serving.as_ref().is_some_and(|serving| serving.is_same(&old)), "the old one is served");
    // A bundle is not patched yet: no certificate is signed.
    let plan = replica.plan(days(244), cluster.secret.as_ref(), &cluster.objects);
    assert!(plan.secret.is_none() && plan.serve.is_none() && plan.patches.len() == 2, "{plan:?}");
    let (at, patch) = &plan.patches[0];
    cluster.patch(*at, patch);
    let plan = replica.plan(days(244), cluster.secret.as_ref(), &cluster.objects);
    assert!(plan.secret.is_none() && plan.serve.is_none() && plan.patches.len() == 1, "{plan:?}");
    assert_eq!(replica.settle(days(244), &mut cluster), ["a new serving certificate"]);
    assert!(!replica.serving.expect("one").is_same(&old));
    assert!(
        cluster.bundles().iter().all(|bundle| bundle.len() == 2),
        "the old authority stays beside the new one"
    );
    // An expired authority is removed.
    let mut replica = Replica::new();
    replica.settle(days(370), &mut cluster);
    assert!(cluster.bundles().iter().all(|bundle| bundle.len() == 1));
}

#[test]
fn a_replica_that_is_behind_removes_no_authority() {
    let mut cluster = Cluster::new();
    let mut replica = Replica::new();
    replica.settle(days(0), &mut cluster);
    let stale = cluster.secret.clone();
    replica.settle(days(244), &mut cluster);
    let behind = Replica { serving: replica.serving.clone(), ..Replica::new() };
    let plan = behind.plan(days(243), stale.as_ref(), &cluster.objects);
    assert!(plan.patches.is_empty(), "{plan:?}");
}

#[test]
fn a_clock_that_jumps_a_year_ends_with_a_new_certificate() {
    let mut cluster = Cluster::new();
    let mut replica = Replica::new();
    replica.settle(days(0), &mut cluster);
    replica.settle(days(800), &mut cluster);
    assert!(replica.serving.expect("one").not_after() > days(880));
    assert!(cluster.bundles().iter().all(|bundle| bundle.len() == 1));
}

#[test]
fn a_damaged_or_deleted_secret_is_written_again() {
    let mut cluster = Cluster::new();
    let mut replica = Replica::new();
    replica.settle(days(0), &mut cluster);
    let old = replica.serving.clone().expect("one");
    cluster.secret.as_mut().expect("a secret").data.insert("tls.key".to_owned(), b"nonsense".to_vec());
    assert_eq!(replica.settle(days(1), &mut cluster), ["a new serving certificate"]);
    cluster.secret = None;
    assert_eq!(replica.settle(days(2), &mut cluster), ["a new certificate authority"]);
    assert!(!replica.serving.expect("one").is_same(&old));
}

#[test]
fn another_service_name_needs_another_certificate() {
    let mut cluster = Cluster::new();
    let mut replica = Replica::new();
    replica.settle(days(0), &mut cluster);
    replica.rotation = replica.rotation.names(["10.0.0.7".to_owned()]);
    assert_eq!(replica.settle(days(0), &mut cluster), ["a new serving certificate"]);
    let names = &read_bundle(&cluster.secret.expect("a secret").data["tls.crt"])[0].1.names;
    assert_eq!(names, &["hooks.ops.svc", "hooks.ops.svc.cluster.local", "10.0.0.7"]);
}

#[test]
fn an_address_in_a_long_form_is_issued_once() {
    let (mut cluster, mut replica) = (Cluster::new(), Replica::new());
    replica.rotation = replica.rotation.names(["fd00:0:0:0:0:0:0:7".to_owned()]);
    replica.settle(start(), &mut cluster);
    assert!(replica.settle(start(), &mut cluster).is_empty());
}

#[test]
fn urls_are_compared_by_host_and_port() {
    let location = ServedAt::Url { host: "::1".to_owned(), port: 9443 };
    let object = |url: &str| json!({"webhooks": [{"name": "a", "clientConfig": {"url": url}}]});
    let patches = |url: &str| super::CaBundle::of(&location, &object(url)).patch(&[&[1]], start()).is_some();
    assert!(patches("https://[::1]:9443/a"));
    assert!(!patches("https://[::1]/a"));
    assert!(!patches("https://[::2]:9443/a"));
}

fn issue(name: &str) -> Issued {
    let authority = create_authority(start(), 100 * DAY).expect("an authority");
    let facts = &read_bundle(authority.certificate.as_bytes())[0].1;
    issue_server(facts, &authority.key, &[name.to_owned()], start(), DAY).expect("a certificate")
}

fn write(folder: &Path, issued: &Issued) {
    fs::create_dir_all(folder).expect("a folder");
    fs::write(folder.join("tls.crt"), &issued.certificate).expect("written");
    fs::write(folder.join("tls.key"), &issued.key).expect("written");
}

#[tokio::test]
async fn the_error_of_a_file_names_it_and_keeps_the_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = CertificateFiles::in_folder(folder.path());
    let metrics = CertificateMetrics::default();
    let missing = files.read(&metrics).await.expect_err("nothing there").to_string();
    assert!(missing.contains("tls.crt") && missing.contains("No such file"), "{missing}");
    write(folder.path(), &issue("a"));
    assert_eq!(files.read(&metrics).await.expect("both").not_after(), days(1));
    let other = issue("b");
    fs::write(folder.path().join("tls.key"), &other.key).expect("written");
    let mismatch = files.read(&metrics).await.expect_err("not its key").to_string();
    assert!(mismatch.ends_with("tls.key: the private key is not that of the certificate"), "{mismatch}");
    fs::write(
        folder.path().join("tls.key"),
        "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n",
    )
    .expect("written");
    let damaged = files.read(&metrics).await.expect_err("not a key").to_string();
    assert!(!damaged.contains("c2VjcmV0") && !damaged.contains("secret"), "{damaged}");
}

#[tokio::test(start_paused = true)]
async fn a_mounted_secret_is_read_again_when_its_links_are_exchanged() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    write(&at("..2026_1"), &issue("a"));
    symlink("..2026_1", at("..data")).expect("linked");
    symlink("..data/tls.crt", at("tls.crt")).expect("linked");
    symlink("..data/tls.key", at("tls.key")).expect("linked");
    let (store, files) = (CertificateStore::default(), CertificateFiles::in_folder(folder.path()));
    let watching = tokio::spawn({
        let store = store.clone();
        async move { files.watch(&store, &CertificateMetrics::default()).await }
    });
    let first = loop {
        tokio::time::sleep(Duration::from_millis(10)).await;
        if let Some(first) = store.get() {
            break first;
        }
    };
    write(&at("..2026_2"), &issue("b"));
    symlink("..2026_2", at("..data_tmp")).expect("linked");
    fs::rename(at("..data_tmp"), at("..data")).expect("renamed");
    let started = tokio::time::Instant::now();
    while store.get().is_some_and(|now| now.is_same(&first)) {
        assert!(started.elapsed() < stretched(Duration::from_secs(60)), "not read again");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    watching.abort();
}
