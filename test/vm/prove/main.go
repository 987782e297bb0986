//go:build linux

// Command prove answers the checks of test/vm in the guest, one after the other, and tells
// the host of each over a port of the machine. It is the one thing that the guest's system
// is booted for: a unit of systemd runs it as root.
//
// A check is one question, here a function that returns what it saw; the
// payload is the disk with the programs that are tried, mounted at /opt/proof.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cofferdam-dev/cofferdam/test/vm/report"
)

// payload is where the programs that are tried lie.
const payload = "/opt/proof"

// longest bounds a check, in the guest's time. The host bounds the whole.
const longest = 90 * time.Minute

// check returns what was seen, or what is wrong.
type check func(ctx context.Context) (string, error)

func checks() map[string]check {
	return map[string]check{
		report.Control: control, report.Guest: guest, report.Doctor: examined,
		report.UnitStarts: unitStarts, report.UnitSandboxed: unitSandboxed, report.Restart: restart, report.Killed: killed, report.Stop: stop,
		report.RunGVisor: runGVisor, report.RunRunc: runRunc, report.Limits: limits, report.Processes: processes, report.Memory: memory,
		report.Pause: pause, report.Snapshot: snapshot, report.Demo: demo, report.User: user,
		report.CgroupSuite: suite("internal/sandboxes/cgroup"), report.RuncSuite: suite("internal/sandboxes/engine/runc"), report.GVisorSuite: suite("internal/sandboxes/engine/gvisor"),
	}
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "prove:", err)
		os.Exit(1)
	}
}

// run answers the checks into the port that is named: those with the names behind it; of
// none, all.
func run(args []string) error {
	if len(args) == 0 {
		return errors.New("usage: prove PORT [CHECK...]")
	}
	port, err := os.OpenFile(args[0], os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer port.Close()
	w := report.NewWriter(port)
	asked, err := report.Asked(args[1:])
	if err != nil {
		return err
	}
	known := checks()
	for _, c := range asked {
		if err := w.Tell(answer(c.Name, known[c.Name])); err != nil {
			return err
		}
	}
	return w.End()
}

// mostLogged bounds what a failure tells of the daemon's log.
const mostLogged = 4 << 10

// logged is the end of the daemon's log: what failed may have said why there.
func logged() string {
	data, err := os.ReadFile("/run/cofferdam/daemon.log")
	if err != nil || len(data) == 0 {
		return "" // no daemon has begun
	}
	return "\nThe daemon's log ends with:\n" + string(data[max(0, len(data)-mostLogged):])
}

// answer runs one check. A check that panics has failed, and the others are answered all the same.
func answer(name string, c check) (r report.Result) {
	fmt.Printf("\n== %s\n", name)
	begin := time.Now()
	defer func() {
		if p := recover(); p != nil {
			r = report.Result{Check: name, Detail: fmt.Sprintf("panic: %v", p)}
		}
		r.Seconds = time.Since(begin).Seconds()
		fmt.Printf("-- %s: passed: %t, %.1f s: %s\n", name, r.Passed, r.Seconds, r.Detail)
	}()
	if c == nil {
		return report.Result{Check: name, Detail: "nobody knows how to answer it"}
	}
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	seen, err := c(ctx)
	if err != nil {
		return report.Result{Check: name, Detail: err.Error() + logged()}
	}
	return report.Result{Check: name, Passed: true, Detail: seen}
}
