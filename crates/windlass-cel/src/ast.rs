//! The syntax tree of an expression. Macros are expanded to comprehensions, in the form that cel-go gives them.

use std::sync::Arc;

/// The position of a node in [`Ast::nodes`].
pub(crate) type Id = u32;

/// A name in an expression.
pub(crate) type Name = Arc<str>;

/// The name of the accumulator of the macros.
pub(crate) const ACCUMULATOR: &str = "__result__";

/// The name of the variable of a comprehension that has no use for the variable.
pub(crate) const UNUSED: &str = "#unused";

/// The names of the operators, as functions.
pub(crate) mod operator {
    pub(crate) const CONDITIONAL: &str = "_?_:_";
    pub(crate) const AND: &str = "_&&_";
    pub(crate) const OR: &str = "_||_";
    pub(crate) const NOT: &str = "!_";
    pub(crate) const EQUALS: &str = "_==_";
    pub(crate) const NOT_EQUALS: &str = "_!=_";
    pub(crate) const ADD: &str = "_+_";
    pub(crate) const SUBTRACT: &str = "_-_";
    pub(crate) const MULTIPLY: &str = "_*_";
    pub(crate) const DIVIDE: &str = "_/_";
    pub(crate) const MODULO: &str = "_%_";
    pub(crate) const NEGATE: &str = "-_";
    pub(crate) const LESS: &str = "_<_";
    pub(crate) const LESS_EQUALS: &str = "_<=_";
    pub(crate) const GREATER: &str = "_>_";
    pub(crate) const GREATER_EQUALS: &str = "_>=_";
    pub(crate) const IN: &str = "@in";
    pub(crate) const INDEX: &str = "_[_]";
    pub(crate) const OPTIONAL_INDEX: &str = "_[?_]";
    pub(crate) const OPTIONAL_SELECT: &str = "_?._";
    pub(crate) const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";
}

/// A literal of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
}

/// An entry of a map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Id,
    pub(crate) value: Id,
    pub(crate) optional: bool,
}

/// The value of a field of a message.
#[derive(Clone, Debug)]
pub(crate) struct Init {
    pub(crate) field: Name,
    pub(crate) value: Id,
    pub(crate) optional: bool,
    /// The offset of the colon in the expression, in bytes.
    pub(crate) offset: usize,
}

/// A loop over a list or a map.
#[derive(Clone, Debug)]
pub(crate) struct Comprehension {
    pub(crate) range: Id,
    pub(crate) variable: Name,
    pub(crate) second: Option<Name>,
    pub(crate) accumulator: Name,
    pub(crate) init: Id,
    pub(crate) condition: Id,
    pub(crate) step: Id,
    pub(crate) result: Id,
}

/// A node of the tree.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// A node that could not be parsed.
    Invalid,
    Literal(Literal),
    Ident(Name),
    Select {
        operand: Id,
        field: Name,
        /// True if the node tests the presence of the field.
        test: bool,
    },
    Call {
        function: Name,
        target: Option<Id>,
        arguments: Vec<Id>,
    },
    List {
        elements: Vec<Id>,
        /// The indices of the optional elements.
        optional: Vec<usize>,
    },
    Map(Vec<Entry>),
    Struct {
        name: Name,
        fields: Vec<Init>,
    },
    Comprehension(Box<Comprehension>),
}

/// A syntax tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ast {
    pub(crate) kinds: Vec<Kind>,
    /// The offsets of the nodes in the expression, in bytes.
    pub(crate) offsets: Vec<usize>,
    /// The depths of the trees below the nodes.
    depths: Vec<u32>,
    /// The numbers of lists, maps and optionals that the values of the nodes can have inside each other.
    nestings: Vec<u32>,
    /// True if a node is deeper than [`MAX_DEPTH`], or a value than [`MAX_NESTING`].
    pub(crate) too_deep: bool,
    pub(crate) root: Id,
}

/// The greatest depth of the tree, with expanded macros: passes over the tree recur.
pub(crate) const MAX_DEPTH: u32 = 800;

/// The greatest depth of values that an expression can make: functions on values recur.
pub(crate) const MAX_NESTING: u32 = 500;

impl Ast {
    pub(crate) fn kind(&self, id: Id) -> &Kind {
        &self.kinds[id as usize]
    }

    pub(crate) fn offset(&self, id: Id) -> usize {
        self.offsets[id as usize]
    }

