//! Makes random values of a schema, valid where the schema says how.

use fastrand::Rng;
use regex::Regex;
use serde_json::{Map, Value, json};

use super::rule::Step;
use super::sampler;

/// A generator of values.
pub(super) struct Generator<'a> {
    pub(super) rng: Rng,
    /// The texts and numbers that rules name.
    pub(super) words: &'a [String],
    /// The number of values that the present value may still have; beyond the number, only required fields are made.
    left: usize,
}

impl<'a> Generator<'a> {
    pub(super) fn new(rng: Rng, words: &'a [String]) -> Self {
        Self { rng, words, left: 0 }
    }

    /// Returns a value with about `size` values. Values along the steps of `wanted` exist.
    pub(super) fn value(&mut self, schema: &Value, size: usize, wanted: &[Step]) -> Value {
        self.left = size;
        self.make(schema, wanted)
    }

    fn make(&mut self, schema: &Value, wanted: &[Step]) -> Value {
        self.left = self.left.saturating_sub(1);
        if wanted.is_empty() {
            if let Some(default) = schema.get("default")
                && self.rng.u8(..4) == 0
            {
                return default.clone();
            }
            if let Some(values) = schema["enum"].as_array()
                && let Some(value) = self.rng.choice(values)
            {
                return value.clone();
            }
        }
        if schema["x-kubernetes-int-or-string"] == true {
            return if self.rng.bool() { self.integer(schema) } else { self.text(schema) };
        }
        match schema["type"].as_str() {
            Some("object") => self.object(schema, wanted),
            Some("array") => self.array(schema, wanted),
            Some("string") => self.text(schema),
            Some("integer") => self.integer(schema),
            Some("number") => json!(self.rng.f64() * 10.0),
            Some("boolean") => json!(self.rng.bool()),
            _ => json!({"any": self.rng.u8(..3)}),
        }
    }

