package enginetest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// longestWait bounds a wait for something that must happen.
var longestWait = 30 * time.Second // set once, before tests run

// Patience sets that bound, before anything runs, for an engine whose sandboxes are slow.
func Patience(longest time.Duration) { longestWait = longest }

// Keeper is what the suite uses of the keeper, beside what the engine does.
type Keeper interface {
	Call(ctx context.Context, id string, call channel.Call) (channel.Reply, error)
	Exec(ctx context.Context, id string, exec channel.Exec, o keeper.ExecOptions) error
	Attach(ctx context.Context, id, command string, offset int64) (net.Conn, error)
	Adopt(ctx context.Context, id string, command keeper.Command, o keeper.ExecOptions) error
	Get(ctx context.Context, id string) (keeper.Sandbox, error)
	List(ctx context.Context) ([]keeper.Sandbox, error)
}

// Subject is one engine under test with what a test needs to use it: the keeper under it, a
// spec that works, and eyes for what it leaves behind.
type Subject struct {
	Engine engine.Engine
	Keeper Keeper
	Socket string // the keeper's, as StartKeeper got it
	// Reopen makes the engine again, as a restarted daemon does.
	Reopen func() engine.Engine
	// Spec is a spec of the given id that can be created: its root holds a
	// shell and busybox's usual applets, and PID 1 is the guest agent, or
	// speaks its protocol. The home of one that makes snapshots holds a file
	// "lower" and nothing else.
	Spec func(id string) engine.Spec
	// Own is a directory inside whose files are an instance's own.
	Own func(id string) string
	// Files: its snapshots hold files wherever it runs. Without it a host on which the engine
	// does not declare engine.ControlSnapshotFiles is a host without them.
	Files bool
	// Variant is what beside the engine and the host decides what is proved, such as
	// "with the runtime runc"; "" where nothing does.
	Variant string
	// NoWeak: this subject can't make a weak sandbox (Spec.Weak), and another
	// run of the suite has shown the positive controls.
	NoWeak bool
	// WeakHost is the address by which a weak sandbox finds the host's loopback, if that is
	// not its own, too.
	WeakHost string
	// Elevated is the agent's program on the host, for an engine whose instances are
	// engine.PrivilegedRunner; "" for others.
	Elevated string
	// Traces lists what is on the host of an id, beyond what the suite can
	// see by itself: control groups, records, sockets.
	Traces func(id string) []string
}

// Factory makes a subject, and puts its end into the test's cleanup.
type Factory func(t *testing.T) *Subject

// Suite runs the contract.
func Suite(t *testing.T, factory Factory) {
	t.Helper()
	s := factory(t)
	t.Run("life", func(t *testing.T) { testLife(t, s) })
	t.Run("restart", func(t *testing.T) { testRestart(t, s) })
	t.Run("ends", func(t *testing.T) { testEnds(t, s) })
	t.Run("errors", func(t *testing.T) { testErrors(t, s) })
	t.Run("controls", func(t *testing.T) { testControls(t, s) })
	if s.Files && !s.copies(t, engine.ContentsFiles) {
		t.Errorf("it does not declare %s, so that its snapshots were not tried", engine.ControlSnapshotFiles)
	}
	if s.Elevated != "" {
		t.Run("elevated", func(t *testing.T) { testElevated(t, s) })
	}
	s.endsEmpty(t)
}

// SuiteOfRoots runs what of the contract depends on the form that a root has.
func SuiteOfRoots(t *testing.T, factory Factory) {
	t.Helper()
	s := factory(t)
	t.Run("life", func(t *testing.T) { testLife(t, s) })
	t.Run("read-only root", func(t *testing.T) { testReadOnlyRoot(t, s) })
	t.Run("mounts", func(t *testing.T) { testUserMapping(t, s) })
	caps, err := s.Engine.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(caps.Enforces, engine.ControlFreeze) {
		t.Run("freeze", func(t *testing.T) { testCountsOn(t, s) })
	}
	if slices.Contains(caps.Enforces, engine.ControlSnapshot) {
		t.Run("snapshot", func(t *testing.T) { testCopyGoesOn(t, s) })
	}
	if slices.Contains(caps.Enforces, engine.ControlSnapshotFiles) {
		t.Run("files", func(t *testing.T) { testFilesOnly(t, s) })
	}
	s.endsEmpty(t)
}

