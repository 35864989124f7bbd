//! Random expressions at the limits of the language.

use fastrand::Rng;

/// An endless sequence of expressions, each determined by the seed.
pub(super) struct Expressions {
    rng: Rng,
    number: usize,
}

impl Expressions {
    pub(super) fn new(seed: u64) -> Self {
        Self { rng: Rng::with_seed(seed), number: 0 }
    }
}

impl Iterator for Expressions {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let make = FAMILIES[self.number % FAMILIES.len()];
        self.number += 1;
        Some(make(&mut self.rng))
    }
}

/// Each function makes an expression of a family.
const FAMILIES: &[fn(&mut Rng) -> String] = &[
    nested,
    long_operators,
    many_branches,
    loops,
    mixed_loops,
    chains,
    chains,
    chains,
    text_chains,
    text_chains,
    doubled_text,
    doubled_list,
    large_literal,
    patterns,
    pattern_of_data,
    formats,
    parsed,
    maps,
    maps,
    compared,
    quoted,
    two_variables,
    optionals,
    bound,
    split_and_joined,
    large_numbers,
    sets,
];

fn pick<'a>(rng: &mut Rng, from: &[&'a str]) -> &'a str {
    rng.choice(from).copied().unwrap_or_default()
}

fn wrap(open: &str, inner: &str, close: &str, times: usize) -> String {
    format!("{}{inner}{}", open.repeat(times), close.repeat(times))
}

/// Nesting, below and above the limit.
fn nested(rng: &mut Rng) -> String {
    let times = rng.usize(50..400);
    match rng.u8(..8) {
        0 => wrap("(", "true", ")", times),
        1 => wrap("[", "1", "]", times) + " != []",
        2 => wrap("{'a': ", "true", "}", times) + " != {}",
        3 => wrap("!(", "true", ")", times),
        4 => wrap("[1].all(x, ", "true", ")", times / 2),
        5 => wrap("[1, 2, 3].all(x, x > 0 && ", "true", ")", times / 30),
        6 => wrap("(true ? ", "true", " : false)", times),
        _ => format!("self.lists{} != []", "[0]".repeat(times)),
    }
}

/// Long chains of operators, near the limit of the length.
fn long_operators(rng: &mut Rng) -> String {
    let count = rng.usize(1000..20_000);
    match rng.u8(..6) {
        0 => vec!["true"; count].join(" && "),
        1 => vec!["self.number == 3"; count / 4].join(" && "),
        2 => vec!["self.number"; count / 4].join(" + ") + " > 0",
        3 => vec!["self.text"; count / 4].join(" + ") + " != ''",
        4 => vec!["'a'"; count].join(" + ") + " != ''",
        _ => format!(
            "self.number in [{}]",
            (0..count).map(|number| number.to_string()).collect::<Vec<_>>().join(",")
        ),
    }
}

fn many_branches(rng: &mut Rng) -> String {
    let count = rng.usize(100..2000);
    let branches: String = (0..count)
        .map(|index| ["self.number == ", &(index + 10).to_string(), " ? true : "].concat())
        .collect();
    if rng.bool() {
        format!("{branches}true")
    } else {
        vec!["(self.number > 1 || self.text.contains('zz'))"; count].join(" && ")
    }
}

const LISTS: &[&str] =
    &["self.words", "self.numbers", "self.lists", "self.words + self.words", "self.numbers.map(n, n * 2)"];
const MACROS: &[&str] = &["all", "exists", "exists_one"];

/// Loops within loops over large lists.
fn loops(rng: &mut Rng) -> String {
    let depth = rng.usize(1..5);
    let body = pick(
        rng,
        &[
            "true",
            "false",
            "v0 == v0",
            "self.text.contains('zzz')",
            "self.words.size() > 3",
            "'x' in self.words",
        ],
    );
    let mut expression = body.to_owned();
    for level in (0..depth).rev() {
        let (list, name) = (pick(rng, LISTS), pick(rng, MACROS));
        expression = format!("({list}).{name}(v{level}, {expression})");
    }
    expression
}

fn mixed_loops(rng: &mut Rng) -> String {
    let (outer, inner) = (pick(rng, MACROS), pick(rng, &["filter", "map"]));
    let body = if inner == "filter" { "a != b" } else { "[a, b, a + b]" };
    format!("self.words.{outer}(a, self.words.{inner}(b, {body}).size() >= 0)")
}

