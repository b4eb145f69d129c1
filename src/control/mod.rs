// SPDX-License-Identifier: GPL-2.0-only
//! Changing the scheduler while it runs: what can be set ([`settings`]), and
//! how `scx_fulcrum set` and `get` ([`client`]) reach the agent ([`server`]).
//! And looking at it: streams ([`streams`]), scrapers ([`scrape`]), `status`
//! and the like ([`status`], [`looker`]); the agent's end is [`watch`].

pub mod ask;
pub mod client;
pub mod connection;
pub mod door;
pub mod explain;
pub mod looker;
pub mod protocol;
pub mod record;
pub mod scrape;
pub mod server;
pub mod settings;
pub mod status;
pub mod streams;
pub mod watch;

/// Where the agent can be asked. Root only: it changes how everybody runs.
pub const SOCKET: &str = "/run/scx_fulcrum/control";
