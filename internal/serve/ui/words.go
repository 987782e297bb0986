package ui

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Age is a duration in its largest unit.
func Age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(int(d.Seconds()), 0))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Size is a number of bytes for people; "-" for none.
func Size(n int64) string {
	switch {
	case n <= 0:
		return "-"
	case n < 1e3:
		return fmt.Sprintf("%d B", n)
	case n < 1e6:
		return fmt.Sprintf("%.0f kB", float64(n)/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.0f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// Moment is a time to the minute, by this host's clock; "" for none.
func Moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04")
}

// Plural is a number with its noun.
func Plural(n int, one, more string) string { return text.Count(n, one, more) }

// Noun is the noun for so many.
func Noun(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// JoinWords joins words as "a, b and c".
func JoinWords(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// ShellWords shows a command on one line, not too long.
func ShellWords(argv []string) string {
	const most = 80
	return text.Shorten(ShellLine(argv), most)
}

// ShellLine is a command as a POSIX shell reads it back.
func ShellLine(argv []string) string {
	words := make([]string, len(argv))
	for i, word := range argv {
		words[i] = Quoted(word)
	}
	return strings.Join(words, " ")
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// Quoted is a word as a POSIX shell reads it back.
func Quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
