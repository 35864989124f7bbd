//! Random values of a schema, with a few mistakes.

use fastrand::Rng;
use serde_json::{Map, Value, json};

use crate::schema::{Description, array, text};

/// The deepest value.
const MAX_DEPTH: usize = 9;

/// Texts that some field may mean.
const TEXTS: &[&str] = &[
    "",
    "a",
    "b",
    "f0",
    "f1",
    "default",
    "fuzz",
    "A_",
    "x.y/z",
    "100m",
    "1Gi",
    "-1",
    "1e400",
    "0x10",
    "50%",
    "http",
    "TCP",
    "UDP",
    "ClusterIP",
    "NodePort",
    "None",
    "Always",
    "Never",
    "OnFailure",
    "RollingUpdate",
    "Recreate",
    "Delete",
    "Retain",
    "In",
    "Exists",
    "10.0.0.7",
    "10.0.0.0/24",
    "::1",
    "256.1.1.1",
    "2024-01-01T00:00:00Z",
    "not-a-time",
    "https://127.0.0.1:1/x",
    "*",
    "system:masters",
    "kubernetes.io/metadata.name",
    "é",
    "\u{0}",
    "\u{10ffff}",
    "../..",
    "%2e",
    "{{.}}",
    "$(A)",
    "v1",
    "apps/v1",
    "Pod",
    "ConfigMap",
];

/// A generator of values.
pub(crate) struct Values<'a> {
    pub(crate) description: &'a Description,
    pub(crate) random: Rng,
    /// The number of values that an object may still get.
    left: usize,
}

impl<'a> Values<'a> {
    pub(crate) fn new(description: &'a Description, seed: u64) -> Self {
        Self { description, random: Rng::with_seed(seed), left: 0 }
    }

    /// Returns an object of a schema.
    pub(crate) fn object(&mut self, schema: Option<&str>) -> Value {
        self.left = self.random.usize(20..400);
        let schema = schema.and_then(|name| self.description.schema(name));
        match schema {
            Some(schema) => self.value(schema, 0),
            None => json!({"spec": self.anything(2)}),
        }
    }

    fn one_of(&mut self, count: usize) -> bool {
        self.random.usize(..count) == 0
    }

    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        self.left = self.left.saturating_sub(1);
        if self.one_of(60) {
            return self.anything(depth);
        }
        let reference = schema.get("$ref").or_else(|| schema.pointer("/allOf/0/$ref"));
        if let Some(schema) = reference.and_then(|name| self.description.schema(text(name))) {
            return self.value(schema, depth);
        }
        if let Some(allowed) = schema["enum"].as_array().filter(|_| !self.one_of(8)) {
            return allowed.get(self.random.usize(..allowed.len().max(1))).cloned().unwrap_or_default();
        }
        match text(&schema["type"]) {
            "object" => self.members(schema, depth),
            "array" => {
                let most = if depth < MAX_DEPTH && self.left > 0 { 3 } else { 1 };
                (0..self.random.usize(..most)).map(|_| self.value(&schema["items"], depth + 1)).collect()
            }
            "string" => self.text(),
            "integer" | "number" => self.number(),
            "boolean" => self.random.bool().into(),
            _ => self.anything(depth),
        }
    }

    fn members(&mut self, schema: &Value, depth: usize) -> Value {
        let mut members = Map::new();
        let required: Vec<&str> = array(&schema["required"]).map(text).collect();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let is_wanted = if required.contains(&name.as_str()) {
                !self.one_of(20)
            } else {
                depth < MAX_DEPTH && self.left > 0 && self.one_of(3)
            };
            if is_wanted {
                members.insert(name.clone(), self.value(property, depth + 1));
            }
        }
        if let Some(of_values) = schema.get("additionalProperties") {
            for _ in 0..self.random.usize(..3) {
                let key = self.text();
                members.insert(text(&key).to_owned(), self.value(of_values, depth + 1));
            }
        }
        if self.one_of(30) {
            members.insert("unknown".to_owned(), self.anything(depth));
        }
        Value::Object(members)
    }

    fn text(&mut self) -> Value {
        if self.one_of(200) {
            let length = self.random.usize(..100_000);
            return "x".repeat(length).into();
        }
        TEXTS[self.random.usize(..TEXTS.len())].into()
    }

    fn number(&mut self) -> Value {
        match self.random.u32(..12) {
            0 => i64::MIN.into(),
            1 => i64::MAX.into(),
            2 => (-1).into(),
            3 => 0.5.into(),
            4 => 1e300.into(),
            5 => i64::from(i32::MAX).into(),
            6 => 65_536.into(),
            _ => self.random.i64(0..100).into(),
        }
    }

    /// Returns a value of no schema.
    pub(crate) fn anything(&mut self, depth: usize) -> Value {
        match self.random.u32(..8) {
            0 => Value::Null,
            1 => self.random.bool().into(),
            2 => self.number(),
            3 | 4 => self.text(),
            5 if depth < MAX_DEPTH => json!([self.anything(depth + 1)]),
            6 if depth < MAX_DEPTH => {
                let key = self.text();
                json!({text(&key): self.anything(depth + 1)})
            }
            7 => json!({}),
            _ => json!([]),
        }
    }

    /// Replaces a part of an object by another value.
    pub(crate) fn spoil(&mut self, value: &mut Value) {
        let mut value = value;
        for _ in 0..self.random.usize(..6) {
            let count = match &*value {
                Value::Object(members) => members.len(),
                Value::Array(items) => items.len(),
                _ => 0,
            };
            if count == 0 {
                break;
            }
            let index = self.random.usize(..count);
            let next = match value {
                Value::Object(members) => members.values_mut().nth(index),
                Value::Array(items) => items.get_mut(index),
                _ => None,
            };
            let Some(next) = next else { return };
            value = next;
        }
        *value = self.anything(3);
    }

    /// Changes some bytes of a body.
    pub(crate) fn spoil_bytes(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..self.random.usize(..4) {
            if bytes.is_empty() {
                return;
            }
            let at = self.random.usize(..bytes.len());
            match self.random.u32(..4) {
                0 => bytes[at] = self.random.u8(..),
                1 => bytes[at] ^= 1 << self.random.u32(..8),
                2 => drop(bytes.remove(at)),
                _ => bytes.truncate(at),
            }
        }
    }
}
