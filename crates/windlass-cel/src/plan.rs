//! Compiles a checked expression to a tree of steps, without names.

mod fold;
mod fold_constants;

use std::cell::OnceCell;
use std::sync::Arc;

use windlass_text::Expression;

use crate::ast::{Entry, Id, Init, Kind, Literal, Name, operator};
use crate::check::{Checked, Reference};
use crate::cost::actual::{CallCost, call_cost};
use crate::declare::{Function, Run};
use crate::env::Env;
use crate::error::Error;
use crate::escape::unescape;
use crate::types::Type;
use crate::value::{Text, TypeName, Value};

/// A step of an evaluation.
pub(crate) enum Node {
    Constant(Value<'static>),
    Attribute(Box<Attribute>),
    Logic(Box<Logic>),
    Equal(Box<Equal>),
    Call(Box<Call>),
    List(Box<ListNode>),
    Map(Vec<MapEntry>),
    Message(Box<MessageNode>),
    Fold(Box<Fold>),
    /// Appends an element to the list in a slot.
    Append(Box<Append>),
    /// Inserts into the map in a slot: a key and a value, or the entries of a map.
    Insert(Box<Insert>),
    /// A test whether a value is in a list of constants.
    Member(Box<Member>),
    NotStrictlyFalse(Box<Node>),
    /// The value of an optional, or else another optional or value.
    OrElse(Box<OrElse>),
    /// A call of a function that does not exist, in an expression that was not checked.
    Unknown(String),
}

/// A variable or another value, with fields and indices.
pub(crate) struct Attribute {
    pub(crate) base: Base,
    pub(crate) qualifiers: Vec<Qualifier>,
    /// True if only the presence of the last field matters.
    pub(crate) test: bool,
}

/// The value that an attribute begins with.
pub(crate) enum Base {
    Global {
        index: usize,
        name: Name,
    },
    Local(usize),
    /// The variable whose fields are the results of other expressions, with the names of the fields.
    Composition(Arc<Vec<Box<str>>>),
    /// A variable that is computed at its first use.
    Lazy {
        slot: usize,
        init: Arc<Node>,
    },
    Relative(Node),
    Conditional(Box<Conditional>),
}

/// `a ? b : c`
pub(crate) struct Conditional {
    pub(crate) condition: Node,
    pub(crate) truthy: Attribute,
    pub(crate) falsy: Attribute,
}

/// A field or an index.
pub(crate) struct Qualifier {
    pub(crate) key: QualifierKey,
    pub(crate) optional: bool,
}

pub(crate) enum QualifierKey {
    /// A field: its name in the expression, and in JSON objects with a schema.
    Field {
        name: Name,
        member: Option<Box<str>>,
    },
    Constant(Value<'static>),
    Attribute(Box<Attribute>),
    Node(Box<Node>),
}

/// `a && b` or `a || b`
pub(crate) struct Logic {
    /// The value that decides: false for `&&`.
    pub(crate) deciding: bool,
    pub(crate) terms: Vec<Node>,
}

/// `a == b` or `a != b`
pub(crate) struct Equal {
    pub(crate) negated: bool,
    pub(crate) left: Node,
    pub(crate) right: Node,
}

/// A call of a function.
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) dispatch: Dispatch,
    pub(crate) arguments: Vec<Node>,
    pub(crate) cost: Option<CallCost>,
    /// True if the first error of an argument ends the call, without costs.
    pub(crate) stops_early: bool,
    pub(crate) singleton: bool,
}

