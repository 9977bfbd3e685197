//! Conversions as tables of cases: value, type, result or error.

use super::*;
use crate::column::array_from_scalars;
use crate::value::value_of;
use crate::{Collation, MaxLength};
use proptest::prelude::*;

fn cast(value: Scalar, from: SqlType, to: SqlType) -> Result<Scalar, (i32, String)> {
    convert(&value, &from, &to, &ConvertOptions::default()).map_err(|e| (e.number, e.text))
}

fn text(value: Scalar, from: SqlType, style: Option<i32>) -> String {
    let options = ConvertOptions { style, ..Default::default() };
    convert(&value, &from, &SqlType::varchar(60), &options).unwrap().as_text().unwrap().to_string()
}

fn parsed(value: &str, to: SqlType) -> Result<Scalar, i32> {
    cast(Scalar::text(value), SqlType::varchar(60), to).map_err(|e| e.0)
}

#[test]
fn text_to_numbers() {
    assert_eq!(parsed(" -12 ", SqlType::Int), Ok(Scalar::Int(-12)));
    assert_eq!(parsed("", SqlType::Int), Ok(Scalar::Int(0)));
    assert_eq!(parsed("1.5", SqlType::Int), Err(245));
    assert_eq!(parsed("3000000000", SqlType::Int), Err(248));
    assert_eq!(parsed("300", SqlType::TinyInt), Err(244));
    assert_eq!(parsed("x", SqlType::BigInt), Err(8114));
    assert_eq!(parsed("99999999999999999999", SqlType::BigInt), Err(8115));
    assert_eq!(parsed("1.005", SqlType::decimal(5, 2)), Ok(Scalar::Decimal(101)));
    assert_eq!(parsed("-.5", SqlType::decimal(5, 0)), Ok(Scalar::Decimal(-1)));
    assert_eq!(parsed("1e5", SqlType::decimal(5, 2)), Err(8114));
    assert_eq!(parsed("1000", SqlType::decimal(5, 2)), Err(8115));
    assert_eq!(parsed("1e5", SqlType::Float), Ok(Scalar::Float(1e5)));
    assert_eq!(parsed("inf", SqlType::Float), Err(8114));
    assert_eq!(parsed("1e400", SqlType::Float), Err(8115));
    assert_eq!(parsed("$1,234.56789", SqlType::Money), Ok(Scalar::Money(12_345_679)));
    assert_eq!(parsed("1x", SqlType::Money), Err(235));
    assert_eq!(parsed("True", SqlType::Bit), Ok(Scalar::Bit(true)));
    assert_eq!(parsed("yes", SqlType::Bit), Err(245));
    let error = cast(Scalar::text("abc"), SqlType::varchar(10), SqlType::Int).unwrap_err();
    assert_eq!(error.1, "Conversion failed when converting the varchar value 'abc' to data type int.");
}

#[test]
fn numbers_to_numbers() {
    let run = |value, from, to| cast(value, from, to).map_err(|e| e.0);
    assert_eq!(run(Scalar::Decimal(199), SqlType::decimal(5, 2), SqlType::Int), Ok(Scalar::Int(1)));
    assert_eq!(run(Scalar::Money(15_000), SqlType::Money, SqlType::Int), Ok(Scalar::Int(2)));
    assert_eq!(run(Scalar::Float(-1.9), SqlType::Float, SqlType::Int), Ok(Scalar::Int(-1)));
    assert_eq!(run(Scalar::Float(0.1), SqlType::Float, SqlType::decimal(10, 2)), Ok(Scalar::Decimal(10)));
    assert_eq!(run(Scalar::Float(2e38), SqlType::Float, SqlType::decimal(38, 0)), Err(8115));
    assert_eq!(run(Scalar::Float(3e9), SqlType::Float, SqlType::Int), Err(232));
    assert_eq!(run(Scalar::Int(300), SqlType::Int, SqlType::TinyInt), Err(220));
    assert_eq!(run(Scalar::BigInt(1 << 40), SqlType::BigInt, SqlType::Int), Err(8115));
    assert_eq!(run(Scalar::Int(1000), SqlType::Int, SqlType::decimal(3, 0)), Err(8115));
    assert_eq!(run(Scalar::Decimal(15), SqlType::decimal(3, 1), SqlType::decimal(2, 0)), Ok(Scalar::Decimal(2)));
    assert_eq!(run(Scalar::Int(-5), SqlType::Int, SqlType::Bit), Ok(Scalar::Bit(true)));
    let error = cast(Scalar::Int(300), SqlType::Int, SqlType::TinyInt).unwrap_err();
    assert_eq!(error.1, "Arithmetic overflow error for data type tinyint, value = 300.");
    assert_eq!(run(Scalar::Int(1), SqlType::Int, SqlType::Date), Err(529));
}

