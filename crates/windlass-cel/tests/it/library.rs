//! Results of the libraries' functions.

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
fn fails(expression: &str, part: &str) {
    let error = eval(expression).expect_err(expression).to_string();
    assert!(error.contains(part), "{expression}: {error}");
}

#[test]
fn texts_are_searched_and_changed() {
    holds("'tacocat'.indexOf('c') == 2 && 'tacocat'.lastIndexOf('c') == 4 && 'añb'.indexOf('b') == 2");
    holds(
        "'añañ'.lastIndexOf('añ', 1) == 0 && 'añañ'.lastIndexOf('ñ', 2) == 1 && 'añ'.lastIndexOf('añañ', 1) == -1",
    );
    holds("'tacocat'.lastIndexOf('c', 3) == 2 && 'añb'.substring(1, 2) == 'ñ' && 'añb'.charAt(3) == ''");
    holds(
        "'a,b,c'.split(',', 2) == ['a', 'b,c'] && 'ab'.split('') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b'",
    );
    holds("'aXbX'.replace('X', '', 1) == 'abX' && 'ab'.replace('', '_') == '_a_b_'");
    holds("'TaCo'.lowerAscii() == 'taco' && '  x '.trim() == 'x' && strings.quote('a\"b') == '\"a\\\\\"b\"'");
    fails("'abc'.substring(4)", "index out of range: 4");
    fails("'abc'.substring(2, 1)", "invalid substring range. start: 2, end: 1");
}

#[test]
fn texts_are_formatted() {
    holds("'%s-%d-%.2f-%x-%b-%o'.format(['a', 7, 1.5, 255, 5, 8]) == 'a-7-1.50-ff-101-10'");
    holds("'%e'.format([3.14]) == '3.140000×10⁰⁰' && '%f'.format([1234567.0]) == '1,234,567.000000'");
    holds("'%s %%'.format([[1, 'x', {'k': true}]]) == '[1, \"x\", {\"k\":true}] %'");
}

#[test]
fn lists_are_sorted_and_summed() {
    holds(
        "[1, 3, 2].sort() == [1, 2, 3] && [1, 2].isSorted() && [1, 2, 3].sum() == 6 && ['b', 'a'].max() == 'b'",
    );
    holds(
        "[1, 2, 3, 4].slice(1, 3) == [2, 3] && [[1], [2, 3]].flatten() == [1, 2, 3] && lists.range(3) == [0, 1, 2]",
    );
    holds("[1, 2, 1].distinct() == [1, 2] && [1, 2].reverse() == [2, 1] && [1, 2, 1].lastIndexOf(1) == 2");
    holds("sets.contains([1, 2], [2]) && sets.equivalent([1, 2, 1], [2, 1]) && !sets.intersects([1], [2])");
    holds("[1].first().value() == 1 && dyn([]).last() == optional.none()");
    fails("[1].filter(x, x > 1).min()", "min called on empty list");
    fails("[1, 2].slice(1, 5)", "cannot slice(1, 5), list is length 2");
}

#[test]
fn addresses_are_parsed_as_go_parses_them() {
    holds("ip('10.0.0.1').family() == 4 && ip('::1').isLoopback() && isIP('fe80::1') && !isIP('10.0.0.01')");
    holds("!isIP('::ffff:1.2.3.4') && ip.isCanonical('2001:db8::68') && !ip.isCanonical('2001:DB8::68')");
    holds("cidr('10.1.0.0/16').containsIP('10.1.2.3') && cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')");
    holds(
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !isCIDR('10.0.0.0/33') && !isCIDR('10.0.0.0/08')",
    );
    holds("string(cidr('10.0.0.0/8')) == '10.0.0.0/8' && cidr('::/0').prefixLength() == 0");
    fails("ip('10.0.0.256')", "IPv4 field has value >255");
    fails("cidr('10.0.0.0')", "no '/'");
}

#[test]
fn urls_have_parts() {
    holds("url('https://user@example.com:80/a%20b?x=1&x=2').getHost() == 'example.com:80'");
    holds(
        "url('https://example.com:80/').getHostname() == 'example.com' && url('https://[::1]:80/').getHostname() == '::1'",
    );
    holds("url('https://example.com/a?x=1&x=2&y').getQuery() == {'x': ['1', '2'], 'y': ['']}");
    holds("url('https://example.com/with space/').getEscapedPath() == '/with%20space/'");
    holds("isURL('/absolute') && !isURL('relative') && !isURL('https://a:b/') && !isURL('../up')");
}

#[test]
fn hosts_of_urls_have_one_port_and_brackets_around_an_ipv6_address() {
    holds("!isURL('http://2001:db8::1') && !isURL('https://a:1:2/') && isURL('postgres://a:1,b:2/')");
    holds("!isURL('http://[a]/') && !isURL('http://[1.2.3.4]/') && !isURL('http://a[::1]/')");
    holds(
        "isURL('http://[::ffff:1.2.3.4]/') && isURL('http://[fe80::1%25en0]:80/') && !isURL('http://[::1%25]/')",
    );
    fails("url('http://a:1:2/')", "invalid port \":1:2\" after host");
    fails("url('http://[1.2.3.4]/')", "invalid IP-literal");
    fails("url('/\\u0301\\n')", "parse \"/\u{301}\\n\": net/url: invalid control character in URL");
    fails("url('http://[x]/')", "invalid host: ParseAddr(\"x\"): unable to parse IP");
}

#[test]
fn quantities_and_versions_are_compared() {
    holds(
        "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('500m').compareTo(quantity('0.5')) == 0",
    );
    holds(
        "quantity('50k').add(20).sub(quantity('100k')).asInteger() == -49980 && !quantity('1.5').isInteger()",
    );
    holds("isQuantity('1.5Gi') && !isQuantity('1.5Gigs') && quantity('2').asApproximateFloat() == 2.0");
    holds(
        "semver('1.2.3-rc.1').isLessThan(semver('1.2.3')) && semver('v1.0', true).major() == 1 && !isSemver('v1.0')",
    );
    fails("quantity('10 apples')", "quantities must match the regular expression");
}

#[test]
fn formats_report_their_problems() {
    holds("format.dns1123Label().validate('ok-name') == optional.none()");
    holds("format.named('dns1123Label').value().validate('Not Ok').value().size() == 1");
    holds("format.named('unknown') == optional.none() && format.uuid() == format.uuid()");
    holds("format.dns1123LabelPrefix().validate('a-') == optional.none()");
    holds(
        "format.qualifiedName().validate('a/b/c').hasValue() && !format.date().validate('2024-02-29').hasValue()",
    );
}

#[test]
fn regular_expressions_are_those_of_go() {
    holds(
        "'abc123'.matches('[a-z]+\\\\d{3}') && 'abc 123'.find('[0-9]+') == '123' && 'a1b2'.findAll('[0-9]', 1) == ['1']",
    );
    fails("'a'.matches(['(']  [0])", "error parsing regexp: missing closing )");
    fails("'a'.matches(['a**'][0])", "invalid nested repetition operator: `**`");
}
