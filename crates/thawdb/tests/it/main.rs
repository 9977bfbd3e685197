//! The binary and the library from outside: servers, shells, drivers, the demo.

mod client;
mod demo;
mod embedding;
mod format;
mod kill;
mod logins;
mod patience;
mod serving;
mod shell;
mod support;
mod tiberius_driver;
