use super::*;

fn ask(accept: &str, target: Target) -> Result<Negotiated, ApiError> {
    negotiate(Some(accept), target)
}

#[test]
fn kubectls_accept_headers_get_tables() {
    let get = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
    let table = Representation::Table(TableVersion::V1);
    assert_eq!(ask(get, Target::List).expect("accepted").representation, table);
    assert_eq!(ask(get, Target::Watch).expect("accepted").representation, table);
}

#[test]
fn an_action_has_metadata_and_no_table() {
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    assert!(ask(table, Target::Action).is_err());
    let or_json = format!("{table},application/json");
    assert_eq!(ask(&or_json, Target::Action).expect("accepted").representation, Representation::Object);
    let metadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    assert!(ask(metadata, Target::Action).is_ok());
}

#[test]
fn metadata_has_a_form_for_objects_and_one_for_lists() {
    let one = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
    let list = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
    let partial = Representation::PartialObjectMetadata(TableVersion::V1);
    assert_eq!(ask(one, Target::Object).expect("accepted").representation, partial);
    let partial_list = Representation::PartialObjectMetadataList(TableVersion::V1);
    for target in [Target::List, Target::Object, Target::Custom] {
        assert_eq!(ask(list, target).expect("accepted").representation, partial_list);
    }
}

#[test]
fn the_first_media_type_with_the_representation_is_chosen() {
    let format = |accept: &str, target: Target| ask(accept, target).expect("accepted").format;
    let typed = "application/vnd.kubernetes.protobuf,application/json";
    assert_eq!(format(typed, Target::Object), Format::Protobuf);
    assert_eq!(format(typed, Target::Document), Format::Protobuf);
    assert_eq!(format(typed, Target::Custom), Format::Json, "a custom resource has no protobuf");
    assert_eq!(format("application/json,application/vnd.kubernetes.protobuf", Target::List), Format::Json);
    let preferred = "application/json;q=0.8,application/vnd.kubernetes.protobuf";
    assert_eq!(format(preferred, Target::List), Format::Protobuf);
    assert_eq!(format("application/vnd.kubernetes.protobuf;stream=watch", Target::Watch), Format::Protobuf);
    let metadata = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let of_metadata = format!("application/vnd.kubernetes.protobuf;{metadata},application/json;{metadata}");
    assert_eq!(format(&of_metadata, Target::Custom), Format::Protobuf);
    let table = "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1,application/json";
    let negotiated = ask(table, Target::List).expect("accepted");
    assert_eq!((negotiated.format, negotiated.representation), (Format::Json, Representation::Object));
    assert_eq!(format("application/yaml", Target::List), Format::Yaml);
    assert_eq!(ask("*/*", Target::List).expect("accepted"), Negotiated::default());
}

#[test]
fn what_cannot_be_met_is_406() {
    let accepted = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf";
    for accept in [
        "application/json;as=Foo;v=v1;g=meta.k8s.io",
        "application/json;as=Table;v=v1;g=foo",
        "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io",
    ] {
        let error = ask(accept, Target::List).expect_err("refused");
        assert_eq!((error.code(), error.to_string().as_str()), (406, accepted));
    }
    let custom = ask("application/vnd.kubernetes.protobuf", Target::Custom).expect_err("refused");
    assert_eq!((custom.code(), custom.to_string().as_str()), (406, accepted));
    assert_eq!(ask("text/html", Target::List).expect_err("refused").to_string(), accepted);
    let error = expect_produced(Some("text/html"), Target::List, &[]).expect_err("refused");
    assert!(
        error.to_string().starts_with("406: Not Acceptable\n\nAvailable representations: application/json, ")
    );
}

#[test]
fn the_preferred_clause_wins() {
    let clauses = MediaType::parse_accept("application/yaml;q=0.5, application/json;q=0.9, */*;q=0.1");
    let order: Vec<&str> = clauses.iter().map(|clause| clause.essence.as_str()).collect();
    assert_eq!(order, ["application/json", "application/yaml", "*/*"]);
}

#[test]
fn the_managed_fields_are_dropped_on_request() {
    let drops = |accept: &str| ask(accept, Target::List).map(|found| found.drops_managed_fields).ok();
    assert_eq!(drops("application/json;drop=metadata.managedFields"), Some(true));
    assert_eq!(drops("application/json; drop=metadata.annotations+metadata.managedFields"), Some(true));
    assert_eq!(drops("application/json;drop=metadata.annotations"), Some(false), "ignored");
    assert_eq!(drops("application/json;drop="), Some(false));
    assert_eq!(drops("application/json;drop=metadata.managedFields+metadata.managedFields"), None, "twice");
}
