//! The client against a server that follows a script: what it sends is checked, what it gets is written by hand.

use super::*;
use crate::packet::{Framer, Message, STATUS_END_OF_MESSAGE, frame};
use crate::token::{Done, DoneToken, LoginAck, code};
use crate::value;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

struct Scripted {
    socket: TcpStream,
    framer: Framer,
}

impl Scripted {
    fn message(&mut self) -> Message {
        loop {
            if let Some(message) = self.framer.next_message().unwrap() {
                return message;
            }
            let mut bytes = [0; 512];
            let count = self.socket.read(&mut bytes).unwrap();
            assert!(count > 0, "the client went away");
            self.framer.push(&bytes[..count]);
        }
    }

    fn answer(&mut self, data: &[u8], packet_bytes: usize) {
        let mut writer = PacketWriter::new(PacketType::TabularResult, 51, packet_bytes);
        writer.body().extend_from_slice(data);
        let mut framed = Vec::new();
        writer.finish(&mut framed);
        self.socket.write_all(&framed).unwrap();
    }

    fn let_in(&mut self) {
        let asked = PreLogin::decode(&self.message().data).unwrap();
        assert_eq!(asked.encryption, Encryption::NotSupported);
        let mut data = Vec::new();
        PreLogin { encryption: Encryption::NotSupported, ..asked }.encode(&mut data);
        self.answer(&data, 4096);
        let login = Login::decode(&self.message().data).unwrap();
        assert_eq!((login.user.as_str(), login.password.as_str(), login.database.as_str()), ("sa", "pässword", "votes"));
        let mut data = Vec::new();
        EnvChange::Database { new: "votes".into(), old: "master".into() }.encode(&mut data);
        LoginAck { version: TdsVersion::V7_4, program: "p".into(), program_version: (16, 0, 1000) }.encode(&mut data);
        EnvChange::PacketSize { new: "8192".into(), old: "4096".into() }.encode(&mut data);
        Done::FINAL.encode(TdsVersion::V7_4, &mut data);
        self.answer(&data, 4096);
    }
}

/// A client whose server runs `script` after the login.
fn connected(script: impl FnOnce(&mut Scripted) + Send + 'static) -> (Client, thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        let mut scripted = Scripted { socket: listener.accept().unwrap().0, framer: Framer::default() };
        scripted.let_in();
        scripted.framer.message_bytes_max = 1 << 24;
        script(&mut scripted);
    });
    let options = ConnectOptions {
        port,
        user: "sa".into(),
        password: "pässword".into(),
        database: "votes".into(),
        encryption: Encryption::NotSupported,
        ..ConnectOptions::default()
    };
    (Client::connect(&options).unwrap(), server)
}

fn result_set(texts: &[String]) -> Vec<u8> {
    let info = TypeInfo::of(SqlType::NVARCHAR_MAX);
    let column = ColumnMeta { name: "t".into(), info: info.clone(), nullable: true, identity: false };
    let mut data = Vec::new();
    ColMetadata { columns: vec![column] }.encode(TdsVersion::V7_4, &mut data);
    for text in texts {
        data.push(code::ROW);
        value::encode(&info, &Scalar::text(text.clone()), &mut data);
    }
    Done { rows: Some(texts.len() as u64), ..Done::FINAL }.encode(TdsVersion::V7_4, &mut data);
    data
}

#[test]
fn rows_arrive_however_packets_cut_them() {
    let texts: Vec<String> = (0..200).map(|n| "é".repeat(n * 7)).chain(["x".repeat(300_000)]).collect();
    for packet_bytes in [512, 4096, 32_767] {
        let sent = texts.clone();
        let (mut client, server) = connected(move |scripted| {
            assert_eq!(batch::decode(&scripted.message().data, TdsVersion::V7_4).unwrap(), "SELECT t");
            scripted.answer(&result_set(&sent), packet_bytes);
        });
        let got = client.batch("SELECT t").unwrap().finish().unwrap();
        assert_eq!(got.affected, texts.len() as u64);
        assert!(got.rows.iter().zip(&texts).all(|(row, text)| row[0].as_text() == Some(text)));
        assert_eq!((client.database(), client.packet_bytes), ("votes", 8192));
        server.join().unwrap();
    }
}