#[test]
fn numbers_to_text() {
    for (value, expected) in [
        (0.0, "0"),
        (1234567.0, "1.23457e+006"),
        (123456.0, "123456"),
        (0.0001, "0.0001"),
        (0.00001, "1e-005"),
        (-1.5, "-1.5"),
        (1e300, "1e+300"),
    ] {
        assert_eq!(text(Scalar::Float(value), SqlType::Float, None), expected);
    }
    assert_eq!(text(Scalar::Float(1.5), SqlType::Float, Some(1)), "1.5000000e+000");
    assert_eq!(text(Scalar::Float(0.1), SqlType::Float, Some(3)), "1.0000000000000001e-001");
    assert_eq!(text(Scalar::Decimal(-5), SqlType::decimal(5, 2), None), "-0.05");
    assert_eq!(text(Scalar::Money(-12_345_678_950), SqlType::Money, None), "-1234567.90");
    assert_eq!(text(Scalar::Money(12_345_678_950), SqlType::Money, Some(1)), "1,234,567.90");
    assert_eq!(text(Scalar::Money(12_345_678_950), SqlType::Money, Some(2)), "1234567.8950");
    let short = |value, from| cast(value, from, SqlType::varchar(2)).map_err(|e| e.0);
    assert_eq!(short(Scalar::Int(123), SqlType::Int), Ok(Scalar::text("*")));
    assert_eq!(short(Scalar::BigInt(123), SqlType::BigInt), Err(8115));
    assert_eq!(short(Scalar::Money(0), SqlType::Money), Err(234));
    assert_eq!(cast(Scalar::Int(123), SqlType::Int, SqlType::nvarchar(2)).unwrap_err().0, 8115);
}

#[test]
fn dates_to_text() {
    let value = parsed("2026-11-01 09:39:11.123", SqlType::DateTime).unwrap();
    for (style, expected) in [
        (None, "Nov  1 2026  9:39AM"),
        (Some(0), "Nov  1 2026  9:39AM"),
        (Some(1), "11/01/26"),
        (Some(101), "11/01/2026"),
        (Some(102), "2026.11.01"),
        (Some(103), "01/11/2026"),
        (Some(104), "01.11.2026"),
        (Some(105), "01-11-2026"),
        (Some(6), "01 Nov 26"),
        (Some(107), "Nov 01, 2026"),
        (Some(108), "09:39:11"),
        (Some(109), "Nov  1 2026  9:39:11:123AM"),
        (Some(110), "11-01-2026"),
        (Some(111), "2026/11/01"),
        (Some(12), "261101"),
        (Some(112), "20261101"),
        (Some(113), "01 Nov 2026 09:39:11:123"),
        (Some(114), "09:39:11:123"),
        (Some(120), "2026-11-01 09:39:11"),
        (Some(121), "2026-11-01 09:39:11.123"),
        (Some(23), "2026-11-01"),
        (Some(126), "2026-11-01T09:39:11.123"),
    ] {
        assert_eq!(text(value.clone(), SqlType::DateTime, style), expected, "style {style:?}");
    }
    let options = ConvertOptions::with_style(999);
    assert_eq!(convert(&value, &SqlType::DateTime, &SqlType::varchar(30), &options).unwrap_err().number, 281);
    let precise = SqlType::DateTime2 { scale: 7 };
    assert_eq!(text(parsed("2026-11-01 09:39:11.1234567", precise).unwrap(), precise, None), "2026-11-01 09:39:11.1234567");
    assert_eq!(text(Scalar::Date(0), SqlType::Date, None), "0001-01-01");
    let offset = SqlType::DateTimeOffset { scale: 0 };
    assert_eq!(text(parsed("2026-11-01 09:39:11 +05:30", offset).unwrap(), offset, None), "2026-11-01 09:39:11 +05:30");
    assert_eq!(text(parsed("2026-11-01 09:39:11 +05:30", offset).unwrap(), offset, Some(127)), "2026-11-01T04:09:11Z");
}

