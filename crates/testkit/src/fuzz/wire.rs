//! What a client may send, and what a server may answer: packets, logins, requests, bulk loads, tokens.
//!
//! Each target writes a message as our own encoder does, reads it back, then changes some of its bytes, cuts it where it
//! likes, and reads again. A decoder gives a value or an error; it takes no memory that the bytes do not carry.

use super::{below, mutate, some_bytes, typed};
use thawdb_observe::seeded::SeededRandom;
use thawdb_tds::batch::{self, Headers};
use thawdb_tds::buffer::Reader;
use thawdb_tds::bulk::BulkDecoder;
use thawdb_tds::login::{FEATURE_UTF8_SUPPORT, Feature, Login};
use thawdb_tds::packet::{Framer, PacketType, PacketWriter};
use thawdb_tds::prelogin::{Encryption, PreLogin};
use thawdb_tds::rpc::{self, RpcCall, RpcParameter};
use thawdb_tds::token::{ColMetadata, ColumnMeta, Done, DoneToken, EnvChange, Message, ReturnValue, code};
use thawdb_tds::transaction::TransactionRequest;
use thawdb_tds::type_info::TypeInfo;
use thawdb_tds::{TdsVersion, value};
use thawdb_types::SqlType;

/// Versions whose messages differ.
fn version(random: &mut SeededRandom) -> TdsVersion {
    [TdsVersion::V7_1, TdsVersion::V7_4, TdsVersion::V7_4][below(random, 3)]
}

fn word(random: &mut SeededRandom) -> String {
    ["", "a", "sa", "tempdb", "Käse", "a rather longer name with spaces"][below(random, 6)].to_owned()
}

/// Packets in any cut.
pub(super) fn packet(random: &mut SeededRandom) {
    let data = some_bytes(random, 3_000);
    let mut writer = PacketWriter::new(PacketType::SqlBatch, 51, 512);
    writer.body().extend_from_slice(&data);
    let mut wire = Vec::new();
    writer.finish(&mut wire);
    let read = |wire: &[u8], random: &mut SeededRandom| {
        let mut framer = Framer::default();
        let mut rest = wire;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(1 + below(random, rest.len()));
            rest = after;
            framer.push(piece);
            match framer.next_message() {
                Ok(Some(message)) => return Some(message.data),
                Ok(None) => {}
                Err(_) => return None,
            }
        }
        let _ = framer.take_unframed();
        None
    };
    assert_eq!(read(&wire, random), Some(data), "what was made comes back");
    mutate(&mut wire, random);
    let _ = read(&wire, random);
}

/// PRELOGIN.
pub(super) fn prelogin(random: &mut SeededRandom) {
    let message = PreLogin {
        version: [16, 0, 3, 232, 0, 0],
        encryption: [Encryption::Off, Encryption::On, Encryption::NotSupported, Encryption::Required][below(random, 4)],
        instance: word(random).into_bytes(),
        thread_id: random.chance(1, 2).then_some(77),
        mars: random.chance(1, 2),
        federated_authentication: random.chance(1, 2).then_some(1),
    };
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    assert_eq!(PreLogin::decode(&bytes).expect("what was made is decoded"), message);
    mutate(&mut bytes, random);
    let _ = PreLogin::decode(&bytes);
}

/// LOGIN7.
pub(super) fn login(random: &mut SeededRandom) {
    let feature = Feature { id: FEATURE_UTF8_SUPPORT, data: some_bytes(random, 5) };
    let features = if random.chance(1, 2) { vec![feature] } else { Vec::new() };
    let login = Login {
        version: TdsVersion::V7_4,
        packet_bytes: 4096,
        client_process: 9,
        flags: [0xE0, 0x03, if features.is_empty() { 0 } else { 0x10 }, 0],
        lcid: 0x409,
        host: word(random),
        user: word(random),
        password: word(random),
        application: word(random),
        server: word(random),
        library: word(random),
        language: word(random),
        database: word(random),
        new_password: String::new(),
        features,
    };
    let mut bytes = Vec::new();
    login.encode(&mut bytes);
    let back = Login::decode(&bytes).expect("what was made is decoded");
    assert!(back.user == login.user && back.password == login.password && back.database == login.database, "{back:?}");
    mutate(&mut bytes, random);
    let _ = Login::decode(&bytes);
}

