//! Functions by tables of cases: a call's text, its expected value.

use crate::exec::eval_scalar;
use crate::expr::{Expr, ExprKind};
use crate::functions::call::Calling;
use crate::testing::{TestHost, expr, literal};
use thawdb_types::convert::ConvertOptions;
use thawdb_types::{Scalar, SqlType};

fn text(value: &str) -> Expr {
    literal(Scalar::text(value), SqlType::nvarchar(100))
}

fn int(value: i64) -> Expr {
    literal(Scalar::Int(value as i32), SqlType::Int)
}

fn float(value: f64) -> Expr {
    literal(Scalar::Float(value), SqlType::Float)
}

fn null() -> Expr {
    literal(Scalar::Null, SqlType::nvarchar(10))
}

fn at(value: &str) -> Expr {
    let to = SqlType::DateTime2 { scale: 7 };
    let value = thawdb_types::convert::convert(&Scalar::text(value), &SqlType::varchar(40), &to, &ConvertOptions::default());
    literal(value.unwrap(), to)
}

fn decimal(unscaled: i128, precision: u8, scale: u8) -> Expr {
    literal(Scalar::Decimal(unscaled), SqlType::numeric(precision, scale))
}

fn call(host: &mut TestHost, name: &'static str, arguments: Vec<Expr>, sql_type: SqlType) -> Result<Scalar, i32> {
    eval_scalar(&expr(ExprKind::Function { name, calling: Calling::of(name), arguments }, sql_type), host).map_err(|e| e.number)
}

#[test]
fn strings() {
    let mut host = TestHost::new("strings");
    let t = |s: &str| Ok(Scalar::text(s));
    let n = |v: i32| Ok(Scalar::Int(v));
    let cases: Vec<(&'static str, Vec<Expr>, Result<Scalar, i32>)> = vec![
        ("LEN", vec![text("abc  ")], n(3)),
        ("LEN", vec![text("\u{1F600}")], n(2)),
        ("LEN", vec![null()], Ok(Scalar::Null)),
        ("DATALENGTH", vec![text("abc ")], n(8)),
        ("DATALENGTH", vec![int(1)], n(4)),
        ("SUBSTRING", vec![text("hello"), int(2), int(3)], t("ell")),
        ("SUBSTRING", vec![text("hello"), int(0), int(3)], t("he")),
        ("SUBSTRING", vec![text("hello"), int(-5), int(3)], t("")),
        ("SUBSTRING", vec![text("hello"), int(4), int(99)], t("lo")),
        ("SUBSTRING", vec![text("hello"), int(1), int(-1)], Err(537)),
        ("LEFT", vec![text("hello"), int(2)], t("he")),
        ("RIGHT", vec![text("hello"), int(9)], t("hello")),
        ("RIGHT", vec![text("hello"), int(-1)], Err(536)),
        ("LTRIM", vec![text("  a ")], t("a ")),
        ("TRIM", vec![text("xxaXx"), text("x")], t("a")),
        ("UPPER", vec![text("stra\u{df}e\u{e9}")], t("STRA\u{df}E\u{c9}")),
        ("REPLACE", vec![text("Abcabc"), text("BC"), text("-")], t("A-a-")),
        ("CHARINDEX", vec![text("O"), text("hello world")], n(5)),
        ("CHARINDEX", vec![text("o"), text("hello world"), int(6)], n(8)),
        ("CHARINDEX", vec![text("z"), text("hello")], n(0)),
        ("PATINDEX", vec![text("%[0-9]%"), text("ab3c")], n(3)),
        ("PATINDEX", vec![text("b%"), text("abc")], n(0)),
        ("TRANSLATE", vec![text("2*[3+4]"), text("[]"), text("()")], t("2*(3+4)")),
        ("TRANSLATE", vec![text("a"), text("ab"), text("c")], Err(9828)),
        ("STUFF", vec![text("abcdef"), int(2), int(3), text("XY")], t("aXYef")),
        ("STUFF", vec![text("abc"), int(4), int(1), text("X")], Ok(Scalar::Null)),
        ("REPLICATE", vec![text("ab"), int(3)], t("ababab")),
        ("REPLICATE", vec![text("ab"), int(-1)], Ok(Scalar::Null)),
        ("REVERSE", vec![text("a\u{e9}b")], t("b\u{e9}a")),
        ("CONCAT", vec![text("a"), null(), text("b")], t("ab")),
        ("CONCAT_WS", vec![text("-"), text("a"), null(), text("b")], t("a-b")),
        ("QUOTENAME", vec![text("a]b")], t("[a]]b]")),
        ("QUOTENAME", vec![text("ab"), text("'")], t("'ab'")),
        ("ASCII", vec![text("\u{20ac}")], n(128)),
        ("CHAR", vec![int(65)], t("A")),
        ("CHAR", vec![int(256)], Ok(Scalar::Null)),
        ("UNICODE", vec![text("\u{1F600}")], n(0xD83D)),
        ("SOUNDEX", vec![text("Robert")], t("R163")),
        ("SOUNDEX", vec![text("Tymczak")], t("T522")),
        ("DIFFERENCE", vec![text("Green"), text("Greene")], n(4)),
        ("PARSENAME", vec![text("srv.db.[my.schema].t"), int(2)], t("my.schema")),
        ("STR", vec![float(123.45), int(6), int(1)], t(" 123.5")),
        ("STR", vec![float(123.45), int(2), int(2)], t("**")),
    ];
    for (name, arguments, expected) in cases {
        let sql_type = match &expected {
            Ok(Scalar::Int(_)) => SqlType::Int,
            _ => SqlType::nvarchar(4000),
        };
        let shown = format!("{name} {:?}", arguments.iter().map(|a| &a.kind).collect::<Vec<_>>());
        assert_eq!(call(&mut host, name, arguments, sql_type), expected, "{shown}");
    }
}

