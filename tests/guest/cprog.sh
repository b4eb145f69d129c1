#!/usr/bin/env bash
# Writes a C program of 24 files, its Makefile and the output that it must print into a folder: something real for
# `make -j` to build. Knows nothing of schedulers.
set -euo pipefail

(($# == 1)) || { echo "usage: ${0##*/} FOLDER" >&2 && exit 2; }
mkdir -p "$1"
cd "$1"
UNITS=24

unit() {
	cat <<-EOF2
		#include <ctype.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <string.h>
		#include "units.h"

		static int compare(const void *a, const void *b)
		{
			const unsigned *x = a, *y = b;

			return (*x > *y) - (*x < *y);
		}

		unsigned unit_$1(unsigned seed)
		{
			unsigned v[64], sum = 0;
			char text[64];

			for (unsigned i = 0; i < 64; i++)
				v[i] = seed = seed * 1103515245u + 12345u + $1;
			qsort(v, 64, sizeof(v[0]), compare);
			for (unsigned i = 1; i < 64; i++)
				sum += v[i] >= v[i - 1];
			snprintf(text, sizeof(text), "%u units", sum + $1);
			for (char *c = text; *c; c++)
				*c = toupper((unsigned char)*c);
			return strtoul(text, NULL, 10) + !strstr(text, "UNITS");
		}
	EOF2
}

# 63 ordered neighbours in each unit, and its own number.
expected=0
{
	echo '#pragma once'
	for ((i = 0; i < UNITS; i++)); do echo "unsigned unit_$i(unsigned seed);"; done
} >units.h
for ((i = 0; i < UNITS; i++)); do
	unit "$i" >"unit_$i.c"
	expected=$((expected + 63 + i))
done
{
	echo '#include <stdio.h>'
	echo '#include "units.h"'
	echo 'int main(void) { unsigned sum = 0;'
	for ((i = 0; i < UNITS; i++)); do echo "	sum += unit_$i($i);"; done
	# shellcheck disable=SC2028  # C's escape, not echo's
	echo '	printf("%u\n", sum);'
	echo '	return 0; }'
} >main.c
echo "$expected" >expected
cat >Makefile <<'EOF2'
CFLAGS = -O1 -Wall
OBJECTS = $(patsubst %.c,%.o,$(wildcard *.c))

check: prog
	./prog | cmp - expected
prog: $(OBJECTS)
	$(CC) -o $@ $^
$(OBJECTS): units.h
clean:
	rm -f prog $(OBJECTS)
EOF2
