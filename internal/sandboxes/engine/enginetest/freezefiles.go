package enginetest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// testFreezeFiles: what was written to the root is there after the thaw, and nothing
// that was in memory; it can be frozen again afterwards, both ways, and copied.
func testFreezeFiles(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, nil)
	own := s.Own(b.id)
	boot := b.runScript("cat /proc/sys/kernel/random/boot_id")
	b.runScript("cd " + own + " && echo one > kept && chmod 700 kept && rm -f lower")
	if s.hasMemory(t) {
		b.runScript("echo gone > /tmp/gone")
	}
	reader := b.startCommand("reader", shellExec("reader", "cat"))
	defer reader.Close()
	dir := b.freezeFiles()
	if end := b.collect(reader); !strings.Contains(end.exit.Error, "only its files were kept") {
		t.Errorf("what ran was told %+v", end.exit)
	}
	inst, err := s.Reopen().Open(t.Context(), b.inst.Handle())
	if err != nil {
		t.Fatalf("open of a frozen instance: %v", err)
	}
	b.inst = inst
	b.thawFrom(dir)
	b.configure(b.spec)
	b.wantAnew(boot, "one\n700\nkept")
	b.runScript("cd " + own + " && echo two >> kept")
	b.thawFrom(b.freeze())
	c := b.restore(t, b.snapshot(engine.ContentsFiles), "k")
	if got := c.runScript("cd " + s.Own(c.id) + " && cat kept"); got != "one\ntwo" {
		t.Errorf("a copy has %q", got)
	}
	b.thawFrom(b.freezeFiles())
	b.configure(b.spec)
	b.wantAnew(boot, "one\ntwo\n700\nkept")
}

// wantAnew: of what was before there are these files, and nothing else.
func (b *box) wantAnew(boot, want string) {
	b.t.Helper()
	look := "cd " + b.Own(b.id) + " && cat kept && stat -c %a kept && ls"
	if got := b.runScript(look); got != want {
		b.t.Errorf("after a thaw there is %q", got)
	}
	if !b.hasMemory(b.t) { // its kernel is the host's
		return
	}
	if got := b.runScript("ls /tmp && ! pgrep -x cat"); got != "" {
		b.t.Errorf("after a thaw there is in memory, or runs, %q", got)
	}
	if now := b.runScript("cat /proc/sys/kernel/random/boot_id"); now == boot || len(now) != len(boot) {
		b.t.Errorf("the boot's id is %q, and was %q", now, boot)
	}
}

// hasMemory tells whether an instance has a memory of its own that can be copied.
func (s *Subject) hasMemory(t *testing.T) bool {
	t.Helper()
	return s.copies(t, engine.ContentsMemory)
}

// freezeFiles freezes into a directory of the test's own, which it returns.
func (b *box) freezeFiles() string {
	b.t.Helper()
	dir := filepath.Join(b.t.TempDir(), "image")
	if err := b.freezer().FreezeFiles(b.t.Context(), dir); err != nil {
		b.t.Fatalf("freeze: %v%s", err, b.readLog())
	}
	known, err := b.Keeper.Get(b.t.Context(), b.id)
	if err != nil || !known.Frozen || !known.Alive || known.Exit != nil {
		b.t.Fatalf("the keeper says of a frozen sandbox: %+v, %v", known, err)
	}
	return dir
}
