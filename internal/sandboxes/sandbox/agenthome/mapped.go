package agenthome

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// addMapped adds what a process has mapped.
func (u *unlinked) addMapped(ctx context.Context, p process) {
	file, err := os.Open(filepath.Join(p.dir, "maps"))
	if err != nil {
		return
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 4096), mostOfLine)
	seen := map[string]bool{}
	bytes, more := 0, true
	for more && lines.Scan() {
		line := lines.Text()
		if bytes += len(line) + 1; bytes >= 1024 {
			more = u.spendWork(ctx, p, bytes/1024, func() {})
			bytes %= 1024
		}
		fields := strings.Fields(line)
		if !strings.HasSuffix(line, deleted) || len(fields) < 6 || fields[3] != u.device || seen[fields[4]] {
			continue
		}
		seen[fields[4]] = true
		more = more && u.spendWork(ctx, p, 1, func() { u.addMapping(p, fields[0]) })
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		u.giveUp(p.space.home)
	}
}

// addMapping adds a file that has no name, as a process has it mapped at a range of its memory. Without root nobody sees which
// one it is, nor where it was moved meanwhile.
func (u *unlinked) addMapping(p process, at string) {
	from, to, _ := strings.Cut(at, "-")
	name := strings.TrimLeft(from, "0") + "-" + strings.TrimLeft(to, "0")
	if err := u.countLink(filepath.Join(p.dir, "map_files", name), 0); err != nil {
		u.addUnseen(p.space.home, Unseen{Mapped: 1})
	}
}
