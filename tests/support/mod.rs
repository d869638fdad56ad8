//! What the integration tests stand on: a sealed place to run commands in, model servers that only listen on this
//! machine, and the real agent clients as judges of what relay wrote.
pub(crate) mod api;
pub(crate) mod clients;
pub(crate) mod mock;
pub(crate) mod sandbox;
pub(crate) mod schema;
