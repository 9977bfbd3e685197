//! Security: who may do what, from logging in to a column of a table.
//!
//! ```text
//! login ─► context (who counts: login, EXECUTE AS, module) ─► token (principals: itself, its roles, public)
//!              statement ─► statements: what it takes ─┐
//!              plan ─► plan: needs, ownership chains ──┼─► rule: DENY before GRANT, coverage, ownership ─► yes or a message
//!              view, OBJECT_ID ─► visibility ──────────┘
//! ```
//! One rule decides (`rule`); the other files say what to ask it, keep who asks, and run the statements that change logins, users,
//! roles, permissions and owners. Where it is asked: plans when they are taken (`batch::query`), procedures when they are called
//! (`procedures::call`), every other statement before it runs (`statements::check`), views when rows are made (`views`).
//!
//! 1. Nobody is asked twice about the same: a session in sysadmin compares two numbers, others compare a plan's remembered context.
//! 2. What fails tells no more than SQL Server does: where an object may be unknown to the user, the message is that of an object
//!    that is not there.
//!
//! Messages: 229, 230, 262, 297, 300, 916, 15151, 15247 and their kin. It encrypts nothing; passwords are `instance::login`'s.

pub(crate) mod context;
pub(crate) mod functions;
pub(crate) mod grant;
pub(crate) mod impersonation;
pub(crate) mod logins;
pub(crate) mod ownership;
pub(crate) mod permissions;
pub(crate) mod plan;
pub(crate) mod roles;
pub(crate) mod rule;
pub(crate) mod statements;
pub(crate) mod token;
pub(crate) mod users;
pub(crate) mod visibility;
