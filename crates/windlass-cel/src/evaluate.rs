//! Evaluates a plan, and counts its cost as cel-go does.

mod attribute;
mod call;
mod fold;

use std::sync::Arc;

use crate::ast::Name;
use crate::error::Error;
use crate::meter::{Limits, Meter};
use crate::plan::{Equal, FieldNode, ListNode, Logic, MapEntry, Member, MessageNode, Node, OrElse, Plan};
use crate::value::{Entries, Key, Library, List, Map, Message, Value, equal};

/// The variables of an evaluation, in the order in which the environment declares the variables.
pub trait Activation<'a> {
    /// Returns the value of a variable, or `None` if the variable has no value.
    fn get(&self, index: usize) -> Option<Result<Value<'a>, Error>>;

    /// Returns a field of the variable whose fields are the results of other expressions.
    fn composed(&self, name: &str) -> Result<Value<'a>, Error> {
        Err(Error::new(format!("no such key: {name}")))
    }
}

impl<'a> Activation<'a> for [Value<'a>] {
    fn get(&self, index: usize) -> Option<Result<Value<'a>, Error>> {
        <[_]>::get(self, index).cloned().map(Ok)
    }
}

impl<'a, const N: usize> Activation<'a> for [Value<'a>; N] {
    fn get(&self, index: usize) -> Option<Result<Value<'a>, Error>> {
        <[_]>::get(self, index).cloned().map(Ok)
    }
}

impl<'a> Activation<'a> for Vec<Value<'a>> {
    fn get(&self, index: usize) -> Option<Result<Value<'a>, Error>> {
        <[_]>::get(self, index).cloned().map(Ok)
    }
}

/// The costs of the operations of the language.
pub(crate) mod costs {
    pub(crate) const IDENT: u64 = 1;
    pub(crate) const FIELD: u64 = 1;
    pub(crate) const LIST: u64 = 10;
    pub(crate) const MAP: u64 = 30;
    pub(crate) const MESSAGE: u64 = 40;
    pub(crate) const CALL: u64 = 1;
    /// The cost of a character of a text that is looked at.
    pub(crate) const CHARACTER: f64 = 0.1;
    /// The cost of a character of a regular expression, for each character of the text.
    pub(crate) const PATTERN: f64 = 0.25;
}

/// Evaluates a plan. Returns the result, and the cost.
pub(crate) fn evaluate<'a>(
    plan: &Plan,
    variables: &dyn Activation<'a>,
    limits: &Limits<'_>,
) -> (Result<Value<'a>, Error>, u64) {
    let slots = (0..plan.slots).map(|_| Slot::Empty).collect();
    let mut evaluator = Evaluator { variables, slots, meter: Meter::within(limits), limits };
    let result = evaluator.eval(&plan.root);
    evaluator.meter.share(limits);
    (result, evaluator.meter.cost)
}

/// The value of a variable of a macro.
enum Slot<'a> {
    Empty,
    Value(Result<Value<'a>, Error>),
}

struct Evaluator<'e, 'a> {
    variables: &'e dyn Activation<'a>,
    slots: Vec<Slot<'a>>,
    meter: Meter,
    limits: &'e Limits<'e>,
}

