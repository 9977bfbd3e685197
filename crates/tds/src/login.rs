//! LOGIN7 (MS-TDS 2.2.6.4): who the client is and what it wants of its session.
//!
//! ```text
//! length u32 | version u32 | packet size u32 | program version u32 | process u32 | connection u32
//! option flags 1,2,3 u8 | type flags u8 | time zone i32 | LCID u32
//! 9 x (offset u16, characters u16) | client id 6 bytes | SSPI | attach file | change password | SSPI length u32
//! ```
//!
//! The password is only obfuscated (each byte's nibbles swapped, then xor 0xA5); TLS protects it. [`Login`] redacts it
//! from `Debug`.

use crate::TdsVersion;
use crate::buffer::{DecodeError, Reader, Writer, utf16_text};
use std::fmt;

/// Bytes of the fixed part.
const FIXED_BYTES: usize = 94;
/// Option flags 3, bit 4: a feature extension block follows.
const FLAG_EXTENSION: u8 = 0x10;
/// Option flags 2, bit 7: integrated security.
const FLAG_INTEGRATED: u8 = 0x80;
/// Type flags, bit 5: the client only reads (ApplicationIntent).
const FLAG_READ_ONLY: u8 = 0x20;

/// A feature the client offers (MS-TDS 2.2.6.4, FeatureExt).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// FeatureId.
    pub id: u8,
    /// Its data.
    pub data: Vec<u8>,
}

/// Feature: UTF-8 text in char and varchar.
pub const FEATURE_UTF8_SUPPORT: u8 = 0x0A;

/// A login.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The protocol version asked for.
    pub version: TdsVersion,
    /// The packet size asked for, 0 for the server's choice.
    pub packet_bytes: u32,
    /// The client's process.
    pub client_process: u32,
    /// Option flags 1, 2, 3 and type flags.
    pub flags: [u8; 4],
    /// Locale.
    pub lcid: u32,
    /// Name of the client's machine.
    pub host: String,
    /// Login name.
    pub user: String,
    /// Password.
    pub password: String,
    /// Application.
    pub application: String,
    /// Server name as the client knows it.
    pub server: String,
    /// Client library.
    pub library: String,
    /// Language wanted.
    pub language: String,
    /// Database wanted.
    pub database: String,
    /// New password, if the client wants to change it.
    pub new_password: String,
    /// Feature extensions.
    pub features: Vec<Feature>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("version", &self.version)
            .field("user", &self.user)
            .field("host", &self.host)
            .field("application", &self.application)
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

impl Login {
    /// Reads the data of a LOGIN7 message.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(data);
        let length = reader.u32("login length")? as usize;
        if length > data.len() || length < FIXED_BYTES - 8 {
            return Err(reader.malformed("login length"));
        }
        let version = TdsVersion(reader.u32("login version")?);
        let packet_bytes = reader.u32("login packet size")?;
        reader.u32("login program version")?;
        let client_process = reader.u32("login process")?;
        reader.u32("login connection")?;
        let flags = reader.array("login flags")?;
        reader.u32("login time zone")?;
        let lcid = reader.u32("login locale")?;
        let host = text_at(&mut reader, data)?;
        let user = text_at(&mut reader, data)?;
        let password = deobfuscated(bytes_at(&mut reader, data, 2)?);
        let application = text_at(&mut reader, data)?;
        let server = text_at(&mut reader, data)?;
        let extension = bytes_at(&mut reader, data, 1)?;
        let library = text_at(&mut reader, data)?;
        let language = text_at(&mut reader, data)?;
        let database = text_at(&mut reader, data)?;
        reader.bytes(6, "login client id")?;
        bytes_at(&mut reader, data, 1)?;
        text_at(&mut reader, data)?;
        let new_password = if version.since_7_2() { deobfuscated(bytes_at(&mut reader, data, 2)?) } else { String::new() };
        let features = if flags[2] & FLAG_EXTENSION != 0 { features(extension, data)? } else { Vec::new() };
        Ok(Self {
            version,
            packet_bytes,
            client_process,
            flags,
            lcid,
            host,
            user,
            password,
            application,
            server,
            library,
            language,
            database,
            new_password,
            features,
        })
    }

    /// Appends the data of a LOGIN7 message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let mut fixed = Vec::with_capacity(FIXED_BYTES);
        fixed.put_u32(0);
        fixed.put_u32(self.version.0);
        fixed.put_u32(self.packet_bytes);
        fixed.put_u32(0);
        fixed.put_u32(self.client_process);
        fixed.put_u32(0);
        let mut flags = self.flags;
        flags[2] = if self.features.is_empty() { flags[2] & !FLAG_EXTENSION } else { flags[2] | FLAG_EXTENSION };
        fixed.extend_from_slice(&flags);
        fixed.put_u32(0);
        fixed.put_u32(self.lcid);
        let mut tail = Vec::new();
        let mut place = |fixed: &mut Vec<u8>, bytes: &[u8], units: usize| {
            fixed.put_u16(u16::try_from(FIXED_BYTES + tail.len()).expect("login fields are short"));
            fixed.put_u16(u16::try_from(bytes.len() / units).expect("login fields are short"));
            tail.extend_from_slice(bytes);
        };
        place(&mut fixed, &utf16(&self.host), 2);
        place(&mut fixed, &utf16(&self.user), 2);
        place(&mut fixed, &obfuscated(&self.password), 2);
        place(&mut fixed, &utf16(&self.application), 2);
        place(&mut fixed, &utf16(&self.server), 2);
        let extension_at = fixed.len();
        place(&mut fixed, if self.features.is_empty() { &[] } else { &[0; 4] }, 1);
        for text in [&self.library, &self.language, &self.database] {
            place(&mut fixed, &utf16(text), 2);
        }
        fixed.extend_from_slice(&[0; 6]);
        place(&mut fixed, &[], 1);
        place(&mut fixed, &[], 2);
        place(&mut fixed, &obfuscated(&self.new_password), 2);
        fixed.put_u32(0);
        assert_eq!(fixed.len(), FIXED_BYTES, "the fixed part has the documented size");
        if !self.features.is_empty() {
            let pointer = usize::from(u16::from_le_bytes([fixed[extension_at], fixed[extension_at + 1]])) - FIXED_BYTES;
            let block_at = u32::try_from(FIXED_BYTES + tail.len()).expect("login fields are short");
            tail[pointer..pointer + 4].copy_from_slice(&block_at.to_le_bytes());
            for feature in &self.features {
                tail.put_u8(feature.id);
                tail.put_u32(u32::try_from(feature.data.len()).expect("features are short"));
                tail.extend_from_slice(&feature.data);
            }
            tail.put_u8(0xFF);
        }
        out.extend_from_slice(&fixed);
        out.extend_from_slice(&tail);
        let length = u32::try_from(out.len() - start).expect("login fields are short");
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }

    /// Whether the client wants Windows authentication.
    pub fn wants_integrated_security(&self) -> bool {
        self.flags[1] & FLAG_INTEGRATED != 0
    }

    /// Whether the client declared that it only reads.
    pub fn is_read_only_intent(&self) -> bool {
        self.flags[3] & FLAG_READ_ONLY != 0
    }

    /// Whether the client offers a feature.
    pub fn offers(&self, feature: u8) -> bool {
        self.features.iter().any(|f| f.id == feature)
    }
}

