//! Integration tests.

mod captures;
mod files;
mod fuzz;
mod packets;
