use serde_json::json;

use super::*;

#[test]
fn each_kind_reads_as_the_real_server_writes_it() {
    let cases = [
        (
            FieldError::required("metadata.name", "name or generateName is required"),
            "metadata.name: Required value: name or generateName is required",
        ),
        (FieldError::required("spec.containers", ""), "spec.containers: Required value"),
        (
            FieldError::invalid("metadata.name", "A\"b", "bad"),
            "metadata.name: Invalid value: \"A\\\"b\": bad",
        ),
        (
            FieldError::invalid("spec.selector", json!({"a": "<b>"}), "field is immutable"),
            "spec.selector: Invalid value: {\"a\":\"\\u003cb\\u003e\"}: field is immutable",
        ),
        (FieldError::type_invalid("spec.a", "string", "no"), "spec.a: Invalid value: \"string\": no"),
        (
            FieldError::duplicate("spec.containers[1].name", "a"),
            "spec.containers[1].name: Duplicate value: \"a\"",
        ),
        (FieldError::not_found("x", "y"), "x: Not found: \"y\""),
        (
            FieldError::not_supported("x", "C", &["A", "B"]),
            "x: Unsupported value: \"C\": supported values: \"A\", \"B\"",
        ),
        (FieldError::invalid("x", "<a>\u{7f}\u{1}", "no"), r#"x: Invalid value: "<a>\x7f\x01": no"#),
        (
            FieldError::invalid("x", "<a>\u{7f}\u{1}", "no").of_named_type(),
            "x: Invalid value: \"\\u003ca\\u003e\u{7f}\\u0001\": no",
        ),
        (FieldError::forbidden("spec", "no"), "spec: Forbidden: no"),
        (FieldError::too_long("x", 63), "x: Too long: may not be more than 63 bytes"),
        (FieldError::too_many("x", 3, 1), "x: Too many: 3: must have at most 1 item"),
        (FieldError::too_few("x", 0, 2), "x: Too few: 0: must have at least 2 items"),
        (FieldError::invalid("x", true, ""), "x: Invalid value: true"),
        (FieldError::invalid("x", Value::Null, "n"), "x: Invalid value: null: n"),
    ];
    for (error, text) in cases {
        assert_eq!(error.to_string(), text);
    }
}