/// How the implementation of a call is found.
pub(crate) enum Dispatch {
    One(Run),
    /// The implementations by the types of the arguments.
    Many(Vec<(Vec<Type>, Run)>),
    /// A function with a regular expression that is known.
    Regex {
        kind: RegexCall,
        regex: Box<Expression>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RegexCall {
    Matches,
    Find,
    FindAll,
}

pub(crate) struct ListNode {
    pub(crate) elements: Vec<Node>,
    pub(crate) optional: Vec<usize>,
}

pub(crate) struct MapEntry {
    pub(crate) key: Node,
    pub(crate) value: Node,
    pub(crate) optional: bool,
}

pub(crate) struct MessageNode {
    /// The name of the type.
    pub(crate) name: Arc<str>,
    pub(crate) fields: Vec<FieldNode>,
}

pub(crate) struct FieldNode {
    pub(crate) name: Name,
    pub(crate) value: Node,
    pub(crate) optional: bool,
}

/// A loop.
pub(crate) struct Fold {
    pub(crate) range: Node,
    pub(crate) variable: usize,
    pub(crate) second: Option<usize>,
    pub(crate) accumulator: usize,
    /// The first value of the accumulator; `None` if the value is computed at its first use.
    pub(crate) init: Option<Node>,
    pub(crate) condition: Node,
    pub(crate) step: Node,
    pub(crate) result: Node,
}

pub(crate) struct Append {
    pub(crate) slot: usize,
    pub(crate) element: Node,
    /// True if `[element]` is a constant list without costs.
    pub(crate) constant: bool,
}

pub(crate) struct Insert {
    pub(crate) slot: usize,
    pub(crate) arguments: Vec<Node>,
}

pub(crate) struct Member {
    pub(crate) value: Node,
    pub(crate) set: Vec<Value<'static>>,
    /// The texts of the set, sorted, if there are only texts.
    pub(crate) texts: Option<Vec<Arc<str>>>,
}

pub(crate) struct OrElse {
    pub(crate) left: Node,
    pub(crate) right: Node,
    pub(crate) unwraps: bool,
}

/// The steps of an expression, and the number of slots that they use.
pub(crate) struct Plan {
    pub(crate) root: Node,
    pub(crate) slots: usize,
}

/// Compiles a checked expression. Constants are computed; the error of one is an error here.
pub(crate) fn plan(checked: &Checked, env: &Env) -> Result<Plan, Error> {
    let mut planner = Planner { checked, env, locals: Vec::new(), slots: 0, composed: OnceCell::new() };
    let root = planner.node(checked.ast.root)?;
    Ok(Plan { root, slots: planner.slots })
}

/// A variable of a macro.
#[derive(Clone)]
struct Local {
    name: Name,
    slot: usize,
    init: Option<Arc<Node>>,
}

struct Planner<'a> {
    checked: &'a Checked,
    env: &'a Env,
    locals: Vec<Local>,
    slots: usize,
    /// The fields of the variable whose fields are the results of other expressions.
    composed: OnceCell<Arc<Vec<Box<str>>>>,
}

impl Planner<'_> {
    fn new_slot(&mut self) -> usize {
        self.slots += 1;
        self.slots - 1
    }

    fn node(&mut self, id: Id) -> Result<Node, Error> {
        let checked = self.checked;
        match checked.ast.kind(id) {
            Kind::Literal(literal) => Ok(Node::Constant(constant(literal))),
            Kind::Ident(name) => Ok(self.ident(id, name)),
            Kind::Select { operand, field, test } => self.select(*operand, field, *test),
            Kind::Call { function, target, arguments } => self.call(id, function, *target, arguments),
            Kind::List { elements, optional } => self.list(elements, optional),
            Kind::Map(entries) => self.map(entries),
            Kind::Comprehension(fold) => self.fold(fold),
            Kind::Struct { fields, .. } => self.message(id, fields),
            Kind::Invalid => Err(Error::fixed("unsupported expression")),
        }
    }

    fn message(&mut self, id: Id, fields: &[Init]) -> Result<Node, Error> {
        let Reference::TypeName(Type::Struct(object)) = &self.checked.references[id as usize] else {
            return Err(Error::fixed("unsupported expression"));
        };
        let mut planned = Vec::with_capacity(fields.len());
        for init in fields {
            let value = self.node(init.value)?;
            planned.push(FieldNode { name: Arc::clone(&init.field), value, optional: init.optional });
        }
        Ok(Node::Message(Box::new(MessageNode { name: Arc::clone(&object.name), fields: planned })))
    }

