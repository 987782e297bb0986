package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
)

// runs is what a daemon says of a container that runs.
func runs(pid int) string { return fmt.Sprintf(`{"State":{"Running":true,"Pid":%d}}`, pid) }

// TestTheFirstProcess: nil is said of a container that has ended, and of nothing else.
func TestTheFirstProcess(t *testing.T) {
	sleeper := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = sleeper.Process.Kill(), sleeper.Wait() })
	live := sleeper.Process.Pid
	const ended = `{"State":{"Running":false,"Pid":0}}`
	always := func(status int, body string) func(int) (int, string) {
		return func(int) (int, string) { return status, body }
	}
	for name, tt := range map[string]struct {
		inspect func(n int) (int, string)
		held    bool
		says    string
	}{
		"it runs":                    {always(200, runs(live)), true, ""},
		"it has ended":               {always(200, ended), false, ""},
		"it has been removed":        {always(404, `{"message":"No such container: box"}`), false, ""},
		"its process is over":        {always(200, runs(1<<30)), false, ""},
		"it ended while it was held": {func(n int) (int, string) { return 200, []string{runs(live), ended}[min(n, 1)] }, false, ""},
		"the daemon fails":           {always(500, `{"message":"out of order"}`), false, "out of order"},
		"the daemon fails then":      {func(n int) (int, string) { return []int{200, 500}[min(n, 1)], runs(live) }, false, "find the container's process"},
		"no state":                   {always(200, `{}`), false, "says nothing of the container's state"},
		"init":                       {always(200, runs(1)), false, "process is 1"},
		"a group":                    {always(200, runs(-live)), false, "process is -"},
		"half an answer":             {always(200, `{"State":{"Running":tr`), false, "find the container's process"},
		"a thread, which none holds": {always(200, runs(thread(t))), false, "hold the container's process"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := dialHost(t.Context(), pretender{inspect: tt.inspect}.listen(t))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			first, err := firstOf(t.Context(), s, "box")
			if first != nil {
				defer first.Close()
			}
			if (first != nil) != tt.held || (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%+v, %v; want it held: %t, and %q", first, err, tt.held, tt.says)
			}
			if tt.held && first.ID.Pid != live {
				t.Errorf("process %v is held, not %d", first.ID, live)
			}
		})
	}
}

// thread is the number of a thread that is not its process's first: it can be looked at as a
// process can, and not held as one.
func thread(t *testing.T) int {
	t.Helper()
	number, end := make(chan int), make(chan struct{})
	t.Cleanup(func() { close(end) })
	for {
		go func() {
			runtime.LockOSThread() // for as long as the test
			number <- unix.Gettid()
			<-end
		}()
		if n := <-number; n != os.Getpid() {
			if _, err := process.Of(n); err != nil {
				t.Fatalf("INCONCLUSIVE: a thread can't be looked at: %v", err)
			}
			return n
		}
	}
}

// TestWhetherMemoryWasFull: the service is asked a few times, and nobody waits for whom has
// given up; what was watched here counts without it.
func TestWhetherMemoryWasFull(t *testing.T) {
	for name, tt := range map[string]struct {
		said    func(n int) (bool, error)
		watched bool
		leaves  int // when the caller gives up, from 1 on; 0: never
		want    bool
		asked   int
	}{
		"it says so at once":          {func(int) (bool, error) { return true, nil }, false, 0, true, 1},
		"it says so later":            {func(n int) (bool, error) { return n == 3, nil }, false, 0, true, 3},
		"it never says so":            {func(int) (bool, error) { return false, nil }, false, 0, false, oomTries},
		"the caller gives up":         {func(int) (bool, error) { return false, nil }, false, 2, false, 2},
		"it has gone":                 {func(int) (bool, error) { return false, io.EOF }, false, 0, false, 1},
		"it has gone, and it was":     {func(int) (bool, error) { return false, io.EOF }, true, 0, true, 1},
		"it says nothing, and it was": {func(int) (bool, error) { return false, nil }, true, 0, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				asked, left := 0, time.Now()
				got := ranOut(ctx, func(context.Context) (bool, error) {
					if asked++; asked == tt.leaves {
						left = time.Now()
						cancel()
					}
					return tt.said(asked)
				}, func() bool { return tt.watched })
				if got != tt.want || asked != tt.asked {
					t.Errorf("%t after %d questions; want %t after %d", got, asked, tt.want, tt.asked)
				}
				if tt.leaves > 0 && !time.Now().Equal(left) { // the bubble's clock: it moves for who waits, and by nothing else
					t.Error("it waited for whom had given up")
				}
			})
		})
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, unix.ENOSPC }

