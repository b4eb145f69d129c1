// SPDX-License-Identifier: GPL-2.0-only
//! The one definition of every figure: its name, unit and meaning stand where
//! the field is declared, and whatever explains figures to people or tools
//! (docs/stream.md, OpenMetrics, the live screen) is made from there.

/// What a field holds, for those who turn it into something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Says whose figures these are: a number or a name.
    Label,
    /// A figure that goes up and down.
    Gauge,
    /// A figure that only grows while the scheduler runs.
    Counter,
    /// Text for people, or a list of such.
    Text,
    /// A histogram, see [`super::histogram::Histogram`].
    Buckets,
}

/// One figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in JSON; ends with the unit where it has one.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// The unit; empty for names, numbers of things and texts.
    pub unit: &'static str,
    /// What it says, without the unit.
    pub meaning: &'static str,
}

/// Figures that belong together: one section of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its name in JSON.
    pub name: &'static str,
    /// What it is about; for lists, what one element is.
    pub about: &'static str,
    /// Its figures.
    pub fields: &'static [Field],
}

impl Section {
    /// The figure called `name`.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// Declares a section: a struct for serde, and its description.
macro_rules! figures {
    ($name:ident, $section:literal, $about:literal;
     $($field:ident: $type:ty, $kind:ident, $unit:literal, $meaning:literal;)*) => {
        #[doc = $about]
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $name {
            $(#[doc = concat!($meaning, "; unit: \"", $unit, "\".")] pub $field: $type,)*
        }

        impl $name {
            /// Names, units and meanings of the fields above.
            pub const SECTION: crate::stats::fields::Section = crate::stats::fields::Section {
                name: $section,
                about: $about,
                fields: &[$(crate::stats::fields::Field {
                    name: stringify!($field),
                    kind: crate::stats::fields::Kind::$kind,
                    unit: $unit,
                    meaning: $meaning,
                },)*],
            };
        }
    };
}
pub(crate) use figures;