    fn map(&mut self, entries: &[Entry]) -> Result<Node, Error> {
        let mut planned = Vec::with_capacity(entries.len());
        for entry in entries {
            let (key, value) = (self.node(entry.key)?, self.node(entry.value)?);
            planned.push(MapEntry { key, value, optional: entry.optional });
        }
        Ok(if self.env.folds_constants { fold_constants::map(planned) } else { Node::Map(planned) })
    }

    fn nodes(&mut self, ids: impl IntoIterator<Item = Id>) -> Result<Vec<Node>, Error> {
        // A loop needs less of the stack than `collect` in a debug build.
        let mut planned = Vec::new();
        for id in ids {
            planned.push(self.node(id)?);
        }
        Ok(planned)
    }

    fn ident(&self, id: Id, name: &Name) -> Node {
        let base = match &self.checked.references[id as usize] {
            Reference::Variable(index) if self.env.is_composition(*index) => {
                let fields = || Arc::new(self.env.composed_fields(*index));
                Base::Composition(Arc::clone(self.composed.get_or_init(fields)))
            }
            Reference::Variable(index) => Base::Global { index: *index, name: Arc::clone(name) },
            Reference::TypeName(known) => return Node::Constant(Value::Type(TypeName::of(known))),
            _ => {
                match self.locals.iter().rev().find(|local| local.name == *name) {
                    Some(Local { slot, init: Some(init), .. }) => {
                        Base::Lazy { slot: *slot, init: Arc::clone(init) }
                    }
                    Some(local) => Base::Local(local.slot),
                    // Only an expression that was not checked has names that are not known.
                    None => Base::Global { index: usize::MAX, name: Arc::clone(name) },
                }
            }
        };
        attribute(base)
    }

    fn select(&mut self, operand: Id, field: &Name, test: bool) -> Result<Node, Error> {
        let mut attribute = into_attribute(self.node(operand)?);
        let key = field_key(field);
        attribute.qualifiers.push(Qualifier { key, optional: false });
        attribute.test = test;
        Ok(Node::Attribute(Box::new(attribute)))
    }

    fn list(&mut self, elements: &[Id], optional: &[usize]) -> Result<Node, Error> {
        let elements = self.nodes(elements.iter().copied())?;
        if self.env.folds_constants {
            return Ok(fold_constants::list(elements, optional));
        }
        Ok(Node::List(Box::new(ListNode { elements, optional: optional.to_vec() })))
    }

    fn call(&mut self, id: Id, name: &str, target: Option<Id>, arguments: &[Id]) -> Result<Node, Error> {
        if let Some(node) = self.accumulate(name, target, arguments)? {
            return Ok(node);
        }
        let planned = self.nodes(target.iter().chain(arguments).copied())?;
        self.call_planned(id, name, planned)
    }

    /// Compiles a call whose arguments are compiled. The function is apart from [`Self::call`], which recurs and thus should
    /// need little of the stack.
    fn call_planned(&mut self, id: Id, name: &str, mut planned: Vec<Node>) -> Result<Node, Error> {
        match name {
            operator::AND | operator::OR => {
                let deciding = name == operator::OR;
                return Ok(Node::Logic(Box::new(Logic { deciding, terms: planned })));
            }
            operator::CONDITIONAL => return Ok(conditional(planned)),
            operator::EQUALS | operator::NOT_EQUALS => {
                let (Some(right), Some(left)) = (planned.pop(), planned.pop()) else {
                    return Err(Error::no_overload());
                };
                let negated = name == operator::NOT_EQUALS;
                return Ok(Node::Equal(Box::new(Equal { negated, left, right })));
            }
            operator::INDEX => return Ok(index(planned, false)),
            operator::OPTIONAL_INDEX | operator::OPTIONAL_SELECT => return Ok(index(planned, true)),
            operator::NOT_STRICTLY_FALSE => {
                let argument = planned.pop().ok_or(Error::no_overload())?;
                return Ok(Node::NotStrictlyFalse(Box::new(argument)));
            }
            _ => {}
        }
        match self.env.function(name) {
            Some(function) => self.call_function(id, function, planned),
            None => Ok(Node::Unknown(name.to_owned())),
        }
    }

