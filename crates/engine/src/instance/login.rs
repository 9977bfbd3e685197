//! Logging in: who it is, which database, what the client is told.
//!
//! 1. The answer to a wrong name and to a wrong password is the same message after the same work: a password is hashed
//!    even if nobody has the name (`check_password`).
//! 2. An empty password opens nothing, whatever is stored.
//!
//! Passwords are kept as Argon2id hashes with a random salt each. Failure: 18456 for name, password and disabled logins
//! alike, 4060 for a database that cannot be used, 4064 if it is the login's own default.

use crate::api::config::Secret;
use crate::api::login::{LoginInfo, LoginRequest};
use crate::instance::database::OpenDatabase;
use crate::instance::registry::SessionFacts;
use crate::instance::{Engine, MASTER_ID};
use crate::messages::message;
use crate::session::Session;
use crate::session::state::SessionState;
use argon2::{Algorithm, Argon2, Params, Version};
use std::sync::Arc;
use thawdb_catalog::LoginRecord;
use thawdb_types::{Collation, SqlError};

/// principal_id of sa, and its security identifier.
const SA_ID: i32 = 1;
const SA_SID: [u8; 1] = [1];
/// The language every session begins with.
pub(crate) const LANGUAGE: &str = "us_english";

/// Memory (KiB) and passes of the hash: OWASP's second recommendation for Argon2id (19 MiB, 2), about 20 ms of a core.
const HASH_COST: (u32, u32) = (19 * 1024, 2);
const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;

fn hash(password: &str, salt: &[u8]) -> [u8; HASH_BYTES] {
    let params = Params::new(HASH_COST.0, HASH_COST.1, 1, Some(HASH_BYTES)).expect("costs are within Argon2's limits");
    let mut out = [0; HASH_BYTES];
    let hashed = Argon2::new(Algorithm::Argon2id, Version::V0x13, params).hash_password_into(password.as_bytes(), salt, &mut out);
    hashed.expect("salt and output lengths are within Argon2's limits");
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let byte = |at: usize| text.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    if text.len().is_multiple_of(2) { (0..text.len()).step_by(2).map(byte).collect() } else { None }
}

/// `argon2id-v1$salt$hash` of a password under a new salt.
pub(crate) fn hash_password(engine_random: &dyn thawdb_device::Random, password: &Secret) -> String {
    let mut salt = [0; SALT_BYTES];
    engine_random.fill(&mut salt);
    format!("argon2id-v1${}${}", hex(&salt), hex(&hash(password.reveal(), &salt)))
}

/// Whether the password is the one hashed; takes as long when there is nothing to compare with.
pub(crate) fn check_password(stored: Option<&str>, password: &Secret) -> bool {
    let parts = stored.and_then(|stored| {
        let mut parts = stored.split('$');
        let version = parts.next()?;
        let (salt, hash) = (unhex(parts.next()?)?, unhex(parts.next()?)?);
        (version == "argon2id-v1" && hash.len() == HASH_BYTES && salt.len() == SALT_BYTES).then_some((salt, hash))
    });
    let known = parts.is_some();
    let (salt, expected) = parts.unwrap_or((vec![0; SALT_BYTES], vec![0; HASH_BYTES]));
    let found = hash(password.reveal(), &salt);
    // Every byte is looked at, whatever the ones before it were.
    let difference = found.iter().zip(&expected).fold(0, |sum, (a, b)| sum | (a ^ b));
    known && difference == 0 && !password.reveal().is_empty()
}

