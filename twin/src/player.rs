//! Plays a script on a server.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use http::{Method, Request};
use http_body_util::BodyExt;
use kube_client::client::Body;
use serde_json::Value;

use crate::normalise::Normaliser;
use crate::op::{self, Op, PLACEHOLDER};
use crate::outcome::{HEADERS, Outcome};
use crate::reply_body;
use crate::server::Session;
use crate::watch::Watch;
use crate::webhook;

/// The time limit of the real server's work after a reply, such as serving a new kind.
const DEADLINE: Duration = Duration::from_secs(5);
/// The time limit of a watch event of the real server.
const DELIVERY: Duration = Duration::from_millis(1500);
/// The resources that the real server follows with a watch. A write of such a resource takes effect some
/// milliseconds later.
const FOLLOWED: [&str; 7] = [
    "customresourcedefinitions",
    "priorityclasses",
    "storageclasses",
    "ingressclasses",
    "limitranges",
    "webhookconfigurations",
    "rbac.authorization.k8s.io",
];

/// The time after which the real server evaluates a changed admission policy.
const POLICIES_FOLLOW: Duration = Duration::from_millis(1200);

/// A server and the replies until now.
pub(crate) struct Player {
    session: Session,
    normaliser: Normaliser,
    replies: BTreeMap<u32, Value>,
    watches: BTreeMap<u32, Watch>,
    /// The paths of the created objects, for the clean-up.
    created: BTreeSet<String>,
    /// True if a step has named the webhook server.
    has_webhooks: bool,
    /// When an admission policy was written last.
    policies_changed: Option<Instant>,
    /// True if a step has written an admission policy, which may read ConfigMaps.
    has_policies: bool,
}

impl Player {
    pub(crate) fn new(session: Session) -> Self {
        let normaliser = Normaliser::new(&session.id, &session.webhook);
        Player {
            session,
            normaliser,
            replies: BTreeMap::new(),
            watches: BTreeMap::new(),
            created: BTreeSet::new(),
            has_webhooks: false,
            policies_changed: None,
            has_policies: false,
        }
    }

    /// Plays a step and returns the normalised outcome. `expected` is the outcome on the other server, with
    /// the number of events to wait for.
    pub(crate) async fn play(&mut self, op: &Op, expected: Option<&Outcome>) -> Outcome {
        self.has_webhooks |= op.body.as_ref().is_some_and(|body| body.to_string().contains(webhook::URL));
        let raw = match op.parts().0 {
            op::DRAIN => self.drain(expected).await,
            op::AWAIT => self.repeat(op, 200, expected).await,
            op::GONE => self.repeat(op, 404, expected).await,
            op::WATCH => self.watch(op).await,
            _ => self.send(op).await,
        };
        self.normaliser.outcome(raw)
    }

