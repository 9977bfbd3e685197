//! sys.configurations, sys.servers, sys.messages, sys.dm_os_sys_info, sys.syslanguages, and where memory is:
//! sys.dm_os_memory_clerks, sys.dm_os_process_memory.

use crate::session::state::SessionState;
use crate::views::{Column, Rows, View, bit, col, int, null, small, text, tiny, variant};
use thawdb_catalog::DatabaseId;
use thawdb_storage::memory::Clerk;
use thawdb_types::SqlType::{BigInt, Bit, DateTime, Int, SmallInt, TinyInt};
use thawdb_types::time_zone::TimeZone;
use thawdb_types::{Scalar, SqlError, SqlType};

const NAME: SqlType = SqlType::SYSNAME;
const TEXT: SqlType = SqlType::nvarchar(255);

const CONFIGURATION_COLUMNS: &[Column] = &[
    col("configuration_id", Int),
    col("name", SqlType::nvarchar(35)),
    null("value", SqlType::SqlVariant),
    null("minimum", SqlType::SqlVariant),
    null("maximum", SqlType::SqlVariant),
    null("value_in_use", SqlType::SqlVariant),
    col("description", TEXT),
    col("is_dynamic", Bit),
    col("is_advanced", Bit),
];

const MESSAGE_COLUMNS: &[Column] = &[
    col("message_id", Int),
    col("language_id", SmallInt),
    null("severity", TinyInt),
    col("is_event_logged", Bit),
    col("text", SqlType::nvarchar(2048)),
];

const SERVER_COLUMNS: &[Column] = &[
    col("server_id", Int),
    col("name", NAME),
    col("product", NAME),
    col("provider", NAME),
    null("data_source", SqlType::nvarchar(4000)),
    col("is_linked", Bit),
];

const SYS_INFO_COLUMNS: &[Column] = &[
    col("cpu_count", Int),
    col("ms_ticks", BigInt),
    col("sqlserver_start_time", DateTime),
    col("committed_kb", BigInt),
    col("committed_target_kb", BigInt),
];

const CLERK_COLUMNS: &[Column] = &[
    col("memory_clerk_address", SqlType::varbinary(8)),
    col("type", SqlType::nvarchar(60)),
    col("name", SqlType::nvarchar(256)),
    col("memory_node_id", SmallInt),
    col("pages_kb", BigInt),
    col("virtual_memory_reserved_kb", BigInt),
    col("virtual_memory_committed_kb", BigInt),
    col("page_size_in_bytes", BigInt),
];

const PROCESS_MEMORY_COLUMNS: &[Column] = &[
    col("physical_memory_in_use_kb", BigInt),
    col("large_page_allocations_kb", BigInt),
    col("locked_page_allocations_kb", BigInt),
    col("process_physical_memory_low", Bit),
    col("process_virtual_memory_low", Bit),
];

const LANGUAGE_COLUMNS: &[Column] = &[
    col("langid", SmallInt),
    col("dateformat", SqlType::Char { length: 3, collation: thawdb_types::Collation::DEFAULT }),
    col("datefirst", TinyInt),
    null("upgrade", Int),
    col("name", NAME),
    col("alias", NAME),
    null("months", SqlType::nvarchar(372)),
    null("shortmonths", SqlType::nvarchar(132)),
    null("days", SqlType::nvarchar(217)),
    col("lcid", Int),
    col("msglangid", SmallInt),
];

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    View { schema: "sys", name: "configurations", columns: CONFIGURATION_COLUMNS, rows: configurations },
    View { schema: "sys", name: "messages", columns: MESSAGE_COLUMNS, rows: messages },
    View { schema: "sys", name: "servers", columns: SERVER_COLUMNS, rows: servers },
    View { schema: "sys", name: "dm_os_memory_clerks", columns: CLERK_COLUMNS, rows: memory_clerks },
    View { schema: "sys", name: "dm_os_process_memory", columns: PROCESS_MEMORY_COLUMNS, rows: process_memory },
    View { schema: "sys", name: "dm_os_sys_info", columns: SYS_INFO_COLUMNS, rows: sys_info },
    View { schema: "sys", name: "syslanguages", columns: LANGUAGE_COLUMNS, rows: languages },
    View { schema: "sys", name: "time_zone_info", columns: TIME_ZONE_COLUMNS, rows: time_zones },
];

const TIME_ZONE_COLUMNS: &[Column] = &[col("name", NAME), col("current_utc_offset", SqlType::nvarchar(6)), col("is_currently_dst", Bit)];

fn time_zones(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let now = session.now_ticks;
    let row = |zone: TimeZone| {
        let offset = zone.offset_at(now);
        let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs());
        vec![text(zone.name()), text(format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)), bit(zone.is_dst_at(now))]
    };
    Ok(TimeZone::all().map(row).collect())
}

