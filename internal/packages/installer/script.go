package installer

import (
	"fmt"
	"strings"
)

// prelude makes a scratch copy of the project and goes there. Large files, and what clients make
// themselves, are not what a resolver reads. The output of programs goes to standard error;
// standard output has nothing but frames.
const prelude = `set -u
exec 3>&1 1>&2
out=$(mktemp -d "${TMPDIR:-/var/tmp}/out.XXXXXX") || exit 125
work=$(mktemp -d "${TMPDIR:-/var/tmp}/plan.XXXXXX") || exit 125
emit() {
	[ -f "$2" ] || return 0
	printf '%s %s %s\n' cofferdam-plan "$1" "$(wc -c <"$2" | tr -d ' ')" >&3
	cat "$2" >&3
	printf '\n' >&3
}
`

// copied is the part of the prelude for a project that is mounted: $top, $here.
const copied = `(cd "$top" && find . \( -name .git -o -name node_modules -o -name .venv -o -name venv -o -name __pycache__ -o -name .tox \) -prune -o \( \( -type f -size -16385k \) -o -type l \) -print0 |
	tar -cf - --null --no-recursion --ignore-failed-read -T - 2>/dev/null) | tar -xf - -C "$work" || exit 125
mkdir -p "$work/$here" || exit 125
cd "$work/$here" || exit 125
`

// Script is the text of a rewrite, in the words of sh: its lines in a scratch copy of
// the project.
func (p Project) Script(lines ...string) []string {
	var b strings.Builder
	b.WriteString(prelude)
	if p.Top == "" {
		b.WriteString("cd \"$work\" || exit 125\n")
	} else {
		fmt.Fprintf(&b, "top=%s here=%s\n", Quote(p.Top), Quote(p.Here))
		b.WriteString(copied)
	}
	for _, l := range lines {
		b.WriteString(l)
		b.WriteByte('\n')
	}
	return []string{"sh", "-c", b.String()}
}

// Line is one command of a script that must succeed: its failure ends the
// script with its code.
func Line(words ...string) string { return Quoted(words) + " || exit" }

// Quoted writes words for a shell.
func Quoted(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = Quote(w)
	}
	return strings.Join(all, " ")
}

// plain are the characters that mean themselves to a shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:@,+%^"

// Quote makes one word of a shell of any text.
func Quote(s string) string {
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
