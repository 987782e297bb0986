package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// commands are what scripts can say beyond testscript's own words; each is
// described at its function.
func commands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"as-user":       asUser,
		"exits":         exits,
		"golden":        golden,
		"hosts":         hosts,
		"models":        models,
		"screen":        screen,
		"plainregistry": plainRegistry,
		"cloud":         cloud,
		"tools":         tools,
		"answers":       goldenPart,
		"eventually":    eventually,
		"forge":         forge,
		"keep":          keep,
		"normalise":     normalise,
		"otheruser":     otherUser,
		"record":        record,
		"take":          take,
		"machinekernel": machineKernel,
		"daemonpid":     daemonPID,
		"killdaemon":    killDaemon,
		"upstreamdown":  upstreamDown,
	}
}

// exits CODE COMMAND... is exec with an exact exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("the exit code is %d, not %s", code, args[0])
	}
}

// eventually COMMAND... runs a command until it succeeds, for a minute at most.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: eventually COMMAND...")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for ts.Exec(args[0], args[1:]...) != nil {
		select {
		case <-ctx.Done():
			ts.Fatalf("it did not become true within a minute")
		case <-tick.C:
		}
	}
}

// keep FILE writes what the last command printed on stdout, then what it
// printed on stderr, to a file.
func keep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: keep FILE")
	}
	text := ts.ReadFile("stdout") + ts.ReadFile("stderr")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// daemonPID sets DAEMON_PID to the daemon of the script's installation.
func daemonPID(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: daemonpid")
	}
	ts.Check(ts.Exec("cofferdam", "version", "--json"))
	pid, err := valueAt(ts.ReadFile("stdout"), "daemon.pid")
	ts.Check(err)
	ts.Setenv("DAEMON_PID", pid)
}

// killDaemon kills the daemon that daemonpid found and waits for its end.
func killDaemon(ts *testscript.TestScript, neg bool, args []string) {
	pid, err := strconv.Atoi(ts.Getenv("DAEMON_PID"))
	if neg || len(args) != 0 || err != nil {
		ts.Fatalf("usage: killdaemon, after daemonpid")
	}
	ts.Check(syscall.Kill(pid, syscall.SIGKILL))
	eventually(ts, false, []string{"sh", "-c", "! kill -0 " + strconv.Itoa(pid) + " 2>/dev/null || grep -q '^State:.Z' /proc/" + strconv.Itoa(pid) + "/status"})
}

// upstreamDown configures the installation so that nothing upstream can be
// reached: the indexes stay those that were discovered, and everything goes to
// a proxy that nobody is at. The daemon must be started anew.
func upstreamDown(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: upstreamdown")
	}
	text := "upstreams:\n"
	for _, u := range discovered(ts) {
		text += fmt.Sprintf("  - { ecosystem: %s, index: %q, proxy: \"http://127.0.0.1:1\"", u.Config.Ecosystem, u.Config.Index)
		if u.Config.Log != "" {
			text += fmt.Sprintf(", log: %q", u.Config.Log)
		}
		text += " }\n"
	}
	ts.Check(os.WriteFile(filepath.Join(ts.Getenv("COFFERDAM_STATE"), "config.yaml"), []byte(text), 0o600))
}

// stateFile is a file below the script's installation.
func stateFile(ts *testscript.TestScript, elem ...string) string {
	return filepath.Join(append([]string{ts.Getenv("COFFERDAM_STATE")}, elem...)...)
}

// oneLine is text for a message.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
