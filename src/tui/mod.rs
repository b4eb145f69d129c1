// SPDX-License-Identifier: GPL-2.0-only
//! `scx_fulcrum top`: the live screen.
//!
//! What is shown is a [`model`], keys and frames change it ([`update`]), and
//! the screen is drawn from it ([`view`]). Those three touch nothing outside
//! themselves. Around them, a [`session`] sleeps until threads that read keys
//! and frames ([`live`]) or a recording ([`player`]) have something new, and
//! holds the [`terminal`].

pub mod canvas;
pub mod change;
pub mod command;
pub mod keys;
pub mod lines;
pub mod live;
pub mod look;
pub mod model;
pub mod player;
pub mod replay;
pub mod rows;
pub mod sections;
pub mod session;
pub mod svg;
pub mod table;
pub mod terminal;
pub mod units;
pub mod update;
pub mod view;
