package enginetest

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// snapshot writes one into a directory of the test's own.
func (b *box) snapshot(contents engine.Contents) string {
	b.t.Helper()
	source, ok := b.inst.(engine.Snapshotter)
	if !ok {
		b.t.Fatalf("a %T makes no snapshots", b.inst)
	}
	dir := filepath.Join(b.t.TempDir(), "snapshot")
	if err := source.Snapshot(b.t.Context(), dir, contents); err != nil {
		b.t.Fatalf("snapshot: %v%s", err, b.readLog())
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		b.t.Errorf("the snapshot's mode is %v (%v)", info.Mode(), err)
	}
	known, err := b.Keeper.Get(b.t.Context(), b.id)
	if err != nil || !known.Alive || known.Frozen || known.Moving || len(known.Pids) == 0 {
		b.t.Errorf("the keeper says of a snapshot's source: %+v, %v", known, err)
	}
	return dir
}

// copySpec is the spec of a copy of the box, under another id. None is the begin of
// another, which an engine may take for it.
func (b *box) copySpec(name string) engine.Spec {
	spec := b.Spec(name + "-" + b.id)
	spec.Mounts, spec.Limits = b.spec.Mounts, b.spec.Limits
	return spec
}

// restore starts a copy, which the test's end destroys.
func (b *box) restore(t *testing.T, dir, name string) *box {
	t.Helper()
	spec := b.copySpec(name)
	ctx, cancel := context.WithTimeout(t.Context(), longestWait)
	defer cancel()
	inst, err := b.restorer(t).Restore(ctx, spec, dir)
	if err != nil {
		t.Fatalf("restore: %v%s", err, b.readLog())
	}
	c := &box{Subject: b.Subject, t: t, id: spec.ID, inst: inst}
	t.Cleanup(func() {
		if err := c.inst.Destroy(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("destroy: %v", err)
		}
		b.nothingLeft(t, spec.ID)
	})
	c.configure(spec)
	return c
}

func (b *box) restorer(t *testing.T) engine.Restorer {
	t.Helper()
	r, ok := b.Engine.(engine.Restorer)
	if !ok {
		t.Fatalf("a %T restores no snapshots", b.Engine)
	}
	return r
}

// adoptCommand attaches to a command that came with the copy.
func (b *box) adoptCommand(id string) net.Conn {
	b.t.Helper()
	if err := b.Keeper.Adopt(b.t.Context(), b.id, keeper.Command{ID: id, Argv: []string{"adopted"}}, keeper.ExecOptions{AwaitReader: true}); err != nil {
		b.t.Fatalf("adopt %s: %v%s", id, err, b.readLog())
	}
	conn, err := b.Keeper.Attach(b.t.Context(), b.id, id, 0)
	if err != nil {
		b.t.Fatalf("attach to %s: %v", id, err)
	}
	b.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// counting counts up by one for each line that it reads, and says so.
func counting(id string) channel.Exec {
	return shellExec(id, `i=0; while read -r l; do i=$((i+1)); echo "$l is $i"; done; echo "over at $i"`)
}
