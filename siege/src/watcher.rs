//! A client that keeps a copy of the objects of a namespace by a watch, and checks each event.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use http_body_util::BodyExt;
use serde_json::Value;

use crate::Result;
use crate::client::{Call, Client};
use crate::schema::{array, text};

/// An object in a copy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) uid: String,
    pub(crate) version: u64,
    /// The number of increments.
    pub(crate) count: u64,
}

impl Seen {
    pub(crate) fn of(object: &Value) -> Self {
        Self {
            uid: text(&object["metadata"]["uid"]).to_owned(),
            version: version(object),
            count: text(&object["data"]["count"]).parse().unwrap_or(0),
        }
    }
}

/// Returns the resource version of an object or a list; 0 without a version.
pub(crate) fn version(object: &Value) -> u64 {
    text(&object["metadata"]["resourceVersion"]).parse().unwrap_or(0)
}

pub(crate) fn name(object: &Value) -> String {
    text(&object["metadata"]["name"]).to_owned()
}

/// The items of a list, by name.
pub(crate) fn items(list: &Value) -> BTreeMap<String, Seen> {
    array(&list["items"]).map(|item| (name(item), Seen::of(item))).collect()
}

/// A copy of the objects of a collection.
pub(crate) struct Watcher {
    client: Client,
    path: String,
    random: Rng,
    /// True if the watcher loses the connection from time to time.
    is_unlucky: bool,
    pub(crate) objects: BTreeMap<String, Seen>,
    /// The resource version of the first list.
    pub(crate) start: u64,
    /// The objects of the first list.
    pub(crate) initial: BTreeMap<String, Seen>,
    /// The resource version of the last event.
    pub(crate) last: u64,
    /// All events: the resource version, the name, and the object unless the object was deleted.
    pub(crate) events: Vec<(u64, String, Option<Seen>)>,
    /// How often the watcher resumed, and how often the watcher listed again.
    pub(crate) resumed: u64,
    pub(crate) relisted: u64,
    /// Broken promises of the server.
    pub(crate) wrong: Vec<String>,
}

impl Watcher {
    pub(crate) fn new(client: Client, path: &str, seed: u64, is_unlucky: bool) -> Self {
        Self {
            client,
            path: path.to_owned(),
            random: Rng::with_seed(seed),
            is_unlucky,
            objects: BTreeMap::new(),
            start: 0,
            initial: BTreeMap::new(),
            last: 0,
            events: Vec::new(),
            resumed: 0,
            relisted: 0,
            wrong: Vec::new(),
        }
    }

    /// Watches until the copy has the version of `end`.
    pub(crate) async fn run(mut self, mut end: tokio::sync::watch::Receiver<Option<u64>>) -> Result<Self> {
        self.list().await?;
        (self.start, self.initial) = (self.last, self.objects.clone());
        loop {
            let is_done = |end: Option<u64>, last| end.is_some_and(|version| last >= version);
            if is_done(*end.borrow(), self.last) {
                return Ok(self);
            }
            match self.watch(&mut end).await {
                Ok(true) => self.resumed += 1,
                Ok(false) => {
                    self.list().await?;
                    self.relisted += 1;
                }
                // A lost connection is a part of the test.
                Err(_lost) => {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    self.resumed += 1;
                }
            }
        }
    }

    async fn list(&mut self) -> Result {
        let list = self.client.send(Call::get(&self.path)).await?.json();
        let version = version(&list);
        if version < self.last {
            self.wrong.push(format!("a list goes back from {} to {version}", self.last));
        }
        self.objects = items(&list);
        self.last = version;
        Ok(())
    }

    /// Follows a watch. Returns false if the history is gone, and true if the watch ended or the connection was lost.
    async fn watch(&mut self, end: &mut tokio::sync::watch::Receiver<Option<u64>>) -> Result<bool> {
        let connection = self.client.connect().await?;
        let path = format!("{}?watch=true&allowWatchBookmarks=true&resourceVersion={}", self.path, self.last);
        let response = connection.begin(Call::get(path)).await?;
        if response.status() != 200 {
            return Ok(response.status() != 410);
        }
        let mut body = response.into_body();
        let mut text = Vec::new();
        let life = if self.is_unlucky {
            Duration::from_millis(self.random.u64(..1_500))
        } else {
            Duration::from_secs(3_600)
        };
        let life = tokio::time::sleep(life);
        tokio::pin!(life);
        loop {
            let frame = tokio::select! {
                biased;
                frame = body.frame() => frame,
                () = &mut life => {
                    connection.kill();
                    return Ok(true);
                }
                _ = end.changed() => None,
            };
            let is_end = frame.is_none();
            if let Some(frame) = frame {
                text.extend_from_slice(frame?.data_ref().map_or(&[][..], |data| data));
            }
            while let Some(length) = text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = text.drain(..=length).collect();
                if !self.take(&serde_json::from_slice(&line)?) {
                    return Ok(false);
                }
            }
            let target = *end.borrow();
            if target.is_some_and(|version| self.last >= version) || is_end && target.is_none() {
                return Ok(true);
            }
            if is_end {
                // The last events are on the way: a new watch has them.
                tokio::time::sleep(Duration::from_millis(20)).await;
                return Ok(true);
            }
        }
    }

    /// Applies an event. Returns false for an expired history.
    fn take(&mut self, event: &Value) -> bool {
        let (kind, object) = (text(&event["type"]), &event["object"]);
        if kind == "ERROR" {
            if object["code"] != 410 {
                self.wrong.push(format!("an error: {object}"));
            }
            return false;
        }
        let (version, name) = (version(object), name(object));
        if kind == "BOOKMARK" {
            if version < self.last {
                self.wrong.push(format!("a bookmark goes back from {} to {version}", self.last));
            }
            self.last = self.last.max(version);
            return true;
        }
        if version <= self.last {
            self.wrong.push(format!("{kind} {name} at {version} after {}", self.last));
        }
        self.last = version;
        let seen = Seen::of(object);
        let before = match kind {
            "DELETED" => self.objects.remove(&name),
            _ => self.objects.insert(name.clone(), seen.clone()),
        };
        if before.is_some() == (kind == "ADDED") {
            self.wrong.push(format!("{kind} {name} at {version}, known: {}", before.is_some()));
        }
        if let Some(before) = before.filter(|before| kind == "MODIFIED" && before.uid == seen.uid)
            && ![before.count, before.count + 1].contains(&seen.count)
        {
            self.wrong
                .push(format!("{name} at {version}: the count goes from {} to {}", before.count, seen.count));
        }
        self.events.push((version, name, (kind != "DELETED").then_some(seen)));
        true
    }
}