/// Makes the login sa, and gives it the configured password.
pub(crate) fn ensure_sa(engine: &Engine) -> Result<(), SqlError> {
    let stored = engine.master.lock().logins.get(&SA_ID).cloned();
    let password = engine.config.sa_password.as_ref().filter(|password| !password.reveal().is_empty());
    let unchanged = match (&stored, password) {
        (Some(_), None) => true,
        (Some(stored), Some(password)) => check_password(stored.password_hash.as_deref(), password),
        (None, _) => false,
    };
    if unchanged {
        return Ok(());
    }
    let now = engine.now_datetime();
    let record = LoginRecord {
        kind: b'S',
        owner: SA_ID,
        check_policy: false,
        check_expiration: false,
        id: SA_ID,
        name: "sa".into(),
        sid: SA_SID.to_vec(),
        password_hash: password.map(|password| hash_password(engine.config.env.random.as_ref(), password)),
        default_database: "master".into(),
        default_language: LANGUAGE.into(),
        disabled: false,
        created: stored.map_or(now, |stored| stored.created),
        modified: now,
    };
    engine.change_master(|instance, txn| instance.put_login(txn, record))
}

fn authenticate(engine: &Engine, user: &str, password: &Secret) -> Result<LoginRecord, SqlError> {
    let known = engine.master.lock().logins.values().find(|login| login.name.eq_ignore_ascii_case(user)).cloned();
    let stored = known.as_ref().filter(|login| !login.disabled && !login.is_role()).and_then(|login| login.password_hash.clone());
    match (check_password(stored.as_deref(), password), known) {
        (true, Some(login)) => Ok(login),
        _ => Err(message(18456, &[&user, &"", &""]).with_state(1)),
    }
}

fn choose_database(engine: &Engine, request: &LoginRequest, login: &LoginRecord) -> Result<Arc<OpenDatabase>, SqlError> {
    if request.database.is_empty() {
        return engine.database_named(&login.default_database).ok_or_else(|| message(4064, &[]));
    }
    engine.database_named(&request.database).ok_or_else(|| message(4060, &[&request.database]))
}

/// Checks who it is and opens a session.
pub(crate) fn login(engine: &Arc<Engine>, request: LoginRequest) -> Result<(Session, LoginInfo), SqlError> {
    let login = authenticate(engine, &request.user, &request.password)?;
    let database = choose_database(engine, &request, &login)?;
    let session = open_session(engine, login.id, database.clone(), facts_of(engine, &request, &login.name))?;
    session.check_login(&request)?;
    let info = LoginInfo {
        session_id: session.id(),
        database: database.name(),
        language: LANGUAGE.into(),
        collation: Collation::DEFAULT,
        server_name: engine.config.server_name.clone(),
        messages: vec![message(5701, &[&database.name()]).with_state(2), message(5703, &[&LANGUAGE])],
    };
    Ok((session, info))
}

/// A session as sa that no client asked for.
pub(crate) fn internal_session(engine: &Arc<Engine>) -> Session {
    let database = engine.database(MASTER_ID).expect("master is open as long as the engine is");
    let request = LoginRequest { user: "sa".into(), app_name: "ThawDB".into(), ..LoginRequest::default() };
    open_session(engine, SA_ID, database, facts_of(engine, &request, "sa")).expect("master can be used and numbers are free")
}

fn facts_of(engine: &Engine, request: &LoginRequest, login: &str) -> SessionFacts {
    let now = engine.now_datetime();
    SessionFacts {
        login_name: login.to_owned(),
        host_name: request.host_name.clone(),
        app_name: request.app_name.clone(),
        client_interface: request.client_interface.clone(),
        client_process_id: request.client_process_id,
        client_address: request.client_address.clone(),
        packet_bytes: request.packet_bytes,
        encrypted: request.encrypted,
        language: LANGUAGE.into(),
        login_time: now,
        request_start: now,
        request_end: now,
        command: "AWAITING COMMAND",
        isolation: 2,
        lock_timeout_ms: -1,
        date_first: 7,
        date_order: thawdb_types::convert::DateOrder::Mdy,
        ..SessionFacts::default()
    }
}

fn open_session(engine: &Arc<Engine>, login: i32, database: Arc<OpenDatabase>, facts: SessionFacts) -> Result<Session, SqlError> {
    let ticket = engine.sessions.open(facts)?;
    SessionState::new(engine.clone(), ticket.clone(), login, database).map(Session::new).inspect_err(|_| {
        engine.sessions.close(&ticket);
    })
}
