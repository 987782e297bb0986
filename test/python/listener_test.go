package python

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/client"
)

// TestTwoClientsOfOneListener: both clients of this user's own daemon, against the same
// listener, send as much, and say the same in kind. Python's are asked to find no program, so
// that neither starts a daemon.
func TestTwoClientsOfOneListener(t *testing.T) {
	isLong(t)
	if os.Geteuid() != 0 {
		t.Fatal("only root can listen as somebody else")
	}
	bin := environment(t, "httpx")
	const asked = `
import asyncio, cofferdam
try:
    print("fine", %s)
except cofferdam.CofferdamError as e:
    print(type(e).__name__, str(e))
`
	ways := map[string]string{
		"sync": "cofferdam.Client().version().version", "async": "asyncio.run(cofferdam.AsyncClient().version()).version",
	}
	for name, test := range map[string]struct {
		uid    int
		how    string
		heard  bool
		goes   error // of the Go client
		python string
	}{
		"this user's":    {0, "answers", true, nil, "fine 1"},
		"another user's": {65534, "answers", false, client.ErrStranger, "DaemonNotFound another user listens there: user 65534, at SOCKET; set COFFERDAM_RUNTIME to a directory of your own"},
		"half an answer": {0, "half", true, client.ErrLost, "ConnectionLost "},
		"nobody":         {0, "refuses", false, client.ErrNoDaemon, "DaemonNotFound "},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "cfl") //nolint:usetesting // a socket's path must be short
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			socket := filepath.Join(dir, "daemon.sock")
			listener := exec.CommandContext(t.Context(), "python3", filepath.Join("testdata", "listener.py"), socket, fmt.Sprint(test.uid), test.how)
			out, err := listener.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			in, err := listener.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			if err := listener.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _, _ = listener.Process.Kill(), listener.Wait() }()
			lines := bufio.NewScanner(out)
			next := func() string { lines.Scan(); return lines.Text() }
			if got := next(); got != "ready" {
				t.Fatalf("the listener said %q", got)
			}
			wantHeard := func(who string) {
				if test.how == "refuses" {
					return
				}
				if got, want := next(), map[bool]string{true: "heard 1", false: "heard 0"}[test.heard]; got != want {
					t.Errorf("from %s the listener %s, want %s", who, got, want)
				}
			}
			if _, err := client.Own(socket).Version(t.Context()); !errors.Is(err, test.goes) {
				t.Errorf("the Go client said %v, want %v", err, test.goes)
			} else if test.uid != 0 && !strings.HasSuffix(test.python, strings.TrimPrefix(strings.ReplaceAll(err.Error(), socket, "SOCKET"), client.ErrStranger.Error())) {
				t.Errorf("the Go client said %v, Python is to say %q", err, test.python)
			}
			wantHeard("the Go client")
			for way, version := range ways {
				env := sources(t, "COFFERDAM_RUNTIME="+dir, "COFFERDAM_BINARY=/nowhere", "COFFERDAM_HOST=")
				got := run(t, env, bin("python"), "-c", fmt.Sprintf(asked, version))
				if want := strings.ReplaceAll(test.python, "SOCKET", socket); !strings.HasPrefix(got, want) {
					t.Errorf("the %s client of Python said %q, want %q", way, got, want)
				}
				wantHeard(way)
			}
		})
	}
}