    pub(crate) fn add(&mut self, offset: usize, kind: Kind) -> Id {
        self.kinds.push(kind);
        self.offsets.push(offset);
        let id = self.kinds.len() as Id - 1;
        let (depth, nesting) = self.measure(id);
        self.too_deep |= depth > MAX_DEPTH || nesting > MAX_NESTING;
        self.depths.push(depth);
        self.nestings.push(nesting);
        id
    }

    /// Returns the depth of the tree below a new node, and the greatest depth of the node's values.
    fn measure(&self, id: Id) -> (u32, u32) {
        let (mut depth, mut nesting, mut sum) = (0, 0, 0_u32);
        self.for_each_child(id, &mut |child| {
            let of_child = self.nestings[child as usize];
            depth = depth.max(self.depths[child as usize]);
            nesting = nesting.max(of_child);
            sum = sum.saturating_add(of_child);
        });
        let nesting = match self.kind(id) {
            Kind::List { elements, .. } if !elements.is_empty() => nesting + 1,
            Kind::Map(entries) if !entries.is_empty() => nesting + 1,
            Kind::Struct { fields, .. } if !fields.is_empty() => nesting + 1,
            Kind::Call { function, target, .. } if target.is_some() || !function.starts_with(['_', '@']) => {
                nesting + 1
            }
            // The variables of the step have values of the range, so that the depths add up.
            Kind::Comprehension(_) => sum,
            _ => nesting,
        };
        (depth + 1, nesting)
    }

    /// Returns the depth of the tree.
    pub(crate) fn depth(&self) -> u32 {
        self.depths.get(self.root as usize).copied().unwrap_or_default()
    }

    /// Returns the number of lists, maps and optionals that the result can have inside each other.
    pub(crate) fn nesting(&self) -> u32 {
        self.nestings.get(self.root as usize).copied().unwrap_or_default()
    }

    /// Returns the qualified name that a node spells, such as `a.b.c`.
    pub(crate) fn qualified_name(&self, id: Id) -> Option<String> {
        match self.kind(id) {
            Kind::Ident(name) => Some(name.to_string()),
            Kind::Select { operand, field, test: false } => {
                self.qualified_name(*operand).map(|prefix| format!("{prefix}.{field}"))
            }
            _ => None,
        }
    }

    /// Copies a node with all nodes below. Returns the copy.
    pub(crate) fn copy(&mut self, id: Id) -> Id {
        let kind = match self.kind(id).clone() {
            Kind::Select { operand, field, test } => {
                Kind::Select { operand: self.copy(operand), field, test }
            }
            Kind::Call { function, target, arguments } => Kind::Call {
                function,
                target: target.map(|target| self.copy(target)),
                arguments: arguments.into_iter().map(|argument| self.copy(argument)).collect(),
            },
            Kind::List { elements, optional } => Kind::List {
                elements: elements.into_iter().map(|element| self.copy(element)).collect(),
                optional,
            },
            Kind::Map(entries) => Kind::Map(
                entries
                    .into_iter()
                    .map(|entry| Entry { key: self.copy(entry.key), value: self.copy(entry.value), ..entry })
                    .collect(),
            ),
            Kind::Struct { name, fields } => Kind::Struct {
                name,
                fields: fields
                    .into_iter()
                    .map(|init| Init { value: self.copy(init.value), ..init })
                    .collect(),
            },
            Kind::Comprehension(mut fold) => {
                fold.range = self.copy(fold.range);
                fold.init = self.copy(fold.init);
                fold.condition = self.copy(fold.condition);
                fold.step = self.copy(fold.step);
                fold.result = self.copy(fold.result);
                Kind::Comprehension(fold)
            }
            leaf => leaf,
        };
        self.add(self.offset(id), kind)
    }

    /// Calls a function for each child of a node, in the order of evaluation.
    pub(crate) fn for_each_child(&self, id: Id, visit: &mut dyn FnMut(Id)) {
        match self.kind(id) {
            Kind::Invalid | Kind::Literal(_) | Kind::Ident(_) => {}
            Kind::Select { operand, .. } => visit(*operand),
            Kind::Call { target, arguments, .. } => {
                target.iter().chain(arguments).for_each(|child| visit(*child));
            }
            Kind::List { elements, .. } => elements.iter().for_each(|child| visit(*child)),
            Kind::Map(entries) => entries.iter().for_each(|entry| {
                visit(entry.key);
                visit(entry.value);
            }),
            Kind::Struct { fields, .. } => fields.iter().for_each(|init| visit(init.value)),
            Kind::Comprehension(fold) => {
                [fold.range, fold.init, fold.condition, fold.step, fold.result].into_iter().for_each(visit);
            }
        }
    }
}
