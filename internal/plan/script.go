package plan

import (
	"fmt"
	"strings"
)

// prelude makes a scratch copy of the project and goes there. Large files, and
// what clients make themselves, are not what a resolver reads. What programs
// print goes to standard error; standard output has nothing but frames.
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

// script is the text of a rewrite, in the words of sh.
func (p Project) script(lines ...string) []string {
	var b strings.Builder
	b.WriteString(prelude)
	if p.Top == "" {
		b.WriteString("cd \"$work\" || exit 125\n")
	} else {
		fmt.Fprintf(&b, "top=%s here=%s\n", quote(p.Top), quote(p.Here))
		b.WriteString(copied)
	}
	for _, l := range lines {
		b.WriteString(l)
		b.WriteByte('\n')
	}
	return []string{"sh", "-c", b.String()}
}

// command is one command of a script that must succeed: its failure ends the
// script with its code.
func command(words ...string) string { return quoted(words) + " || exit" }

func quoted(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = quote(w)
	}
	return strings.Join(all, " ")
}

// plain are the characters that mean themselves to a shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:@,+%^"

// quote makes one word of a shell of any text.
func quote(s string) string {
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
