use crate::configuration::expand;

/// The message of the error that a type is refused with.
fn refused(source: &str) -> String {
    let input = syn::parse_str(source).expect("a type");
    expand(&input).expect_err("an error").to_string()
}

fn expanded(source: &str) -> String {
    let input = syn::parse_str(source).expect("a type");
    expand(&input).expect("an expansion").to_string()
}

#[test]
fn mistakes_are_named() {
    let cases = [
        ("struct A<T> { a: T }", "`ApplyConfiguration` supports no generic types; use a type for each"),
        ("union A { a: u8 }", "a union has no fields to apply"),
        (
            "struct A { #[serde(serialize_with = \"f\")] a: u8 }",
            "`serialize_with` is not supported by `ApplyConfiguration`, which would send something else; give the type of \
             the field a `Serialize` of its own",
        ),
        (
            "#[serde(tag = \"kind\")] struct A { a: u8 }",
            "`tag` is not supported by `ApplyConfiguration`, which would send something else; write `#[apply(atomic)]` to send \
             the type as a whole",
        ),
        ("struct A { #[apply(whole)] a: u8 }", "unknown attribute; a field has `atomic`"),
        (
            "#[apply(whole)] struct A { a: u8 }",
            "unknown attribute; a type has `atomic` or `crate = \"…\"`, and a spec without `#[kube(…)]` has `kind = \"…\"`, \
             `namespaced` and `status = \"…\"`",
        ),
        ("#[serde(rename_all = \"Camel\")] struct A { a: u8 }", "unknown rule of `rename_all`"),
    ];
    for (source, message) in cases {
        assert_eq!(refused(source), message, "{source}");
    }
}

#[test]
fn attributes_of_other_macros_are_skipped() {
    let kind = "#[kube(group = \"a.b\", version = \"v1\", kind = \"Web\", namespaced, status = \"WebStatus\", \
                validation = Rule::new(\"self.a == oldSelf.a\").message(\"x, y\"), annotations(\"a\" = \"b\"))] \
                #[serde(rename_all(serialize = \"camelCase\"), default)] struct WebSpec { a_b: u8 }";
    let output = expanded(kind);
    assert!(output.contains("struct WebApplyConfiguration"), "{output}");
    assert!(output.contains("\"aB\""), "{output}");
    assert!(output.contains("WebStatus"), "{output}");
}

#[test]
fn a_spec_names_a_kind_that_kube_does_not_derive() {
    let output = expanded(
        "#[apply(crate = \"a\", kind = \"Web\", namespaced, status = \"WebStatus\")] struct WebSpec { a: u8 }",
    );
    let of_kube = expanded(
        "#[apply(crate = \"a\")] #[kube(kind = \"Web\", namespaced, status = \"WebStatus\")] struct WebSpec { a: u8 }",
    );
    assert!(output.contains("struct WebApplyConfiguration"), "{output}");
    assert_eq!(output, of_kube);
}

#[test]
fn enums_and_tuples_are_sent_as_they_are() {
    for source in [
        "#[apply(atomic)] #[serde(transparent)] struct A { a: u8 }",
        "#[serde(tag = \"kind\")] enum A { B, C }",
        "enum A { B, C }",
        "struct A(u8);",
        "struct A;",
        "#[apply(atomic)] struct A { a: u8 }",
    ] {
        let output = expanded(source);
        assert!(output.contains("type Configuration = Self") && !output.contains("struct"), "{output}");
    }
}
