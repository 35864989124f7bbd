//! The rights of users to act for a signer.

use windlass_store::Attributes;

use super::GROUP;
use crate::kind::WriteContext;

/// The field with the name of the signer.
pub(super) const FIELD: &str = "spec.signerName";

/// Returns whether the user may act for a signer with `verb` (`approve`, `sign`, `attest`): for this signer, or for all
/// signers of the domain.
pub(super) fn may_act_for(cx: &WriteContext<'_>, verb: &str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    [signer.to_owned(), format!("{domain}/*")].iter().any(|name| {
        let act = Attributes { verb, group: GROUP, resource: "signers", name, ..Attributes::default() };
        cx.authorizer.allows(cx.store, cx.identity, &act)
    })
}
