use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Versions, ready, schema};
use crate::fields::{ApplyError, FieldFilter, FieldSet, Managed, Managers, Updater};
use crate::graph::Schema;

/// An object and the object's managers.
struct State {
    versions: Versions,
    filters: BTreeMap<String, FieldFilter>,
    live: Value,
    managers: Managers,
}

impl State {
    fn new() -> Self {
        Self {
            versions: Versions::one(),
            filters: BTreeMap::new(),
            live: json!({}),
            managers: Managers::default(),
        }
    }

    fn update(&mut self, manager: &str, new: Value) {
        let updater = Updater::new(&self.versions).with_filters(&self.filters);
        let managers = self.managers.clone();
        self.managers = ready(updater.update(&self.live, &new, "v1", managers, manager)).unwrap();
        self.live = new;
    }

    fn try_apply(
        &mut self,
        manager: &str,
        version: &str,
        config: Value,
        force: bool,
    ) -> Result<bool, ApplyError> {
        let updater = Updater::new(&self.versions).with_filters(&self.filters);
        let managers = self.managers.clone();
        let (object, managers) =
            ready(updater.apply(&self.live, &config, version, managers, manager, force))?;
        let changed = object.is_some();
        self.live = object.unwrap_or_else(|| self.live.take());
        self.managers = managers;
        Ok(changed)
    }

    /// Applies a configuration; returns whether the object changes.
    fn apply(&mut self, manager: &str, config: Value) -> bool {
        self.try_apply(manager, "v1", config, false).unwrap()
    }

    fn fields(&self, manager: &str) -> String {
        self.managers.0.get(manager).map(|managed| managed.fields.to_string()).unwrap_or_default()
    }
}

#[test]
fn an_apply_owns_what_it_names() {
    let mut state = State::new();
    assert!(state.apply("a", json!({"n": 1, "set": ["x"]})));
    assert_eq!(state.live, json!({"n": 1, "set": ["x"]}));
    assert_eq!(state.fields("a"), ".n\n.set[=\"x\"]");
    assert!(state.managers.0["a"].applied);
}

#[test]
fn an_apply_that_changes_nothing_returns_no_object() {
    let mut state = State::new();
    state.apply("a", json!({"n": 1}));
    assert!(!state.apply("a", json!({"n": 1})));
    assert!(!state.apply("b", json!({"n": 1})));
    assert_eq!(state.fields("b"), ".n");
}

#[test]
fn a_new_order_of_a_list_is_a_change() {
    let mut state = State::new();
    state.apply("a", json!({"set": ["x", "y"]}));
    assert!(state.apply("a", json!({"set": ["y", "x"]})));
    assert_eq!(state.live, json!({"set": ["y", "x"]}));
}

#[test]
fn a_change_of_what_others_own_is_a_conflict() {
    let mut state = State::new();
    state.apply("a", json!({"n": 1, "nested": {"a": 1}}));
    state.update("b", json!({"n": 2, "nested": {"a": 1}}));
    assert_eq!(state.fields("a"), ".nested.a");
    let error = state.try_apply("c", "v1", json!({"n": 3, "nested": {"a": 2}}), false).unwrap_err();
    assert_eq!(error.to_string(), "conflicts with \"a\":\n- .nested.a\nconflicts with \"b\":\n- .n");
    assert_eq!(state.live["n"], 2);
    state.try_apply("c", "v1", json!({"n": 3, "nested": {"a": 2}}), true).unwrap();
    assert_eq!(state.live, json!({"n": 3, "nested": {"a": 2}}));
    assert_eq!(state.managers.0.keys().collect::<Vec<_>>(), ["c"]);
}

#[test]
fn what_a_manager_applies_no_more_is_removed_unless_others_own_it() {
    let mut state = State::new();
    state.apply(
        "a",
        json!({"n": 1, "set": ["x", "y"], "ports": [{"port": 1, "name": "one"}], "nested": {"a": 1}}),
    );
    state.apply("b", json!({"set": ["y"], "ports": [{"port": 1}]}));
    state.apply("a", json!({"text": "t"}));
    assert_eq!(state.live, json!({"set": ["y"], "ports": [{"port": 1}], "text": "t"}));
    assert_eq!(state.fields("a"), ".text");
}