    async fn send(&mut self, op: &Op) -> Outcome {
        let path = self.fill(op.parts().1, true);
        if self.session.shared && path.contains("resourceVersion=0") {
            self.refresh(&path).await;
        }
        let is_write = op.parts().0 != "GET";
        let is_of_policies = is_write && path.contains("admissionpolic");
        if !is_of_policies {
            self.settle_policies().await;
        }
        let (outcome, _) = self.request(op, &path).await;
        self.remember(op, &path, &outcome);
        if is_of_policies {
            self.policies_changed = Some(Instant::now());
            self.has_policies = true;
        }
        let is_followed = FOLLOWED.iter().any(|plural| path.contains(plural))
            || self.has_policies && path.contains("configmaps");
        if self.session.shared && is_write && is_followed {
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
        outcome
    }

    /// Waits until the server evaluates the policies that were written last.
    async fn settle_policies(&mut self) {
        if let Some(changed) = self.policies_changed.take()
            && self.session.shared
        {
            tokio::time::sleep(POLICIES_FOLLOW.saturating_sub(changed.elapsed())).await;
        }
    }

    fn remember(&mut self, op: &Op, path: &str, outcome: &Outcome) {
        let bare = path.split('?').next().unwrap_or_default();
        if op.parts().0 != "POST" && outcome.code == 201 {
            // An update or an apply creates an object at the request's path.
            self.created.insert(bare.trim_end_matches("/status").to_owned());
        }
        if op.parts().0 == "POST"
            && outcome.code == 201
            && let Some(name) = outcome.body["metadata"]["name"].as_str()
            && !bare.contains(name)
        {
            self.created.insert(format!("{bare}/{name}"));
        }
        self.replies.insert(op.id, outcome.body.clone());
    }

    async fn repeat(&mut self, op: &Op, code: u16, expected: Option<&Outcome>) -> Outcome {
        let path = self.fill(op.parts().1, true);
        let limit = match expected {
            // The embedded server is ready with the reply.
            _ if !self.session.shared => Duration::ZERO,
            Some(expected) if expected.code != code => Duration::from_millis(300),
            _ => DEADLINE * 3,
        };
        let start = Instant::now();
        loop {
            let (outcome, _) = self.request(&Op { run: format!("GET {path}"), ..op.clone() }, &path).await;
            if outcome.code == code || start.elapsed() > limit {
                self.replies.insert(op.id, outcome.body.clone());
                return outcome;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }

    async fn watch(&mut self, op: &Op) -> Outcome {
        let path = self.fill(op.parts().1, true);
        if self.session.shared {
            self.refresh(&path).await;
        }
        let path = format!("{path}{}watch=true", if path.contains('?') { '&' } else { '?' });
        let (outcome, watch) = self.request(op, &path).await;
        if let Some(watch) = watch {
            self.watches.insert(op.id, watch);
        }
        outcome
    }

    async fn drain(&mut self, expected: Option<&Outcome>) -> Outcome {
        let (limit, quiet) = match (self.session.shared, expected) {
            (true, Some(_)) => (DELIVERY, Duration::from_millis(25)),
            (true, None) => (DELIVERY, Duration::from_millis(250)),
            // A webhook may have to convert the objects of events.
            (false, _) if self.has_webhooks => (Duration::from_millis(60), Duration::from_millis(60)),
            (false, _) => (Duration::from_millis(3), Duration::from_millis(3)),
        };
        let mut outcome = Outcome::default();
        for (id, watch) in &mut self.watches {
            let expected = expected.and_then(|expected| expected.events.get(id)).map_or(0, Vec::len);
            let events = watch.read(expected, limit, quiet).await;
            if !events.is_empty() {
                outcome.events.insert(*id, events);
            }
        }
        outcome
    }

    /// Waits until the server's cache of a collection is fresh. A list without a resource version is answered from a fresh cache.
    async fn refresh(&self, path: &str) {
        let bare = path.split('?').next().unwrap_or_default();
        let op = Op { run: "GET".to_owned(), ..Op::default() };
        self.request(&op, &format!("{bare}?limit=1")).await;
    }

    async fn request(&self, op: &Op, path: &str) -> (Outcome, Option<Watch>) {
        let verb = op.parts().0;
        let method = if verb == op::WATCH { Method::GET } else { verb.parse().unwrap_or(Method::GET) };
        let mut request = Request::builder().method(method).uri(path).header("user-agent", "twin/1");
        if let Some(accept) = &op.accept {
            request = request.header("accept", accept);
        }
        if let Some(user) = &op.user {
            request = request
                .header("impersonate-user", self.fill(user, false))
                .header("impersonate-group", self.fill(op::STAFF, false));
        }
        let body = self.body(op);
        if !body.is_empty() || op.media.is_some() {
            request = request.header("content-type", op.media.as_deref().unwrap_or(op::JSON));
        }
        let request = match request.body(Body::from(body.into_bytes())) {
            Ok(request) => request,
            Err(error) => return (failed(&error), None),
        };
        let response = match self.session.client.send(request).await {
            Ok(response) => response,
            Err(error) => return (failed(&error), None),
        };
        let (head, body) = response.into_parts();
        let mut outcome = Outcome { code: head.status.as_u16(), ..Outcome::default() };
        for name in HEADERS {
            let values = head.headers.get_all(name).iter();
            let values: Vec<String> =
                values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
            if !values.is_empty() {
                outcome.headers.insert(name.to_owned(), values);
            }
        }
        if verb == op::WATCH && outcome.code == 200 {
            return (outcome, Some(Watch::new(body)));
        }
        match tokio::time::timeout(DEADLINE * 4, body.collect()).await {
            Ok(Ok(body)) => {
                reply_body::read(&mut outcome, op, &body.to_bytes());
                (outcome, None)
            }
            Ok(Err(error)) => (failed(&error), None),
            Err(_) => (failed(&"the reply does not end"), None),
        }
    }

    fn body(&self, op: &Op) -> String {
        if let Some(text) = &op.text {
            return self.fill(text, false);
        }
        let Some(body) = &op.body else { return String::new() };
        let mut body = body.clone();
        self.fill_all(&mut body);
        if let Some(base) = op.base {
            let mut object = self.replies.get(&base).cloned().unwrap_or_default();
            if object["kind"] == "Status" {
                object = Value::Null;
            }
            merge(&mut object, body);
            body = object;
        }
        body.to_string()
    }

    fn fill_all(&self, value: &mut Value) {
        match value {
            Value::String(text)
                if text.contains("{{") || text.contains(PLACEHOLDER) || text == webhook::AUTHORITY =>
            {
                *text = self.fill(text, false);
            }
            Value::Object(fields) => {
                let filled = std::mem::take(fields).into_iter().map(|(name, mut value)| {
                    self.fill_all(&mut value);
                    (self.fill(&name, false), value)
                });
                *fields = filled.collect();
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.fill_all(item)),
            _ => {}
        }
    }

    /// Replaces the placeholder and the references.
    fn fill(&self, text: &str, in_url: bool) -> String {
        let webhook = &self.session.webhook;
        let text = text.replace(webhook::URL, &webhook.url).replace(webhook::AUTHORITY, &webhook.authority);
        let text = text.replace(PLACEHOLDER, &self.session.id);
        let (mut filled, mut rest) = (String::new(), text.as_str());
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((reference, after)) = after.split_once("}}") else { break };
            filled.push_str(before);
            let value = self.look_up(reference).unwrap_or_else(|| "none".to_owned());
            filled.push_str(&if in_url { encode(&value) } else { value });
            rest = after;
        }
        filled + rest
    }

    fn look_up(&self, reference: &str) -> Option<String> {
        let (id, pointer) = reference.split_at(reference.find('/')?);
        match self.replies.get(&id.parse().ok()?)?.pointer(pointer)? {
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            other => Some(other.to_string()),
        }
    }

    /// Deletes the created objects if the server is shared.
    pub(crate) async fn clean_up(mut self) {
        self.watches.clear();
        if !self.session.shared {
            return;
        }
        let delete = Op {
            run: "DELETE".to_owned(),
            body: Some(serde_json::json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"})),
            ..Op::default()
        };
        let unlock = Op {
            run: "PATCH".to_owned(),
            media: Some(op::MERGE_PATCH.to_owned()),
            body: Some(serde_json::json!({"metadata": {"finalizers": null}})),
            ..Op::default()
        };
        // Objects before namespaces and definitions: the paths of objects are longer.
        let mut paths: Vec<String> = std::mem::take(&mut self.created).into_iter().collect();
        // Webhooks and policies go first: a webhook could refuse the other deletions.
        let refuses = |path: &str| path.contains("webhookconfigurations") || path.contains("admissionpolic");
        paths.sort_by_key(|path| (refuses(path), path.matches('/').count()));
        for path in paths.iter().rev() {
            if path.contains("admissionpolic") {
                self.policies_changed = Some(Instant::now());
            } else {
                self.settle_policies().await;
            }
            let (mut reply, _) = self.request(&delete, path).await;
            for _ in 0..5 {
                // A webhook that is gone is asked a moment longer.
                if reply.code != 403 && reply.code < 500 {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
                reply = self.request(&delete, path).await.0;
            }
            if reply.body["metadata"]["finalizers"].is_array() {
                self.request(&unlock, path).await;
            }
            if reply.body["kind"] == "Namespace" {
                let mut namespace = reply.body.clone();
                namespace["spec"]["finalizers"] = serde_json::json!([]);
                let finalize = Op { run: "PUT".to_owned(), body: Some(namespace), ..Op::default() };
                self.request(&finalize, &format!("{path}/finalize")).await;
            }
        }
    }
}

fn failed(error: &dyn std::fmt::Display) -> Outcome {
    Outcome { body: Value::String(format!("no reply: {error}")), ..Outcome::default() }
}

/// Applies a JSON merge patch (RFC 7386).
pub(crate) fn merge(object: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *object = patch;
        return;
    };
    if !object.is_object() {
        *object = Value::Object(serde_json::Map::new());
    }
    for (name, value) in patch {
        if value.is_null() {
            if let Some(fields) = object.as_object_mut() {
                fields.remove(&name);
            }
        } else {
            merge(&mut object[name], value);
        }
    }
}

/// Percent-encodes a query value.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.extend(['%', hex(byte >> 4), hex(byte & 15)]);
        }
    }
    encoded
}

fn hex(digit: u8) -> char {
    char::from_digit(digit.into(), 16).unwrap_or('0').to_ascii_uppercase()
}
