use super::{parse_go, staging_module};

#[test]
fn staging_modules_are_those_without_a_version_of_their_own() {
    assert_eq!(staging_module("\tk8s.io/api v0.0.0"), Some("k8s.io/api"));
    assert_eq!(staging_module("\tk8s.io/cri-api v0.0.0 // indirect"), Some("k8s.io/cri-api"));
    assert_eq!(staging_module("require k8s.io/api v0.0.0"), Some("k8s.io/api"));
    assert_eq!(staging_module("\tk8s.io/klog/v2 v2.140.0"), None);
    assert_eq!(staging_module("\tsigs.k8s.io/json v0.0.0-20250730193827-2d320260d730"), None);
    assert_eq!(staging_module("\tk8s.io/utils v0.0.0-20260108192941-914a6e750570"), None);
    assert_eq!(staging_module(")"), None);
}

#[test]
fn versions_of_go_compare_by_number() {
    assert_eq!(parse_go("go1.26.8"), Some((1, 26)));
    assert!(parse_go("go1.9") < Some((1, 26)));
    assert_eq!(parse_go("devel +abc"), None);
}
