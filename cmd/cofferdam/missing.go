package main

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// maxAnnounced bounds what is kept of what was said; one host misses a few things.
const maxAnnounced = 64 << 10

// tellMissing says what a host can't enforce: once, as it does not change from one run
// to the next. Only that it was said is kept: where that can't be read or
// written, as of a daemon of somebody else's, it is said each time.
func tellMissing(c *client.Client, missing []string, say func(format string, args ...any)) {
	path := ""
	if paths, err := config.DefaultPaths(); err == nil && !c.Remote() {
		path = paths.Notices()
	}
	known := announced(path)
	var fresh []string
	for _, m := range missing {
		if line := ui.Printable(m); !slices.Contains(known, line) {
			fresh = append(fresh, line)
			say("missing on this host: %s", m)
		}
	}
	if len(fresh) > 0 && keepAnnounced(path, fresh) {
		say("that is said once; cofferdam doctor tells it again")
	}
}

// announced are the lines of a file; none if it can't be read.
func announced(path string) []string {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxAnnounced))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// keepAnnounced adds lines to the file, and reports whether they are in it.
func keepAnnounced(path string, lines []string) bool {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return false
	}
	_, err = file.WriteString(strings.Join(lines, "\n") + "\n")
	return file.Close() == nil && err == nil
}
