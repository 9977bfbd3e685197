//! PRELOGIN (MS-TDS 2.2.6.5): versions and encryption are agreed on before anything else.
//!
//! ```text
//! option token u8 | offset u16 be | length u16 be   ... 0xFF   then the options' data
//! ```

use crate::buffer::{DecodeError, Reader, Writer};

/// What one side wants of encryption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Encryption {
    /// Available, off: only the login packet is encrypted.
    Off = 0,
    /// Everything is encrypted.
    On = 1,
    /// Not available.
    NotSupported = 2,
    /// Demanded.
    Required = 3,
}

impl Encryption {
    fn from_u8(number: u8) -> Option<Self> {
        [Self::Off, Self::On, Self::NotSupported, Self::Required].into_iter().find(|e| *e as u8 == number)
    }

    /// What a server that offers `self` answers a client that asks for `client`; `None` ends the connection.
    /// The table of MS-TDS 2.2.6.5.
    pub fn answer(self, client: Self) -> Option<Self> {
        match (self, client) {
            (Self::NotSupported, Self::Off | Self::NotSupported) => Some(Self::NotSupported),
            (Self::NotSupported, Self::On | Self::Required) => None,
            (Self::Off, Self::Off) => Some(Self::Off),
            (Self::Off, Self::NotSupported) => Some(Self::NotSupported),
            (Self::Off, Self::On | Self::Required) => Some(Self::On),
            (Self::On | Self::Required, Self::NotSupported) => Some(Self::Required),
            (Self::On | Self::Required, Self::Off) => Some(Self::Required),
            (Self::On | Self::Required, Self::On | Self::Required) => Some(Self::On),
        }
    }
}

/// The options we read and write; others are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreLogin {
    /// Version of the sender: major, minor, build (big-endian), sub-build.
    pub version: [u8; 6],
    /// Encryption.
    pub encryption: Encryption,
    /// Instance the client asks for, without its terminating zero; on the way back a byte 0 for "it is this one".
    pub instance: Vec<u8>,
    /// The client's thread, for its traces.
    pub thread_id: Option<u32>,
    /// Multiple active result sets wanted or granted.
    pub mars: bool,
    /// The client can send a federated authentication token.
    pub federated_authentication: Option<u8>,
}

const VERSION: u8 = 0;
const ENCRYPTION: u8 = 1;
const INSTANCE: u8 = 2;
const THREAD_ID: u8 = 3;
const MARS: u8 = 4;
const FEDERATED_AUTHENTICATION: u8 = 6;
const TERMINATOR: u8 = 0xFF;

impl PreLogin {
    /// Reads the data of a PRELOGIN message.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(data);
        let mut message = Self {
            version: [0; 6],
            encryption: Encryption::NotSupported,
            instance: Vec::new(),
            thread_id: None,
            mars: false,
            federated_authentication: None,
        };
        loop {
            let token = reader.u8("prelogin option")?;
            if token == TERMINATOR {
                return Ok(message);
            }
            let offset = usize::from(reader.u16_be("prelogin offset")?);
            let length = usize::from(reader.u16_be("prelogin length")?);
            let value = data.get(offset..).and_then(|rest| rest.get(..length)).ok_or(reader.malformed("prelogin option extent"))?;
            let mut value = Reader::new(value);
            match token {
                VERSION => message.version = value.array("prelogin version")?,
                ENCRYPTION => {
                    let wanted = value.u8("prelogin encryption")?;
                    message.encryption = Encryption::from_u8(wanted).ok_or(value.malformed("prelogin encryption"))?;
                }
                INSTANCE => {
                    let bytes = value.bytes(length, "prelogin instance")?;
                    message.instance = bytes.split(|b| *b == 0).next().unwrap_or_default().to_vec();
                }
                THREAD_ID if length == 4 => message.thread_id = Some(value.u32("prelogin thread")?),
                MARS if length == 1 => message.mars = value.u8("prelogin mars")? != 0,
                FEDERATED_AUTHENTICATION if length == 1 => {
                    message.federated_authentication = Some(value.u8("prelogin federated authentication")?);
                }
                _ => {}
            }
        }
    }

    /// Appends the data of a PRELOGIN message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut instance = self.instance.clone();
        instance.push(0);
        let thread = self.thread_id.map_or(Vec::new(), |id| id.to_le_bytes().to_vec());
        let mut options = vec![
            (VERSION, self.version.to_vec()),
            (ENCRYPTION, vec![self.encryption as u8]),
            (INSTANCE, instance),
            (THREAD_ID, thread),
            (MARS, vec![u8::from(self.mars)]),
        ];
        options.extend(self.federated_authentication.map(|required| (FEDERATED_AUTHENTICATION, vec![required])));
        let mut offset = u16::try_from(options.len() * 5 + 1).expect("six options");
        for (token, value) in &options {
            let length = u16::try_from(value.len()).expect("the instance name came in a USHORT length");
            out.put_u8(*token);
            out.put_u16_be(offset);
            out.put_u16_be(length);
            offset += length;
        }
        out.put_u8(TERMINATOR);
        options.iter().for_each(|(_, value)| out.extend_from_slice(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        for encryption in [Encryption::Off, Encryption::On, Encryption::NotSupported, Encryption::Required] {
            let message = PreLogin {
                version: [16, 0, 3, 232, 0, 0],
                encryption,
                instance: b"MSSQLServer".to_vec(),
                thread_id: Some(7),
                mars: true,
                federated_authentication: Some(1),
            };
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            assert_eq!(PreLogin::decode(&bytes).unwrap(), message);
        }
    }

    #[test]
    fn broken_options_are_errors() {
        for bytes in [&[][..], &[0], &[0, 0, 6, 0, 6], &[1, 0, 6, 0, 1, 255, 9], &[0, 255, 255, 255, 255, 255]] {
            assert!(PreLogin::decode(bytes).is_err(), "{bytes:?}");
        }
    }
}