fn bytes_at<'a>(reader: &mut Reader<'_>, data: &'a [u8], unit_bytes: usize) -> Result<&'a [u8], DecodeError> {
    let offset = usize::from(reader.u16("login field offset")?);
    let length = usize::from(reader.u16("login field length")?) * unit_bytes;
    if length == 0 {
        return Ok(&[]);
    }
    data.get(offset..).and_then(|rest| rest.get(..length)).ok_or(reader.malformed("login field extent"))
}

fn text_at(reader: &mut Reader<'_>, data: &[u8]) -> Result<String, DecodeError> {
    bytes_at(reader, data, 2).map(utf16_text)
}

fn features(extension: &[u8], data: &[u8]) -> Result<Vec<Feature>, DecodeError> {
    let offset = Reader::new(extension).u32("login extension")? as usize;
    let block = data.get(offset..).ok_or(Reader::new(data).malformed("login extension offset"))?;
    let mut reader = Reader::new(block);
    let mut features = Vec::new();
    loop {
        let id = reader.u8("login feature")?;
        if id == 0xFF {
            return Ok(features);
        }
        let length = reader.u32("login feature length")? as usize;
        features.push(Feature { id, data: reader.bytes(length, "login feature data")?.to_vec() });
    }
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn obfuscated(password: &str) -> Vec<u8> {
    utf16(password).into_iter().map(|byte| byte.rotate_left(4) ^ 0xA5).collect()
}

fn deobfuscated(bytes: &[u8]) -> String {
    utf16_text(&bytes.iter().map(|byte| (byte ^ 0xA5).rotate_left(4)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Login {
        Login {
            version: TdsVersion::V7_4,
            packet_bytes: 8192,
            client_process: 42,
            flags: [0xE0, 0x03, 0x10, 0x00],
            lcid: 0x0409,
            host: "büro".into(),
            user: "sa".into(),
            password: "P@ss wörd".into(),
            application: "tests".into(),
            server: "localhost".into(),
            library: "thawdb".into(),
            language: String::new(),
            database: "master".into(),
            new_password: String::new(),
            features: vec![Feature { id: FEATURE_UTF8_SUPPORT, data: Vec::new() }, Feature { id: 1, data: vec![1, 2] }],
        }
    }

    #[test]
    fn round_trip() {
        let mut bytes = Vec::new();
        sample().encode(&mut bytes);
        assert_eq!(Login::decode(&bytes).unwrap(), sample());
        let plain = Login { features: Vec::new(), flags: [0xE0, 0x03, 0, 0], ..sample() };
        let mut bytes = Vec::new();
        plain.encode(&mut bytes);
        assert_eq!(Login::decode(&bytes).unwrap(), plain);
    }

    #[test]
    fn password_stays_out_of_debug_text() {
        assert!(!format!("{:?}", sample()).contains("P@ss"));
    }

    #[test]
    fn every_cut_and_flip_is_survived() {
        let mut bytes = Vec::new();
        sample().encode(&mut bytes);
        for length in 0..bytes.len() {
            assert!(Login::decode(&bytes[..length]).is_err());
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut hostile = bytes.clone();
                hostile[at] ^= 1 << bit;
                let _ = Login::decode(&hostile);
            }
        }
    }
}