/// Batches and requests of the transaction manager.
pub(super) fn request(random: &mut SeededRandom) {
    let version = version(random);
    let headers = Headers { transaction: random.next_u64() };
    let mut bytes = Vec::new();
    if random.chance(1, 2) {
        let text = word(random);
        batch::encode(&text, headers, &mut bytes);
        assert_eq!(batch::decode(&bytes, TdsVersion::V7_4).expect("what was made is decoded"), text);
        mutate(&mut bytes, random);
        let _ = batch::decode(&bytes, version);
        return;
    }
    let name = word(random);
    let request = match random.below(4) {
        0 => TransactionRequest::Begin { isolation: 2, name },
        1 => TransactionRequest::Commit { then_begin: random.chance(1, 2).then_some(4) },
        2 => TransactionRequest::Rollback { name, then_begin: None },
        _ => TransactionRequest::Save { name },
    };
    request.encode(headers, &mut bytes);
    assert_eq!(TransactionRequest::decode(&bytes, TdsVersion::V7_4).expect("what was made is decoded"), request);
    mutate(&mut bytes, random);
    let _ = TransactionRequest::decode(&bytes, version);
}

/// Remote procedure calls with parameters of all types.
pub(super) fn rpc(random: &mut SeededRandom) {
    let (types, values) = typed(random, 5);
    let parameters = types.iter().zip(&values).map(|(sql_type, value)| RpcParameter {
        name: format!("@{}", word(random)),
        output: random.chance(1, 3),
        default: false,
        sql_type: *sql_type,
        value: value.clone(),
        table: None,
    });
    let parameters = parameters.collect();
    let procedure = ["sp_executesql", "sp_prepexec", "dbo.mine"][below(random, 3)].to_owned();
    let call = RpcCall { procedure, no_metadata: random.chance(1, 2), parameters, invalid: None };
    let mut bytes = Vec::new();
    rpc::encode(&call, Headers::default(), &mut bytes);
    let back = rpc::decode(&bytes, TdsVersion::V7_4).expect("what was made is decoded");
    assert!(back.len() == 1 && back[0].parameters.len() == call.parameters.len(), "{back:?} of {call:?}");
    mutate(&mut bytes, random);
    let _ = rpc::decode(&bytes, version(random));
}

fn columns(types: &[SqlType]) -> ColMetadata {
    let column = |sql_type: &SqlType| ColumnMeta { name: "c".into(), info: TypeInfo::of(*sql_type), nullable: true, identity: false };
    ColMetadata { columns: types.iter().map(column).collect() }
}

/// Bulk loads in any cut.
pub(super) fn bulk(random: &mut SeededRandom) {
    let (types, values) = typed(random, 5);
    let columns = columns(&types);
    let mut wire = Vec::new();
    columns.encode_bulk(TdsVersion::V7_4, &mut wire);
    let rows = random.below(6);
    for _ in 0..rows {
        wire.push(code::ROW);
        columns.columns.iter().zip(&values).for_each(|(column, value)| value::encode(&column.info, value, &mut wire));
    }
    Done::FINAL.encode(TdsVersion::V7_4, &mut wire);
    let read = |wire: &[u8], random: &mut SeededRandom| {
        let (mut decoder, mut rest, mut items) = (BulkDecoder::new(TdsVersion::V7_4), wire, 0);
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(1 + below(random, rest.len()));
            rest = after;
            decoder.push(piece);
            loop {
                match decoder.next_item() {
                    Ok(Some(_)) => items += 1,
                    Ok(None) => break,
                    Err(_) => return (items, false),
                }
            }
        }
        (items, decoder.is_between_rows())
    };
    assert_eq!(read(&wire, random), (rows + 2, true), "columns, rows and the end come back");
    mutate(&mut wire, random);
    let _ = read(&wire, random);
}

/// Tokens of a response, as our own client reads them.
pub(super) fn token(random: &mut SeededRandom) {
    let version = version(random);
    let mut bytes = Vec::new();
    match random.below(3) {
        0 => columns(&typed(random, 6).0).encode(TdsVersion::V7_4, &mut bytes),
        1 => Done::FINAL.encode(TdsVersion::V7_4, &mut bytes),
        _ => bytes = some_bytes(random, 60),
    }
    let kind = random.below(5);
    for _ in 0..2 {
        // The first byte is the token's code.
        let mut reader = Reader::new(bytes.get(1..).unwrap_or_default());
        match kind {
            0 => drop(ColMetadata::decode(&mut reader, version)),
            1 => drop(Done::decode(DoneToken::Done, &mut reader, version)),
            2 => drop(EnvChange::decode(&mut reader)),
            3 => drop(Message::decode(&mut reader, version)),
            _ => drop(ReturnValue::decode(&mut reader, version)),
        }
        mutate(&mut bytes, random);
    }
}
