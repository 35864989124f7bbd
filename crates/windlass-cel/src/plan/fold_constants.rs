//! Computes what is constant when an expression is compiled.

use std::sync::Arc;

use super::{Call, Dispatch, ListNode, MapEntry, Member, Node, RegexCall};
use crate::error::Error;
use crate::meter::Meter;
use crate::regex::compile;
use crate::value::{Entries, Key, List, Map, Value};

pub(super) fn list(elements: Vec<Node>, optional: &[usize]) -> Node {
    if optional.is_empty() && elements.iter().all(is_constant) {
        let values = elements.into_iter().filter_map(into_constant).collect();
        return Node::Constant(Value::List(List::of(values)));
    }
    Node::List(Box::new(ListNode { elements, optional: optional.to_vec() }))
}

pub(super) fn map(entries: Vec<MapEntry>) -> Node {
    let has_key = |node: &Node| matches!(node, Node::Constant(value) if Key::of(value).is_some());
    let constant = |entry: &MapEntry| !entry.optional && has_key(&entry.key) && is_constant(&entry.value);
    if !entries.iter().all(constant) {
        return Node::Map(entries);
    }
    let mut values = Entries::default();
    for entry in entries {
        if let (Node::Constant(key), Node::Constant(value)) = (entry.key, entry.value)
            && let Some(key) = Key::of(&key)
        {
            values.insert(key, value);
        }
    }
    Node::Constant(Value::Map(Map::of(values)))
}

fn is_constant(node: &Node) -> bool {
    matches!(node, Node::Constant(_))
}

fn into_constant(node: Node) -> Option<Value<'static>> {
    if let Node::Constant(value) = node { Some(value) } else { None }
}

/// Compiles `value in [constants]`, if the constants are scalars.
pub(super) fn membership(arguments: &mut Vec<Node>) -> Option<Node> {
    let Some(Node::Constant(Value::List(list))) = arguments.last() else { return None };
    let set: Vec<Value<'static>> = list.iter().collect::<Result<_, _>>().ok()?;
    if set.is_empty() {
        return Some(Node::Constant(Value::Bool(false)));
    }
    let scalar = |value: &Value<'_>| {
        matches!(value, Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_))
    };
    if !set.iter().all(scalar) {
        return None;
    }
    let texts: Option<Vec<Arc<str>>> = set.iter().map(|value| value.as_str().map(Arc::from)).collect();
    let texts = texts.map(|mut texts| {
        texts.sort();
        texts
    });
    arguments.pop();
    let value = arguments.pop()?;
    Some(Node::Member(Box::new(Member { value, set, texts })))
}

/// Compiles the constant regular expression of a call.
pub(super) fn regex(name: &str, arguments: &[Node]) -> Result<Option<Dispatch>, Error> {
    let kind = match name {
        "matches" => RegexCall::Matches,
        "find" => RegexCall::Find,
        "findAll" => RegexCall::FindAll,
        _ => return Ok(None),
    };
    match arguments.get(1) {
        Some(Node::Constant(Value::String(pattern))) => {
            let regex = Box::new(compile(pattern).map_err(Error::new)?);
            Ok(Some(Dispatch::Regex { kind, regex }))
        }
        _ => Ok(None),
    }
}

/// Computes the conversion of a constant.
pub(super) fn conversion(call: Call) -> Result<Node, Error> {
    let converts = matches!(
        call.name,
        "bool" | "bytes" | "double" | "duration" | "dyn" | "int" | "string" | "timestamp" | "type" | "uint"
    );
    if converts
        && let ([Node::Constant(argument)], Dispatch::One(run)) = (call.arguments.as_slice(), &call.dispatch)
    {
        let mut meter = Meter::new(u64::MAX);
        let argument = argument.clone();
        return match run(&mut meter, std::slice::from_ref(&argument)) {
            Ok(value) => Ok(Node::Constant(value)),
            Err(error) if error.is_mismatch() => Err(Error::no_overload()),
            Err(error) => Err(error),
        };
    }
    Ok(Node::Call(Box::new(call)))
}
