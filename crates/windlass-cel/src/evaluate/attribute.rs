//! Evaluates variables with fields and indices.

use std::sync::Arc;

use serde_json::Value as Json;

use super::{Evaluator, Slot, costs, unshare};
use crate::error::Error;
use crate::plan::{Attribute, Base, Qualifier, QualifierKey};
use crate::schema::Schema;
use crate::value::{Library, Map, Value};

impl<'a> Evaluator<'_, 'a> {
    /// Evaluates an attribute. The cost of a conditional is that of its condition and branch.
    pub(super) fn attribute(&mut self, attribute: &Attribute) -> Result<Value<'a>, Error> {
        let result = self.resolve(attribute);
        let conditional = matches!(attribute.base, Base::Conditional(_));
        if !conditional && !attribute.test {
            self.meter.charge(costs::IDENT)?;
        } else if conditional && attribute.test {
            self.meter.cost = self.meter.cost.saturating_sub(costs::IDENT);
        }
        match result? {
            Value::Optional(value) if attribute.test => Ok(Value::Bool(value.is_some())),
            value => Ok(value),
        }
    }

    /// Evaluates an attribute without the cost of the attribute itself.
    pub(super) fn resolve(&mut self, attribute: &Attribute) -> Result<Value<'a>, Error> {
        let base = match attribute.qualifiers.split_first() {
            Some((Qualifier { key: QualifierKey::Field { name, .. }, optional }, rest))
                if matches!(attribute.base, Base::Composition(_)) =>
            {
                self.meter.charge(costs::FIELD)?;
                let value = self.compute(name)?;
                if rest.is_empty() && attribute.test {
                    return Ok(Value::Bool(true));
                }
                let value = if *optional { Value::some(value) } else { value };
                return self.follow(value, rest, attribute.test);
            }
            _ => self.base(&attribute.base)?,
        };
        self.follow(base, &attribute.qualifiers, attribute.test)
    }

    /// Computes the result of another expression.
    fn compute(&mut self, name: &str) -> Result<Value<'a>, Error> {
        // The other expression counts its memory, and the limits hold for both expressions together.
        self.meter.share(self.limits);
        let value = self.variables.composed(name);
        self.meter.refresh(self.limits);
        value
    }

    /// Returns a field of the value of the variable whose fields are the results of other expressions; `None` if there is none.
    fn composed_field(&mut self, fields: &[Box<str>], name: &str) -> Result<Option<Value<'a>>, Error> {
        if fields.iter().any(|field| **field == *name) { self.compute(name).map(Some) } else { Ok(None) }
    }

    /// Follows fields and indices from a value.
    fn follow(&mut self, base: Value<'a>, qualifiers: &[Qualifier], tests: bool) -> Result<Value<'a>, Error> {
        if qualifiers.is_empty() {
            return Ok(base);
        }
        let (mut value, mut optional) = match base {
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(value)) => (unshare(value), true),
            value => (value, false),
        };
        let last = qualifiers.len() - 1;
        let mut walked = 0;
        if let (Value::Map(Map::Json(members, schema)), false) = (&value, optional) {
            let plain = if tests { &qualifiers[..last] } else { qualifiers };
            (value, walked) = self.walk(members, schema, plain)?;
        }
        for (index, qualifier) in qualifiers.iter().enumerate().skip(walked) {
            optional |= qualifier.optional;
            let test = tests && index == last;
            value = match self.qualify(value, qualifier, optional, test)? {
                Some(value) => value,
                None => return Ok(Value::Optional(None)),
            };
        }
        Ok(if optional { Value::some(value) } else { value })
    }

    /// Follows the first fields through objects with a schema. Returns the value, and the number of fields.
    fn walk(
        &mut self,
        mut members: &'a serde_json::Map<String, Json>,
        mut schema: &'a Schema,
        qualifiers: &[Qualifier],
    ) -> Result<(Value<'a>, usize), Error> {
        let mut walked = 0;
        for qualifier in qualifiers {
            let QualifierKey::Field { name, member } = &qualifier.key else { break };
            if qualifier.optional {
                break;
            }
            self.meter.charge(costs::FIELD)?;
            let member = if schema.has_fields() { member.as_deref() } else { Some(&**name) };
            let Some((json, of_json)) = member.and_then(|member| schema.member(members, member)) else {
                return Err(Error::new(format!("no such key: {name}")));
            };
            walked += 1;
            match json {
                Json::Object(nested) if of_json.has_members() => (members, schema) = (nested, of_json),
                _ => return Ok((Value::with_schema(json, of_json)?, walked)),
            }
        }
        Ok((Value::Map(Map::Json(members, schema)), walked))
    }

    fn base(&mut self, base: &Base) -> Result<Value<'a>, Error> {
        match base {
            Base::Global { index, name } => self
                .variables
                .get(*index)
                .unwrap_or_else(|| Err(Error::new(format!("no such attribute(s): {name}")))),
            Base::Local(slot) => self.slot(*slot),
            Base::Composition(fields) => Ok(Value::Library(Library::Composition(Arc::clone(fields)))),
            Base::Lazy { slot, init } => {
                if matches!(self.slots[*slot], Slot::Empty) {
                    let value = self.eval(init);
                    if value.as_ref().is_err_and(Error::is_fatal) {
                        return value;
                    }
                    self.slots[*slot] = Slot::Value(value);
                }
                self.slot(*slot)
            }
            Base::Relative(node) => self.eval(node),
            Base::Conditional(node) => match self.eval(&node.condition)? {
                Value::Bool(true) => self.resolve(&node.truthy),
                Value::Bool(false) => self.resolve(&node.falsy),
                _ => Err(Error::no_overload()),
            },
        }
    }

    fn slot(&self, slot: usize) -> Result<Value<'a>, Error> {
        match &self.slots[slot] {
            Slot::Value(value) => value.clone(),
            Slot::Empty => Err(Error::fixed("no such attribute(s): a variable without a value")),
        }
    }

    /// Returns a field or an element. `None` is the absence of an optional one.
    fn qualify(
        &mut self,
        value: Value<'a>,
        qualifier: &Qualifier,
        optional: bool,
        test: bool,
    ) -> Result<Option<Value<'a>>, Error> {
        let key = match &qualifier.key {
            QualifierKey::Field { name, member } => {
                let found = match &value {
                    Value::Library(Library::Composition(fields)) => self.composed_field(fields, name),
                    value => find_field(value, name, member.as_deref()),
                };
                return self.qualified(found, optional, test, || format!("no such key: {name}"));
            }
            QualifierKey::Constant(value) => Ok(value.clone()),
            QualifierKey::Attribute(attribute) => self.resolve(attribute),
            QualifierKey::Node(node) => self.eval(node),
        };
        let key = match key {
            Ok(key) => key,
            Err(error) if error.is_fatal() => return Err(error),
            Err(error) => {
                self.meter.charge(costs::FIELD)?;
                return Err(error);
            }
        };
        let found = match (&value, &key) {
            (Value::Library(Library::Composition(fields)), Value::String(name)) => {
                self.composed_field(fields, name)
            }
            (Value::Library(Library::Composition(_)), _) => Err(Error::no_overload()),
            (value, key) => find(value, key),
        };
        let is_list = matches!(value, Value::List(_));
        self.qualified(found, optional, test, || {
            if is_list { format!("index out of bounds: {key}") } else { format!("no such key: {key}") }
        })
    }

    /// Charges for a field, and decides about an absent one.
    fn qualified(
        &mut self,
        found: Result<Option<Value<'a>>, Error>,
        optional: bool,
        test: bool,
        missing: impl FnOnce() -> String,
    ) -> Result<Option<Value<'a>>, Error> {
        if optional && !test && matches!(found, Ok(None)) {
            return Ok(None);
        }
        self.meter.charge(costs::FIELD)?;
        match found? {
            value if test && !optional => Ok(Some(Value::Bool(value.is_some()))),
            None if !optional => Err(Error::new(missing())),
            value => Ok(value),
        }
    }
}

