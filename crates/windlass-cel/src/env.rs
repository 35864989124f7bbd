//! Environments: the functions and variables that an expression may use.

use std::sync::{Arc, LazyLock};

use crate::check::{self, Checked};
use crate::declare::{Function, Functions};
use crate::issue::Issues;
use crate::library;
use crate::parse::{self, Syntax};
use crate::patch;
use crate::program::Program;
use crate::types::Type;

/// The functions and variables that an expression may use.
///
/// ```
/// use windlass_cel::{Env, Limits, Type, Value};
///
/// let env = Env::kubernetes().with_variable("replicas", Type::Int);
/// let program = env.compile("replicas > 0 && replicas <= 10")?;
/// let (result, cost) = program.evaluate(&[Value::Int(3)], &Limits::of_cost(1000));
/// assert_eq!(result.map(|value| value.as_bool()), Ok(Some(true)));
/// assert_eq!(cost, 4);
/// # Ok::<(), windlass_cel::Issues>(())
/// ```
#[derive(Clone)]
pub struct Env {
    functions: Arc<Functions>,
    variables: Vec<(String, Type)>,
    pub(crate) container: String,
    pub(crate) syntax: Syntax,
    /// True if literals that would fail in an evaluation are rejected, and the elements of lists and maps
    /// must have equal types.
    pub(crate) validates_literals: bool,
    /// True if constants are computed when an expression is compiled.
    pub(crate) folds_constants: bool,
    /// True if expressions can make patches of objects.
    patches: bool,
    /// The variable whose fields are the results of other expressions.
    composition: Option<usize>,
}

static KUBERNETES: LazyLock<Arc<Functions>> = LazyLock::new(|| Arc::new(library::kubernetes()));
static EXTENDED: LazyLock<Arc<Functions>> = LazyLock::new(|| Arc::new(library::extended()));

/// The types of libraries that expressions can name.
const OBJECTS: [&str; 9] = [
    "kubernetes.URL",
    "kubernetes.Quantity",
    "kubernetes.Semver",
    "kubernetes.NamedFormat",
    "kubernetes.authorization.Authorizer",
    "kubernetes.authorization.PathCheck",
    "kubernetes.authorization.GroupCheck",
    "kubernetes.authorization.ResourceCheck",
    "kubernetes.authorization.Decision",
];

impl Env {
    /// Returns the environment of Kubernetes 1.36, which kube-apiserver 1.37 takes for new expressions: its libraries, and no variables.
    pub fn kubernetes() -> Self {
        let syntax = Syntax {
            optionals: true,
            two_variables: true,
            sort_by: true,
            escaped_fields: true,
            ..Syntax::default()
        };
        Self {
            functions: Arc::clone(&KUBERNETES),
            variables: Vec::new(),
            container: String::new(),
            syntax,
            validates_literals: true,
            folds_constants: true,
            patches: false,
            composition: None,
        }
    }

    /// Returns an environment with all of cel-go's extensions, in which lists may have elements of several types.
    pub fn extended() -> Self {
        let syntax = Syntax {
            optionals: true,
            two_variables: true,
            sort_by: true,
            bind: true,
            escaped_fields: true,
            math: true,
            no_macros: false,
        };
        Self {
            functions: Arc::clone(&EXTENDED),
            variables: Vec::new(),
            container: String::new(),
            syntax,
            validates_literals: false,
            folds_constants: true,
            patches: false,
            composition: None,
        }
    }

    /// Adds a variable. Activations have the values in the order in which the variables are added.
    #[must_use]
    pub fn with_variable(mut self, name: &str, of: Type) -> Self {
        self.variables.push((name.to_owned(), of));
        self
    }

    /// Adds a variable whose fields are the results of other expressions: [`Activation::composed`].
    ///
    /// [`Activation::composed`]: crate::Activation::composed
    #[must_use]
    pub(crate) fn with_composition(mut self, name: &str, of: Type) -> Self {
        self.composition = Some(self.variables.len());
        self.with_variable(name, of)
    }

    /// Lets expressions make patches of objects: `Object{…}`, `Object.spec{…}`, `JSONPatch{…}`.
    #[must_use]
    pub fn with_patches(mut self) -> Self {
        self.patches = true;
        self
    }

    /// Lets expressions bind a name to a value: `cel.bind(name, value, expression)`.
    #[must_use]
    pub(crate) fn with_bind(mut self) -> Self {
        self.syntax.bind = true;
        self
    }

