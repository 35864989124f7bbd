//! Test suites of Kubernetes, in Go, whose expressions windlass-cel compiles and evaluates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::smd::report::Report;
use crate::{Result, control_plane, go_module, project};

/// A replacement of text: the file, the old text and the new text. An import is added, not replaced.
type Change = (&'static str, &'static str, &'static str);

/// A Go module, and the changes that make its tests ask windlass-cel.
pub(super) struct Suite {
    module: &'static str,
    package: &'static str,
    /// Files of ours by their places in the module.
    files: &'static [(&'static str, &'static str)],
    changes: &'static [Change],
    /// Tests that fail because of what only Go has.
    only_in_go: &'static [&'static str],
}

const CLIENT: &str = include_str!("shim/client.go");
const PIPE: &str = include_str!("../shim/pipe.go");

/// The rules of custom resources.
pub(super) const RULES: Suite = Suite {
    module: "k8s.io/apiextensions-apiserver@v0.37.2",
    package: "./pkg/apiserver/schema/cel/...",
    files: &[
        ("pkg/internal/windlass/client.go", CLIENT),
        ("pkg/internal/windlass/pipe.go", PIPE),
        ("pkg/apiserver/schema/cel/windlass.go", include_str!("shim/rules.go")),
    ],
    changes: &[
        ("pkg/apiserver/schema/cel/compilation.go", "\nfunc compileRule(", "\nfunc originalCompileRule("),
        (
            "pkg/apiserver/schema/cel/validation.go",
            "compiled.Program.ContextEval(ctx, ruleActivation)",
            "windlassEval(windlassBind(compiled.Program, obj, oldObj, optionalOldSelfRule))",
        ),
        (
            "pkg/apiserver/schema/cel/validation.go",
            "evalMessageExpression(ctx, compiled.MessageExpression,",
            "evalMessageExpression(ctx, windlassBind(compiled.MessageExpression, obj, oldObj, optionalOldSelfRule),",
        ),
        ("pkg/apiserver/schema/cel/validation.go", "expr.ContextEval(ctx, activation)", "windlassEval(expr)"),
        (
            "pkg/apiserver/schema/cel/validation.go",
            "\t\truleActivation := activation\n",
            "\t\truleActivation := activation\n\t\t_ = ruleActivation\n",
        ),
    ],
    // Go's contexts, and a function that only a test has.
    only_in_go: &[
        "TestCELValidationContextCancellation/test_cel_validation_with_context_cancellation",
        "TestCelCompilation/unmodified_expression_may_use_CEL_environment_features_planned_to_be_added_in_future_releases",
    ],
};

const ENV: &str = "\n\t\"k8s.io/apiserver/pkg/cel/windlassenv\"";

/// The functions of Kubernetes.
pub(super) const LIBRARY: Suite = Suite {
    module: "k8s.io/apiserver@v0.37.2",
    package: "./pkg/cel/library/...",
    files: &[
        ("pkg/internal/windlass/client.go", CLIENT),
        ("pkg/internal/windlass/pipe.go", PIPE),
        ("pkg/cel/windlassenv/env.go", include_str!("shim/library.go")),
    ],
    changes: LIBRARY_CHANGES,
    // Kubernetes 1.37 knows `includes` in stored expressions alone: kube-apiserver refuses a new expression with `includes`.
    only_in_go: &[
        ".includes('123')",
        ".includes('x')",
        ".includes(3)",
        ".includes(3.0)",
        ".includes(bytes('x'))",
        ".includes(duration('3s'))",
        ".includes(timestamp('2011-01-03T00:00:00.000+01:00'))",
        ".includes(true)",
        ".includes(uint(3))",
    ],
};

const LIBRARY_CHANGES: &[Change] = &[
    ("pkg/cel/library/cost_test.go", "cel.NewEnv(", "windlassenv.NewEnv("),
    ("pkg/cel/library/cost_test.go", "\nimport (", ENV),
    ("pkg/cel/library/ip_test.go", "cel.NewEnv(", "windlassenv.NewEnv("),
    ("pkg/cel/library/ip_test.go", "\nimport (", ENV),
    ("pkg/cel/library/cidr_test.go", "cel.NewEnv(", "windlassenv.NewEnv("),
    ("pkg/cel/library/cidr_test.go", "\nimport (", ENV),
    ("pkg/cel/library/semver_test.go", "cel.NewEnv(", "windlassenv.NewEnv("),
    ("pkg/cel/library/semver_test.go", "\nimport (", ENV),
    ("pkg/cel/library/quantity_test.go", "cel.NewEnv(", "windlassenv.NewEnv("),
    ("pkg/cel/library/quantity_test.go", "cel.AstToCheckedExpr(", "windlassenv.AstToCheckedExpr("),
    ("pkg/cel/library/quantity_test.go", "\nimport (", ENV),
];

impl Suite {
    /// Runs the tests that match a pattern.
    pub(super) fn run(&self, pattern: Option<&str>, verbose: bool) -> Result {
        let server = build_server()?;
        let name = self.module.replace(['/', '@'], "-");
        let module = control_plane::cache_folder()?.join("cel").join(name);
        go_module::copy(self.module, &module)?;
        self.install(&module)?;
        let output = Command::new("go")
            .args(["test", "-json", "-count=1", self.package])
            .args(pattern.iter().flat_map(|pattern| ["-run", pattern]))
            .current_dir(&module)
            .env("WINDLASS_CEL_SERVER", server)
            .env("GOFLAGS", "-mod=mod")
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| format!("cannot run go: {error}"))?;
        let report = Report::read(&String::from_utf8_lossy(&output.stdout));
        let unexpected = report.print(self.only_in_go, verbose);
        if unexpected == 0 { Ok(()) } else { Err(format!("{unexpected} tests have failed").into()) }
    }

    fn install(&self, module: &Path) -> Result {
        for (file, text) in self.files {
            let path = module.join(file);
            fs::create_dir_all(path.parent().unwrap_or(module))?;
            fs::write(path, text)?;
        }
        for (file, old, new) in self.changes {
            let path = module.join(file);
            let text = fs::read_to_string(&path)?;
            if text.matches(old).count() != 1 {
                return Err(format!("{file}: not one {old:?}").into());
            }
            let new = if *new == ENV { format!("{old}{new}") } else { (*new).to_owned() };
            fs::write(&path, text.replace(old, &new))?;
        }
        Ok(())
    }
}

/// Builds the process that the tests ask, and returns its path.
fn build_server() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--package", "windlass-cel", "--example", "cel"])
        .current_dir(project::root())
        .status()?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| project::root().join("target"), PathBuf::from);
    let path = target.join("debug/examples/cel");
    if status.success() { Ok(path) } else { Err("the example cel does not build".into()) }
}
