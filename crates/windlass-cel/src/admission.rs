//! Expressions of admission: match conditions of webhooks, and the expressions of admission policies.
//!
//! A [`Compiler`] compiles expressions with the variables that admission declares, and an [`Evaluation`] evaluates the
//! expressions of a group on a request, within a cost budget.

mod evaluation;
mod types;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::ast::{MAX_DEPTH, MAX_NESTING};
use crate::env::Env;
use crate::patch;
use crate::program::Program;
use crate::types::{DeclaredFields, Type};

pub use evaluation::{Evaluation, Input, OutOfBudget};

/// The cost that the expressions of a group may have together, for a binding of a policy and its parameters.
pub const POLICY_BUDGET: i64 = 10_000_000;

/// The cost that the match conditions of a webhook or a policy may have together.
pub const CONDITIONS_BUDGET: i64 = 2_500_000;

/// The number of variables that the second declaration of a variable may use, directly and through other variables.
const MAX_USES: usize = 1_000;

/// The depth that the use of a variable adds to a tree, for the work between two expressions.
const LINK: u32 = 4;

/// The variables and types that an expression may use, besides `object`, `oldObject`, `request` and `namespaceObject`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Declarations {
    /// True for the variable `params`.
    pub params: bool,
    /// True for the variables `authorizer` and `authorizer.requestResource`.
    pub authorizer: bool,
    /// True for the types of patches, and the functions for patches.
    pub patches: bool,
}

/// The type of the result that an expression must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A boolean.
    Bool,
    /// A text.
    Text,
    /// A text or null.
    TextOrNull,
    /// An apply configuration: `Object{…}`.
    Configuration,
    /// A list of operations on JSON: `[JSONPatch{…}]`.
    Operations,
    /// Any result.
    Any,
}

impl Output {
    /// Returns the accepted types; none if all types are accepted.
    fn types(self) -> Vec<Type> {
        match self {
            Self::Bool => vec![Type::Bool],
            Self::Text => vec![Type::String],
            Self::TextOrNull => vec![Type::String, Type::Null],
            Self::Configuration => vec![patch::object()],
            Self::Operations => vec![Type::list(patch::operation())],
            Self::Any => Vec::new(),
        }
    }

    fn check(self, found: &Type) -> Result<(), String> {
        let types = self.types();
        if types.is_empty() || types.contains(found) {
            return Ok(());
        }
        let names: Vec<String> = types.iter().map(Type::go_name).collect();
        let found = found.go_name();
        Err(match names.as_slice() {
            [name] => format!("must evaluate to {name} but got {found}"),
            names => format!("must evaluate to one of [{}] but got {found}", names.join(" ")),
        })
    }
}

/// A compiled expression, or the reason why the expression does not compile.
pub struct Expression {
    source: Box<str>,
    program: Result<Program, String>,
}

impl Expression {
    /// Returns the text of the expression.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the reason why the expression does not compile.
    pub fn error(&self) -> Option<&str> {
        self.program.as_ref().err().map(String::as_str)
    }
}

/// A variable that an expression computes.
struct Variable {
    program: Result<Program, String>,
    /// The depths of the tree and of the trees of used variables together.
    depth: u32,
    /// The number of lists, maps and optionals that the value can have inside each other.
    nesting: u32,
}

/// The variables of a policy, which expressions compute: the fields of `variables`.
#[derive(Clone, Default)]
pub struct Variables(Arc<HashMap<String, Variable>>);

/// Compiles the expressions of a webhook or a policy.
///
/// ```
/// use windlass_cel::admission::{Compiler, Declarations, Output};
///
/// let compiler = Compiler::new();
/// let with = Declarations { authorizer: true, ..Declarations::default() };
/// let expression = compiler.compile("request.operation == 'CREATE'", Output::Bool, with);
/// assert_eq!(expression.error(), None);
/// let expression = compiler.compile("request.name", Output::Bool, with);
/// assert_eq!(expression.error(), Some("must evaluate to bool but got string"));
/// ```
pub struct Compiler {
    object: Type,
    params: Type,
    /// False if `authorizer` has no field `requestResource`.
    names_resource: bool,
    /// The types of the variables. `None` if expressions cannot use variables.
    fields: Option<DeclaredFields>,
    variables: HashMap<String, Variable>,
    /// The names of the variables that variables use.
    used: HashSet<String>,
}

impl Default for Compiler {
    fn default() -> Self {
        Self::new()
    }
}

impl Compiler {
    /// Returns a compiler of expressions that use no variables.
    pub fn new() -> Self {
        Self {
            object: Type::Dyn,
            params: Type::Dyn,
            names_resource: true,
            fields: None,
            variables: HashMap::new(),
            used: HashSet::new(),
        }
    }

    /// Returns a compiler of expressions that may use variables.
    pub fn with_variables() -> Self {
        Self { fields: Some(DeclaredFields::default()), ..Self::new() }
    }

    /// Returns a compiler that checks the fields of the objects and the parameters. A type that is not known is
    /// [`Type::Dyn`].
    pub fn of_types(object: Type, params: Type) -> Self {
        Self { object, params, names_resource: false, ..Self::with_variables() }
    }