    fn object(&mut self, schema: &Value, wanted: &[Step]) -> Value {
        let mut fields = Map::new();
        let (next, rest) = match wanted.split_first() {
            Some((Step::Property(name), rest)) => (Some(name), rest),
            Some((_, rest)) => (None, rest),
            None => (None, wanted),
        };
        let required: Vec<&str> = texts(&schema["required"]).collect();
        let optional = self.rng.u8(1..=4);
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            if is_reserved(schema, name) {
                continue;
            }
            let is_wanted = next == Some(name);
            let is_chosen = self.left > 0 && self.rng.u8(..8) < optional;
            if is_wanted || required.contains(&name.as_str()) || is_chosen {
                fields.insert(name.clone(), self.make(property, if is_wanted { rest } else { &[] }));
            }
        }
        self.entries(schema, wanted, &mut fields);
        if schema["x-kubernetes-embedded-resource"] == true {
            fields.insert("apiVersion".to_owned(), "v1".into());
            fields.insert("kind".to_owned(), "ConfigMap".into());
            fields.insert("metadata".to_owned(), json!({"name": "embedded"}));
        }
        self.branches(schema, next.map(String::as_str), &mut fields);
        if next.is_none() && self.rng.bool() {
            self.match_union(schema, &mut fields);
        }
        Value::Object(fields)
    }

    /// Sets a field of an enum, and makes the field that has the name of the value, as unions need: `type: HTTP` and
    /// `http`.
    pub(super) fn match_union(&mut self, schema: &Value, fields: &mut Map<String, Value>) {
        let Some(properties) = schema["properties"].as_object() else { return };
        let enums =
            properties.iter().filter_map(|(name, property)| Some((name, property["enum"].as_array()?)));
        let Some((name, values)) = self.rng.choice(enums.collect::<Vec<_>>()) else { return };
        let Some(value) = self.rng.choice(values) else { return };
        let values: Vec<String> = texts(&Value::from(values.clone())).map(str::to_lowercase).collect();
        let chosen = value.as_str().unwrap_or_default().to_lowercase();
        fields.retain(|field, _| !values.contains(&field.to_lowercase()));
        fields.insert(name.clone(), value.clone());
        for (field, property) in properties {
            if field.to_lowercase() == chosen {
                let made = self.make(property, &[]);
                fields.insert(field.clone(), made);
            }
        }
    }

    /// Adds entries of a map.
    fn entries(&mut self, schema: &Value, wanted: &[Step], fields: &mut Map<String, Value>) {
        let values = &schema["additionalProperties"];
        let is_wanted = wanted.first() == Some(&Step::Values);
        if !values.is_object() || self.left == 0 && !is_wanted && schema["minProperties"].is_null() {
            return;
        }
        let least = schema["minProperties"].as_u64().unwrap_or_default().max(u64::from(is_wanted));
        let most = schema["maxProperties"].as_u64().unwrap_or(least + 2).min(least + 2);
        for index in 0..self.rng.u64(least..=most.max(least)) {
            let key = if self.rng.bool() { format!("key{index}") } else { self.word() };
            let steps = if is_wanted && index == 0 { &wanted[1..] } else { &[] };
            fields.insert(key, self.make(values, steps));
        }
    }

    /// Chooses a branch of `oneOf` and `anyOf`, and makes the fields that the branch requires.
    fn branches(&mut self, schema: &Value, wanted: Option<&str>, fields: &mut Map<String, Value>) {
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.branches(&with_properties(part, schema), wanted, fields);
        }
        for keyword in ["oneOf", "anyOf"] {
            let Some(branches) = schema[keyword].as_array() else { continue };
            let named: Vec<&str> = branches.iter().flat_map(|branch| texts(&branch["required"])).collect();
            let is_of_wanted = |branch: &&Value| texts(&branch["required"]).any(|name| Some(name) == wanted);
            let branch = branches.iter().find(is_of_wanted).or_else(|| self.rng.choice(branches));
            let Some(branch) = branch else { continue };
            let required: Vec<&str> = texts(&branch["required"]).collect();
            if keyword == "oneOf" {
                fields.retain(|name, _| !named.contains(&name.as_str()) || required.contains(&name.as_str()));
            }
            for name in required {
                if let Some(property) = schema["properties"].get(name)
                    && !fields.contains_key(name)
                {
                    let value = self.make(property, &[]);
                    fields.insert(name.to_owned(), value);
                }
            }
        }
    }

    fn array(&mut self, schema: &Value, wanted: &[Step]) -> Value {
        let is_wanted = wanted.first() == Some(&Step::Items);
        let least = schema["minItems"].as_u64().unwrap_or_default().max(u64::from(is_wanted));
        let most = schema["maxItems"].as_u64().unwrap_or(least + 2).min(least + 2).max(least);
        let count = if self.left == 0 { least } else { self.rng.u64(least..=most) };
        let mut items: Vec<Value> = Vec::new();
        for index in 0..count {
            let steps = if is_wanted && index == 0 { &wanted[1..] } else { &[] };
            for _ in 0..4 {
                let item = self.make(&schema["items"], steps);
                if !items.iter().any(|known| are_same(schema, known, &item)) {
                    items.push(item);
                    break;
                }
            }
        }
        Value::Array(items)
    }

    fn integer(&mut self, schema: &Value) -> Value {
        let least = schema["minimum"].as_i64();
        let most = schema["maximum"].as_i64();
        let words = self.words;
        if self.rng.u8(..3) == 0
            && let Some(number) = self.rng.choice(words).and_then(|word| word.parse::<i64>().ok())
        {
            let number = number.saturating_add(self.rng.i64(-1..=1));
            if least.is_none_or(|least| number >= least) && most.is_none_or(|most| number <= most) {
                return json!(number);
            }
        }
        let least = least.unwrap_or_else(|| most.map_or(0, |most| most.min(0)));
        let most = most.unwrap_or(least.saturating_add(100)).max(least);
        json!(match self.rng.u8(..4) {
            0 => least,
            1 => most,
            _ => self.rng.i64(least..=most.min(least.saturating_add(1000))),
        })
    }

    fn text(&mut self, schema: &Value) -> Value {
        if let Some(values) = schema["enum"].as_array()
            && let Some(value) = self.rng.choice(values)
        {
            return value.clone();
        }
        if let Some(format) = schema["format"].as_str()
            && let Some(text) = self.formatted(format)
        {
            return text.into();
        }
        let patterns: Vec<&str> = all_of(schema, "pattern").filter_map(Value::as_str).collect();
        let compiled: Vec<Regex> = patterns.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect();
        let least = schema["minLength"].as_u64().unwrap_or_default() as usize;
        let most = schema["maxLength"].as_u64().unwrap_or(u64::MAX) as usize;
        let mut text = String::new();
        for _ in 0..12 {
            text = match patterns.first() {
                Some(pattern) if self.rng.u8(..3) > 0 => {
                    sampler::sample(pattern, &mut self.rng).unwrap_or_else(|| self.word())
                }
                _ => self.word(),
            };
            while text.chars().count() < least.min(1000) {
                text.push('x');
            }
            let length = text.chars().count();
            if length <= most && compiled.iter().all(|pattern| pattern.is_match(&text)) {
                break;
            }
        }
        text.into()
    }

    /// Returns a word of the rules, or a common word.
    pub(super) fn word(&mut self) -> String {
        let words = self.words;
        if self.rng.u8(..3) > 0
            && let Some(word) = self.rng.choice(words)
        {
            return word.clone();
        }
        if self.rng.u8(..30) == 0 {
            return format!("{}/name", "a".repeat(260));
        }
        self.rng.choice(COMMON).map_or_else(String::new, |word| (*word).to_owned())
    }

    fn formatted(&mut self, format: &str) -> Option<String> {
        let number = self.rng.u8(1..=9);
        Some(match format {
            "date-time" => format!("2020-01-0{number}T00:00:00Z"),
            "date" => format!("2020-01-0{number}"),
            "duration" => format!("{number}m"),
            "ipv4" => format!("10.1.2.{number}"),
            "ipv6" => format!("2001:db8::{number}"),
            "cidr" => format!("10.{number}.0.0/16"),
            "uri" => format!("https://example.com/{number}"),
            "email" => format!("user{number}@example.com"),
            "byte" => "YWJj".to_owned(),
            "uuid" => format!("00000000-0000-4000-8000-00000000000{number}"),
            _ => return None,
        })
    }
}

