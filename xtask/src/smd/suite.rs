//! The Go modules with tests that run.

/// A Go module, and the replaced functions of the module.
pub(super) struct Suite {
    pub(super) module: &'static str,
    pub(super) version: &'static str,
    /// The packages to test.
    pub(super) packages: &'static str,
    /// Files of ours, by path in the module.
    pub(super) files: &'static [(&'static str, &'static str)],
    pub(super) replaced: &'static [Replaced],
    /// Tests that fail because the tested feature exists only in Go.
    pub(super) only_in_go: &'static [&'static str],
}

/// Functions of a file that ours replace.
pub(super) struct Replaced {
    pub(super) file: &'static str,
    /// The receiver of the methods, with a space after it; empty for functions.
    pub(super) receiver: &'static str,
    pub(super) names: &'static [&'static str],
}

const fn replaced(file: &'static str, receiver: &'static str, names: &'static [&'static str]) -> Replaced {
    Replaced { file, receiver, names }
}

const CLIENT: &str = include_str!("shim/client.go");
const PIPE: &str = include_str!("../shim/pipe.go");

/// The merge of server-side apply. Go's reading by reflection and the functions of schemas stay Go.
pub(super) const STRUCTURED_MERGE: Suite = Suite {
    module: "sigs.k8s.io/structured-merge-diff/v6",
    version: "v6.4.2",
    packages: "./...",
    files: &[
        ("internal/windlass/client.go", CLIENT),
        ("internal/windlass/pipe.go", PIPE),
        ("internal/windlass/schema.go", include_str!("shim/schema.go")),
        ("value/windlass.go", include_str!("shim/value.go")),
        ("fieldpath/windlass.go", include_str!("shim/fieldpath.go")),
        ("typed/windlass.go", include_str!("shim/typed.go")),
        ("merge/windlass.go", include_str!("shim/merge.go")),
    ],
    replaced: &[
        replaced("value/value.go", "", &["CompareUsing", "EqualsUsing"]),
        replaced(
            "fieldpath/set.go",
            "(s *Set) ",
            &[
                "Union",
                "Intersection",
                "Difference",
                "RecursiveDifference",
                "Leaves",
                "Size",
                "Empty",
                "Equals",
                "String",
                "Has",
                "Iterate",
                "EnsureNamedFieldsAreMembers",
                "FilterIncludeMatches",
            ],
        ),
        replaced("fieldpath/serialize.go", "(s *Set) ", &["ToJSONStream", "ToJSON", "FromJSON"]),
        replaced("fieldpath/serialize-pe.go", "", &["SerializePathElement", "DeserializePathElement"]),
        replaced("fieldpath/element.go", "(e PathElement) ", &["Less", "Equals", "String"]),
        replaced("fieldpath/path.go", "(fp Path) ", &["String"]),
        replaced(
            "typed/typed.go",
            "(tv TypedValue) ",
            &["Validate", "ToFieldSet", "Merge", "Compare", "RemoveItems", "ExtractItems"],
        ),
        replaced("typed/reconcile_schema.go", "", &["ReconcileFieldSetWithSchema"]),
        replaced("merge/update.go", "(s *Updater) ", &["Update", "Apply"]),
        replaced("merge/conflict.go", "(conflicts Conflicts) ", &["Error"]),
    ],
    // A schema that is invalid in Go only, and values of no JSON type.
    only_in_go: &[
        "typed TestInvalidOverride",
        "value TestValueLess/Invalid-7",
        "value TestValueLess/Invalid-8",
    ],
};

/// Strategic merge patches. Patches are made by Go, and applied by windlass-schema.
pub(super) const STRATEGIC_MERGE: Suite = Suite {
    module: "k8s.io/apimachinery",
    version: "v0.37.2",
    packages: "./pkg/util/strategicpatch/...",
    files: &[
        ("pkg/util/windlass/client.go", CLIENT),
        ("pkg/util/windlass/pipe.go", PIPE),
        ("pkg/util/windlass/definitions.go", include_str!("shim/strategic/definitions.go")),
        ("pkg/util/strategicpatch/windlass.go", include_str!("shim/strategic/strategicpatch.go")),
    ],
    replaced: &[replaced(
        "pkg/util/strategicpatch/patch.go",
        "",
        &["StrategicMergeMapPatchUsingLookupPatchMeta"],
    )],
    only_in_go: &[],
};