#[test]
fn text_to_dates() {
    let day = |text: &str| parsed(text, SqlType::Date);
    let expected = day("20240131").unwrap();
    for same in [
        "2024-01-31",
        "2024/1/31",
        "1/31/2024",
        "01-31-24",
        "Jan 31 2024",
        "31 January 2024",
        "January 31, 2024",
        "240131",
        "2024-01-31T10:11:12",
        "2024 jan 31",
    ] {
        assert_eq!(day(same), Ok(expected.clone()), "{same}");
    }
    for (text, number) in [("2024-02-30", 241), ("x", 241), ("31/1/2024", 241), ("2024-1", 241), ("2024-01-31 25:00", 241)] {
        assert_eq!(day(text), Err(number), "{text}");
    }
    assert_eq!(parsed("2024-02-30", SqlType::DateTime), Err(242));
    assert_eq!(parsed("1700-01-01", SqlType::DateTime), Err(242));
    assert_eq!(parsed("2024-01-01 00:00:00.1234", SqlType::DateTime), Err(241));
    assert_eq!(parsed("x", SqlType::SmallDateTime), Err(295));
    assert_eq!(parsed("", SqlType::DateTime), Ok(Scalar::DateTime(0)));
    assert_eq!(parsed("1:02:03 PM", SqlType::Time { scale: 0 }), Ok(Scalar::Time((13 * 3600 + 2 * 60 + 3) * 10_000_000)));
    assert_eq!(parsed("12AM", SqlType::Time { scale: 0 }), Ok(Scalar::Time(0)));
    assert_eq!(parsed("2024-01-01T00:00:00Z", SqlType::DateTime2 { scale: 0 }), parsed("2024-01-01", SqlType::DateTime2 { scale: 0 }));
    let options = ConvertOptions { date_order: DateOrder::Dmy, ..Default::default() };
    let dmy = |to| convert(&Scalar::text("2024-02-01"), &SqlType::varchar(20), &to, &options).unwrap();
    assert_eq!(dmy(SqlType::Date), day("20240201").unwrap());
    assert_eq!(dmy(SqlType::DateTime), parsed("20240102", SqlType::DateTime).unwrap());
    assert_eq!(day("1/1/49"), day("2049-01-01"));
    assert_eq!(day("1/1/50"), day("1950-01-01"));
}

#[test]
fn dates_and_numbers() {
    let noon = Scalar::DateTime(25_920_000 * 3 / 2);
    assert_eq!(cast(noon.clone(), SqlType::DateTime, SqlType::Int), Ok(Scalar::Int(2)));
    assert_eq!(cast(noon.clone(), SqlType::DateTime, SqlType::Float), Ok(Scalar::Float(1.5)));
    assert_eq!(cast(Scalar::Float(1.5), SqlType::Float, SqlType::DateTime), Ok(noon));
    assert_eq!(cast(Scalar::Int(-1), SqlType::Int, SqlType::DateTime), Ok(Scalar::DateTime(-25_920_000)));
    assert_eq!(cast(Scalar::BigInt(1 << 40), SqlType::BigInt, SqlType::DateTime).unwrap_err().0, 8115);
    assert_eq!(cast(Scalar::Date(0), SqlType::Date, SqlType::DateTime).unwrap_err().0, 242);
}

#[test]
fn bytes() {
    let bytes = |list: &[u8]| Scalar::Binary(list.to_vec());
    assert_eq!(cast(Scalar::Int(1), SqlType::Int, SqlType::Binary { length: 4 }), Ok(bytes(&[0, 0, 0, 1])));
    assert_eq!(cast(Scalar::Int(258), SqlType::Int, SqlType::varbinary(1)), Ok(bytes(&[2])));
    assert_eq!(cast(Scalar::Int(1), SqlType::Int, SqlType::Binary { length: 6 }), Ok(bytes(&[0, 0, 0, 0, 0, 1])));
    assert_eq!(cast(bytes(&[1, 2]), SqlType::varbinary(8), SqlType::Int), Ok(Scalar::Int(258)));
    assert_eq!(cast(Scalar::text("a\u{20AC}"), SqlType::varchar(5), SqlType::varbinary(5)), Ok(bytes(&[0x61, 0x80])));
    assert_eq!(cast(Scalar::text("a"), SqlType::nvarchar(5), SqlType::varbinary(5)), Ok(bytes(&[0x61, 0])));
    assert_eq!(cast(bytes(&[0x61, 0x80]), SqlType::varbinary(5), SqlType::varchar(5)), Ok(Scalar::text("a\u{20AC}")));
    assert_eq!(text(bytes(&[0xAB, 1]), SqlType::varbinary(5), Some(1)), "0xAB01");
    assert_eq!(text(bytes(&[0xAB, 1]), SqlType::varbinary(5), Some(2)), "AB01");
    let hex = |text: &str, style| {
        convert(&Scalar::text(text), &SqlType::varchar(9), &SqlType::varbinary(5), &ConvertOptions::with_style(style)).map_err(|e| e.number)
    };
    assert_eq!(hex("0xab01", 1), Ok(bytes(&[0xAB, 1])));
    assert_eq!(hex("ab0", 2), Err(8114));
    let decimal = SqlType::decimal(10, 2);
    let there = cast(Scalar::Decimal(-12345), decimal, SqlType::varbinary(30)).unwrap();
    assert_eq!(cast(there, SqlType::varbinary(30), decimal), Ok(Scalar::Decimal(-12345)));
}

