//! Codes and keys of file transfers. The commands read and write their files.

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use security::{Code, PublicKey, SecretKey, TrustedKeys};

use crate::calls::wrong;

fn random<const N: usize>() -> PyResult<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| PyOSError::new_err(format!("the system provides no random numbers: {error}")))?;
    Ok(bytes)
}

/// Reads a code.
pub fn code(text: &str) -> PyResult<Code> {
    text.parse().map_err(|error| wrong(format!("the code {error}")))
}

/// Reads a secret key.
pub fn identity(text: &str) -> PyResult<SecretKey> {
    text.parse().map_err(|error| wrong(format!("the key {error}")))
}

/// Returns a new random code.
#[pyfunction]
pub fn new_code() -> PyResult<String> {
    Ok(Code::new(random()?).to_string())
}

/// Raises ValueError unless a text is a code.
#[pyfunction]
pub fn check_code(text: &str) -> PyResult<()> {
    code(text).map(drop)
}

/// Returns a new random key, as the text of an identity file.
#[pyfunction]
pub fn new_identity() -> PyResult<String> {
    Ok(SecretKey::new(random()?).to_text())
}

/// Returns the public key of an identity file's text.
#[pyfunction]
pub fn public_key(text: &str) -> PyResult<String> {
    Ok(identity(text)?.public().to_string())
}

/// Raises ValueError unless a text is a public key.
#[pyfunction]
pub fn check_public_key(text: &str) -> PyResult<()> {
    let key: Result<PublicKey, _> = text.parse();
    key.map(drop).map_err(|error| wrong(format!("the key {error}")))
}

/// Returns the number of keys in the text of a list of trusted keys; raises ValueError with the line of an invalid one.
#[pyfunction]
pub fn count_trusted(text: &str) -> PyResult<usize> {
    let trusted = TrustedKeys::parse(text).map_err(|(line, error)| wrong(format!("{line}: {error}")))?;
    Ok(trusted.len())
}
