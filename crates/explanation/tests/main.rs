//! Integration tests.

mod captures;
mod connections;
mod files;
mod fuzz;
mod packets;