#[test]
fn numbers() {
    let mut host = TestHost::new("numbers");
    let d = |v: i128| Ok(Scalar::Decimal(v));
    let f = |v: f64| Ok(Scalar::Float(v));
    for (name, arguments, sql_type, expected) in [
        ("ABS", vec![int(-5)], SqlType::Int, Ok(Scalar::Int(5))),
        ("ABS", vec![int(i64::from(i32::MIN))], SqlType::Int, Err(8115)),
        ("CEILING", vec![decimal(-1_230, 5, 2)], SqlType::numeric(5, 0), d(-12)),
        ("CEILING", vec![decimal(1_201, 5, 2)], SqlType::numeric(5, 0), d(13)),
        ("FLOOR", vec![decimal(-1_201, 5, 2)], SqlType::numeric(5, 0), d(-13)),
        ("ROUND", vec![decimal(12_345, 7, 2), int(1)], SqlType::numeric(7, 2), d(12_350)),
        ("ROUND", vec![decimal(-12_345, 7, 2), int(1)], SqlType::numeric(7, 2), d(-12_350)),
        ("ROUND", vec![decimal(12_345, 7, 2), int(1), int(1)], SqlType::numeric(7, 2), d(12_340)),
        ("ROUND", vec![int(1_250), int(-2)], SqlType::Int, Ok(Scalar::Int(1_300))),
        ("ROUND", vec![float(2.675), int(1)], SqlType::Float, f(2.7)),
        ("POWER", vec![int(2), float(10.0)], SqlType::Int, Ok(Scalar::Int(1_024))),
        ("POWER", vec![int(2), float(31.0)], SqlType::Int, Err(232)),
        ("POWER", vec![float(2.0), float(0.5)], SqlType::Float, f(2f64.sqrt())),
        ("SQRT", vec![float(-1.0)], SqlType::Float, Err(3623)),
        ("LOG", vec![float(8.0), float(2.0)], SqlType::Float, f(8f64.ln() / 2f64.ln())),
        ("SIGN", vec![decimal(-5, 3, 1)], SqlType::numeric(3, 1), d(-10)),
        ("ISNUMERIC", vec![text("$1,234.50")], SqlType::Int, Ok(Scalar::Int(1))),
        ("ISNUMERIC", vec![text("1e5")], SqlType::Int, Ok(Scalar::Int(1))),
        ("ISNUMERIC", vec![text("abc")], SqlType::Int, Ok(Scalar::Int(0))),
        ("ISNUMERIC", vec![text("")], SqlType::Int, Ok(Scalar::Int(0))),
        ("GREATEST", vec![int(3), int(9), int(4)], SqlType::Int, Ok(Scalar::Int(9))),
        ("CHECKSUM", vec![int(7)], SqlType::Int, Ok(Scalar::Int(7))),
    ] {
        let shown = format!("{name} {:?}", arguments.iter().map(|a| &a.kind).collect::<Vec<_>>());
        assert_eq!(call(&mut host, name, arguments, sql_type), expected, "{shown}");
    }
}