    /// Sets the namespace in which names are looked up first.
    #[must_use]
    pub fn with_container(mut self, container: &str) -> Self {
        container.clone_into(&mut self.container);
        self
    }

    /// Parses an expression, checks its types, and compiles the expression.
    pub fn compile(&self, source: &str) -> Result<Program, Issues> {
        let checked = self.check(source)?;
        Ok(Program::new(checked, self))
    }

    /// Turns macros off, so that `has` and `all` are functions.
    #[must_use]
    pub fn without_macros(mut self) -> Self {
        self.syntax.no_macros = true;
        self
    }

    /// Computes constants at each evaluation, whose cost then counts.
    #[must_use]
    pub fn without_folding(mut self) -> Self {
        self.folds_constants = false;
        self
    }

    /// Accepts literals that fail in an evaluation, and lists and maps whose elements have several types.
    #[must_use]
    pub fn without_literal_checks(mut self) -> Self {
        self.validates_literals = false;
        self
    }

    /// Parses and compiles an expression without a check of its types: errors of types are errors of the evaluation.
    pub fn compile_unchecked(&self, source: &str) -> Result<Program, Issues> {
        let ast = parse::parse(source, self.syntax)?;
        Ok(Program::new(check::resolve(source, ast, self), self))
    }

    /// Parses an expression, and checks its types.
    pub(crate) fn check(&self, source: &str) -> Result<Checked, Issues> {
        let ast = parse::parse(source, self.syntax)?;
        check::check(source, ast, self)
    }

    /// Parses an expression, without a check of its types.
    pub fn parse(&self, source: &str) -> Result<(), Issues> {
        parse::parse(source, self.syntax).map(drop)
    }

    pub(crate) fn variable(&self, name: &str) -> Option<(usize, &Type)> {
        let at = self.variables.iter().rposition(|(known, _)| known == name)?;
        Some((at, &self.variables[at].1))
    }

    /// Returns the name of a variable.
    pub(crate) fn variable_name(&self, index: usize) -> &str {
        &self.variables[index].0
    }

    /// Returns whether the fields of a variable are the results of other expressions.
    pub(crate) fn is_composition(&self, index: usize) -> bool {
        self.composition == Some(index)
    }

    /// Returns the declared fields of a variable whose fields are the results of other expressions.
    pub(crate) fn composed_fields(&self, index: usize) -> Vec<Box<str>> {
        self.variables[index].1.declared_fields()
    }

    /// Finds a function by the full name, or by the name in the container.
    pub(crate) fn function(&self, name: &str) -> Option<&Function> {
        if !self.patches && name == library::ESCAPE_KEY {
            return None;
        }
        if self.container.is_empty() {
            return self.functions.get(name.trim_start_matches('.'));
        }
        self.candidates(name).iter().find_map(|candidate| self.functions.get(candidate))
    }

    /// Returns the full names that a name may stand for, in order of preference.
    pub(crate) fn candidates(&self, name: &str) -> Vec<String> {
        if let Some(name) = name.strip_prefix('.') {
            return vec![name.to_owned()];
        }
        let mut candidates = Vec::new();
        let mut container = self.container.as_str();
        while !container.is_empty() {
            candidates.push(format!("{container}.{name}"));
            container = container.rfind('.').map_or("", |at| &container[..at]);
        }
        candidates.push(name.to_owned());
        candidates
    }

    /// Returns the type with a name.
    pub(crate) fn type_named(&self, name: &str) -> Option<Type> {
        if self.patches
            && let Some(known) = patch::type_named(name)
        {
            return Some(known);
        }
        Some(match name {
            "bool" => Type::Bool,
            "bytes" => Type::Bytes,
            "double" => Type::Double,
            "google.protobuf.Duration" => Type::Duration,
            "google.protobuf.Timestamp" => Type::Timestamp,
            "int" => Type::Int,
            "list" => Type::list(Type::Dyn),
            "map" => Type::map(Type::Dyn, Type::Dyn),
            "null_type" => Type::Null,
            "optional_type" => Type::optional(Type::Dyn),
            "string" => Type::String,
            "type" => Type::Type(Arc::new(Type::Dyn)),
            "uint" => Type::Uint,
            "net.IP" => Type::Opaque("net.IP"),
            "net.CIDR" => Type::Opaque("net.CIDR"),
            _ => Type::Object(OBJECTS.iter().find(|known| **known == name)?),
        })
    }
}
