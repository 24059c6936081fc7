//! The protection of a file transfer.

use pyo3::prelude::*;
use security::{Credentials, TrustedKeys};
use serde::Deserialize;
use socket::Protection;

use crate::calls::wrong;
use crate::credentials::{code, identity};

/// Text from the command line or from files.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum ProtectionText {
    None,
    Code { code: String },
    Keys { identity: String, trusted: String },
}

/// Reads the protection of a transfer from JSON.
pub fn protection(text: &str) -> PyResult<Protection> {
    let text: ProtectionText = serde_json::from_str(text).map_err(wrong)?;
    Ok(match text {
        ProtectionText::None => Protection::None,
        ProtectionText::Code { code: text } => Protection::Secure(Credentials::Code(code(&text)?)),
        ProtectionText::Keys {
            identity: own,
            trusted,
        } => Protection::Secure(Credentials::Keys {
            identity: identity(&own)?,
            trusted: TrustedKeys::parse(&trusted)
                .map_err(|(line, error)| wrong(format!("{line}: {error}")))?,
        }),
    })
}
