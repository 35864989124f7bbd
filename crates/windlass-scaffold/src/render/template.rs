//! Texts with names in double braces: `{{kind}}`.

/// Replaces each `{{name}}` by the value of the name.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut made = String::with_capacity(template.len() * 2);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        made.push_str(before);
        let Some((name, behind)) = after.split_once("}}") else {
            made.push_str("{{");
            rest = after;
            continue;
        };
        match values.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => made.push_str(value),
            // Not a name of ours: the text stays unchanged.
            None => made.extend(["{{", name, "}}"]),
        }
        rest = behind;
    }
    made + rest
}

/// Returns `a` or `an`, for the name of a kind.
pub(crate) fn article(kind: &str) -> &'static str {
    // An acronym is read letter by letter: an IPPool, an HTTPRoute, a UDPRoute.
    let acronym = kind.chars().take(2).filter(char::is_ascii_uppercase).count() == 2;
    let vowels: &[char] = if acronym {
        &['A', 'E', 'F', 'H', 'I', 'L', 'M', 'N', 'O', 'R', 'S', 'X']
    } else {
        &['A', 'E', 'I', 'O']
    };
    if kind.starts_with(vowels) { "an" } else { "a" }
}

#[cfg(test)]
mod tests {
    use super::{article, fill};

    #[test]
    fn names_are_replaced_and_other_braces_stay() {
        assert_eq!(fill("a {{b}} {c} {{d}} {{", &[("b", "B")]), "a B {c} {{d}} {{");
    }

    #[test]
    fn articles_follow_the_sound() {
        let kinds = ["Bar", "Order", "IPPool", "HTTPRoute", "UDPRoute", "User"].map(article);
        assert_eq!(kinds, ["a", "an", "an", "an", "a", "a"]);
    }
}
