package e2e

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/store"
)

// longestWait bounds what is waited for; it is far above what anything takes.
const longestWait = 2 * time.Minute

// poll waits for a condition, or for the context's end.
func poll(ctx context.Context, met func() bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !met() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// until waits for a condition, and ends the test if it never holds.
func until(t *testing.T, what string, met func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longestWait)
	defer cancel()
	if poll(ctx, met) != nil {
		t.Fatalf("it did not become true that %s", what)
	}
}

func (in *installation) paths() config.Paths {
	return config.Paths{State: in.State, Runtime: in.Runtime}
}

// launch starts a daemon with more in its environment. It is not waited for, and
// ends with kill or by itself: the test's cleanup stops whichever is the last one.
func (in *installation) launch(t *testing.T, more ...string) {
	t.Helper()
	in.launchAs(t, []string{filepath.Join(binaries(repository(t)), "cofferdam"), "serve"}, more...)
}

// launchAs launches with a command line of its own.
func (in *installation) launchAs(t *testing.T, argv []string, more ...string) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(in.Runtime, "daemon.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	in.Daemon = exec.Command(argv[0], argv[1:]...)
	in.Daemon.Env = append(in.environ(), more...)
	in.Daemon.Stdout, in.Daemon.Stderr = log, log
	if err := in.Daemon.Start(); err != nil {
		t.Fatal(err)
	}
	in.Client = client.New(in.paths().DaemonSocket())
}

// environ has programs find the installation.
func (in *installation) environ() []string {
	return append(os.Environ(), "COFFERDAM_STATE="+in.State, "COFFERDAM_RUNTIME="+in.Runtime)
}

// answers waits until the daemon does.
func (in *installation) answers(t *testing.T) {
	t.Helper()
	until(t, "the daemon answers", func() bool {
		_, err := in.Client.Version(t.Context())
		return err == nil
	})
}

// kill ends the daemon as a crash would, and waits for its end.
func (in *installation) kill(t *testing.T) {
	t.Helper()
	if err := in.Daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	in.Daemon.Wait() // an error: it was killed
}