#[test]
fn fields_without_an_owner_go_with_the_element_around_them() {
    let mut state = State::new();
    state.apply("a", json!({"ports": [{"port": 1}, {"port": 2}]}));
    // No manager owns a default that the server sets, for example.
    state.live["ports"][0]["name"] = json!("default");
    state.apply("a", json!({"ports": [{"port": 2}]}));
    assert_eq!(state.live, json!({"ports": [{"port": 2}]}));
}

#[test]
fn an_update_owns_what_it_changes_and_gives_up_what_it_removes() {
    let mut state = State::new();
    state.update("a", json!({"n": 1, "map": {"x": "1"}}));
    assert_eq!(state.fields("a"), ".map\n.n\n.map.x");
    state.update("a", json!({"map": {"x": "1", "y": "2"}}));
    assert_eq!(state.fields("a"), ".map\n.map.x\n.map.y");
    state.update("b", json!({"map": {"y": "2"}}));
    assert_eq!(state.fields("a"), ".map\n.map.y");
    state.update("b", json!({}));
    assert!(state.managers.0.is_empty());
}

#[test]
fn an_atomic_value_has_one_owner() {
    let mut state = State::new();
    state.apply("a", json!({"atomic": {"x": "1"}, "list": ["x"]}));
    let error = state.try_apply("b", "v1", json!({"atomic": {"y": "1"}, "list": ["y"]}), false).unwrap_err();
    assert_eq!(error.to_string(), "conflicts with \"a\":\n- .atomic\n- .list");
    state.try_apply("b", "v1", json!({"atomic": {"y": "1"}}), true).unwrap();
    assert_eq!(state.live, json!({"atomic": {"y": "1"}, "list": ["x"]}));
}

#[test]
fn managers_of_missing_versions_are_dropped() {
    let mut state = State::new();
    state.apply("a", json!({"n": 1}));
    state
        .managers
        .0
        .insert("old".to_owned(), Managed { api_version: "v0".to_owned(), ..state.managers.0["a"].clone() });
    state.apply("b", json!({"text": "t"}));
    assert_eq!(state.managers.0.keys().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn what_was_applied_in_another_version_is_removed() {
    let mut state = State::new();
    state.versions.0.insert("v2", schema());
    state.apply("a", json!({"n": 1, "text": "t"}));
    state.try_apply("a", "v2", json!({"n": 1}), false).unwrap();
    assert_eq!(state.live, json!({"n": 1}));
    assert_eq!(state.managers.0["a"].api_version, "v2");
}

#[test]
fn the_owner_of_a_part_owns_the_whole_when_a_list_becomes_atomic() {
    let mut state = State::new();
    state.apply("a", json!({"set": ["x"], "map": {"k": "1"}, "any": {"k": {"l": 1}}}));
    let atomic = json!({"type": "object", "properties": {
        "set": {"type": "array", "items": {"type": "string"}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic"},
        "any": {"x-kubernetes-preserve-unknown-fields": true},
        "n": {"type": "integer"},
    }});
    state.versions.0.insert("v1", Schema::compile(&atomic));
    state.apply("b", json!({"n": 1}));
    assert_eq!(state.fields("a"), ".map\n.set\n.any.k\n.any.k.l");
}

#[test]
fn filtered_fields_are_not_owned() {
    let mut state = State::new();
    let ignored = FieldSet::from_v1(&json!({"f:nested": {}})).unwrap();
    state.filters.insert("v1".to_owned(), FieldFilter::Exclude(ignored));
    state.apply("a", json!({"n": 1, "nested": {"a": 1}}));
    assert_eq!(state.fields("a"), ".n");
    state.update("b", json!({"n": 1, "nested": {"a": 2}}));
    assert_eq!(state.fields("b"), "");
}

#[test]
fn a_failed_conversion_fails_the_write() {
    struct Broken(Schema);
    impl super::Convert for Broken {
        fn schema(&self, _: &str) -> Option<crate::NodeRef<'_>> {
            Some(self.0.root())
        }

        async fn convert(&self, _: &Value, _: &str, _: &str) -> Result<Value, super::ConvertError> {
            Err(super::ConvertError::Failed("no webhook".to_owned()))
        }
    }
    let fields = FieldSet::from_v1(&json!({"f:n": {}})).unwrap();
    let managed = Managed { fields, api_version: "v2".to_owned(), applied: true };
    let managers = Managers(BTreeMap::from([("a".to_owned(), managed)]));
    let broken = Broken(schema());
    let error =
        ready(Updater::new(&broken).update(&json!({}), &json!({"n": 1}), "v1", managers, "b")).unwrap_err();
    assert_eq!(error.to_string(), "no webhook");
}