#[test]
fn a_response_given_up_is_read_before_the_next_request() {
    let (mut client, server) = connected(|scripted| {
        for text in ["first", "second"] {
            scripted.message();
            scripted.answer(&result_set(&vec![text.to_owned(); 500]), 512);
        }
    });
    assert!(matches!(client.batch("1").unwrap().next_item().unwrap(), Some(Item::Columns(_))));
    let got = client.batch("2").unwrap().finish().unwrap();
    assert!(got.rows.iter().all(|row| row[0].as_text() == Some("second")));
    server.join().unwrap();
}

#[test]
fn an_attention_ends_with_its_acknowledgement() {
    let (mut client, server) = connected(|scripted| {
        scripted.message();
        // The server had finished when the attention came: its acknowledgement is a message of its own.
        scripted.answer(&result_set(&["a".into()]), 4096);
        assert_eq!(scripted.message().packet_type, PacketType::Attention);
        let mut data = Vec::new();
        Done { attention: true, ..Done::FINAL }.encode(TdsVersion::V7_4, &mut data);
        scripted.answer(&data, 4096);
        scripted.message();
        scripted.answer(&result_set(&["b".into()]), 4096);
    });
    let canceller = client.canceller();
    let response = client.batch("1").unwrap();
    canceller.cancel().unwrap();
    assert!(response.finish().unwrap().cancelled);
    let next = client.batch("2").unwrap().finish().unwrap();
    assert_eq!((next.rows.len(), next.cancelled), (1, false));
    server.join().unwrap();
}

#[test]
fn bulk_rows_are_what_the_decoder_of_the_server_reads() {
    let rows: Vec<Vec<Scalar>> = (0..20_000).map(|n| vec![Scalar::Int(n), Scalar::text(format!("row {n}"))]).collect();
    let wanted = rows.clone();
    let (mut client, server) = connected(move |scripted| {
        let statement = batch::decode(&scripted.message().data, TdsVersion::V7_4).unwrap();
        assert_eq!(statement, "INSERT BULK dbo.t ([n] int, [t] nvarchar(50))");
        scripted.answer(&result_set(&[]), 4096);
        let message = scripted.message();
        assert_eq!(message.packet_type, PacketType::BulkLoad);
        let mut decoder = crate::bulk::BulkDecoder::new(TdsVersion::V7_4);
        decoder.push(&message.data);
        let mut got = Vec::new();
        while let Some(item) = decoder.next_item().unwrap() {
            if let crate::bulk::BulkItem::Row(row) = item {
                got.push(row);
            }
        }
        assert_eq!(got, wanted);
        let mut data = Vec::new();
        Done { rows: Some(got.len() as u64), token: DoneToken::Done, ..Done::FINAL }.encode(TdsVersion::V7_4, &mut data);
        scripted.answer(&data, 4096);
    });
    let mut bulk = client.bulk("dbo.t", &[("n".into(), SqlType::Int), ("t".into(), SqlType::nvarchar(50))], "").unwrap();
    for row in &rows {
        bulk.row(row).unwrap();
    }
    assert_eq!(bulk.finish().unwrap().finish().unwrap().affected, 20_000);
    server.join().unwrap();
}

#[test]
fn what_is_no_tds_is_an_error() {
    let (mut client, server) = connected(|scripted| {
        scripted.message();
        scripted.answer(&[0x42, 1, 2, 3], 4096);
    });
    assert!(matches!(client.batch("1").unwrap().finish(), Err(ClientError::Protocol(_))));
    server.join().unwrap();
    let mut packet = Vec::new();
    frame(PacketType::TabularResult, STATUS_END_OF_MESSAGE, 0, 1, &[0xD1], &mut packet);
    let (mut client, server) = connected(move |scripted| {
        scripted.message();
        scripted.socket.write_all(&packet).unwrap();
    });
    assert!(matches!(client.batch("1").unwrap().finish(), Err(ClientError::Protocol(_))));
    server.join().unwrap();
}
