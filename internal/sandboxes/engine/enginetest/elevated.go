package enginetest

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// testElevated tests an engine that runs programs with rights: they have those, and no
// others; nothing else in the instance has any; and nothing of them is left.
func testElevated(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, nil)
	elevator, ok := b.inst.(engine.PrivilegedRunner)
	if !ok || s.Elevated == "" {
		t.Fatalf("the instance runs programs with rights: %t; the suite was given the agent's program: %q", ok, s.Elevated)
	}
	run := func(ctx context.Context, script string) (code int, out string, err error) {
		var stdout, stderr bytes.Buffer
		code, err = elevator.Elevate(ctx, engine.Elevated{
			Program: s.Elevated, Argv: []string{"cofferdam-elevated", "/bin/sh", "-c", script},
			Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, Stdout: &stdout, Stderr: &stderr,
		})
		return code, stdout.String() + stderr.String(), err
	}
	const gives = "f=$(mktemp /tmp/given.XXXX) && chown 7:8 $f && stat -c %u:%g $f"
	if code, out, err := run(t.Context(), gives); err != nil || code != 0 || strings.TrimSpace(out) != "7:8" {
		t.Errorf("who has rights gave a file to another: code %d, %q, %v", code, out, err)
	}
	for _, user := range []string{"root", ""} {
		if r := b.execAs(user, "/bin/sh", "-c", gives); r.exit.Code == 0 {
			t.Errorf("the user %q gave a file away without rights: %+v", user, r)
		}
	}
	code, out, err := run(t.Context(), "cat /proc/self/status")
	if err != nil || code != 0 {
		t.Fatalf("code %d, %q, %v", code, out, err)
	}
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		switch bits := capabilities(t, out, set); {
		case bits&^dpkgNeeds != 0:
			t.Errorf("%s of who has rights is %#x, with more than it needs", set, bits)
		case set == "CapEff" && bits == 0:
			t.Error("who has rights has none")
		}
	}
	for _, user := range []string{"root", ""} {
		r := b.execAs(user, "/bin/cat", "/proc/self/status")
		if user != "" && strings.Contains(r.exit.Error, "the agent may not act as the user") {
			continue // there is one user only
		}
		for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
			if bits := capabilities(t, r.out, set); bits != 0 {
				t.Errorf("%s of the user %q is %#x", set, user, bits)
			}
		}
	}
	if code, out, err := run(t.Context(), "exit 7"); err != nil || code != 7 {
		t.Errorf("a program that ends with 7 ended with %d, %q, %v", code, out, err)
	}
	testNoFileGivesRights(t, b, run)
	testNothingElevatedIsLeft(t, b, run)
}

// testNoFileGivesRights: a program that carries capabilities, which who has rights may set
// in gVisor, gives none to anybody else.
func testNoFileGivesRights(t *testing.T, b *box, run func(ctx context.Context, script string) (int, string, error)) {
	t.Helper()
	const marks = `cp /bin/cat /home/agent/capable && chmod 755 /home/agent/capable && python3 -c '
import os, struct
os.setxattr("/home/agent/capable", "security.capability", struct.pack("<5I", 0x02000001, 0xdb, 0, 0, 0))
print(len(os.getxattr("/home/agent/capable", "security.capability")))'`
	if code, out, err := run(t.Context(), marks); err != nil || code != 0 || strings.TrimSpace(out) != "20" {
		t.Errorf("capabilities of a file: code %d, %q, %v; want them set, or nothing is tested", code, out, err)
	}
	for _, user := range []string{"root", ""} {
		r := b.execAs(user, "/home/agent/capable", "/proc/self/status")
		if user != "" && strings.Contains(r.exit.Error, "the agent may not act as the user") {
			continue // there is one user only
		}
		for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
			if bits := capabilities(t, r.out, set); bits != 0 {
				t.Errorf("%s of the user %q is %#x by a file", set, user, bits)
			}
		}
	}
}

// dpkgNeeds are the rights to own, write and mark files, and to become another user:
// CHOWN, DAC_OVERRIDE, FOWNER, FSETID, SETGID and SETUID.
const dpkgNeeds = 1<<0 | 1<<1 | 1<<3 | 1<<4 | 1<<6 | 1<<7

// capabilities reads one set of a status file.
func capabilities(t *testing.T, status, set string) uint64 {
	t.Helper()
	for line := range strings.Lines(status) {
		if text, ok := strings.CutPrefix(line, set+":"); ok {
			bits, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			return bits
		}
	}
	t.Fatalf("the status has no %s:\n%s", set, status)
	return 0
}

// testNothingElevatedIsLeft: neither a process in the background, nor a setuid program, nor a program
// that was cut off.
func testNothingElevatedIsLeft(t *testing.T, b *box, run func(ctx context.Context, script string) (int, string, error)) {
	t.Helper()
	const marks = "cp /usr/bin/id /home/agent/marked && chown 7:8 /home/agent/marked && chmod 6755 /home/agent/marked"
	code, out, err := run(t.Context(), "(setsid sh -c 'trap \"\" HUP TERM; sleep 1000' >/dev/null 2>&1 </dev/null &) ; sleep 1001 >/dev/null 2>&1 & "+marks)
	if err != nil || code != 0 {
		t.Fatalf("code %d, %q, %v", code, out, err)
	}
	const sleeping = "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null; echo; done | grep '^sleep 100'; true"
	if got := b.runScript(sleeping); got != "" {
		t.Errorf("what had rights left processes: %q", got)
	}
	if got := b.runScript("stat -c '%u:%g %a' /home/agent/marked; /home/agent/marked -u; /home/agent/marked -g"); got != "7:8 6755\n1000\n1000" {
		t.Errorf("a marked program of another user's: %q, want it there, and nothing gained", got)
	}
	// What goes on starting processes of its own session is killed faster than it starts them.
	const forks = `(setsid sh -c 'trap "" HUP TERM; while :; do setsid sleep 1003 & sleep 0.01; done' >/dev/null 2>&1 </dev/null &) ; sleep 0.1`
	if code, out, err := run(t.Context(), forks); err != nil || code != 0 {
		t.Fatalf("code %d, %q, %v", code, out, err)
	}
	if got := b.runScript(sleeping); got != "" {
		t.Errorf("what had rights goes on starting processes: %q", got)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	enough := errors.New("the test has seen enough")
	ended := make(chan error, 1)
	go func() {
		_, _, err := run(ctx, "touch /tmp/begun; sleep 1002")
		ended <- err
	}()
	for started := time.Now(); b.runScript("ls /tmp/begun 2>/dev/null; true") == ""; {
		if time.Since(started) > longestWait {
			t.Fatal("the program does not begin")
		}
	}
	if got := b.runScript(sleeping); !strings.Contains(got, "sleep 1002") {
		t.Errorf("the probe does not see a program that runs: %q", got)
	}
	cancel(enough)
	if err := <-ended; !errors.Is(err, enough) {
		t.Errorf("a program that was cut off ended with %v", err)
	}
}
