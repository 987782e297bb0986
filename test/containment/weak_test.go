package containment

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/gvisor"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// weakHouse makes weak sandboxes: the same engine, keeper and guest agent, in
// the stage's network, and shown what no sandbox is shown.
type weakHouse struct {
	dir    string
	keeper *keeper.Client
	engine engine.Engine
	stage  *stage
}

func newWeakHouse(t *testing.T, s *stage) *weakHouse {
	t.Helper()
	h := &weakHouse{dir: filepath.Join(s.dir, "weak"), stage: s}
	for _, dir := range []string{"etc", "usr", "tmp", "run", "dev", "proc", "sys", "mnt", "root", "home/agent", "home/invoker", "elsewhere", "probe"} {
		if err := os.MkdirAll(filepath.Join(h.dir, "root", dir), 0o755); err != nil { // a root file system
			t.Fatal(err)
		}
	}
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+name, filepath.Join(h.dir, "root", name)); err != nil {
			t.Fatal(err)
		}
	}
	s.write(t, "weak/root/etc/passwd", "root:x:0:0::/root:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\n", 0o644)
	s.write(t, "weak/root/etc/group", "root:x:0:\nagent:x:1000:\n", 0o644)
	h.keeper = enginetest.StartKeeper(t, filepath.Join(s.dir, "wk.sock"))
	h.engine = gvisor.New(gvisor.Config{
		Runsc: repository(t, "bin", "runsc"), Root: filepath.Join(h.dir, "runsc"), StateDir: filepath.Join(h.dir, "state"),
		CgroupParent: fmt.Sprintf("cofferdam-weak-%d", os.Getpid()), Stage: enginetest.StageArgv(t),
	}, h.keeper)
	return h
}

// weakSandbox is one. Only one can live at a time: its agent answers DNS on the
// stage's loopback.
type weakSandbox struct {
	*weakHouse
	id   string
	next int
}

func (h *weakHouse) open(t *testing.T) *weakSandbox {
	t.Helper()
	return h.begin(t, engine.Spec{
		ID: "weak-" + randomWord(), Root: engine.Root{Kind: engine.RootDir, Path: filepath.Join(h.dir, "root")}, Hostname: "weak", Weak: true,
		Mounts: []engine.Mount{
			{Source: "/usr", Destination: "/usr", ReadOnly: true},
			{Source: filepath.Join(h.stage.dir, "state", "agent"), Destination: "/.cofferdam/bin", ReadOnly: true},
			{Source: probeDir(), Destination: "/probe", ReadOnly: true},
			{Source: filepath.Join(h.stage.dir, "home"), Destination: "/home/invoker"},
			{Source: filepath.Join(h.stage.dir, "elsewhere"), Destination: "/elsewhere"},
		},
		Init: []string{"/.cofferdam/bin/cofferdam-guest"}, Env: []string{"PATH=/usr/bin:/bin"},
		Limits: engine.Limits{MemoryBytes: 512 << 20, DiskBytes: 64 << 20, Pids: 128, CPU: 2},
		Owner:  engine.Owner{UID: 1000, GID: 1000},
	})
}

// begin makes one, and tells its agent who it is.
func (h *weakHouse) begin(t *testing.T, spec engine.Spec) *weakSandbox {
	t.Helper()
	b := &weakSandbox{weakHouse: h, id: spec.ID}
	instance, err := h.engine.Create(t.Context(), spec)
	if err != nil {
		t.Fatalf("create a weak sandbox: %v", err)
	}
	t.Cleanup(func() {
		if err := instance.Destroy(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("destroy the weak sandbox: %v", err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	reply, err := h.keeper.Call(ctx, b.id, channel.Call{Kind: channel.CallConfigure, Configure: &channel.Configure{
		Hostname: "weak", User: channel.User{Name: "agent", UID: 1000, GID: 1000, Home: "/home/agent"},
		Env:    map[string]string{"PATH": "/usr/bin:/bin", "PLANTED_SECRET": os.Getenv("PLANTED_SECRET")},
		CAPEM:  []byte("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"),
		Limits: channel.ExecLimits{NProc: 128, NoFile: 1024}, Now: time.Now().UnixNano(), Seed: []byte("0123456789abcdef"),
	}})
	if err != nil || !reply.OK {
		t.Fatalf("configure the weak sandbox: %v %s", err, reply.Error)
	}
	return b
}

// probe runs a probe as root inside.
func (b *weakSandbox) probe(t *testing.T, args ...string) outcome {
	t.Helper()
	b.next++
	id := fmt.Sprintf("c%d", b.next)
	call := channel.Exec{ID: id, Argv: append([]string{"/probe/probe"}, args...), User: "root", Dir: "/"}
	if err := b.keeper.Exec(t.Context(), b.id, call, keeper.ExecOptions{RingBytes: 8 << 20}); err != nil {
		t.Fatalf("run %v in the weak sandbox: %v", args, err)
	}
	conn, err := b.keeper.Attach(t.Context(), b.id, id, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * waitTimeout)); err != nil {
		t.Fatal(err)
	}
	var out outcome
	frames := channel.NewReader(conn)
	for {
		kind, payload, err := frames.ReadFrame()
		if err != nil {
			t.Fatalf("%v in the weak sandbox: %v", args, err)
		}
		switch kind { //nolint:exhaustive // the others say nothing of the outcome
		case channel.FrameStdout, channel.FrameStderr:
			out.text += string(payload)
		case channel.FrameExit:
			var exit channel.Exit
			if err := channel.DecodeJSON(kind, payload, &exit); err != nil {
				t.Fatal(err)
			}
			out.code = exit.Code
			return out
		}
	}
}