const STEPS: &[&str] = &[
    ".map(x, [x, x])",
    ".map(x, x)",
    ".filter(x, x == x)",
    ".distinct()",
    ".reverse()",
    ".flatten()",
    ".map(x, {'k': x, 'l': x})",
    ".map(x, string(x))",
    ".map(x, x, [x])",
    ".slice(0, 9999)",
    ".sortBy(x, x)",
    ".sort()",
    ".map(x, self.words)",
    ".map(x, dyn(x))",
    ".map(x, [x] + [x])",
    ".flatten(10)",
    ".map(x, {x: x})",
];

/// Chains of functions on lists.
fn chains(rng: &mut Rng) -> String {
    let mut expression = format!("({})", pick(rng, LISTS));
    for _ in 0..rng.usize(1..9) {
        expression += pick(rng, STEPS);
    }
    expression
        + pick(
            rng,
            &[
                ".size() > 0",
                ".all(x, true)",
                " != []",
                ".exists(x, x == x)",
                ".indexOf(1) > 0",
                ".isSorted()",
                ".distinct().size() > 1",
            ],
        )
}

const TEXT_STEPS: &[&str] = &[
    ".replace('a', 'aa')",
    ".replace('', 'xy')",
    ".replace('a', self.text)",
    ".upperAscii()",
    ".lowerAscii()",
    ".reverse()",
    ".substring(1)",
    ".split('').join('--')",
    ".split(',').join('aaaaaaaa')",
    ".trim()",
    ".replace('aa', 'b', 9000)",
    ".replace('b', 'aaaaaaaaaa')",
];

/// Chains of functions on texts.
fn text_chains(rng: &mut Rng) -> String {
    let mut expression = "self.text".to_owned();
    for _ in 0..rng.usize(1..10) {
        expression += pick(rng, TEXT_STEPS);
    }
    expression
        + pick(
            rng,
            &[
                ".size() > 0",
                ".contains('zzzz')",
                " != ''",
                ".endsWith('q')",
                ".matches('^(a|b)*$')",
                ".indexOf('zz') < 0",
                ".lastIndexOf('zz') < 0",
            ],
        )
}

fn doubled_text(rng: &mut Rng) -> String {
    let times = rng.usize(2..40);
    let step = pick(
        rng,
        &[
            ".map(t, t + t)",
            ".map(t, t.replace('a', t))",
            ".map(t, t + self.text)",
            ".map(t, [t, t].join(t))",
            ".map(t, '%s%s'.format([t, t]))",
        ],
    );
    format!("['aaaa']{}[0].size() > 0", step.repeat(times))
}

fn doubled_list(rng: &mut Rng) -> String {
    let times = rng.usize(2..30);
    let step = pick(
        rng,
        &[
            ".map(l, l + l)",
            ".map(l, l + self.words)",
            ".map(l, [l, l].flatten())",
            ".map(l, (l + l).reverse())",
        ],
    );
    let end = pick(
        rng,
        &[
            ".size() > 0",
            ".all(x, x != '')",
            ".distinct().size() > 0",
            ".sort().size() > 0",
            ".isSorted()",
            ".join('').size() > 0",
            ".max() != ''",
            ".indexOf('q') < 0",
        ],
    );
    format!("[self.words]{}[0]{end}", step.repeat(times))
}

fn large_literal(rng: &mut Rng) -> String {
    let count = rng.usize(500..9000);
    let list = |item: &str| vec![item; count].join(",");
    match rng.u8(..5) {
        0 => format!("[{}].distinct().size() > 0", list("'abc'")),
        1 => format!(
            "{{{}}}.size() > 0",
            (0..count / 2).map(|key| format!("'{key}': {key}")).collect::<Vec<_>>().join(",")
        ),
        2 => format!("'{}'.size() > 0", "x".repeat(count * 10)),
        3 => format!(
            "[{}].sort().isSorted()",
            (0..count).map(|index| (index * 7919 % 1013).to_string()).collect::<Vec<_>>().join(",")
        ),
        _ => format!("[{}].all(x, [{}].exists(y, x == y))", list("1"), list("1")),
    }
}

const PATTERNS: &[&str] = &[
    "(a*)*$",
    "(a|a)*b",
    "(a|aa)+$",
    "(.*)(.*)(.*)(.*)x",
    "[a-z]{1,900}",
    "((a{1,30}){1,30}){1,2}",
    "(a{1000}){1000}",
    "\\\\pL+\\\\pN*$",
    "(x+x+)+y",
    ".{0,1000}z",
    "(?i)straße|é+",
    "(a?){200}a{200}",
    "^(([a-b]+)[ ,]?)+$",
    "\\\\w{1,500}\\\\W",
    "(\\\\pL{1,100}){1,10}",
];

