package vm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/test/vm/report"
)

// Bounds of the machine. What it may compute, on this host's processors, finds what never
// ends; the time on the clock is for a host on which it gets nowhere.
const (
	mostCPU  = time.Hour
	mostTime = 3 * time.Hour
)

// TestGuest boots the machine and judges what it tells.
func TestGuest(t *testing.T) {
	if os.Getenv("COFFERDAM_LONG") == "" {
		t.Skip("set COFFERDAM_LONG=1 for it, or `make test-vm`: it makes a Debian and boots it in an emulator")
	}
	if os.Geteuid() != 0 {
		t.Fatal("making the guest's system takes root")
	}
	w := newWorkshop(t)
	asked := w.asked()
	results, err := report.Read(strings.NewReader(w.boot(w.machine())))
	if err != nil {
		t.Errorf("the report is not whole: %v; the machine was at %s", err, w.step(w.results()))
	}
	for _, name := range report.Unknown(results) {
		t.Errorf("nobody asked for %s", name)
	}
	for _, c := range asked {
		t.Run(c.Name, func(t *testing.T) {
			if err := report.Judge(c, results); err != nil {
				t.Fatal(err)
			}
			r := results[c.Name]
			t.Logf("%s (%.0f s of the guest's clock)", r.Detail, r.Seconds)
		})
	}
}

// console is where the machine's serial line went, of the last boot.
func (w workshop) console() string { return filepath.Join(w.dir, "console.log") }

// results is where what came out of the machine's port went, of the last boot.
func (w workshop) results() string { return filepath.Join(w.dir, "results.jsonl") }

// boot runs the machine to its end and returns what came out of its port.
func (w workshop) boot(m machine) string {
	w.t.Helper()
	results := w.results()
	for _, path := range []string{results, w.console()} {
		if err := os.RemoveAll(path); err != nil {
			w.t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(w.t.Context(), "qemu-system-x86_64", w.arguments(m, results)...)
	cmd.Dir, cmd.Env = w.dir, append(os.Environ(), "TMPDIR="+w.scratch()) // its overlays of the disks go there
	var errs strings.Builder
	cmd.Stderr = &errs
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	runtime.LockOSThread() // its parent, for that signal, is this thread
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	told, late := 0, time.After(mostTime)
	for {
		select {
		case err := <-ended:
			if err != nil {
				w.t.Errorf("qemu: %v\n%s", err, errs.String())
			}
			w.t.Logf("the machine computed for %s", (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Round(time.Second))
			return w.read(results)
		case <-late:
			w.t.Errorf("%s have gone, and the machine has not come to its end; it was at %s", mostTime, w.step(results))
			_ = cmd.Process.Kill() // it may have ended by itself
		case <-time.After(time.Second):
		}
		told = w.follow(results, told)
		if used := computed(cmd.Process.Pid); used > mostCPU {
			w.t.Errorf("the machine has computed for %s, and has not come to its end; it was at %s", used, w.step(results))
			_ = cmd.Process.Kill() // as above
		}
	}
}

// step is where the machine is: the check that it has not answered yet, or its start, and
// what it said last.
func (w workshop) step(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		data = nil // the port is made with the machine
	}
	console, err := os.ReadFile(w.console())
	if err != nil {
		console = []byte(err.Error())
	}
	return fmt.Sprintf("%s; its console (%s) ends with:\n%s", report.Step(string(data), w.asked()), w.console(), console[max(0, len(console)-mostTold):])
}

// mostTold bounds what is told of the console.
const mostTold = 2 << 10

// names are those of the checks that are asked for.
func names() []string { return strings.Fields(os.Getenv("COFFERDAM_VM_CHECKS")) }

func (w workshop) asked() []report.Check {
	w.t.Helper()
	asked, err := report.Asked(names())
	if err != nil {
		w.t.Fatal(err)
	}
	return asked
}

// follow logs the lines that are new.
func (w workshop) follow(path string, told int) int {
	data, err := os.ReadFile(path)
	if err != nil {
		return told // it is made with the port
	}
	lines := strings.SplitAfter(string(data), "\n")
	for ; told < len(lines)-1; told++ {
		w.t.Log(strings.TrimSpace(lines[told]))
	}
	return told
}

func (w workshop) read(path string) string {
	w.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		w.t.Errorf("the machine has no report: %v", err)
	}
	return string(data)
}

// computed is the processors' time that a process has used.
func computed(pid int) time.Duration {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0 // it has ended
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}
