package main

import (
	"regexp"
	"strings"
)

// quoted is a word as a POSIX shell reads it back.
func quoted(word string) string {
	if regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`).MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
