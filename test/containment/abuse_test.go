package containment

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
)

// testArguments: argv and environment arrive as they are and pass no shell; a
// user that can't be, or too much of an argument, is an error that says so.
func testArguments(t *testing.T, s *stage) {
	t.Helper()
	b := s.open(t, nil)
	strange := []string{"$(touch /tmp/ran)", "`touch /tmp/ran`", "a\nb", "--", "-c", "; touch /tmp/ran", "\x1b]0;x\x07", "é", "*", strings.Repeat("x", 100_000)}
	env := map[string]string{"LD_PRELOAD": "/absent.so", "BASH_ENV": "/tmp/x", "PATH": "/absent"}
	text, exit := b.command(t, api.StartCommand{Argv: append([]string{"/probe/probe", "echo"}, strange...), Env: env})
	var want strings.Builder
	for _, a := range strange[:9] {
		fmt.Fprintf(&want, "%q\n", a)
	}
	want.WriteString("long 100000 100000\nLD_PRELOAD=\"/absent.so\"\nBASH_ENV=\"/tmp/x\"\nPATH=\"/absent\"\n")
	if text != want.String() || exit.Code != 0 {
		t.Errorf("got %+v\n%.2000s\nwant\n%s", exit, text, want.String())
	}
	if text, exit := b.command(t, api.StartCommand{Argv: []string{"cat", "/tmp/ran"}}); exit.Code == 0 {
		t.Errorf("a shell ran: %s", text)
	}
	for name, req := range map[string]api.StartCommand{
		"an unknown user":      {Argv: []string{"true"}, User: "a b"},
		"a user by path":       {Argv: []string{"true"}, User: "../root"},
		"two megabytes":        {Argv: []string{"true", strings.Repeat("x", 2<<20)}},
		"no argv":              {},
		"a variable that ends": {Argv: []string{"true"}, Env: map[string]string{"A=B": "c"}},
	} {
		_, err := b.client.StartCommand(t.Context(), b.id, req)
		if status := client.StatusOf(err); status < 400 || status >= 500 || len(err.Error()) > 1000 {
			t.Errorf("%s: %v (status %d); wanted a refusal", name, err, status)
		}
	}
	s.goldenPath(t, b)
}

// testFlood: endless output is counted and cut, and neither the daemon nor the
// keeper grows with it.
func testFlood(t *testing.T, s *stage) {
	t.Helper()
	const megabytes, kept = 96, 1 << 20
	b := s.open(t, nil)
	version, err := s.client.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pids := []int{version.PID, childOf(t, version.PID, "keeper")}
	var before []int64
	for _, pid := range pids {
		before = append(before, resident(t, pid))
	}
	text, exit := b.command(t, api.StartCommand{Argv: []string{"/probe/probe", "flood", strconv.Itoa(megabytes)}, CapBytes: kept})
	if exit.StdoutBytes != megabytes<<20 || !exit.Truncated || len(text) > kept {
		t.Errorf("%d bytes came; the exit is %+v", len(text), exit)
	}
	for i, pid := range pids {
		if grown := resident(t, pid) - before[i]; grown > 48<<20 {
			t.Errorf("process %d grew by %d bytes over %d MiB of output", pid, grown, megabytes)
		}
	}
	s.goldenPath(t, b)
}

// resident is a process's memory in bytes, by the host.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	fields := strings.Fields(readFile(t, fmt.Sprintf("/proc/%d/statm", pid)))
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// testStubborn: what ignores signals, forks away and leaves zombies ends with
// its time, and with its sandbox; the host has nothing of it then.
func testStubborn(t *testing.T, s *stage) {
	t.Helper()
	b := s.open(t, nil)
	count := func() int {
		text, _ := b.command(t, api.StartCommand{Argv: []string{"sh", "-c", "set -- /proc/[0-9]*; echo $#"}})
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		return n
	}
	before := count()
	if _, exit := b.command(t, api.StartCommand{Argv: []string{"/probe/probe", "stubborn"}, TimeoutMS: 500}); !exit.TimedOut {
		t.Errorf("it ended otherwise: %+v", exit)
	}
	b.probe(t, manner{}, "zombies", "60")
	await(t, "all that it started to be gone", func() bool { return count() <= before })
	s.goldenPath(t, b)
	b.start(t, api.StartCommand{Argv: []string{"/probe/probe", "stubborn"}, User: "root"})
	b.start(t, api.StartCommand{Argv: []string{"/probe/probe", "listen", "0.0.0.0:7777", "x"}, Stdin: true})
	var living []process.ID
	for _, pid := range s.processes(t, b.id) {
		id, err := process.Of(pid)
		if err != nil {
			t.Fatal(err)
		}
		living = append(living, id)
	}
	groups := limits(t, "*/"+s.group(t, b.id))
	if err := s.client.DestroySandbox(t.Context(), b.id); err != nil {
		t.Fatal(err)
	}
	for _, id := range living {
		await(t, "process "+id.String()+" to be gone", func() bool { return !id.Is() })
	}
	for _, path := range groups {
		if _, err := os.Stat(filepath.Dir(path)); err == nil {
			t.Errorf("the control group %s is left", filepath.Dir(path))
		}
	}
	if _, err := s.client.StartCommand(t.Context(), b.id, api.StartCommand{Argv: []string{"true"}}); client.StatusOf(err) != http.StatusNotFound {
		t.Errorf("a command in a sandbox that is gone: %v", err)
	}
}
