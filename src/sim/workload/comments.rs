// SPDX-License-Identifier: GPL-2.0-only
//! JSON with comments.

/// Comments become blanks, so that places in the text stay.
pub(super) fn without_comments(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let (mut at, mut quoted) = (0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quoted => at += 1,
            b'"' => quoted = !quoted,
            b'/' if !quoted && matches!(bytes.get(at + 1), Some(b'/' | b'*')) => {
                let (mark, keep) = if bytes[at + 1] == b'*' {
                    ("*/", 2)
                } else {
                    ("\n", 0)
                };
                let end = text[at..]
                    .find(mark)
                    .map_or(bytes.len(), |len| at + len + keep);
                let blank = |byte: &mut u8| *byte = if *byte == b'\n' { b'\n' } else { b' ' };
                out[at..end].iter_mut().for_each(blank);
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}