impl<'a> Evaluator<'_, 'a> {
    fn eval(&mut self, node: &Node) -> Result<Value<'a>, Error> {
        match node {
            Node::Constant(value) => Ok(value.clone()),
            Node::Attribute(attribute) => self.attribute(attribute),
            Node::Logic(logic) => self.logic(logic),
            Node::Equal(node) => self.equal(node),
            Node::Call(call) => self.call(call),
            Node::List(list) => self.list(list),
            Node::Map(entries) => self.map(entries),
            Node::Message(message) => self.message(message),
            Node::Fold(fold) => self.fold(fold),
            Node::Append(append) => self.append(append),
            Node::Insert(insert) => self.insert(insert),
            Node::Member(member) => self.member(member),
            Node::NotStrictlyFalse(argument) => {
                let value = self.eval(argument);
                self.meter.charge(costs::CALL)?;
                match value {
                    Ok(Value::Bool(value)) => Ok(Value::Bool(value)),
                    Err(error) if error.is_fatal() => Err(error),
                    _ => Ok(Value::Bool(true)),
                }
            }
            Node::OrElse(node) => self.or_else(node),
            Node::Unknown(name) => Err(Error::new(format!("no such overload: {name}"))),
        }
    }

    fn logic(&mut self, logic: &Logic) -> Result<Value<'a>, Error> {
        let mut failure = None;
        for term in &logic.terms {
            match self.eval(term) {
                Ok(Value::Bool(value)) if value == logic.deciding => return Ok(Value::Bool(value)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => _ = failure.get_or_insert(Error::no_overload()),
                Err(error) if error.is_fatal() => return Err(error),
                Err(error) => _ = failure.get_or_insert(error),
            }
        }
        failure.map_or(Ok(Value::Bool(!logic.deciding)), Err)
    }

    fn equal(&mut self, node: &Equal) -> Result<Value<'a>, Error> {
        let left = self.eval(&node.left);
        if let Err(error) = &left
            && error.is_fatal()
        {
            return left;
        }
        let right = self.eval(&node.right);
        if let Err(error) = &right
            && error.is_fatal()
        {
            return right;
        }
        let cost = crate::cost::actual::equality(&left, &right, node.negated);
        let (left, right) = match (left, right) {
            (Ok(left), Ok(right)) => (left, right),
            (Err(error), _) | (_, Err(error)) => {
                self.meter.charge(cost)?;
                return Err(error);
            }
        };
        let result = equal(&mut self.meter, &left, &right);
        self.meter.charge(cost)?;
        match result {
            Ok(equal) => Ok(Value::Bool(equal != node.negated)),
            // Values that cannot be compared are not equal.
            Err(error) if node.negated && !error.is_fatal() => Ok(Value::Bool(true)),
            Err(error) => Err(error),
        }
    }

    fn list(&mut self, list: &ListNode) -> Result<Value<'a>, Error> {
        let mut values = Vec::with_capacity(list.elements.len());
        let result = self.elements(list, &mut values);
        self.meter.charge(costs::LIST)?;
        result?;
        self.meter.allocate(values.len() * size_of::<Value<'_>>())?;
        Ok(Value::List(List::of(values)))
    }

    fn elements(&mut self, list: &ListNode, values: &mut Vec<Value<'a>>) -> Result<(), Error> {
        for (index, element) in list.elements.iter().enumerate() {
            let value = self.eval(element)?;
            if !list.optional.contains(&index) {
                values.push(value);
                continue;
            }
            match value {
                Value::Optional(Some(value)) => values.push(unshare(value)),
                Value::Optional(None) => {}
                value => {
                    return Err(Error::new(format!(
                        "cannot initialize optional list element from non-optional value {value}"
                    )));
                }
            }
        }
        Ok(())
    }

    fn map(&mut self, nodes: &[MapEntry]) -> Result<Value<'a>, Error> {
        let mut entries = Entries::default();
        let result = self.entries(nodes, &mut entries);
        self.meter.charge(costs::MAP)?;
        result?;
        self.meter.allocate(nodes.len() * 2 * size_of::<Value<'_>>())?;
        Ok(Value::Map(Map::of(entries)))
    }

    fn entries(&mut self, nodes: &[MapEntry], entries: &mut Entries<'a>) -> Result<(), Error> {
        for node in nodes {
            let key = self.eval(&node.key)?;
            let value = self.eval(&node.value)?;
            let Some(named) = Key::of(&key) else {
                return Err(Error::new(format!("unsupported key type: {}", key.type_name())));
            };
            match value {
                value if !node.optional => _ = entries.insert(named, value),
                Value::Optional(Some(value)) => _ = entries.insert(named, unshare(value)),
                Value::Optional(None) => entries.remove(&named),
                value => {
                    return Err(Error::new(format!(
                        "cannot initialize optional entry '{key}' from non-optional value {value}"
                    )));
                }
            }
        }
        Ok(())
    }

    fn message(&mut self, node: &MessageNode) -> Result<Value<'a>, Error> {
        let mut fields = Vec::with_capacity(node.fields.len());
        let result = self.fields(&node.fields, &mut fields);
        self.meter.charge(costs::MESSAGE)?;
        result?;
        self.meter.allocate(fields.len() * 2 * size_of::<Value<'_>>())?;
        let message = Message::new(Arc::clone(&node.name), fields)?;
        Ok(Value::Library(Library::Message(Arc::new(message))))
    }

    fn fields(&mut self, nodes: &[FieldNode], fields: &mut Vec<(Name, Value<'a>)>) -> Result<(), Error> {
        for node in nodes {
            let name = Arc::clone(&node.name);
            match self.eval(&node.value)? {
                value if !node.optional => fields.push((name, value)),
                Value::Optional(Some(value)) => fields.push((name, unshare(value))),
                Value::Optional(None) => {}
                value => {
                    return Err(Error::new(format!(
                        "cannot initialize optional entry '{name}' from non-optional value {value}"
                    )));
                }
            }
        }
        Ok(())
    }

    fn member(&mut self, member: &Member) -> Result<Value<'a>, Error> {
        let value = self.eval(&member.value)?;
        if let Some(texts) = &member.texts {
            let found = value
                .as_str()
                .is_some_and(|text| texts.binary_search_by(|known| (**known).cmp(text)).is_ok());
            return Ok(Value::Bool(found));
        }
        for known in &member.set {
            if equal(&mut self.meter, &value, known).unwrap_or_default() {
                return Ok(Value::Bool(true));
            }
        }
        Ok(Value::Bool(false))
    }

    fn or_else(&mut self, node: &OrElse) -> Result<Value<'a>, Error> {
        match self.eval(&node.left)? {
            Value::Optional(None) => self.eval(&node.right),
            Value::Optional(Some(value)) if node.unwraps => Ok(unshare(value)),
            value => Ok(value),
        }
    }
}

/// Returns the value of a shared value.
pub(crate) fn unshare(value: Arc<Value<'_>>) -> Value<'_> {
    Arc::unwrap_or_clone(value)
}