// events are all that the journal has, of a daemon that runs.
func (in *installation) events(t *testing.T) []sandbox.Event {
	t.Helper()
	journal, err := store.OpenSandboxes(t.Context(), in.paths().Sandboxes())
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	events, err := journal.Events(t.Context(), 0, 2*sandbox.KeptEvents)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// wantOneEnd: each sandbox that there ever was begins once and ends once, but for
// those that live.
func (in *installation) wantOneEnd(t *testing.T, live ...string) {
	t.Helper()
	begun, ended := map[string]int{}, map[string]int{}
	for _, e := range in.events(t) {
		if e.From == "" {
			begun[e.Sandbox]++
		}
		if e.To == sandbox.Destroyed {
			ended[e.Sandbox]++
		}
	}
	for id, n := range begun {
		want := 1
		if slices.Contains(live, id) {
			want = 0
		}
		if n != 1 || ended[id] != want {
			t.Errorf("%s began %d times and ended %d times, want %d", id, n, ended[id], want)
		}
	}
	if len(begun) == 0 {
		t.Error("the journal knows of no sandbox")
	}
}

// census are the sandboxes that there are, by who says so.
func (in *installation) census(t *testing.T) map[string][]string {
	t.Helper()
	by := map[string][]string{}
	add := func(who, id string) { by[who] = append(by[who], id) }
	all, err := in.Client.Sandboxes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		add("the daemon", s.ID)
	}
	held, err := keeper.Dial(in.paths().KeeperSocket()).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range held {
		add("the keeper", k.ID)
	}
	journal, err := store.OpenSandboxes(t.Context(), in.paths().Sandboxes())
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	entries, err := journal.Entries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		add("the journal", e.Info.ID)
	}
	dirs, err := os.ReadDir(filepath.Join(in.State, "sandboxes"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, d := range dirs {
		add("the disk", d.Name())
	}
	return by
}

// wantAgreement: daemon, keeper, journal and disk know the same sandboxes, each once.
// They are returned.
func (in *installation) wantAgreement(t *testing.T) []api.Sandbox {
	t.Helper()
	by := in.census(t)
	for _, who := range []string{"the daemon", "the keeper", "the journal", "the disk"} {
		slices.Sort(by[who])
		if !slices.Equal(by[who], by["the daemon"]) {
			t.Errorf("%s has %v, and the daemon lists %v", who, by[who], by["the daemon"])
		}
	}
	if n := len(by["the daemon"]); n != len(slices.Compact(by["the daemon"])) {
		t.Errorf("the daemon lists one twice: %v", by["the daemon"])
	}
	all, err := in.Client.Sandboxes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// onHost counts what this installation has on the host, by kind. Unlike traces it
// counts nothing of others, who may come and go on the same machine meanwhile. Control
// groups are known by the ids of the journal, and those besides.
func (in *installation) onHost(t *testing.T, besides ...string) map[string]int {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]bool{}
	for _, id := range besides {
		ours[id] = true
	}
	for _, e := range in.events(t) {
		ours[e.Sandbox] = true
	}
	n := map[string]int{"processes": len(in.family())}
	for line := range bytes.Lines(mounts) {
		if bytes.Contains(line, []byte(in.State+"/")) || bytes.Contains(line, []byte(in.Runtime+"/")) {
			n["mounts"]++
		}
	}
	n["control groups"] = count(t, "/sys/fs/cgroup", func(d fs.DirEntry) bool {
		return d.IsDir() && slices.ContainsFunc(strings.FieldsFunc(d.Name(), notOfID), func(word string) bool { return ours[word] })
	})
	everything := func(fs.DirEntry) bool { return true }
	n["runtime files"] = count(t, in.Runtime, everything)
	for what, dir := range map[string]string{
		"files": filepath.Join(in.State, "sandboxes"), "frozen images": in.paths().Frozen(),
		"snapshots": in.paths().Snapshots(), "baselines": in.paths().Baselines(),
	} {
		n[what] = count(t, dir, everything)
	}
	return n
}

// settled is what it has there once they stay the same: a process that is about to end is
// none of them.
func (in *installation) settled(t *testing.T) map[string]int {
	t.Helper()
	last, same := in.onHost(t), 0
	until(t, "what the installation has stays the same", func() bool {
		now := in.onHost(t)
		if same++; !maps.Equal(now, last) {
			last, same = now, 0
		}
		return same >= 10
	})
	return last
}

// notOfID parts the words of a file's name.
func notOfID(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9')
}

// wantBack waits until the installation has what it had before and no more.
func (in *installation) wantBack(t *testing.T, before map[string]int, besides ...string) {
	t.Helper()
	if before["processes"] < 3 {
		t.Fatalf("the count of processes does not find daemon, keeper and gateway: %v", before)
	}
	ctx, cancel := context.WithTimeout(t.Context(), longestWait/4)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for now := in.onHost(t, besides...); !maps.Equal(now, before); now = in.onHost(t, besides...) {
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
		}
		t.Errorf("before there was %v, and now %v", before, now)
		for pid := range in.family() {
			args, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
			t.Logf("process %d: %s", pid, bytes.ReplaceAll(args, []byte{0}, []byte{' '}))
		}
		return
	}
}

// clear takes all sandboxes away but those that are to be kept, and all snapshots.
func (in *installation) clear(t *testing.T, keep ...string) {
	t.Helper()
	all, err := in.Client.Sandboxes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if slices.Contains(keep, s.ID) {
			continue
		}
		if err := in.Client.DestroySandbox(t.Context(), s.ID); err != nil {
			t.Errorf("destroy %s: %v", s.ID, err)
		}
	}
	snapshots, err := in.Client.Snapshots(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range snapshots {
		if err := in.Client.RemoveSnapshot(t.Context(), s.ID); err != nil {
			t.Errorf("remove the snapshot %s: %v", s.ID, err)
		}
	}
}

// execute runs a command to its end, for goroutines that can't end a test.
func execute(ctx context.Context, c *client.Client, id string, argv ...string) (result, error) {
	return executeAs(ctx, c, id, "", argv...)
}

// executeAs executes as another of the sandbox's users.
func executeAs(ctx context.Context, c *client.Client, id, user string, argv ...string) (result, error) {
	cmd, err := c.StartCommand(ctx, id, api.StartCommand{Argv: argv, User: user})
	if err != nil {
		return result{}, err
	}
	at, err := c.Attach(ctx, id, cmd.ID, 0)
	if err != nil {
		return result{}, err
	}
	defer at.Close()
	var out, complaint bytes.Buffer
	for event, err := range at.Events() {
		if err != nil {
			return result{}, err
		}
		out.Write(event.Stdout)
		complaint.Write(event.Stderr)
		if event.Exit != nil {
			return result{out.String(), complaint.String(), *event.Exit}, nil
		}
	}
	return result{}, errors.New("the command ended without an exit")
}

// plain asks for a sandbox that stays.
func plain() api.CreateSandbox {
	return api.CreateSandbox{Template: "debian", Policy: api.Policy{Document: []byte(nothingAllowed)}, Linger: true}
}
