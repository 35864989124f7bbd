//! Rust names for the names of the API.

/// Returns the name in snake case, in `k8s_openapi`'s spelling: `podIPs` is `pod_ips`, `$ref` is `ref_path`.
pub(super) fn snake(name: &str) -> String {
    match name {
        "$ref" => return "ref_path".to_owned(),
        "$schema" => return "schema".to_owned(),
        "openAPIV3Schema" => return "open_api_v3_schema".to_owned(),
        _ => {}
    }
    let chars: Vec<char> = name.replace('-', "_").chars().collect();
    let mut out = String::new();
    for (place, &c) in chars.iter().enumerate() {
        if c.is_ascii_uppercase() && place > 0 {
            let before = chars[place - 1];
            let next = chars.get(place + 1);
            // The `s` of a plural, as in `IPs`, begins no word.
            let is_plural = next == Some(&'s') && chars.get(place + 2).is_none_or(char::is_ascii_uppercase);
            let begins_word = next.is_some_and(char::is_ascii_lowercase) && !is_plural;
            if before != '_' && (!before.is_ascii_uppercase() || begins_word) {
                out.push('_');
            }
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Returns the name in snake case, with an underscore after a word that Rust reserves.
pub(super) fn field(name: &str) -> String {
    let name = snake(name);
    const RESERVED: [&str; 12] =
        ["as", "const", "continue", "else", "enum", "for", "if", "in", "match", "ref", "type", "where"];
    if RESERVED.contains(&name.as_str()) { format!("{name}_") } else { name }
}

#[cfg(test)]
mod tests {
    use super::{field, snake};

    #[test]
    fn names_are_those_of_k8s_openapi() {
        let cases = [
            ("minReadySeconds", "min_ready_seconds"),
            ("podIPs", "pod_ips"),
            ("externalIPs", "external_ips"),
            ("clusterIP", "cluster_ip"),
            ("nonResourceURLs", "non_resource_urls"),
            ("awsElasticBlockStore", "aws_elastic_block_store"),
            ("x-kubernetes-list-type", "x_kubernetes_list_type"),
            ("HTTPGetAction", "http_get_action"),
            ("CSIDriver", "csi_driver"),
            ("setHostnameAsFQDN", "set_hostname_as_fqdn"),
            ("$ref", "ref_path"),
        ];
        for (name, wanted) in cases {
            assert_eq!(snake(name), wanted);
        }
        assert_eq!(field("type"), "type_");
        assert_eq!(field("continue"), "continue_");
    }
}