const COMMON: &[&str] = &[
    "a",
    "b",
    "abc",
    "",
    "default",
    "example.com",
    "*.example.com",
    "/",
    "/path",
    "1s",
    "10m",
    "1h",
    "80",
    "443",
    "1.2.3.4",
    "10.0.0.0/8",
    "2001:db8::1",
    "https://example.com/path",
    "v1",
    "100m",
    "1Gi",
    "5%",
    "Service",
    "HTTP",
    "HTTPS",
    "apps",
    "core",
    "Exact",
    "x-y",
    "name.with.dots",
    "RegularExpression",
    "true",
];

/// Returns the fields that the generator leaves to others: the type and the metadata of the object.
fn is_reserved(schema: &Value, name: &str) -> bool {
    let has = |name: &str| schema["properties"].get(name).is_some();
    matches!(name, "apiVersion" | "kind" | "metadata") && has("apiVersion") && has("kind") && has("metadata")
}

/// Returns whether two items of a list may not be together in the list.
pub(super) fn are_same(schema: &Value, one: &Value, other: &Value) -> bool {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => one == other,
        Some("map") => texts(&schema["x-kubernetes-list-map-keys"]).all(|key| one.get(key) == other.get(key)),
        _ => false,
    }
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Returns the values of a keyword in a schema and in the schema's `allOf`.
fn all_of<'a>(schema: &'a Value, keyword: &'a str) -> impl Iterator<Item = &'a Value> {
    let nested = schema["allOf"].as_array().into_iter().flatten();
    std::iter::once(schema).chain(nested).filter_map(move |schema| schema.get(keyword))
}

/// Returns a part of `allOf` with the properties of the whole schema.
fn with_properties(part: &Value, schema: &Value) -> Value {
    let mut part = part.clone();
    part["properties"] = schema["properties"].clone();
    part
}