#[test]
fn uniqueidentifiers() {
    let shown = "6F9619FF-8B86-D011-B42D-00C04FC964FF";
    let guid = parsed(shown, SqlType::UniqueIdentifier).unwrap();
    assert_eq!(guid, Scalar::Guid([0xFF, 0x19, 0x96, 0x6F, 0x86, 0x8B, 0x11, 0xD0, 0xB4, 0x2D, 0, 0xC0, 0x4F, 0xC9, 0x64, 0xFF]));
    assert_eq!(text(guid.clone(), SqlType::UniqueIdentifier, None), shown);
    assert_eq!(parsed(&format!("{{{shown}}}"), SqlType::UniqueIdentifier), Ok(guid.clone()));
    assert_eq!(parsed("6F9619FF", SqlType::UniqueIdentifier), Err(8169));
    assert_eq!(cast(guid, SqlType::UniqueIdentifier, SqlType::varchar(35)).unwrap_err().0, 8170);
}

#[test]
fn text_lengths() {
    let collation = Collation::DEFAULT;
    assert_eq!(cast(Scalar::text("abc"), SqlType::varchar(9), SqlType::varchar(2)), Ok(Scalar::text("ab")));
    assert_eq!(cast(Scalar::text("a"), SqlType::varchar(9), SqlType::Char { length: 3, collation }), Ok(Scalar::text("a  ")));
    assert_eq!(cast(Scalar::text("a\u{1F600}"), SqlType::nvarchar(9), SqlType::nvarchar(2)), Ok(Scalar::text("a")));
    assert_eq!(cast(Scalar::text("\u{65e5}"), SqlType::nvarchar(9), SqlType::varchar(2)), Ok(Scalar::text("?")));
    let utf8 = Collation::by_name("Latin1_General_100_CI_AS_SC_UTF8").unwrap();
    let utf8 = SqlType::VarChar { length: MaxLength::Limited(3), collation: utf8 };
    assert_eq!(cast(Scalar::text("\u{65e5}\u{65e5}"), SqlType::nvarchar(9), utf8), Ok(Scalar::text("\u{65e5}")));
    assert!(would_truncate(&Scalar::text("abc"), &SqlType::varchar(2)));
    assert!(!would_truncate(&Scalar::text("ab  "), &SqlType::varchar(2)));
    assert!(!would_truncate(&Scalar::text("\u{e9}\u{e9}"), &SqlType::varchar(2)));
    assert!(would_truncate(&Scalar::Binary(vec![0; 3]), &SqlType::varbinary(2)));
    assert_eq!(cut_value(&Scalar::text("abc"), &SqlType::varchar(2)), "ab");
}

fn types() -> Vec<SqlType> {
    crate::value::samples().into_iter().map(|(sql_type, _)| sql_type).filter(|t| *t != SqlType::RowVersion).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn arrays_convert_as_scalars_do(
        (from, values) in proptest::sample::select(types()).prop_flat_map(|t| (Just(t), proptest::collection::vec(value_of(t), 1..4))),
        to in proptest::sample::select(types()),
    ) {
        let options = ConvertOptions::default();
        let one_by_one: Result<Vec<Scalar>, SqlError> = values.iter().map(|v| convert(v, &from, &to, &options)).collect();
        let array = array_from_scalars(&from, &values);
        match (one_by_one, cast_array(&array, &from, &to, &options)) {
            (Ok(expected), Ok(found)) => {
                prop_assert_eq!(found.data_type(), &to.arrow_type());
                for (index, value) in expected.iter().enumerate() {
                    prop_assert_eq!(&crate::scalar_at(&found, index, &to), value);
                }
            }
            (Err(expected), Err(found)) => prop_assert_eq!(expected, found),
            (expected, found) => prop_assert!(false, "{:?} and {:?}", expected, found.map(|a| a.len())),
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[-+0-9:./TZapmJn ]{0,24}|\\PC{0,12}", to in proptest::sample::select(types())) {
        let _ = convert(&Scalar::text(text), &SqlType::NVARCHAR_MAX, &to, &ConvertOptions::default());
    }

    #[test]
    fn dates_survive_their_text(days in 0..3_652_059i32, ticks in 0..864_000_000_000i64) {
        let sql_type = SqlType::DateTime2 { scale: 7 };
        let value = Scalar::DateTime2(i64::from(days) * 864_000_000_000 + ticks);
        let shown = convert(&value, &sql_type, &SqlType::varchar(30), &ConvertOptions::default()).unwrap();
        prop_assert_eq!(convert(&shown, &SqlType::varchar(30), &sql_type, &ConvertOptions::default()).unwrap(), value);
    }
}