    fn call_function(
        &mut self,
        id: Id,
        function: &Function,
        mut arguments: Vec<Node>,
    ) -> Result<Node, Error> {
        let matching: &[usize] = match &self.checked.references[id as usize] {
            Reference::Overloads(matching) => matching,
            _ => &[],
        };
        let overload = if let [only] = matching { Some(&function.overloads[*only]) } else { None };
        let overload_id = overload.map_or("", |overload| overload.id);
        if matches!(overload_id, "optional_or_optional" | "optional_orValue_value") {
            let (Some(right), Some(left)) = (arguments.pop(), arguments.pop()) else {
                return Err(Error::no_overload());
            };
            let unwraps = overload_id == "optional_orValue_value";
            return Ok(Node::OrElse(Box::new(OrElse { left, right, unwraps })));
        }
        if overload_id == "in_list"
            && self.env.folds_constants
            && let Some(node) = fold_constants::membership(&mut arguments)
        {
            return Ok(node);
        }
        let dispatch = match (fold_constants::regex(function.name, &arguments)?, overload) {
            (Some(dispatch), _) => dispatch,
            (None, Some(overload)) => Dispatch::One(overload.run),
            (None, None) if function.singleton => Dispatch::One(function.overloads[0].run),
            (None, None) => Dispatch::Many(
                function
                    .overloads
                    .iter()
                    .filter(|overload| overload.parameters.len() == arguments.len())
                    .map(|overload| (overload.parameters.clone(), overload.run))
                    .collect(),
            ),
        };
        let stops_early = arguments.len() > 2
            || overload_id == "string_format"
            || matches!(dispatch, Dispatch::Many(_) | Dispatch::Regex { .. });
        let call = Call {
            name: function.name,
            cost: call_cost(function.name, overload_id),
            dispatch,
            arguments,
            stops_early,
            singleton: function.singleton,
        };
        if self.env.folds_constants {
            fold_constants::conversion(call)
        } else {
            Ok(Node::Call(Box::new(call)))
        }
    }
}

fn constant(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::String(text) => Value::String(Text::Shared(Arc::clone(text))),
        Literal::Bytes(bytes) => Value::Bytes(Arc::clone(bytes)),
    }
}

fn attribute(base: Base) -> Node {
    Node::Attribute(Box::new(Attribute { base, qualifiers: Vec::new(), test: false }))
}

/// Returns the attribute of a node, or an attribute that begins with the node.
fn into_attribute(node: Node) -> Attribute {
    match node {
        Node::Attribute(attribute) => *attribute,
        node => Attribute { base: Base::Relative(node), qualifiers: Vec::new(), test: false },
    }
}

fn field_key(field: &Name) -> QualifierKey {
    QualifierKey::Field { name: Arc::clone(field), member: unescape(field).map(Into::into) }
}

fn conditional(planned: Vec<Node>) -> Node {
    let mut planned = planned.into_iter();
    let (Some(condition), Some(truthy), Some(falsy)) = (planned.next(), planned.next(), planned.next())
    else {
        return Node::Constant(Value::Null);
    };
    let (truthy, falsy) = (into_attribute(truthy), into_attribute(falsy));
    attribute(Base::Conditional(Box::new(Conditional { condition, truthy, falsy })))
}

fn index(planned: Vec<Node>, optional: bool) -> Node {
    let mut planned = planned.into_iter();
    let (Some(operand), Some(index)) = (planned.next(), planned.next()) else {
        return Node::Constant(Value::Null);
    };
    let mut attribute = into_attribute(operand);
    let key = match index {
        Node::Constant(Value::String(text)) => field_key(&Name::from(&*text)),
        Node::Constant(value) => QualifierKey::Constant(value),
        Node::Attribute(attribute) => QualifierKey::Attribute(attribute),
        node => QualifierKey::Node(Box::new(node)),
    };
    attribute.qualifiers.push(Qualifier { key, optional });
    Node::Attribute(Box::new(attribute))
}
