// SPDX-License-Identifier: GPL-2.0-only
//! Changing the scheduler while it runs: what can be set ([`settings`]), and
//! how `scx_fulcrum set` and `get` ([`client`]) reach the agent ([`server`]).

pub mod client;
pub mod protocol;
pub mod server;
pub mod settings;

/// Where the agent can be asked. Root only: it changes how everybody runs.
pub const SOCKET: &str = "/run/scx_fulcrum/control";
