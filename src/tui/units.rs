// SPDX-License-Identifier: GPL-2.0-only
//! Figures as short texts, with their unit and no more digits than help.

use super::look::Look;

/// Widest text of [`time`].
pub const TIME: u16 = 6;
/// Widest text of [`lag`].
pub const LAG: u16 = 7;
/// Widest text of [`rate`].
pub const RATE: u16 = 5;

/// A time given in microseconds: `0`, `950us`, `1.2ms`, `45ms`, `3.1s`, `12m`.
pub fn time(us: f64, look: Look) -> String {
    let micro = look.pick("µs", "us");
    match us {
        us if !us.is_finite() || us < 0.0 => "-".to_string(),
        us if us < 0.05 => "0".to_string(),
        us if us < 9.95 => format!("{us:.1}{micro}"),
        us if us < 999.5 => format!("{us:.0}{micro}"),
        us if us < 99_950.0 => format!("{:.1}ms", us / 1e3),
        us if us < 999_500.0 => format!("{:.0}ms", us / 1e3),
        us if us < 99_950_000.0 => format!("{:.1}s", us / 1e6),
        us if us < 5_999_500_000.0 => format!("{:.0}m", us / 6e7),
        us if us < 359_000_000_000.0 => format!("{:.0}h", us / 3.6e9),
        us => format!("{:.0}d", (us / 8.64e10).min(99_999.0)),
    }
}

/// A time with its sign.
pub fn lag(us: f64, look: Look) -> String {
    let text = time(us.abs(), look);
    match us {
        us if us >= 0.05 => format!("+{text}"),
        us if us <= -0.05 => format!("-{text}"),
        _ => text,
    }
}

/// A number of things or a rate: `0`, `7.5`, `950`, `18.2k`, `1.2M`.
pub fn rate(value: f64) -> String {
    match value {
        value if !value.is_finite() || value < 0.0 => "-".to_string(),
        value if value < 0.05 => "0".to_string(),
        value if value < 9.95 => format!("{value:.1}"),
        value if value < 9999.5 => format!("{value:.0}"),
        value if value < 99_950.0 => format!("{:.1}k", value / 1e3),
        value if value < 9_999_500.0 => format!("{:.0}k", value / 1e3),
        value if value < 999_500_000.0 => format!("{:.0}M", value / 1e6),
        value => format!("{:.0}G", (value / 1e9).min(9999.0)),
    }
}

/// A number of things: `0`, `12`, `1244`, `18.2k`.
pub fn count(value: u64) -> String {
    if value < 10 {
        value.to_string()
    } else {
        rate(value as f64)
    }
}

/// A percentage with a digit after the point, without its sign.
pub fn percent(value: f64) -> String {
    if value.is_finite() {
        format!("{:.1}", value.clamp(-999.0, 9999.0))
    } else {
        "-".to_string()
    }
}

/// How long ago something was, in milliseconds: `45s`, `3m07s`, `5h12m`, `12d`.
pub fn age(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..172_800 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// The time of day, UTC, of a time in milliseconds since 1970.
pub fn clock(ms: u64) -> String {
    let seconds = ms / 1000 % 86_400;
    format!(
        "{:02}:{:02}:{:02}.{}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        ms % 1000 / 100
    )
}

/// An amount of memory given in KiB.
pub fn memory(kib: u64) -> String {
    let kib = kib as f64;
    match kib {
        kib if kib < 1024.0 => format!("{kib:.0} KiB"),
        kib if kib < 1_048_576.0 => format!("{:.1} MiB", kib / 1024.0),
        kib => format!("{:.1} GiB", kib / 1_048_576.0),
    }
}

/// `text`, cut to `width` cells from the left: the end of a path says most.
pub fn tail(text: &str, width: usize, look: Look) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_string();
    }
    let mark = look.pick("…", "~");
    let kept = text.chars().skip(length - width.saturating_sub(1));
    mark.chars().chain(kept).take(width).collect()
}

/// `text`, cut to `width` cells from the right.
pub fn head(text: &str, width: usize, look: Look) -> String {
    if text.chars().count() <= width {
        return text.to_string();
    }
    let kept = text.chars().take(width.saturating_sub(1));
    kept.chain(look.pick("…", "~").chars())
        .take(width)
        .collect()
}

/// A task by name and number in `width` cells: a number is never cut.
pub fn named(name: &str, pid: u32, width: u16, look: Look) -> String {
    let pid = pid.to_string();
    let room = usize::from(width).saturating_sub(pid.len() + 1);
    format!("{} {pid}", head(name, room, look))
        .trim_start()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UTF8: Look = Look {
        colour: true,
        unicode: true,
    };
    const ASCII: Look = Look {
        colour: false,
        unicode: false,
    };

    #[test]
    fn every_figure_fits_its_column() {
        let mut value = 1e-3;
        while value < 1e30 {
            for value in [value, value * 0.99951, value * 9.9949] {
                for (text, width) in [
                    (time(value, UTF8), TIME),
                    (time(value, ASCII), TIME),
                    (lag(-value, UTF8), LAG),
                    (rate(value), RATE),
                ] {
                    assert!(
                        text.chars().count() <= usize::from(width),
                        "{value}: {text}"
                    );
                }
            }
            value *= 1.7;
        }
        for odd in [f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!((time(odd, UTF8), rate(odd)), ("-".to_string(), "-".into()));
        }
    }

    #[test]
    fn figures_read_as_people_say_them() {
        let times = [0.0, 6.1, 950.0, 1200.0, 45_000.0, 3.1e6, 6e8];
        let texts = times.map(|us| time(us, ASCII));
        assert_eq!(texts.join(" "), "0 6.1us 950us 1.2ms 45.0ms 3.1s 10m");
        assert_eq!(lag(-3000.0, UTF8), "-3.0ms");
        assert_eq!(
            [0.0, 7.5, 950.0, 18_200.0, 1.2e6].map(rate).join(" "),
            "0 7.5 950 18.2k 1200k"
        );
        assert_eq!(
            [5000, 187_000, 18_720_000, 1_036_800_000]
                .map(age)
                .join(" "),
            "5s 3m07s 5h12m 12d"
        );
        assert_eq!(clock(1_781_344_800_000 + 3_723_400), "11:02:03.4");
        assert_eq!(tail("/user.slice/app", 8, UTF8), "…ice/app");
        assert_eq!(tail("/user.slice/app", 0, UTF8), "");
        assert_eq!(head("/user.slice/app", 6, ASCII), "/user~");
        assert_eq!(named("firefox", 4711, 10, UTF8), "fire… 4711");
        assert_eq!(named("firefox", 4711, 4, UTF8), "4711");
        assert_eq!([0, 9, 1244].map(count).join(" "), "0 9 1244");
    }
}
