//! Certificate signing requests: approved by a person or for a kubelet, signed, refused.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use serde_json::{Value, json};

use super::stage::Stage;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const KUBELET: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const SERVING: &str = "kubernetes.io/kubelet-serving";

/// A script with requests.
struct Script {
    stage: Stage,
    made: Vec<String>,
}

/// The content of a request.
struct Ask<'a> {
    user: &'a str,
    /// The organization and the common name of the certificate.
    subject: (&'a str, &'a str),
    names: Vec<SanType>,
    spec: Value,
}

impl Script {
    async fn open(name: &str) -> Self {
        let mut script = Self { stage: Stage::open(name, &[REQUESTS]).await, made: Vec::new() };
        let rules = json!([{
            "apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"], "verbs": ["create"],
        }]);
        let role = script.name("requester");
        let body = json!({"metadata": {"name": role}, "rules": rules});
        script.stage.create(ROLES, body).await;
        script.made.push(format!("{ROLES}/{role}"));
        script.bind("requester", &role).await;
        script
    }

    fn name(&self, name: &str) -> String {
        format!("{name}-{}", self.stage.namespace())
    }

    /// Gives a role to the users of the script.
    async fn bind(&mut self, name: &str, role: &str) {
        let group =
            json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": self.stage.namespace()});
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role});
        let name = self.name(name);
        let binding = json!({"metadata": {"name": name}, "roleRef": role, "subjects": [group]});
        self.stage.create(BINDINGS, binding).await;
        self.made.push(format!("{BINDINGS}/{name}"));
    }

    async fn ask(&mut self, name: &str, ask: Ask<'_>) {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, ask.subject.0);
        params.distinguished_name.push(DnType::CommonName, ask.subject.1);
        params.subject_alt_names = ask.names;
        let key = KeyPair::generate().unwrap();
        let request = params.serialize_request(&key).unwrap().pem().unwrap();
        let mut spec = ask.spec;
        spec["request"] = STANDARD.encode(request).into();
        let object = json!({"metadata": {"name": self.name(name)}, "spec": spec});
        let group = self.stage.namespace();
        self.stage.create_as(ask.user, group, REQUESTS, &object).await;
        self.made.push(format!("{REQUESTS}/{}", self.name(name)));
    }

    async fn decide(&self, name: &str, decision: &str) {
        let condition =
            json!({"type": decision, "status": "True", "reason": "Test", "message": "by the script"});
        let path = format!("{REQUESTS}/{}/approval", self.name(name));
        self.stage.patch(&path, json!({"status": {"conditions": [condition]}})).await;
    }

    async fn finish(self) {
        for path in &self.made {
            self.stage.delete(path).await;
        }
        self.stage.finish().await;
    }
}

fn spec(signer: &str, usages: &[&str]) -> Value {
    json!({"signerName": signer, "usages": usages})
}

#[tokio::test]
async fn client_certificates_are_signed_after_approval() {
    let mut script = Script::open("certificates_client").await;
    let jane = |spec: Value| Ask { user: "jane", subject: ("developers", "jane"), names: Vec::new(), spec };
    script.ask("plain", jane(spec(CLIENT, &["client auth"]))).await;
    script.ask("wrong", jane(spec(CLIENT, &["client auth", "server auth"]))).await;
    script.ask("serves", jane(spec(CLIENT, &["digital signature"]))).await;
    let mut short = jane(spec(CLIENT, &["key encipherment", "client auth", "digital signature"]));
    short.spec["expirationSeconds"] = json!(3600);
    short.names = vec![
        SanType::URI("spiffe://a/b".try_into().unwrap()),
        SanType::IpAddress([10, 0, 0, 1].into()),
        SanType::DnsName("a.example.com".try_into().unwrap()),
    ];
    script.ask("short", short).await;
    let mut long = jane(spec(CLIENT, &["client auth"]));
    long.spec["expirationSeconds"] = json!(10 * 365 * 86400);
    script.ask("long", long).await;
    script.ask("other", jane(spec("example.com/signer", &["any"]))).await;
    script.stage.settle("requested").await;
    for name in ["plain", "wrong", "serves", "short", "long", "other"] {
        script.decide(name, "Approved").await;
    }
    script.stage.settle("approved").await;
    script.ask("refused", jane(spec(CLIENT, &["client auth"]))).await;
    script.decide("refused", "Denied").await;
    script.stage.settle("denied").await;
    script.finish().await;
}

#[tokio::test]
async fn kubelets_get_their_certificates() {
    let mut script = Script::open("certificates_kubelet").await;
    let usages = ["digital signature", "key encipherment", "client auth"];
    let node = |user: &'static str, subject: (&'static str, &'static str)| Ask {
        user,
        subject,
        names: Vec::new(),
        spec: spec(KUBELET, &usages),
    };
    let of = ("system:nodes", "system:node:a");
    script.ask("no-rights", node("system:node:a", of)).await;
    script.stage.settle("without rights").await;
    script.bind("own", "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient").await;
    script.ask("own", node("system:node:a", of)).await;
    script.ask("for-another", node("system:node:b", of)).await;
    script.ask("no-node", node("jane", ("system:nodes", "jane"))).await;
    script.stage.settle("for itself").await;
    script.bind("any", "system:certificates.k8s.io:certificatesigningrequests:nodeclient").await;
    script.ask("with-bootstrap", node("bootstrap", of)).await;
    script.stage.settle("for any node").await;
    let serving = |names: Vec<SanType>| Ask {
        user: "system:node:a",
        subject: of,
        names,
        spec: spec(SERVING, &["digital signature", "server auth"]),
    };
    let name = SanType::DnsName("a.example.com".try_into().unwrap());
    script.ask("serving", serving(vec![name, SanType::IpAddress([10, 0, 0, 1].into())])).await;
    script.ask("serving-nothing", serving(Vec::new())).await;
    script.stage.settle("serving certificates wait for a person").await;
    for name in ["serving", "serving-nothing", "no-node"] {
        script.decide(name, "Approved").await;
    }
    script.stage.settle("serving certificates").await;
    script.finish().await;
}