    /// Compiles an expression.
    pub fn compile(&self, source: &str, output: Output, with: Declarations) -> Expression {
        Expression { source: source.into(), program: self.program(source, output, with).map(|found| found.0) }
    }

    /// Checks the types of an expression.
    ///
    /// # Errors
    /// The issues of the expression.
    pub fn check(&self, source: &str, with: Declarations) -> Result<(), String> {
        self.env(with).check(source).map(drop).map_err(|issues| issues.to_string())
    }

    /// Declares the field `name` of `variables`, which `source` computes. Expressions that are compiled later can use the
    /// field. The last declaration of a name counts; a declaration that uses an earlier declaration of the name fails when
    /// the field is used.
    ///
    /// # Errors
    /// The expression does not compile. Uses of the field then fail when the uses are evaluated.
    pub fn add_variable(&mut self, name: &str, source: &str, with: Declarations) -> Result<(), String> {
        let Some(fields) = &self.fields else { return Err("variables cannot be declared".to_owned()) };
        let (program, depth, nesting) = match self.program(source, Output::Any, with) {
            Ok((program, depth, nesting)) => (Ok(program), depth, nesting),
            Err(error) => (Err(error), 0, 0),
        };
        let output = program.as_ref().map_or(Type::Dyn, |program| types::of_variable(program.output()));
        fields.insert(name, output);
        let result = program.as_ref().map(drop).map_err(Clone::clone);
        let program = program.and_then(|program| {
            if self.can_declare(name, &program, depth, nesting) {
                Ok(program)
            } else {
                Err("the variable is declared twice".to_owned())
            }
        });
        if let Ok(program) = &program {
            self.used.extend(program.composed().into_iter().map(str::to_owned));
        }
        self.variables.insert(name.to_owned(), Variable { program, depth, nesting });
        result
    }

    /// Returns whether a program may replace an earlier declaration of a variable. The variables that were declared between
    /// both may use the name: the program must not be deeper, and must not use these variables.
    fn can_declare(&self, name: &str, program: &Program, depth: u32, nesting: u32) -> bool {
        let Some(earlier) = self.variables.get(name) else { return true };
        let mut open = program.composed();
        if !self.used.contains(name) {
            return !open.contains(&name);
        }
        if depth > earlier.depth || nesting > earlier.nesting {
            return false;
        }
        let mut known = HashSet::new();
        while let Some(used) = open.pop() {
            if used == name || known.len() > MAX_USES {
                return false;
            }
            let variable = self.variables.get(used).filter(|_| known.insert(used));
            if let Some(Variable { program: Ok(program), .. }) = variable {
                open.extend(program.composed());
            }
        }
        true
    }

    /// Returns the declared variables.
    pub fn into_variables(self) -> Variables {
        Variables(Arc::new(self.variables))
    }

    /// Compiles an expression. Returns the program, the depths of all trees that an evaluation visits inside each other, and
    /// the nesting of the result.
    fn program(
        &self,
        source: &str,
        output: Output,
        with: Declarations,
    ) -> Result<(Program, u32, u32), String> {
        let program =
            self.env(with).compile(source).map_err(|issues| format!("compilation failed: {issues}"))?;
        output.check(program.output())?;
        if let Some(error) = program.constant_error() {
            return Err(format!("program instantiation failed: {error}"));
        }
        let (mut depth, mut nesting) = (0, 0);
        for variable in program.composed().iter().filter_map(|name| self.variables.get(*name)) {
            depth = depth.max(variable.depth);
            nesting = nesting.max(variable.nesting);
        }
        let (depth, nesting) = (program.depth() + LINK + depth, program.nesting() + nesting);
        if depth > MAX_DEPTH || nesting > MAX_NESTING {
            return Err("the variables of the expression are nested too deep".to_owned());
        }
        Ok((program, depth, nesting))
    }

    /// Returns the environment of an expression. The order of the variables is that of [`evaluation::slot`].
    fn env(&self, with: Declarations) -> Env {
        // No expression can have a name that begins with `@`.
        let name = |is_declared: bool, name: &'static str, hidden: &'static str| {
            if is_declared { name } else { hidden }
        };
        let resource = with.authorizer && self.names_resource;
        let mut env = Env::kubernetes()
            .with_variable("object", self.object.clone())
            .with_variable("oldObject", self.object.clone())
            .with_variable("namespaceObject", types::namespace())
            .with_variable("request", types::request())
            .with_variable(name(with.params, "params", "@params"), self.params.clone())
            .with_variable(
                name(with.authorizer, "authorizer", "@authorizer"),
                Type::Object("kubernetes.authorization.Authorizer"),
            )
            .with_variable(
                name(resource, "authorizer.requestResource", "@requestResource"),
                Type::Object("kubernetes.authorization.ResourceCheck"),
            );
        if let Some(fields) = &self.fields {
            env = env.with_composition("variables", types::variables(fields));
        }
        if with.patches { env.with_patches() } else { env }
    }
}