/// Settings this engine has: number, name, least, most, description, advanced.
pub(crate) const CONFIGURATIONS: &[(i32, &str, i32, i32, &str, bool)] = &[
    (103, "user connections", 0, 32_767, "Number of user connections allowed", true),
    (115, "nested triggers", 0, 1, "Allow triggers to be invoked within triggers", false),
    (116, "remote access", 0, 1, "Allow remote access", false),
    (124, "default language", 0, 9999, "default language", false),
    (518, "show advanced options", 0, 1, "show advanced options", false),
    (1127, "two digit year cutoff", 1753, 9999, "two digit year cutoff", true),
    (1505, "index create memory (KB)", 704, 2_147_483_647, "Memory for index create sorts (kBytes)", true),
    (1534, "user options", 0, 32_767, "user options", false),
    (1538, "cost threshold for parallelism", 0, 32_767, "cost threshold for parallelism", true),
    (1539, "max degree of parallelism", 0, 32_767, "maximum degree of parallelism", true),
    (1543, "min server memory (MB)", 0, 2_147_483_647, "Minimum size of server memory (MB)", true),
    (1544, "max server memory (MB)", 128, 2_147_483_647, "Maximum size of server memory (MB)", true),
];

/// The value a setting has when nothing else is recorded.
fn default_of(session: &SessionState, id: i32) -> i32 {
    match id {
        115 | 116 => 1,
        1127 => 2049,
        1538 => 5,
        1544 => i32::try_from(session.engine.config.memory_bytes_max >> 20).unwrap_or(i32::MAX),
        _ => 0,
    }
}

/// The value of a setting that is in use.
pub(crate) fn setting(session: &SessionState, id: i32) -> i64 {
    let in_use = session.engine.settings.read().get(&id).copied();
    in_use.unwrap_or_else(|| i64::from(default_of(session, id)))
}

/// The value of a setting that the next RECONFIGURE makes the one in use.
pub(crate) fn recorded(session: &SessionState, id: i32) -> i64 {
    let recorded = session.engine.master.lock().settings.get(&id).copied();
    recorded.unwrap_or_else(|| i64::from(default_of(session, id)))
}

fn configurations(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let narrow = |value: i64| i32::try_from(value).unwrap_or(i32::MAX);
    let row = |&(id, name, least, most, description, advanced): &(i32, &str, i32, i32, &str, bool)| {
        let (value, in_use) = (narrow(recorded(session, id)), narrow(setting(session, id)));
        let of = |value| variant(int(value), &Int);
        vec![int(id), text(name), of(value), of(least), of(most), of(in_use), text(description), bit(true), bit(advanced)]
    };
    Ok(CONFIGURATIONS.iter().map(row).collect())
}

fn messages(_: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let row = |message: &thawdb_types::messages::Message| {
        vec![int(message.number), small(1033), tiny(message.severity), bit(message.severity >= 19), text(message.text)]
    };
    Ok(thawdb_types::messages::ALL.iter().map(row).collect())
}

fn servers(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let name = session.engine.config.server_name.clone();
    Ok(vec![vec![int(0), text(name.clone()), text("SQL Server"), text("SQLNCLI"), text(name), bit(false)]])
}

fn sys_info(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let engine = &session.engine;
    let cores = std::thread::available_parallelism().map_or(1, |cores| i32::try_from(cores.get()).unwrap_or(i32::MAX));
    let ticks = i64::try_from(engine.config.env.clock.monotonic_ns() / 1_000_000).unwrap_or(i64::MAX);
    let memory = engine.storage.memory();
    let committed = Clerk::ALL.iter().map(|clerk| memory.bytes_of(*clerk)).sum();
    let started = Scalar::DateTime(engine.started);
    Ok(vec![vec![int(cores), Scalar::BigInt(ticks), started, kilobytes(committed), kilobytes(memory.bytes_max())]])
}

fn kilobytes(bytes: u64) -> Scalar {
    Scalar::BigInt(i64::try_from(bytes >> 10).unwrap_or(i64::MAX))
}

/// Where memory is: what the pool occupies and what grants hold exactly, the rest of the process as it was measured last.
fn memory_clerks(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let memory = session.engine.storage.memory();
    let row = |(number, clerk): (usize, &Clerk)| {
        let bytes = memory.bytes_of(*clerk);
        // The pool's arena is reserved at once and committed as it is used.
        let (reserved, committed) = if *clerk == Clerk::Pool { (memory.pool_bytes_max(), bytes) } else { (0, 0) };
        vec![
            Scalar::Binary((number as u64 + 1).to_be_bytes().to_vec()),
            text(clerk.type_name()),
            text("Default"),
            small(0),
            kilobytes(bytes),
            kilobytes(reserved),
            kilobytes(committed),
            Scalar::BigInt(8192),
        ]
    };
    Ok(Clerk::ALL.iter().enumerate().map(row).collect())
}

fn process_memory(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let in_use = session.engine.config.env.clock.process_memory_bytes();
    let memory = session.engine.storage.memory();
    let is_low = bit(memory.is_overdrawn());
    Ok(vec![vec![kilobytes(in_use), kilobytes(0), kilobytes(0), is_low, bit(false)]])
}

fn languages(_: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    const MONTHS: &str = "January,February,March,April,May,June,July,August,September,October,November,December";
    const SHORT: &str = "Jan,Feb,Mar,Apr,May,Jun,Jul,Aug,Sep,Oct,Nov,Dec";
    const DAYS: &str = "Monday,Tuesday,Wednesday,Thursday,Friday,Saturday,Sunday";
    Ok(vec![vec![
        small(0),
        text("mdy"),
        tiny(7),
        int(0),
        text("us_english"),
        text("English"),
        text(MONTHS),
        text(SHORT),
        text(DAYS),
        int(1033),
        small(1033),
    ]])
}
