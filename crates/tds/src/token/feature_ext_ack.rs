//! FEATUREEXTACK (MS-TDS 2.2.7.11): which offered features are taken up. What is not named is declined.
//!
//! ```text
//! token u8 | { feature u8 | length u32 | data }* | 0xFF
//! ```

use crate::buffer::{DecodeError, Reader, Writer};
use crate::login::Feature;
use crate::token::code;

/// The features taken up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureExtAck {
    /// Each with its data.
    pub features: Vec<Feature>,
}

impl FeatureExtAck {
    /// Appends the token.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(code::FEATURE_EXT_ACK);
        for feature in &self.features {
            out.put_u8(feature.id);
            out.put_u32(u32::try_from(feature.data.len()).expect("acknowledgements are short"));
            out.extend_from_slice(&feature.data);
        }
        out.put_u8(0xFF);
    }

    /// Reads the token after its code.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut features = Vec::new();
        loop {
            let id = reader.u8("feature")?;
            if id == 0xFF {
                return Ok(Self { features });
            }
            let length = reader.u32("feature length")? as usize;
            features.push(Feature { id, data: reader.bytes(length, "feature data")?.to_vec() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        let ack = FeatureExtAck { features: vec![Feature { id: 10, data: vec![1] }, Feature { id: 1, data: vec![] }] };
        let mut bytes = Vec::new();
        ack.encode(&mut bytes);
        assert_eq!(FeatureExtAck::decode(&mut Reader::new(&bytes[1..])).unwrap(), ack);
        assert!(FeatureExtAck::decode(&mut Reader::new(&[10, 255, 255, 255, 255])).is_err());
    }
}
