//! The conversion webhook of a CRD that the operator applies.

use serde_json::{Value, json};
use windlass_webhook::{CertificateSource, certificates::ServedAt};

use crate::{
    error::{Error, Result},
    webhook_declaration::WebhookServerDeclaration,
};

/// Adds the conversion that the operator declares for a CRD. A CRD without a declared conversion is not changed.
///
/// # Errors
/// The certificate of the webhook server comes from files, and the operator therefore does
/// not know the Service of the webhook server.
pub(super) fn convert(crd: &mut Value, servers: &[WebhookServerDeclaration]) -> Result<()> {
    let name = crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    for server in servers {
        if let Some(conversion) = server.conversions.iter().find(|conversion| conversion.crd_name() == name) {
            crd["spec"]["conversion"] = stanza(&name, &server.certificates, &conversion.path)?;
        }
    }
    Ok(())
}

fn stanza(name: &str, certificates: &CertificateSource, path: &str) -> Result<Value> {
    let CertificateSource::SelfIssued(issued) = certificates else {
        return Err(Error::terminal(format!(
            "{name} gets a conversion webhook, and the operator does not know the Service of the webhook server, because the certificate \
             comes from files: apply the CRD with `windlass deploy` before the operator starts, or let the operator issue the certificate \
             (SelfIssued)"
        )));
    };
    let config = match issued.location() {
        ServedAt::Service { namespace, name } => {
            json!({ "service": { "namespace": namespace, "name": name, "path": path } })
        }
        ServedAt::Url { host, port } => {
            let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
            json!({ "url": format!("https://{host}:{port}{path}") })
        }
    };
    Ok(json!({
        "strategy": "Webhook",
        "webhook": { "clientConfig": config, "conversionReviewVersions": ["v1"] },
    }))
}

#[cfg(test)]
mod tests {
    use windlass_webhook::{SelfIssued, certificates::CertificateFiles};

    use super::*;

    #[test]
    fn the_webhook_is_where_the_certificate_says() {
        let of = |issued: SelfIssued| {
            let conversion = stanza("bars.example.com", &CertificateSource::SelfIssued(issued), "/convert");
            conversion.expect("a conversion")["webhook"]["clientConfig"].clone()
        };
        let service = json!({ "namespace": "web", "name": "hooks", "path": "/convert" });
        assert_eq!(of(SelfIssued::for_service("web", "hooks")), json!({ "service": service }));
        assert_eq!(of(SelfIssued::for_host("::1", 9443)), json!({ "url": "https://[::1]:9443/convert" }));
    }

    #[test]
    fn an_unknown_service_is_an_error_with_advice() {
        let files = CertificateSource::Files(CertificateFiles::default());
        let error = stanza("bars.example.com", &files, "/convert").expect_err("unknown").to_string();
        assert!(error.starts_with("bars.example.com") && error.contains("`windlass deploy`"), "{error}");
    }
}