// TestAFullLogEndsNothing: what can't be written to it is dropped, as what is too much.
func TestAFullLogEndsNothing(t *testing.T) {
	b := &boundedLog{left: 3, to: full{}}
	for _, text := range []string{"ab", "cd", "ef"} {
		if n, err := b.Write([]byte(text)); n != 2 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
}

// TestAnImportsEnd: that it failed is told by the service's own words.
func TestAnImportsEnd(t *testing.T) {
	for said, want := range map[string]string{
		`{"status":"sha256:0"}`: "",
		``:                      "",
		`{"status":"x"}` + "\r\n" + `{"errorDetail":{"message":"no space left"},"error":"no space left"}`: "no space left",
		`{"status":`: "unexpected EOF",
	} {
		if err := importError(strings.NewReader(said)); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%q: %v", said, err)
		}
	}
}

// TestWhoHasGone: a daemon that ends in the middle of its answer has gone; one that answers
// with an error has not.
func TestWhoHasGone(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		body   string
		gone   bool
	}{"cut off": {200, `{"State":{"Runn`, true}, "an error": {500, `{"message":"no"}`, false}} {
		s, err := dialHost(t.Context(), pretender{inspect: func(int) (int, string) { return tt.status, tt.body }}.listen(t))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.firstProcess(t.Context(), "box"); err == nil || isLost(err) != tt.gone {
			t.Errorf("%s: %v; taken for one that has gone: %t", name, err, isLost(err))
		}
	}
	// Its number is another's: nothing is done in whose mounts these are.
	self, err := process.Self()
	if err != nil {
		t.Fatal(err)
	}
	self.Start++
	if ns, err := (service{socket: "/absent"}).mountsOf(self); err == nil || ns != nil || !isLost(err) {
		t.Errorf("another process's mounts were opened: %v", err)
	}
}

// TestWhatMayBeThere: where nobody can tell, the daemon is asked.
func TestWhatMayBeThere(t *testing.T) {
	e := New(Config{StateDir: t.TempDir()}, nil)
	if e.marked() {
		t.Error("nothing was made, and it is asked")
	}
	if err := e.markTraces(); err != nil || !e.marked() {
		t.Errorf("what was made is not asked for (%v)", err)
	}
	e.cfg.StateDir = strings.Repeat("x", 5000) // no system looks there
	if _, err := os.Stat(e.marker()); errors.Is(err, os.ErrNotExist) || err == nil || !e.marked() {
		t.Errorf("where nobody can tell (%v), it is not asked", err)
	}
}

// TestKillOfWhatHasEnded: a service that can't kill a container whose first process is a zombie
// has done it by then; of one that lives, or that nobody knows, it is an error.
func TestKillOfWhatHasEnded(t *testing.T) {
	host := pretender{component: "Engine", other: func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `{"message":"it is zombie and can not be killed"}`)
	}}.listen(t)
	e := New(Config{Host: host, StateDir: t.TempDir(), Place: t.TempDir()}, nil)
	i := e.instance("box", handleState{Container: "box"})
	if err := os.MkdirAll(e.home.Path("box"), 0o700); err != nil {
		t.Fatal(err)
	}
	kill := func() error { return i.Signal(t.Context(), int(unix.SIGKILL)) }
	if err := kill(); err == nil {
		t.Error("killed without a process on record")
	}
	cmd := exec.CommandContext(t.Context(), "cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first, err := process.Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeJSON(i.ownFile(bornName), born{Process: first}); err != nil {
		t.Fatal(err)
	}
	if err := kill(); err == nil {
		t.Error("what lives is killed by a service that can't")
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	for { // a zombie, until somebody waits for it
		now, err := process.Read(first.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if now.Dead {
			break
		}
	}
	if err := kill(); err != nil {
		t.Errorf("a zombie: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := kill(); err != nil {
		t.Errorf("one that is over: %v", err)
	}
}
