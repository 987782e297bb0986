package main

import (
	"log"
	"log/slog"
	"strings"
)

// ownWords is where the standard library logs to. It quotes what a host has said, as in a
// response that nobody asked for, and a host may say a secret that it was sent: so a line
// is kept up to its first quote.
type ownWords struct{ log *slog.Logger }

// Write implements io.Writer.
func (w ownWords) Write(line []byte) (int, error) {
	text, _, _ := strings.Cut(string(line), `"`)
	w.log.Info(strings.TrimSpace(text))
	return len(line), nil
}

// setDefault makes this process's goroutines that panic, and the standard library, log here.
func setDefault(l *slog.Logger) {
	slog.SetDefault(l)
	log.SetFlags(0)
	log.SetOutput(ownWords{l})
}
