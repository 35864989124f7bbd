use proc_macro2::TokenStream;

use super::expand;

/// The errors that a type is refused with.
fn errors(source: &str) -> Vec<String> {
    let (arguments, item) = match source.strip_prefix("#[schema(") {
        Some(rest) => rest.split_once(")]\n").expect("the end of the attribute"),
        None => ("", source),
    };
    let tokens = |text: &str| text.parse::<TokenStream>().expect("tokens");
    let item = format!("#[derive(JsonSchema)] {item}");
    match expand(tokens(arguments), tokens(&item)) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.into_iter().map(|error| error.to_string()).collect(),
    }
}

fn field(marker: &str, ty: &str) -> Vec<String> {
    errors(&format!("struct A {{ #[schema({marker})] a: {ty} }}"))
}

#[test]
fn mistakes_are_named() {
    let cases = [
        ("MaxLength = 3", "String", "unknown marker; did you mean `max_length`?"),
        ("max_length = 3", "Option<i32>", "`max_length` is for a string, and this is a number"),
        ("minimum = 1", "Vec<i32>", "`minimum` is for a number, and this is a list"),
        ("items(minimum = 1)", "Vec<String>", "`minimum` is for a number, and this is a string"),
        ("items(minimum = 1)", "String", "`items` is for a list, and this is a string"),
        ("minimum = 3, maximum = 2", "i32", "`minimum` is above its maximum, 2"),
        ("min_items = 3, max_items = 2", "Vec<i32>", "`min_items` is above its maximum, 2"),
        ("max_length = -1", "String", "`max_length` must be an integer, and at least 0"),
        ("multiple_of = 0", "i32", "`multiple_of` must be greater than 0"),
        ("exclusive_maximum", "i32", "`exclusive_maximum` needs `maximum`"),
        ("list_type = \"map\"", "Vec<P>", "`list_type = \"map\"` needs `list_map_key`"),
        ("list_map_key = \"a\"", "Vec<P>", "`list_map_key` needs `list_type = \"map\"`"),
        ("list_type = \"bag\"", "Vec<P>", "expected one of [\"atomic\", \"set\", \"map\"]"),
        ("list_map_key()", "Vec<P>", "expected at least one"),
        ("maximum = 1, maximum = 2", "i32", "`maximum` is given twice"),
        ("maximum = \"1\"", "i32", "expected a number"),
        (
            "minimum = -9223372036854775809",
            "i64",
            "the number is not between -9223372036854775808 and 18446744073709551615",
        ),
        (
            "unique_items",
            "Vec<i32>",
            "the API server refuses `uniqueItems` in CRDs; write `list_type = \"set\"`",
        ),
        ("exactly_one_of(a)", "i32", "`exactly_one_of` is for structs with named fields"),
        ("external_docs(description = \"a\")", "i32", "expected `url = \"…\"`"),
        (
            "rule(\"self > 1\", reason = \"Bad\")",
            "i32",
            "expected one of [\"FieldValueInvalid\", \"FieldValueForbidden\", \"FieldValueRequired\", \"FieldValueDuplicate\"]",
        ),
        (
            "rule(\"self > 1\", optional_old_self = true)",
            "i32",
            "`optional_old_self` is for rules with `oldSelf`",
        ),
        (
            "rule(\"self > 1\", text = \"a\")",
            "i32",
            "expected `message`, `message_expression`, `reason`, `field_path` or `optional_old_self`",
        ),
    ];
    for (marker, ty, message) in cases {
        assert_eq!(field(marker, ty), [message], "{marker}");
    }
    let unknown = field("uniqe", "i32");
    assert!(unknown[0].starts_with("unknown marker; there are at_least_one_of, "), "{unknown:?}");
}

#[test]
fn all_mistakes_of_a_type_are_said_at_once() {
    let source = "#[schema(exactly_one_of(a, c), bogus)]\nstruct A { #[schema(bogus)] a: i32, #[schema(maximum = x)] b: i32 }";
    assert_eq!(errors(source).len(), 3);
    let source = "#[schema(exactly_one_of(a, c))]\nstruct A { #[schema(pattern = \"a\")] a: i32 }";
    assert_eq!(
        errors(source),
        ["the struct has no field `c`", "`pattern` is for a string, and this is a number"]
    );
}

#[test]
fn a_bare_attribute_carries_out_the_rules_of_fields() {
    let source = "#[derive(JsonSchema)] struct A { #[schema(max_length = 3)] a: String }";
    let expanded = expand(TokenStream::new(), source.parse().expect("tokens")).expect("no error").to_string();
    assert!(expanded.contains("transform = __schema_of_A_0"), "{expanded}");
    assert!(!expanded.contains("schema (max_length"), "{expanded}");
}

#[test]
fn it_comes_before_the_derives() {
    let tokens = "struct A { a: i32 }".parse().expect("tokens");
    let error = expand(TokenStream::new(), tokens).expect_err("an error").to_string();
    assert!(error.starts_with("write `#[schema]` above `#[derive(…)]`"), "{error}");
}

#[test]
fn large_numbers_have_a_type_that_contains_them() {
    let cases = [
        ("minimum = -2147483649", "- 2147483649i64"),
        ("minimum = -9223372036854775808", "- 9223372036854775808i64"),
        ("maximum = 9223372036854775808", "9223372036854775808u64"),
    ];
    for (marker, number) in cases {
        let item = format!("#[derive(JsonSchema)] struct A {{ #[schema({marker})] a: i64 }}");
        let item = item.parse::<TokenStream>().expect("tokens");
        let text = expand(TokenStream::new(), item).expect("expanded").to_string();
        assert!(text.contains(&format!("{number})")), "{text}");
    }
}
