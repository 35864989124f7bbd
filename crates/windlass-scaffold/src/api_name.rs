//! Names of Windlass' API that have changed: an update renames the names in the scaffolded files, and reports the remaining uses.

/// Names with a successor that fits in the same place.
const RENAMED: &[(&str, &str)] = &[
    (".alive()", ".not_terminating()"),
    (".concurrency(", ".max_concurrent_reconciles("),
    (".on_notice(", ".on_reflector_event("),
    (".tier(Tier::", ".encoding(ObjectEncoding::"),
    (".update_status_of(", ".update_status("),
    (".warm_up()", ".enable_warmup()"),
    (".without_force()", ".force(false)"),
    ("AdmissionWebhook, Change, Denial", "AdmissionChange, AdmissionDenial, AdmissionWebhook"),
    ("Change::Create", "AdmissionChange::Create"),
    ("Change::Delete", "AdmissionChange::Delete"),
    ("Change::Update", "AdmissionChange::Update"),
    ("Change<", "AdmissionChange<"),
    ("Denial", "AdmissionDenial"),
    ("MapContext", "HandlerContext"),
    ("ShownQueue", "QueueMetricsGuard"),
    ("Tier::Compressed", "ObjectEncoding::Compressed"),
    ("Tier::Raw", "ObjectEncoding::Raw"),
    ("StatusUpdate::Written", "OperationResult::Updated"),
    ("StatusUpdate", "OperationResult"),
    ("Upserted", "WriteResult"),
    ("informer::WatchOptions", "informer::CacheOptions"),
    ("WatchOptions::new()", "CacheOptions::new()"),
    ("events_only", "without_reads"),
    ("every_owner", "match_every_owner"),
    ("get_alive", "get_not_terminating"),
    ("of_dynamic", "of_kind"),
    ("predicate_for_all", "with_event_filter"),
    ("read_your_writes_timeout", "write_barrier_timeout"),
    ("show_queue", "register_queue_metrics"),
    ("windlass::fake", "windlass_test::fake"),
];

/// Names with a successor of another form.
const REWRITTEN: &[(&str, &str)] = &[
    (".external(", ".source(Source::keys(..))"),
    (".lister_named::<", ".lister_of(kind::<C>().named(..))"),
    (".metadata_only()", "kind::<PartialObjectMeta<C>>()"),
    (".add_handler(", ".subscribe(..)"),
    (".add_runnable(", ".runnable(..)"),
    ("InformerFactory::builder", "SharedInformerFactory::builder"),
    ("SharedIndexInformer", "SharedInformer"),
    ("Watch::cache::<", "Watch::reads_only(kind::<C>())"),
    ("Watch::dynamic(", "Watch::mapped_raw(&resource, ..)"),
    ("Watch::mapped::<", "Watch::mapped(kind::<C>(), ..)"),
    ("Watch::metadata(", "Watch::mapped_raw(KindRef::dynamic(&resource).metadata(), ..)"),
    ("Watch::owned::<", "Watch::owned(kind::<C>())"),
    ("Watch::primary::<", "Watch::primary(kind::<C>())"),
    ("add_event_handler_with_resync_period", "add_event_handler_with_options"),
    (".fail_next(", ".inject(Fault::Forbidden.on_create::<K>())"),
    (".fail_always(", ".inject(Fault::ServerError.on_writes().always())"),
    ("clear_failures()", "assert_all_struck()"),
    ("lister_dynamic", "lister_of(&resource)"),
    ("metadata_lister", "lister::<PartialObjectMeta<C>>()"),
    ("owned_by_dynamic", "lister_of(&resource)?.owned_by(&owner)"),
    ("owned_dynamic", "Watch::owned(&resource)"),
    ("owns_with", ".watch(Watch::owned(kind::<C>())..)"),
    ("patch_dynamic", "patch_of(&resource, ..)"),
    ("patch_subresource", ".patch(..).subresource(..)"),
    ("reads_with", "reads_of(kind::<C>(), ..)"),
    ("watches_metadata", ".watches::<PartialObjectMeta<C>>(..)"),
    ("watches_with", ".watch(Watch::mapped(kind::<C>(), ..)..)"),
];

/// Replaces the old names that have a successor in the same place.
pub(crate) fn rename(text: &str) -> String {
    let renamed = |text: String, (old, new): &(&str, &str)| replace(&text, old, new);
    RENAMED.iter().fold(text.to_owned(), renamed)
}

/// Returns a line for each use of an old name in a file.
pub(crate) fn old_names(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let names = RENAMED.iter().chain(REWRITTEN);
        for (old, new) in names.filter(|(old, _)| find(line, old).is_some()) {
            found.push(format!("{path}:{}: `{old}` is now `{new}`", number + 1));
        }
    }
    found
}

/// Replaces a name where the name is not part of a longer name.
pub(crate) fn replace(text: &str, old: &str, new: &str) -> String {
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = find(rest, old) {
        made.push_str(&rest[..at]);
        made.push_str(new);
        rest = &rest[at + old.len()..];
    }
    made + rest
}

/// Finds a name that is not part of a longer name.
fn find(text: &str, name: &str) -> Option<usize> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let (begins, ends) = (name.starts_with(is_name), name.ends_with(is_name));
    let whole = |at: &usize| {
        let (before, after) = (&text[..*at], &text[at + name.len()..]);
        !(begins && before.ends_with(is_name) || ends && after.starts_with(is_name))
    };
    text.match_indices(name).map(|(at, _)| at).find(whole)
}

#[cfg(test)]
mod tests {
    use super::{old_names, rename};

    #[test]
    fn a_name_is_renamed_and_a_longer_name_stays() {
        let old = "cx.get_alive(&key)?; pods.alive(); MyDenial; Denial::new(x); StatusUpdate::Written";
        let new = "cx.get_not_terminating(&key)?; pods.not_terminating(); MyDenial; AdmissionDenial::new(x); OperationResult::Updated";
        assert_eq!(rename(old), new);
        assert_eq!(rename(new), new, "renamed once");
    }

    #[test]
    fn a_use_of_another_form_is_reported_with_its_line() {
        let text = "a\n    .owns_with::<Pod>(|watch| watch)\n";
        assert_eq!(
            old_names("src/a.rs", text),
            ["src/a.rs:2: `owns_with` is now `.watch(Watch::owned(kind::<C>())..)`"]
        );
    }
}