fn patterns(rng: &mut Rng) -> String {
    let pattern = pick(rng, PATTERNS);
    match rng.u8(..6) {
        0 => format!("self.text.matches('{pattern}')"),
        1 => format!("self.words.all(w, w.matches('{pattern}'))"),
        2 => format!("self.text.findAll('{pattern}').size() > 0"),
        3 => format!("self.text.find('{pattern}') == ''"),
        4 => format!("(self.text + self.text).matches('{}')", vec![pattern; rng.usize(1..20)].join("|")),
        _ => format!("self.text.findAll('{pattern}', 5000).map(x, x + x).size() > 0"),
    }
}

/// Patterns that depend on data, and cannot be compiled once.
fn pattern_of_data(rng: &mut Rng) -> String {
    let tail = pick(rng, &["{100}", "*", "+$", "(a|b){50}", "\\\\pL{200}", "|[a-z]{300}", "(.{50}){10}"]);
    match rng.u8(..3) {
        0 => format!("self.words.all(w, 'word-1'.matches(w + '{tail}'))"),
        1 => format!("self.words.map(w, self.text.find(w + '{tail}')).size() > 0"),
        _ => format!(
            "self.words.all(w, !self.text.matches('(' + self.words.filter(x, x < w).join('|') + '){tail}'))"
        ),
    }
}

fn formats(rng: &mut Rng) -> String {
    let verb = pick(rng, &["%s", "%d", "%.300f", "%e", "%x", "%b", "%o", "%.1000e", "%X"]);
    let count = rng.usize(1..2000);
    let verbs = verb.repeat(count);
    let value =
        pick(rng, &["self.text", "self.number", "self.words", "self.map", "1.5", "self.lists", "b'abc'"]);
    match rng.u8(..3) {
        0 => format!("'{verbs}'.format([{}]) != ''", vec![value; count.min(2000)].join(",")),
        1 => format!("self.words.all(w, '{verb}{verb}'.format([{value}, {value}]) != '')"),
        _ => "self.text.replace('a', '%s').format(self.words) != ''".to_owned(),
    }
}

/// Texts that are parsed.
fn parsed(rng: &mut Rng) -> String {
    let digits = "9".repeat(rng.usize(1..20_000));
    let call = pick(rng, &["isQuantity", "isSemver", "isIP", "isCIDR", "isURL"]);
    match rng.u8(..9) {
        0 => format!("!{call}('{digits}') || true"),
        1 => format!("self.words.all(w, !{call}(w + self.text))"),
        2 => format!(
            "self.numbers.all(n, quantity(string(n) + 'Ki').add(quantity('1')).isGreaterThan(quantity('{}')))",
            &digits[..digits.len().min(19)]
        ),
        3 => format!("quantity('1e{}').sign() > 0", rng.u32(1..100_000)),
        4 => format!("isSemver('1.2.3-{}')", vec!["a1"; rng.usize(1..9000)].join(".")),
        5 => format!(
            "self.numbers.all(n, semver('1.' + string(n) + '.0').isLessThan(semver('2.{}.0')))",
            &digits[..digits.len().min(9)]
        ),
        6 => "self.words.all(w, !isURL('https://example.com/' + self.text + w))".to_owned(),
        7 => {
            "self.numbers.all(n, cidr('10.0.0.0/8').containsIP('10.' + string(n % 256) + '.0.1'))".to_owned()
        }
        _ => format!(
            "timestamp('2020-01-01T00:00:00Z') < timestamp('2020-01-01T00:00:00.{}Z') || duration('{digits}ns') > duration('1s')",
            &digits[..digits.len().min(9)]
        ),
    }
}

fn maps(rng: &mut Rng) -> String {
    match rng.u8(..9) {
        0 => "self.map.all(k, self.map.all(l, self.map[k] != l))".to_owned(),
        1 => "self.map.transformMap(k, v, v + v).size() > 0".to_owned(),
        2 => "self.map.transformList(k, v, self.map).size() > 0".to_owned(),
        3 => format!(
            "[self.map]{}.size() > 0",
            ".map(m, m.transformMap(k, v, [v, v]))".repeat(rng.usize(1..4))
        ),
        4 => "self.map.transformMapEntry(k, v, {v + 'x': k + v}).size() > 0".to_owned(),
        5 => "self.words.map(w, {w: self.words}).size() > 0".to_owned(),
        6 => format!("self.map.filter(k, self.map[k].matches('{}')).size() >= 0", pick(rng, PATTERNS)),
        7 => "self.words.map(w, self.map).map(m, m == self.map).size() > 0".to_owned(),
        _ => "self.words.transformMapEntry(i, w, {string(i) + w: self.words}).size() > 0".to_owned(),
    }
}

