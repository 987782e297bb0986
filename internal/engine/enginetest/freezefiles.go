package enginetest

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// testFreezeFiles: what was written to the root is there after the thaw, and nothing
// that was in memory; it can be frozen again afterwards, both ways, and copied. An
// engine without snapshots may refuse it, and then the instance goes on.
func testFreezeFiles(t *testing.T, s *Subject) {
	t.Helper()
	caps, err := s.Engine.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := s.create(t, nil)
	if !slices.Contains(caps.Enforces, engine.ControlSnapshot) {
		if err := b.freezer().FreezeFiles(t.Context(), filepath.Join(t.TempDir(), "image")); !errors.Is(err, fault.ErrUnavailable) {
			t.Errorf("%v", err)
		}
		if got := b.sh("echo goes on"); got != "goes on" {
			t.Errorf("after a freeze that was refused: %q", got)
		}
		return
	}
	own := s.Own(b.id)
	boot := b.sh("cat /proc/sys/kernel/random/boot_id")
	b.sh("cd " + own + " && echo one > kept && chmod 700 kept && rm lower && echo gone > /tmp/gone")
	sleeper := b.start("sleeper", shell("sleeper", "sleep 1000"))
	defer sleeper.Close()
	dir := b.freezeFiles()
	if end := b.collect(sleeper); !strings.Contains(end.exit.Error, "only its files were kept") {
		t.Errorf("what ran was told %+v", end.exit)
	}
	inst, err := s.Reopen().Open(t.Context(), b.inst.Handle())
	if err != nil {
		t.Fatalf("open of a frozen instance: %v", err)
	}
	b.inst = inst
	b.thaw(dir)
	b.configure(b.spec)
	look := "cd " + own + " && cat kept && stat -c %a kept && ls /tmp && ls && ! pgrep -x sleep"
	if got := b.sh(look); got != "one\n700\nkept" {
		t.Errorf("after the first thaw there is %q", got)
	}
	if now := b.sh("cat /proc/sys/kernel/random/boot_id"); now == boot || len(now) != len(boot) {
		t.Errorf("the boot's id is %q, and was %q", now, boot)
	}
	b.sh("cd " + own + " && echo two >> kept")
	b.thaw(b.freeze())
	c := b.restore(t, b.snapshot(engine.ContentsFiles), "k")
	if got := c.sh("cd " + s.Own(c.id) + " && cat kept"); got != "one\ntwo" {
		t.Errorf("a copy has %q", got)
	}
	b.thaw(b.freezeFiles())
	b.configure(b.spec)
	if got := b.sh(look); got != "one\ntwo\n700\nkept" {
		t.Errorf("after the second thaw there is %q", got)
	}
}

// freezeFiles freezes into a directory of the test's own, which it returns.
func (b *box) freezeFiles() string {
	b.t.Helper()
	dir := filepath.Join(b.t.TempDir(), "image")
	if err := b.freezer().FreezeFiles(b.t.Context(), dir); err != nil {
		b.t.Fatalf("freeze: %v%s", err, b.log())
	}
	known, err := b.Keeper.Get(b.t.Context(), b.id)
	if err != nil || !known.Frozen || !known.Alive || known.Exit != nil {
		b.t.Fatalf("the keeper says of a frozen sandbox: %+v, %v", known, err)
	}
	return dir
}
