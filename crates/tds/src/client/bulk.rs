//! Bulk loads from the client's side: INSERT BULK, then COLMETADATA, rows and DONE as one long message.
//!
//! Rows are cut into packets as they come, so that a load of any size needs memory for one packet. The server answers
//! when the message is over; [`BulkWriter::finish`] waits for that.

use crate::client::{Client, ClientError, Response};
use crate::packet::{PacketType, PacketWriter};
use crate::token::{ColMetadata, Done, code};
use crate::value;
use thawdb_types::{Scalar, SqlType};

/// Framed bytes are sent once there are this many.
const SEND_BYTES: usize = 64 * 1024;

/// A load under way. Dropped without [`BulkWriter::finish`], the connection can do nothing more.
#[derive(Debug)]
pub struct BulkWriter<'c> {
    client: &'c mut Client,
    columns: ColMetadata,
    writer: PacketWriter,
    framed: Vec<u8>,
}

impl<'c> BulkWriter<'c> {
    pub(crate) fn new(client: &'c mut Client, columns: ColMetadata) -> Self {
        let mut writer = PacketWriter::new(PacketType::BulkLoad, 0, client.packet_bytes);
        columns.encode_bulk(client.incoming.version, writer.body());
        Self { client, columns, writer, framed: Vec::new() }
    }

    /// Sends a row: one value a column, each of the column's type or NULL.
    pub fn row(&mut self, values: &[Scalar]) -> Result<(), ClientError> {
        assert_eq!(values.len(), self.columns.columns.len(), "a row has a value for every column");
        let body = self.writer.body();
        body.push(code::ROW);
        for (value, column) in values.iter().zip(&self.columns.columns) {
            value::encode(&column.info, value, body);
        }
        self.writer.flush_full(&mut self.framed);
        if self.framed.len() >= SEND_BYTES {
            self.client.transport.write(&self.framed)?;
            self.framed.clear();
        }
        Ok(())
    }

    /// Ends the load; the response tells how many rows there are.
    pub fn finish(mut self) -> Result<Response<'c>, ClientError> {
        Done::FINAL.encode(self.client.incoming.version, self.writer.body());
        self.writer.finish(&mut self.framed);
        self.client.transport.write(&self.framed)?;
        self.client.incoming.expect_response();
        Ok(Response { client: self.client })
    }
}

/// The INSERT BULK statement for a table (its name as T-SQL writes it) and its columns.
pub(crate) fn statement(table: &str, columns: &[(String, SqlType)], options: &str) -> String {
    let quoted = |name: &str| format!("[{}]", name.replace(']', "]]"));
    let columns: Vec<String> = columns.iter().map(|(name, sql_type)| format!("{} {}", quoted(name), sql_type.name())).collect();
    let options = if options.is_empty() { String::new() } else { format!(" WITH ({options})") };
    format!("INSERT BULK {table} ({}){options}", columns.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_name_columns_and_types() {
        let columns = [("a]b".into(), SqlType::Int), ("c".into(), SqlType::nvarchar(5))];
        assert_eq!(statement("dbo.t", &columns, "TABLOCK"), "INSERT BULK dbo.t ([a]]b] int, [c] nvarchar(5)) WITH (TABLOCK)");
    }
}
