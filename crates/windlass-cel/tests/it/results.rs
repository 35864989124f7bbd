//! Results of expressions.

use super::eval;
use windlass_cel::Value;

#[track_caller]
fn holds(expression: &str) {
    match eval(expression) {
        Ok(Value::Bool(true)) => {}
        other => panic!("{expression}: {other:?}"),
    }
}

#[track_caller]
fn fails(expression: &str, message: &str) {
    let error = eval(expression).expect_err(expression);
    assert_eq!(error.to_string(), message, "{expression}");
}

#[test]
fn numbers_are_checked_for_overflow() {
    holds("9223372036854775806 + 1 == 9223372036854775807");
    holds("-7 / 2 == -3 && -7 % 2 == -1");
    holds("1u < 2 && 1 < 1.5 && dyn(1) == 1.0 && dyn(1u) == 1");
    fails("9223372036854775807 + [1][0]", "integer overflow");
    fails("1u - [2u][0]", "unsigned integer overflow");
    fails("1 / [0][0]", "division by zero");
    fails("1 % [0][0]", "modulus by zero");
    fails("-[-9223372036854775808][0]", "integer overflow");
}

#[test]
fn errors_are_absorbed_by_logic_and_by_loops() {
    holds("[0][5] == 1 || true");
    holds("!([0][5] == 1 && false)");
    holds("[1, 0, 2].exists(x, 4 / x == 2)");
    holds("![1, 0, 8].all(x, 4 / x > 0)");
    fails("[1, 0].all(x, 4 / x > 0)", "division by zero");
    fails("[0][5] == 1 && true", "index out of bounds: 5");
    fails("{'a': 1}['b'] == 1", "no such key: b");
}

#[test]
fn loops_make_lists_and_maps() {
    holds("[1, 2, 3].map(x, x * 2) == [2, 4, 6]");
    holds("[1, 2, 3].map(x, x > 1, x * 2) == [4, 6]");
    holds("[1, 2, 3].filter(x, x != 2) == [1, 3]");
    holds("[1, 2, 2].exists_one(x, x == 1) && ![1, 2, 2].exists_one(x, x == 2)");
    holds("[[1, 2], [3]].map(l, l.map(x, x + 1)) == [[2, 3], [4]]");
    holds("{'b': 2, 'a': 1}.map(k, k) == ['a', 'b']");
    holds("['x', 'y'].transformMap(i, v, v + string(i)) == {0: 'x0', 1: 'y1'}");
    holds("{'a': 1}.transformMapEntry(k, v, {v: k}) == {1: 'a'}");
    holds("{'a': 1, 'b': 2}.all(k, v, k < 'c' && v < 3)");
    fails("['x', 'x'].transformMapEntry(i, v, {v: i}) == {}", "insert failed: key x already exists");
}

#[test]
fn optionals_stand_for_absent_values() {
    holds("{'a': 1}.?a == optional.of(1) && {'a': 1}.?b == optional.none()");
    holds("{'a': {'b': 1}}.?a.b.orValue(2) == 1 && {'a': {'b': 1}}.?c.b.orValue(2) == 2");
    holds("[1][?0].optMap(x, x + 1).orValue(0) == 2 && [1][?1].hasValue() == false");
    holds("optional.ofNonZeroValue('') == optional.none()");
    holds("[optional.of(1), optional.none()].size() == 2 && [?optional.none(), ?optional.of(2)] == [2]");
    fails("optional.none().value() == 1", "optional.none() dereference");
}

#[test]
fn times_have_fields_and_offsets() {
    holds("timestamp('2026-11-26T08:30:00.5Z').getHours() == 8");
    holds("timestamp('2026-11-26T08:30:00Z').getHours('-02:30') == 6");
    holds("timestamp('2026-11-26T08:30:00Z').getDayOfWeek() == 4");
    holds("timestamp('2024-12-31T00:00:00Z').getDayOfYear() == 365");
    holds("timestamp('2026-01-01T00:00:00Z') - duration('1h') == timestamp('2025-12-31T23:00:00Z')");
    holds("duration('1h30m').getMinutes() == 90 && string(duration('90s')) == '90s'");
    fails("timestamp(253402300799) + duration(['1s'][0]) == timestamp(0)", "timestamp overflow");
}

#[test]
fn values_are_converted() {
    holds("int('42') == 42 && int(3.9) == 3 && uint(3) == 3u && double('1.5') == 1.5");
    holds("string(1e6) == '1e+06' && string(true) == 'true' && string(b'abc') == 'abc'");
    holds("bool('T') && !bool('0') && bytes('é') == b'\\303\\251'");
    fails("int([1e19][0]) == 1", "integer overflow");
    fails("uint([-1][0]) == 1u", "unsigned integer overflow");
    fails("int(['x'][0]) == 1", "type conversion error from 'string' to 'int'");
    holds("type(1) == int && type([]) == list && type(null) == null_type");
}

#[test]
fn literals_have_escapes() {
    holds(r#""\u00e9\x41\101\t" == "éAA\t""#);
    holds(r"r'\d' == '\\d' && b'\xff' == b'\377'");
    holds("'''a\nb''' == 'a\\nb' && 0x10 == 16 && 1e2 == 100.0 && .5 == 0.5");
}

#[test]
fn macros_declare_their_variables_only_inside() {
    holds("[1].all(x, [2].all(y, x < y))");
    holds("[1].all(x, [2].all(x, x == 2) && x == 1)");
    holds("[3, 1, 2].sortBy(x, -x) == [3, 2, 1]");
}
