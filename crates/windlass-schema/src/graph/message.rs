//! The fields of a message in the order of the encoding.

use super::{Additional, Edge, EmptyPolicy, NamedNodes, Node, ProtoKind, Target};

/// The protobuf message of a definition.
#[derive(Debug)]
pub(crate) struct Message {
    /// The fields, sorted by the names in JSON.
    pub(crate) fields: Box<[Field]>,
    /// The fields and the inlined messages, sorted by number.
    pub(crate) parts: Box<[Part]>,
}

/// A field of a message.
#[derive(Debug)]
pub(crate) struct Field {
    /// The name in JSON.
    pub(crate) name: Box<str>,
    pub(crate) number: u32,
    /// True if an absent field is not written. All other fields are written with the zero value.
    pub(crate) is_optional: bool,
    pub(crate) form: Form,
}

/// The repetition of the value of a field.
#[derive(Debug)]
pub(crate) enum Form {
    One(ValueForm),
    Repeated(ValueForm),
    Map(ValueForm),
}

/// The encoding of a value. Messages are named by the index of the definition.
#[derive(Debug)]
pub(crate) enum ValueForm {
    Bool,
    Int,
    Double,
    String,
    Bytes,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    Raw,
    Message(u32),
    SchemaOrBool(u32),
    SchemaOrArray(u32),
    SchemaOrStrings(u32),
    /// A message that wraps a list: the number of the items and the encoding of an item.
    List(u32, Box<ValueForm>),
}

/// A part of a message, in the order of the encoding.
#[derive(Debug)]
pub(crate) enum Part {
    /// The index of a field.
    Field(usize),
    /// A message that JSON inlines.
    Inlined { number: u32, parts: Box<[Part]> },
}

impl Part {
    fn number(&self, fields: &[Field]) -> u32 {
        match self {
            Self::Field(index) => fields[*index].number,
            Self::Inlined { number, .. } => *number,
        }
    }
}

impl Message {
    /// Returns the message of a definition. Fields without a number in protobuf, such as `kind`, are left out.
    pub(crate) fn compile(node: &Node, definitions: &dyn NamedNodes) -> Self {
        let encoded = node.properties.iter().filter_map(|(name, edge)| {
            let (proto, form) = (edge.proto?, form(edge, definitions)?);
            let is_optional = edge.empty == EmptyPolicy::Keep;
            let field = Field { name: name.clone(), number: proto.number, is_optional, form };
            Some((field, proto.through))
        });
        let (fields, through): (Vec<Field>, Vec<[u32; 2]>) = encoded.unzip();
        let parts = parts(&fields, &through, &[]);
        Self { fields: fields.into(), parts }
    }

    /// Returns the index of the field with a name. `next` is the index after the last result: the names of an object are
    /// sorted in most texts, and are then found without a search.
    pub(crate) fn position(&self, name: &[u8], next: &mut usize) -> Option<usize> {
        let rest = &self.fields[*next..];
        let skipped = rest.iter().take_while(|field| field.name.as_bytes() < name).count();
        let is_at = |index: usize| self.fields.get(index).is_some_and(|field| field.name.as_bytes() == name);
        let index = if is_at(*next + skipped) {
            *next + skipped
        } else {
            let before = &self.fields[..*next];
            before.binary_search_by(|field| field.name.as_bytes().cmp(name)).ok()?
        };
        *next = index + 1;
        Some(index)
    }
}

/// Returns the parts of the message that the path of numbers `path` leads to.
fn parts(fields: &[Field], through: &[[u32; 2]], path: &[u32]) -> Box<[Part]> {
    let mut parts: Vec<Part> = Vec::new();
    let mut inlined: Vec<u32> = Vec::new();
    for (index, through) in through.iter().enumerate() {
        let length = through.iter().take_while(|number| **number != 0).count();
        let Some(rest) = through[..length].strip_prefix(path) else { continue };
        match rest.first() {
            None => parts.push(Part::Field(index)),
            Some(number) if !inlined.contains(number) => inlined.push(*number),
            Some(_) => {}
        }
    }
    for number in inlined {
        let path = [path, &[number]].concat();
        parts.push(Part::Inlined { number, parts: self::parts(fields, through, &path) });
    }
    parts.sort_by_key(|part| part.number(fields));
    parts.into()
}

fn form(edge: &Edge, definitions: &dyn NamedNodes) -> Option<Form> {
    let proto = edge.proto?;
    let target = target(edge, definitions);
    if proto.repeated {
        return value_form(target.items.as_ref()?, definitions).map(Form::Repeated);
    }
    match (proto.kind, &target.additional) {
        (ProtoKind::Map, Some(Additional::Schema(value))) => value_form(value, definitions).map(Form::Map),
        (ProtoKind::Map, _) => None,
        _ => value_form(edge, definitions).map(Form::One),
    }
}

fn value_form(edge: &Edge, definitions: &dyn NamedNodes) -> Option<ValueForm> {
    let named = match edge.target {
        Target::Named(index) => Some(index),
        Target::Inline(_) => None,
    };
    Some(match edge.proto?.kind {
        ProtoKind::Bool => ValueForm::Bool,
        ProtoKind::Int | ProtoKind::Uint => ValueForm::Int,
        ProtoKind::Double => ValueForm::Double,
        ProtoKind::String => ValueForm::String,
        ProtoKind::Bytes => ValueForm::Bytes,
        ProtoKind::Time => ValueForm::Time,
        ProtoKind::MicroTime => ValueForm::MicroTime,
        ProtoKind::Quantity => ValueForm::Quantity,
        ProtoKind::IntOrString => ValueForm::IntOrString,
        ProtoKind::Raw => ValueForm::Raw,
        ProtoKind::Message => ValueForm::Message(named?),
        ProtoKind::SchemaOrBool => ValueForm::SchemaOrBool(named?),
        ProtoKind::SchemaOrArray => ValueForm::SchemaOrArray(named?),
        ProtoKind::SchemaOrStrings => ValueForm::SchemaOrStrings(named?),
        ProtoKind::List => {
            let items = target(edge, definitions).items.as_ref()?;
            ValueForm::List(items.proto?.number, Box::new(value_form(items, definitions)?))
        }
        ProtoKind::Map => return None,
    })
}

fn target<'g>(edge: &'g Edge, definitions: &'g dyn NamedNodes) -> &'g Node {
    match &edge.target {
        Target::Inline(node) => node,
        Target::Named(index) => definitions.node(*index),
    }
}
