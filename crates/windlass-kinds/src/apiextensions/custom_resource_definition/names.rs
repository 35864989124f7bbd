//! Decides the accepted names of a definition.
//!
//! Within a group, plural, singular and short names share a space of names, and kinds and list kinds share a
//! second space. The first definition with a name keeps the name; a definition with a taken name is not
//! established.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{approval, ca_bundle, condition_is_true, set_condition, text, texts};

/// Sets `acceptedNames` and the conditions: `NamesAccepted`, `Established`, and that of the approval, given the names that other definitions of
/// the group hold.
pub fn accept(definition: &mut Value, others: &[&Names], now: &str) {
    let names = definition["spec"]["names"].clone();
    let taken = ReservedNames::by(others);
    let held = definition["status"]["acceptedNames"].clone();
    let verdict = taken.check(&names, &held);
    definition["status"]["acceptedNames"] = verdict.accepted;
    match verdict.refused {
        None => {
            set_condition(definition, "NamesAccepted", true, "NoConflicts", "no conflicts found", now);
            if !condition_is_true(definition, "Established") {
                let (holds, reason, message) = match ca_bundle::problem(definition) {
                    None => (true, "InitialNamesAccepted", "the initial names have been accepted"),
                    Some(_) => (false, "InvalidCABundle", "The conversion webhook CABundle is invalid"),
                };
                set_condition(definition, "Established", holds, reason, message, now);
            }
        }
        Some((reason, message)) => {
            set_condition(definition, "NamesAccepted", false, reason, &message, now);
            // An established definition stays established, under the accepted names.
            if !condition_is_true(definition, "Established") {
                let message = "not all names are accepted";
                set_condition(definition, "Established", false, "NotAccepted", message, now);
            }
        }
    }
    approval::tell(definition, now);
}

/// The names that a definition holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Plural, singular and short names.
    resources: Vec<String>,
    /// Kind and list kind.
    kinds: Vec<String>,
}

impl Names {
    /// Returns the names in `status.acceptedNames`.
    pub fn accepted(definition: &Value) -> Self {
        let names = &definition["status"]["acceptedNames"];
        let given = |name: &&str| !name.is_empty();
        let resources = [text(names, &["plural"]), text(names, &["singular"])];
        let resources = resources.into_iter().chain(texts(names, "shortNames")).filter(given);
        let kinds = [text(names, &["kind"]), text(names, &["listKind"])].into_iter().filter(given);
        Self { resources: resources.map(str::to_owned).collect(), kinds: kinds.map(str::to_owned).collect() }
    }
}

/// The names that other definitions of the group hold.
struct ReservedNames<'a> {
    resources: HashSet<&'a str>,
    kinds: HashSet<&'a str>,
}

impl<'a> ReservedNames<'a> {
    fn by(others: &[&'a Names]) -> Self {
        Self {
            resources: others.iter().flat_map(|names| &names.resources).map(String::as_str).collect(),
            kinds: others.iter().flat_map(|names| &names.kinds).map(String::as_str).collect(),
        }
    }
}

struct NameCheck {
    accepted: Value,
    /// Reason and message of a name that was not free.
    refused: Option<(&'static str, String)>,
}

impl ReservedNames<'_> {
    /// Checks each name separately. For a taken name, the definition keeps the earlier name.
    fn check(&self, wanted: &Value, held: &Value) -> NameCheck {
        let mut accepted = Map::new();
        let mut single = |field: &'static str, reason: &'static str| {
            let name = text(wanted, &[field]);
            let is_kind = matches!(field, "kind" | "listKind");
            let is_taken = if is_kind { self.kinds.contains(name) } else { self.resources.contains(name) };
            let refused = is_taken.then(|| (reason, in_use(name)));
            let kept = if refused.is_some() { text(held, &[field]) } else { name };
            // Plural and kind are always there, even when empty.
            if !kept.is_empty() || matches!(field, "plural" | "kind") {
                accepted.insert(field.to_owned(), json!(kept));
            }
            refused
        };
        let plural = single("plural", "PluralConflict");
        let singular = single("singular", "SingularConflict");
        let kind = single("kind", "KindConflict");
        let list_kind = single("listKind", "ListKindConflict");

        let short_names = texts(wanted, "shortNames");
        let clashes: Vec<String> = short_names
            .iter()
            .filter(|name| self.resources.contains(*name))
            .map(|name| in_use(name))
            .collect();
        let short_names = if clashes.is_empty() { short_names } else { texts(held, "shortNames") };
        if !short_names.is_empty() {
            accepted.insert("shortNames".to_owned(), json!(short_names));
        }
        let short_name = match &clashes[..] {
            [] => None,
            [clash] => Some(("ShortNamesConflict", clash.clone())),
            clashes => Some(("ShortNamesConflict", format!("[{}]", clashes.join(", ")))),
        };
        // The last conflict is reported.
        let refused = list_kind.or(kind).or(short_name).or(singular).or(plural);
        let categories = texts(wanted, "categories");
        if !categories.is_empty() {
            accepted.insert("categories".to_owned(), json!(categories));
        }
        NameCheck { accepted: Value::Object(accepted), refused }
    }
}

fn in_use(name: &str) -> String {
    format!("{} is already in use", windlass_schema::go_quote(name))
}