/// Returns a field of a value; `None` if there is none.
fn find_field<'a>(value: &Value<'a>, name: &str, member: Option<&str>) -> Result<Option<Value<'a>>, Error> {
    match value {
        Value::Map(map @ Map::Json(_, schema)) if schema.has_fields() => match member {
            Some(member) => map.get_field(member),
            None => Ok(None),
        },
        Value::Map(map) => map.get_field(name),
        Value::Library(Library::Message(message)) => message.get(name),
        Value::List(_) => Err(Error::fixed("unsupported index type 'string' in list")),
        _ => Ok(None),
    }
}

/// Returns the element of a list or map; `None` if there is none.
fn find<'a>(value: &Value<'a>, key: &Value<'_>) -> Result<Option<Value<'a>>, Error> {
    match value {
        Value::Map(map) => map.get(key),
        Value::List(list) => {
            let index = match key {
                Value::Int(index) => *index,
                Value::Uint(index) => i64::try_from(*index).map_err(|_| unsupported(key))?,
                Value::Double(index) if index.fract() == 0.0 && index.abs() < 9e18 => *index as i64,
                Value::Double(_) => return Err(unsupported(key)),
                other => {
                    return Err(Error::new(format!(
                        "unsupported index type '{}' in list",
                        other.type_name()
                    )));
                }
            };
            match usize::try_from(index) {
                Ok(index) => list.get(index).transpose(),
                Err(_) => Ok(None),
            }
        }
        _ => Ok(None),
    }
}

fn unsupported(key: &Value<'_>) -> Error {
    Error::new(format!("unsupported index value {key} in list"))
}