fn compared(rng: &mut Rng) -> String {
    let values = ["self.words", "self.map", "self.lists", "self.numbers", "self.words + self.words"];
    let (one, other) = (pick(rng, &values), pick(rng, &values));
    match rng.u8(..4) {
        0 => format!("self.words.all(w, dyn({one}) != dyn({other}))"),
        1 => format!("self.numbers.all(n, {one} == {one})"),
        2 => format!("dyn({one}) in self.words.map(w, dyn({other}))"),
        _ => format!("self.words.all(w, w in self.words.reverse()) && {one} == {one}"),
    }
}

/// Values in the messages of errors.
fn quoted(rng: &mut Rng) -> String {
    let value = pick(
        rng,
        &["self.words", "self.map", "self.text", "self.lists", "self.text + self.text + self.text"],
    );
    match rng.u8(..5) {
        0 => format!("int({value} == {value} ? self.text : 'a') > 0"),
        1 => "duration(self.text) > duration('1s')".to_owned(),
        2 => format!("{{'a': true}}[dyn({value})]"),
        3 => "timestamp(self.text.replace('a', self.text)) > timestamp('2020-01-01T00:00:00Z')".to_owned(),
        _ => "self.map[self.text]  == 'a'".to_owned(),
    }
}

fn two_variables(rng: &mut Rng) -> String {
    let body = pick(
        rng,
        &[
            "i >= 0",
            "self.words.exists(j, w, j == i && w == v)",
            "self.words[i] == v",
            "self.words.all(w, w != v || true)",
        ],
    );
    let name = pick(rng, &["all", "exists", "existsOne"]);
    format!("self.words.{name}(i, v, {body})")
}

fn optionals(rng: &mut Rng) -> String {
    let times = rng.usize(1..60);
    let step = pick(
        rng,
        &[".optMap(x, x)", ".optMap(x, [x, x])", ".optFlatMap(x, optional.of([x]))", ".or(optional.none())"],
    );
    match rng.u8(..3) {
        0 => format!("optional.of(self.words){}.hasValue()", step.repeat(times)),
        1 => format!(
            "self.words.map(w, [?self.map[?w], ?self.map[?w]]){}.size() > 0",
            ".map(x, [x, x])".repeat(times % 5)
        ),
        _ => "self.map.all(k, self.map[?k].orValue('') != '' && self.?text.orValue('').contains('a'))"
            .to_owned(),
    }
}

/// Nested lists whose elements share memory, but not their texts.
fn bound(rng: &mut Rng) -> String {
    let times = rng.usize(5..60);
    let end = pick(
        rng,
        &[
            " != []",
            " == [[1]]",
            ".size() > 0",
            ".flatten(100).size() > 0",
            ".distinct().size() > 0",
            ".exists(x, x == [1])",
        ],
    );
    let start = pick(rng, &["[1]", "[self.text]", "[self.words]", "[self.map]"]);
    format!(
        "dyn({start}{}){}",
        ".map(x, dyn([x, x]))".repeat(times),
        if end.starts_with('.') { "!= 1" } else { end }
    )
}

fn split_and_joined(rng: &mut Rng) -> String {
    let separator = pick(rng, &["", "a", ",", " ", "1.2"]);
    let more = ".map(p, p + p)".repeat(rng.usize(0..8));
    let end = pick(
        rng,
        &[
            ".join(self.text).size() > 0",
            ".join('').size() > 0",
            ".size() > 0",
            ".distinct().size() > 0",
            ".sort().join('é').matches('é+')",
        ],
    );
    format!("self.text.split('{separator}'){more}{end}")
}

fn large_numbers(rng: &mut Rng) -> String {
    let number = rng.i64(1..i64::MAX);
    match rng.u8(..5) {
        0 => format!("lists.range({}).size() > 0", rng.u32(1..2_000_000_000)),
        1 => format!("lists.range({}).map(x, x * x).sum() > 0", rng.u32(1..3_000_000)),
        2 => format!("self.numbers.all(n, n * {number} > 0)"),
        3 => format!("lists.range({}).sortBy(x, -x)[0] > 0", rng.u32(1000..200_000)),
        _ => format!("self.numbers.map(n, lists.range(n)).flatten().sum() % {number} > 0"),
    }
}

fn sets(rng: &mut Rng) -> String {
    let call = pick(rng, &["contains", "equivalent", "intersects"]);
    let (one, other) = (pick(rng, LISTS), pick(rng, LISTS));
    match rng.u8(..2) {
        0 => format!("sets.{call}({one}, {one})"),
        _ => format!("self.words.all(w, sets.{call}(dyn({one}), dyn({other})))"),
    }
}
