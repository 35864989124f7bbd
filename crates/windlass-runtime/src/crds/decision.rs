//! The decision to apply an operator's own CRD over the CRD in the cluster.

use std::{cmp::Ordering, collections::BTreeSet, slice::from_ref};

use serde_json::Value;
use windlass_codegen::compatibility::{BreakingChange, breaking_changes};

/// The decision about a CRD. A CRD that was applied is never applied in an older form: the decisions of two operators never alternate.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// The cluster has no CRD of the name.
    Create,
    /// The own CRD only adds to the live CRD.
    Update,
    /// The live CRD has everything that the own CRD has. Holds the changes that would remove something.
    Keep(Vec<BreakingChange>),
    /// Each CRD has a part that the other CRD lacks: applying the own CRD would break clients or stored
    /// objects.
    Refuse(Vec<BreakingChange>),
}

impl Decision {
    pub(super) fn of(live: Option<&Value>, own: &Value) -> Self {
        let Some(live) = live else { return Self::Create };
        let lost = breaking_changes(from_ref(live), from_ref(own));
        let adds = !breaking_changes(from_ref(own), from_ref(live)).is_empty();
        match (lost.is_empty(), adds) {
            (true, true) => Self::Update,
            (true, false) if details(live, own) == Some(Ordering::Less) => Self::Update,
            (_, false) => Self::Keep(lost),
            (false, true) => Self::Refuse(lost),
        }
    }
}

/// Compares the parts that no client depends on: columns, categories, and the storage version. Returns `Less`
/// if `own` only adds to `live`, and `None` if each CRD has a part that the other CRD lacks.
fn details(live: &Value, own: &Value) -> Option<Ordering> {
    let lists = sets(&details_of(live), &details_of(own))?;
    let stored = match (stored_version(live), stored_version(own)) {
        (Some(live), Some(own)) => priority(live).cmp(&priority(own)),
        _ => Ordering::Equal,
    };
    match (lists, stored) {
        (lists, Ordering::Equal) => Some(lists),
        (Ordering::Equal, stored) => Some(stored),
        (lists, stored) if lists == stored => Some(lists),
        _ => None,
    }
}

fn sets<T: Ord>(one: &BTreeSet<T>, other: &BTreeSet<T>) -> Option<Ordering> {
    match (one.is_subset(other), other.is_subset(one)) {
        (true, true) => Some(Ordering::Equal),
        (true, false) => Some(Ordering::Less),
        (false, true) => Some(Ordering::Greater),
        (false, false) => None,
    }
}

/// Returns the categories and the columns of a CRD, with the version of each.
fn details_of(crd: &Value) -> BTreeSet<(&str, &str)> {
    let names = items(&crd["spec"]["names"]["categories"]).map(|category| ("", text(category)));
    let columns = items(&crd["spec"]["versions"]).flat_map(|version| {
        let columns = items(&version["additionalPrinterColumns"]);
        columns.map(|column| (text(&version["name"]), text(&column["name"])))
    });
    names.chain(columns).collect()
}

pub(super) fn stored_version(crd: &Value) -> Option<&str> {
    items(&crd["spec"]["versions"])
        .find(|version| version["storage"] == true)
        .map(|version| text(&version["name"]))
}