// SuiteOfChannels runs what of the contract depends on how a channel is carried: it is whole
// over freezes and snapshots, and ends with what is at its end. Of copies there is nothing.
func SuiteOfChannels(t *testing.T, factory Factory) {
	t.Helper()
	s := factory(t)
	for _, one := range []struct {
		name string
		test func(*testing.T, *Subject)
	}{
		{"life", testLife},
		{"restart", testRestart},
		{"ends", testEnds},
		{"a process counts on", testCountsOn},
		{"much output", testMuchOutput},
		{"a terminal", testTerminal},
		{"frozen twice", testFreezeTwice},
		{"a request on its way", testRequestOnItsWay},
		{"a damaged image", testDamagedImage},
		{"destroyed while frozen", testDestroyFrozen},
		{"ended while frozen", testFreezeEnding},
		{"asked twice for the same", testFreezeAgain},
		{"the source goes on", testSourceGoesOn},
	} {
		t.Run(one.name, func(t *testing.T) { one.test(t, s) })
	}
	s.endsEmpty(t)
}

// endsEmpty: what the tests made they have ended.
func (s *Subject) endsEmpty(t *testing.T) {
	t.Helper()
	if ids, err := s.Engine.List(t.Context()); err != nil || len(ids) > 0 {
		t.Errorf("after all tests the engine lists %v (%v)", ids, err)
	}
}

// box is one instance of a test.
type box struct {
	*Subject
	t    *testing.T
	id   string
	inst engine.Instance
	spec engine.Spec
	next atomic.Int64
}

// createBox makes an instance that the test's end destroys and looks for traces
// of. change may be nil.
func (s *Subject) createBox(t *testing.T, change func(*engine.Spec)) *box {
	t.Helper()
	spec := s.newSpec(t)
	if change != nil {
		change(&spec)
	}
	ctx, cancel := context.WithTimeout(t.Context(), longestWait)
	defer cancel()
	inst, err := s.Engine.Create(ctx, spec)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	b := &box{Subject: s, t: t, id: spec.ID, inst: inst}
	t.Cleanup(func() {
		if err := b.inst.Destroy(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("destroy: %v", err)
		}
		s.nothingLeft(t, spec.ID)
	})
	b.configure(spec)
	return b
}

// newSpec is the subject's, under an id that no other test has.
func (s *Subject) newSpec(t *testing.T) engine.Spec {
	t.Helper()
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(t.Name()))
	if cut := len(name) - 40; cut > 0 {
		name = name[cut:]
	}
	return s.Spec(fmt.Sprintf("t-%s-%d", strings.Trim(name, "-"), os.Getpid()))
}

func (b *box) configure(spec engine.Spec) {
	b.t.Helper()
	b.spec = spec
	b.configureNames()
}

// configureNames configures the guest, with registry names, the first of which has the
// address 127.64.0.1.
func (b *box) configureNames(names ...string) {
	b.t.Helper()
	spec := b.spec
	_, err := b.Keeper.Call(b.t.Context(), b.id, channel.Call{Kind: channel.CallConfigure, Configure: &channel.Configure{
		Hostname: "sandbox", User: channel.User{Name: "agent", UID: 1000, GID: 1000, Home: "/home/agent"},
		Env: map[string]string{"PATH": "/bin:/usr/bin"}, CAPEM: []byte("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"),
		Limits: channel.ExecLimits{NProc: spec.Limits.Pids, NoFile: 1024}, Now: time.Now().UnixNano(), Seed: []byte("0123456789abcdef"), Names: names,
	}})
	if err != nil {
		b.t.Fatalf("configure: %v%s", err, b.readLog())
	}
}

