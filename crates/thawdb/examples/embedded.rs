//! ThawDB inside a program: no server, no network, results as Arrow batches.
//!
//! ```text
//! cargo run --example embedded [FOLDER]
//! ```

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use std::error::Error;
use std::path::{Path, PathBuf};
use thawdb::{BulkColumn, Options, Parameter, Scalar, SqlType, StreamItem, text};

fn main() -> Result<(), Box<dyn Error>> {
    let given = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = given.clone().unwrap_or_else(|| std::env::temp_dir().join(format!("thawdb-embedded-{}", std::process::id())));
    let outcome = run(&folder);
    if given.is_none() {
        std::fs::remove_dir_all(&folder)?;
    }
    print!("{}", outcome?);
    Ok(())
}

/// Everything the API does, once; what it found as text.
fn run(folder: &Path) -> Result<String, Box<dyn Error>> {
    let instance = thawdb::open(folder, Options::default())?;
    let mut session = instance.session();
    session.execute("CREATE DATABASE Library")?;
    session.execute("USE Library")?;
    session.execute("CREATE TABLE dbo.Books (Id int NOT NULL PRIMARY KEY, Title nvarchar(100) NOT NULL, Price decimal(9,2) NULL)")?;
    let mut said = String::new();

    // Statements with parameters; the count of rows comes back with the results.
    for (id, title, price) in [(1, "Smilla's Sense of Snow", Some(1250)), (2, "Der Zauberberg – Ausgabe von 1924", None)] {
        let results = session.execute_with(
            "INSERT dbo.Books (Id, Title, Price) VALUES (@id, @title, @price)",
            &[
                Parameter::input("@id", SqlType::Int, Scalar::Int(id)),
                Parameter::input("@title", SqlType::nvarchar(100), Scalar::text(title)),
                Parameter::input("@price", SqlType::decimal(9, 2), price.map_or(Scalar::Null, Scalar::Decimal)),
            ],
        )?;
        assert_eq!(results.rows_affected, [1]);
    }

    // Many rows at once, as columns.
    let columns = [BulkColumn::new("Id", SqlType::Int), BulkColumn::new("Title", SqlType::nvarchar(100))];
    let mut load = session.bulk("dbo.Books", &columns, "")?;
    let ids = arrow_array::Int32Array::from_iter_values(100..1100);
    let titles = arrow_array::StringArray::from_iter_values((100..1100).map(|id| format!("Volume {id}")));
    load.push(vec![std::sync::Arc::new(ids), std::sync::Arc::new(titles)])?;
    said += &format!("loaded {} rows\n", load.finish()?);

    // Results as values, and as Arrow.
    let results = session.execute("SELECT Id, Title, Price FROM dbo.Books WHERE Id < 100 ORDER BY Id")?;
    let set = &results.sets[0];
    for row in set.rows() {
        let shown: Vec<String> = row.iter().zip(&set.columns).map(|(value, column)| text::display(value, &column.sql_type)).collect();
        said += &format!("{}\n", shown.join(" | "));
    }
    let sum: i64 = set.batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int32Type>().values().to_vec()).map(i64::from).sum();
    said += &format!("sum of {} ids: {sum}\n", set.row_count());

    // Results of any size, batch by batch, while the query runs.
    let mut streamed = 0;
    for item in session.stream("SELECT Id FROM dbo.Books") {
        if let StreamItem::Rows(batch) = item? {
            streamed += batch.num_rows();
        }
    }
    said += &format!("streamed {streamed} rows\n");

    // Errors are SQL Server's.
    let error = session.execute("INSERT dbo.Books (Id, Title) VALUES (1, N'again')").expect_err("the key is there already");
    said += &format!("message {}, severity {}\n", error.number, error.severity);

    session.execute("USE master DROP DATABASE Library")?;
    drop(session);
    instance.close()?;
    Ok(said)
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_says_what_it_should() {
        let folder = std::env::temp_dir().join(format!("thawdb-embedded-test-{}", std::process::id()));
        let said = super::run(&folder).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        let expected = "loaded 1000 rows\n\
            1 | Smilla's Sense of Snow | 12.50\n\
            2 | Der Zauberberg – Ausgabe von 1924 | NULL\n\
            sum of 2 ids: 3\n\
            streamed 1002 rows\n\
            message 2627, severity 14\n";
        assert_eq!(said, expected);
    }
}
