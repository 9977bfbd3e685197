//! TLS settings: the certificate, and one configuration for each of the two ways TDS uses TLS.

use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject};
use std::fmt;
use std::sync::Arc;

/// ALPN name of TDS 8.0.
const ALPN_TDS_8: &[u8] = b"tds/8.0";

/// What the server shows of itself.
#[derive(Clone)]
pub enum Certificate {
    /// Made at start, known to nobody: clients must be told to trust it, as with SQL Server's own fallback.
    SelfSigned {
        /// Names it is made out to.
        names: Vec<String>,
    },
    /// PEM texts: the certificate chain, and its private key in PKCS #8, SEC 1 or PKCS #1.
    Pem {
        /// The chain, leaf first.
        chain: Vec<u8>,
        /// The key.
        key: Vec<u8>,
    },
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SelfSigned { names } => write!(f, "SelfSigned({names:?})"),
            Self::Pem { .. } => f.write_str("Pem(..)"),
        }
    }
}

/// The certificate cannot be used.
#[derive(Debug)]
pub struct CertificateError(String);

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the TLS certificate cannot be used: {}", self.0)
    }
}

impl std::error::Error for CertificateError {}

fn unusable(error: impl fmt::Display) -> CertificateError {
    CertificateError(error.to_string())
}

/// The two configurations.
pub(crate) struct TlsConfigs {
    /// TLS inside PRELOGIN packets (TDS 7): 1.2 only, because what 1.3 sends after its handshake has no place there.
    pub(crate) wrapped: Arc<ServerConfig>,
    /// TLS from the first byte (TDS 8.0).
    pub(crate) strict: Arc<ServerConfig>,
}

impl TlsConfigs {
    pub(crate) fn new(certificate: &Certificate) -> Result<Self, CertificateError> {
        let (chain, key) = load(certificate)?;
        let build = |versions: &[&'static rustls::SupportedProtocolVersion]| {
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_protocol_versions(versions)
                .map_err(unusable)?
                .with_no_client_auth()
                .with_single_cert(chain.clone(), key.clone_key())
                .map_err(unusable)
        };
        let wrapped = build(&[&rustls::version::TLS12])?;
        let mut strict = build(&[&rustls::version::TLS13, &rustls::version::TLS12])?;
        strict.alpn_protocols = vec![ALPN_TDS_8.to_vec()];
        Ok(Self { wrapped: Arc::new(wrapped), strict: Arc::new(strict) })
    }
}

fn load(certificate: &Certificate) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), CertificateError> {
    match certificate {
        Certificate::SelfSigned { names } => {
            let made = rcgen::generate_simple_self_signed(names.clone()).map_err(unusable)?;
            let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
            Ok((vec![made.cert.der().clone()], PrivateKeyDer::Pkcs8(key)))
        }
        Certificate::Pem { chain, key } => {
            let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
            Ok((chain.map_err(unusable)?, PrivateKeyDer::from_pem_slice(key).map_err(unusable)?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_made_or_refused() {
        assert!(TlsConfigs::new(&Certificate::SelfSigned { names: vec!["localhost".into()] }).is_ok());
        let rubbish = Certificate::Pem { chain: b"no".to_vec(), key: b"no".to_vec() };
        assert!(TlsConfigs::new(&rubbish).is_err());
        assert!(!format!("{rubbish:?}").contains("no"));
    }
}