// readLog reads what PID 1 and the engine wrote.
func (b *box) readLog() string {
	var all strings.Builder
	for _, path := range b.Traces(b.id) {
		if data, err := os.ReadFile(path); err == nil && filepath.Ext(path) == ".log" {
			fmt.Fprintf(&all, "\n%s:\n%s", path, data)
		}
	}
	return all.String()
}

// result is how a command ended.
type result struct {
	out, err string
	exit     channel.Exit
}

// execAs runs a command as the default user, or another.
func (b *box) execAs(user string, argv ...string) result {
	b.t.Helper()
	id := fmt.Sprintf("c%d", b.next.Add(1))
	conn := b.startCommand(id, channel.Exec{ID: id, Argv: argv, User: user, Dir: "/"})
	defer conn.Close()
	return b.collect(conn)
}

// startCommand begins a command and attaches to it.
func (b *box) startCommand(id string, exec channel.Exec) net.Conn {
	b.t.Helper()
	if err := b.Keeper.Exec(b.t.Context(), b.id, exec, keeper.ExecOptions{AwaitReader: true}); err != nil {
		b.t.Fatalf("exec %q: %v", exec.Argv, err)
	}
	conn, err := b.Keeper.Attach(b.t.Context(), b.id, id, 0)
	if err != nil {
		b.t.Fatalf("attach to %q: %v", exec.Argv, err)
	}
	return conn
}

// collect reads a command's output to its end. A channel that breaks is an
// exit without a code of its own.
func (b *box) collect(conn net.Conn) result {
	b.t.Helper()
	var out, errs strings.Builder
	ended := func(exit channel.Exit) result { return result{exit: exit, out: out.String(), err: errs.String()} }
	frames := channel.NewReader(conn)
	for {
		// Each frame has its time: there may be much of them, on a machine that has much to do.
		if err := conn.SetDeadline(time.Now().Add(longestWait)); err != nil {
			b.t.Fatal(err)
		}
		kind, payload, err := frames.ReadFrame()
		if err != nil {
			return ended(channel.Exit{Code: -1, Error: err.Error()})
		}
		switch kind { //nolint:exhaustive // The others say nothing of the outcome.
		case channel.FrameStdout:
			out.Write(payload)
		case channel.FrameStderr:
			errs.Write(payload)
		case channel.FrameExit:
			var exit channel.Exit
			if err := channel.DecodeJSON(kind, payload, &exit); err != nil {
				b.t.Fatal(err)
			}
			return ended(exit)
		}
	}
}

// runScript runs a shell script that must succeed and returns its output.
func (b *box) runScript(script string) string {
	b.t.Helper()
	r := b.execAs("", "/bin/sh", "-c", script)
	if r.exit.Code != 0 {
		b.t.Fatalf("%q: %+v\n%s%s", script, r.exit, r.out, r.err)
	}
	return strings.TrimSpace(r.out)
}

// nothingLeft looks for everything that an instance may leave on the host.
func (s *Subject) nothingLeft(t *testing.T, id string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	if ids, err := s.Engine.List(ctx); err != nil || strings.Contains(strings.Join(ids, " "), id) {
		t.Errorf("%s is still listed: %v, %v", id, ids, err)
	}
	sandboxes, err := s.Keeper.List(ctx)
	if err != nil {
		t.Error(err)
	}
	for _, known := range sandboxes {
		if known.ID == id {
			t.Errorf("the keeper still knows %s", id)
		}
	}
	for _, trace := range s.Traces(id) {
		t.Errorf("%s left %s", id, trace)
	}
	for _, pid := range processesNaming(id) {
		t.Errorf("%s left the process %s", id, pid)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), id) {
		t.Errorf("%s left a mount (%v)", id, err)
	}
}

// processesNaming lists living processes that have the id in an argument.
func processesNaming(id string) []string {
	var found []string
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil
	}
	for _, path := range paths {
		if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), id) {
			found = append(found, path+": "+strings.ReplaceAll(string(data), "\x00", " "))
		}
	}
	return found
}
