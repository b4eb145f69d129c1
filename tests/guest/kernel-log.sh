#!/usr/bin/env bash
# Reads a kernel log and prints the lines that no healthy run has; exit code 1 if there is one. Knows what kernels write
# when something is wrong.
set -euo pipefail

FAULTS='WARNING: |BUG: |BUG at |Oops|Call Trace|stall|lockup|blocked for more than|protection fault|panic'
FAULTS+='|KASAN|KCSAN|UBSAN|use-after-free|invalid opcode|unable to handle|list_(add|del) corruption'

# All that sched_ext says apart from these two lines is a complaint.
SCX_FINE='sched_ext: BPF scheduler "[^"]*" (enabled|disabled \(unregistered from user space\))$'

lines=$(grep -E "$FAULTS|sched_ext: " | grep -vE "$SCX_FINE") || true
[[ -n $lines ]] || exit 0
printf '%s\n' "$lines"
exit 1