/// Orders versions as Kubernetes does: `v1` is above `v1beta2`, `v1beta1` and `v1alpha1`, and `v2` above `v1`. Other names are below.
pub(super) fn priority(version: &str) -> (u8, u64, u64) {
    let parsed = || {
        let rest = version.strip_prefix('v')?;
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (major, rest) = rest.split_at(digits(rest));
        let major: u64 = major.parse().ok()?;
        let level = match rest {
            "" => return Some((3, major, 0)),
            rest if rest.starts_with("beta") => 2,
            rest if rest.starts_with("alpha") => 1,
            _ => return None,
        };
        let minor = rest.trim_start_matches(|letter: char| letter.is_ascii_lowercase());
        Some((level, major, minor.parse().ok()?))
    };
    parsed().unwrap_or_default()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn version(name: &str, storage: bool, fields: &[&str]) -> Value {
        let fields: serde_json::Map<String, Value> =
            fields.iter().map(|field| ((*field).to_owned(), json!({ "type": "string" }))).collect();
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": { "openAPIV3Schema": { "type": "object", "properties": fields } },
        })
    }

    fn crd(versions: &[Value]) -> Value {
        json!({
            "kind": "CustomResourceDefinition",
            "metadata": { "name": "bars.example.com" },
            "spec": { "names": { "kind": "Bar", "plural": "bars" }, "versions": versions },
        })
    }

    fn fields(fields: &[&str]) -> Value {
        crd(&[version("v1", true, fields)])
    }

    fn word(live: &Value, own: &Value) -> &'static str {
        match Decision::of(Some(live), own) {
            Decision::Create => "create",
            Decision::Update => "update",
            Decision::Keep(_) => "keep",
            Decision::Refuse(_) => "refuse",
        }
    }

    #[test]
    fn additions_are_applied_and_the_rest_is_kept_or_refused() {
        let (a, ab, ac) = (fields(&["a"]), fields(&["a", "b"]), fields(&["a", "c"]));
        assert_eq!(Decision::of(None, &a), Decision::Create);
        assert_eq!(word(&a, &ab), "update");
        assert_eq!(word(&ab, &a), "keep");
        assert_eq!(word(&a, &a), "keep");
        let Decision::Refuse(changes) = Decision::of(Some(&ab), &ac) else { panic!("refused") };
        assert_eq!(changes[0].to_string(), "bars.example.com v1 .b: the field is gone");
    }

    #[test]
    fn a_column_or_a_category_is_an_addition_and_another_description_is_none() {
        let plain = fields(&["a"]);
        let mut columns = plain.clone();
        columns["spec"]["versions"][0]["additionalPrinterColumns"] =
            json!([{ "name": "A", "jsonPath": ".a" }]);
        let mut category = plain.clone();
        category["spec"]["names"]["categories"] = json!(["all"]);
        let mut described = plain.clone();
        described["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = json!("A bar.");
        assert_eq!((word(&plain, &columns), word(&columns, &plain)), ("update", "keep"));
        assert_eq!((word(&plain, &category), word(&category, &plain)), ("update", "keep"));
        assert_eq!((word(&columns, &category), word(&category, &columns)), ("keep", "keep"));
        assert_eq!((word(&plain, &described), word(&described, &plain)), ("keep", "keep"));
    }

    #[test]
    fn the_stored_version_moves_up_and_never_down() {
        let one = |stored: &str| {
            crd(&[version("v1beta1", stored == "v1beta1", &["a"]), version("v1", stored == "v1", &["a"])])
        };
        assert_eq!(
            (word(&one("v1beta1"), &one("v1")), word(&one("v1"), &one("v1beta1"))),
            ("update", "keep")
        );
        let ordered = ["foo", "v1alpha1", "v2alpha1", "v1beta1", "v1beta2", "v1", "v2", "v10"];
        assert!(ordered.is_sorted_by_key(|version| priority(version)));
    }

    #[test]
    fn two_operators_never_take_turns() {
        let forms = [
            fields(&["a"]),
            fields(&["a", "b"]),
            fields(&["a", "c"]),
            fields(&["a", "b", "c"]),
            crd(&[version("v1", true, &["a"]), version("v2", false, &["a"])]),
            crd(&[version("v1", false, &["a"]), version("v2", true, &["a", "b"])]),
            crd(&[version("v2", true, &["a", "b"])]),
        ];
        for live in &forms {
            for own in &forms {
                assert!(word(live, own) != "update" || word(own, live) == "keep", "{live} {own}");
            }
        }
    }
}