#[test]
fn dates() {
    let mut host = TestHost::new("dates");
    let shown = |value: Scalar, sql_type: &SqlType| match thawdb_types::convert::convert(
        &value,
        sql_type,
        &SqlType::varchar(40),
        &ConvertOptions::with_style(121),
    )
    .unwrap()
    {
        Scalar::Text(text) => text,
        other => format!("{other:?}"),
    };
    let two = SqlType::DateTime2 { scale: 0 };
    for (name, arguments, sql_type, expected) in [
        ("DATEADD", vec![text("month"), int(1), at("2024-01-31")], two, "2024-02-29 00:00:00"),
        ("DATETRUNC", vec![text("quarter"), at("2024-05-17 10:11:12")], two, "2024-04-01 00:00:00"),
        ("DATETRUNC", vec![text("week"), at("2024-05-17 10:11:12")], two, "2024-05-12 00:00:00"),
        ("EOMONTH", vec![at("2024-01-31"), int(1)], SqlType::Date, "2024-02-29"),
        ("DATEFROMPARTS", vec![int(2024), int(2), int(29)], SqlType::Date, "2024-02-29"),
        (
            "DATETIMEFROMPARTS",
            vec![int(2024), int(2), int(3), int(4), int(5), int(6), int(7)],
            SqlType::DateTime,
            "2024-02-03 04:05:06.007",
        ),
        ("DATEDIFF", vec![text("day"), at("2024-01-01 23:59"), at("2024-01-02 00:01")], SqlType::Int, "1"),
        ("DATEDIFF", vec![text("year"), at("2023-12-31"), at("2024-01-01")], SqlType::Int, "1"),
        ("DATENAME", vec![text("weekday"), at("2024-03-05")], SqlType::nvarchar(30), "Tuesday"),
        ("YEAR", vec![text("2024-03-05")], SqlType::Int, "2024"),
        ("DATE_BUCKET", vec![text("week"), int(2), at("2024-03-05 10:00"), at("2024-01-01")], two, "2024-02-26 00:00:00"),
        ("DATE_BUCKET", vec![text("month"), int(3), at("2024-03-05"), at("2024-01-15")], two, "2024-01-15 00:00:00"),
        ("GETUTCDATE", vec![], two, "2022-09-28 22:13:20"),
        ("GETDATE", vec![], two, "2022-09-28 23:13:20"),
    ] {
        let value = call(&mut host, name, arguments, sql_type).unwrap();
        assert_eq!(shown(value, &sql_type), expected, "{name}");
    }
    assert_eq!(call(&mut host, "DATEFROMPARTS", vec![int(2023), int(2), int(29)], SqlType::Date), Err(289));
    assert_eq!(call(&mut host, "ISDATE", vec![text("2023-02-29")], SqlType::Int), Ok(Scalar::Int(0)));
}

#[test]
fn hashes_and_identifiers() {
    let mut host = TestHost::new("hashes");
    let abc = || literal(Scalar::text("abc"), SqlType::varchar(10));
    let hex = |value: Result<Scalar, i32>| match value {
        Ok(Scalar::Binary(bytes)) => bytes.iter().map(|b| format!("{b:02x}")).collect::<String>(),
        other => format!("{other:?}"),
    };
    for (algorithm, expected) in [
        ("MD5", "900150983cd24fb0d6963f7d28e17f72"),
        ("sha1", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        ("SHA2_256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    ] {
        assert_eq!(hex(call(&mut host, "HASHBYTES", vec![text(algorithm), abc()], SqlType::varbinary(8000))), expected);
    }
    let guid = |host: &mut TestHost, name| match call(host, name, vec![], SqlType::UniqueIdentifier) {
        Ok(Scalar::Guid(bytes)) => bytes,
        other => panic!("{other:?}"),
    };
    let id = guid(&mut host, "NEWID");
    assert_eq!((id[7] >> 4, id[8] >> 6), (4, 2));
    let (first, second) = (guid(&mut host, "NEWSEQUENTIALID"), guid(&mut host, "NEWSEQUENTIALID"));
    assert_eq!(thawdb_types::compare::compare_guids(&first, &second), std::cmp::Ordering::Less);
    // What the session does not know is an unknown name.
    assert_eq!(call(&mut host, "OBJECT_ID", vec![text("t")], SqlType::Int), Err(195));
}
