//! The eight tables: their rows from `tpchgen`, which gives what the specification's own generator gives, and their way into
//! a database.

use crate::cmd::Failure;
use crate::embed::Session;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator, RegionGenerator,
    SupplierGenerator,
};

/// Their names, no table before those it points to.
pub(super) const TABLES: [&str; 8] = ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"];
/// The tables with their primary keys, in words that both databases know.
pub(super) const CREATE: &str = include_str!("tables.sql");
/// An index for each foreign key.
pub(super) const INDEXES: &str = include_str!("indexes.sql");

/// The file of a table.
pub(super) fn file(folder: &Path, table: &str) -> PathBuf {
    folder.join(format!("{table}.tbl"))
}

/// Writes every table's file that is not there yet.
pub(super) fn generate(factor: f64, folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)?;
    for table in TABLES {
        let path = file(folder, table);
        if path.exists() {
            continue;
        }
        // Under another name until it is whole.
        let part = path.with_extension("part");
        write_table(table, factor, &part)?;
        std::fs::rename(&part, &path)?;
    }
    Ok(())
}

fn write_table(table: &str, factor: f64, path: &Path) -> Result<(), Failure> {
    match table {
        "region" => write(RegionGenerator::new(factor, 1, 1).iter(), path),
        "nation" => write(NationGenerator::new(factor, 1, 1).iter(), path),
        "supplier" => write(SupplierGenerator::new(factor, 1, 1).iter(), path),
        "customer" => write(CustomerGenerator::new(factor, 1, 1).iter(), path),
        "part" => write(PartGenerator::new(factor, 1, 1).iter(), path),
        "partsupp" => write(PartSuppGenerator::new(factor, 1, 1).iter(), path),
        "orders" => write(OrderGenerator::new(factor, 1, 1).iter(), path),
        "lineitem" => write(LineItemGenerator::new(factor, 1, 1).iter(), path),
        other => Err(Failure(format!("there is no table {other}"))),
    }
}

/// A line a row, without the bar that the generator puts behind the last field.
fn write(rows: impl Iterator<Item = impl Display>, path: &Path) -> Result<(), Failure> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path).map_err(|e| Failure::of(path.display(), e))?);
    let mut line = Vec::with_capacity(256);
    for row in rows {
        line.clear();
        write!(line, "{row}")?;
        let fields = line.strip_suffix(b"|").unwrap_or(&line);
        out.write_all(fields)?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// Makes a database with the tables, loads them, and leaves the session there.
pub(super) fn load(session: &mut Session, database: &str, folder: &Path) -> Result<(), Failure> {
    session.execute(&format!("IF DB_ID(N'{database}') IS NOT NULL DROP DATABASE [{database}]"))?;
    session.execute(&format!("CREATE DATABASE [{database}]"))?;
    session.execute(&format!("USE [{database}]"))?;
    session.execute(CREATE)?;
    for table in TABLES {
        let path = std::path::absolute(file(folder, table))?;
        let path = path.display().to_string().replace('\'', "''");
        session.execute(&format!("BULK INSERT {table} FROM '{path}' WITH (FIELDTERMINATOR = '|', ROWTERMINATOR = '0x0a', TABLOCK)"))?;
    }
    session.execute(INDEXES)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_are_the_specifications() {
        let folder = std::env::temp_dir().join(format!("thawdb-tpch-tables-{}", std::process::id()));
        generate(0.001, &folder).unwrap();
        let lines = |table: &str| std::fs::read_to_string(file(&folder, table)).unwrap();
        assert_eq!(lines("region").lines().count(), 5);
        assert_eq!(
            lines("nation").lines().nth(24).map(|line| line.split('|').nth(1).unwrap().to_owned()).as_deref(),
            Some("UNITED STATES")
        );
        assert_eq!(lines("orders").lines().count(), 1500);
        assert!(lines("lineitem").lines().all(|line| line.split('|').count() == 16 && !line.ends_with('|')));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
