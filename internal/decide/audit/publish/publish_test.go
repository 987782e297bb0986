package publish

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const note = "origin\n1\nroot\n\n— signature\n"

// noTrees: no sandbox was ever given anything to write to.
func noTrees() ([]hostpath.Tree, error) { return nil, nil }

// TestNoLinkOfASandboxIsFollowed: the daemon appends checkpoints to no file that a sandbox chose,
// and tells it as a failure.
func TestNoLinkOfASandboxIsFollowed(t *testing.T) {
	dir, host := t.TempDir(), t.TempDir()
	victim, file := filepath.Join(host, "victim"), filepath.Join(dir, "kept")
	if err := errors.Join(os.WriteFile(victim, nil, 0o600), os.Symlink(victim, file)); err != nil {
		t.Fatal(err)
	}
	p, err := hostpath.Resolve(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for name, c := range map[string]struct {
		written func() ([]hostpath.Tree, error)
		has     string
	}{
		"a sandbox's":     {func() ([]hostpath.Tree, error) { return []hostpath.Tree{{Path: p.Name, ID: p.ID}}, nil }, ""},
		"nobody knows":    {func() ([]hostpath.Tree, error) { return nil, errors.New("not known") }, ""},
		"a person's link": {noTrees, note + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			err := fileTarget{file, c.written}.publishNote(t.Context(), []byte(note))
			if text, read := os.ReadFile(victim); read != nil || string(text) != c.has || (err == nil) != (c.has != "") {
				t.Errorf("%v; the file has %q (%v)", err, text, read)
			}
			if err := os.Truncate(victim, 0); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestEveryKindOfTarget(t *testing.T) {
	dir := t.TempDir()
	got := make(chan string, 8)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost {
			t.Errorf("%s, %v", r.Method, err)
		}
		got <- string(text)
	}))
	defer server.Close()
	file, copied := filepath.Join(dir, "kept"), filepath.Join(dir, "copied")
	p := Start(Config{
		File: file, Written: noTrees, Command: []string{"/bin/sh", "-c", `cat > "$0"`, copied}, URL: server.URL + "/log?token=secret",
		Dir: dir, Log: slog.New(slog.DiscardHandler), Latest: func() (int64, []byte) { return 1, []byte(note) },
	})
	if text := <-got; text != note {
		t.Errorf("the URL got %q", text)
	}
	p.Close() // has the others, at the latest now
	for path, want := range map[string]string{file: note + "\n", copied: note} {
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Errorf("%s has %q (%v)", path, text, err)
		}
	}
	state, err := audit.ReadPublished(dir)
	if err != nil || len(state.Targets) != 3 {
		t.Fatalf("the state is %+v (%v)", state, err)
	}
	for _, to := range state.Targets {
		if to.Size != 1 || to.Failure != "" || strings.Contains(to.Name, "secret") {
			t.Errorf("the state says %+v", to)
		}
	}
	// The next daemon does not publish again what was published.
	Start(Config{File: file, Written: noTrees, Dir: dir, Log: slog.New(slog.DiscardHandler), Latest: func() (int64, []byte) { return 1, []byte(note) }}).Close()
	if text, _ := os.ReadFile(file); string(text) != note+"\n" {
		t.Errorf("after a restart the file has %q", text)
	}
}

func TestFailuresAreSaid(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, password, _ := r.BasicAuth()
		_, _ = io.WriteString(conn, "HTTP/1.1 404 "+password+"\r\nContent-Length: 0\r\n\r\n") // what it was shown
		_ = conn.Close()
	}))
	defer server.Close()
	for name, c := range map[string]struct {
		config Config
		says   string
	}{
		"no directory": {Config{File: "/nonexistent/kept", Written: noTrees}, "no such file"},
		"a command":    {Config{Written: noTrees, Command: []string{"/bin/sh", "-c", "echo the vault is shut >&2; exit 3"}}, "the vault is shut"},
		"an answer":    {Config{URL: strings.Replace(server.URL, "://", "://user:password@", 1)}, "404"},
		"nobody there": {Config{URL: "http://user:password@127.0.0.1:1/"}, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.Dir, c.config.Log = t.TempDir(), slog.New(slog.DiscardHandler)
			c.config.Latest = func() (int64, []byte) { return 1, []byte(note) }
			Start(c.config).Close()
			state, err := audit.ReadPublished(c.config.Dir)
			if err != nil || len(state.Targets) != 1 {
				t.Fatalf("the state is %+v (%v)", state, err)
			}
			to := state.Targets[0]
			if !strings.Contains(to.Failure, c.says) || strings.Contains(to.Failure, "password") || to.Since.IsZero() || to.Size != 0 {
				t.Errorf("the state says %+v, want a failure with %q", to, c.says)
			}
		})
	}
}

// flaky is a target that fails until it is mended.
type flaky struct {
	broken atomic.Bool
	asked  atomic.Int32
	got    atomic.Int32
}

func (*flaky) targetName() string { return "flaky" }

func (f *flaky) publishNote(context.Context, []byte) error {
	f.asked.Add(1)
	if f.broken.Load() {
		return errors.New("it is broken")
	}
	f.got.Add(1)
	return nil
}

func TestRetriesComeLaterAndLater(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var size atomic.Int64
		size.Store(1)
		f := &flaky{}
		f.broken.Store(true)
		p := startPublisher(Config{Dir: dir, Every: time.Minute, Log: slog.New(slog.DiscardHandler), Latest: func() (int64, []byte) { return size.Load(), []byte(note) }}, f)
		time.Sleep(time.Hour) // of the bubble's clock
		synctest.Wait()
		if n := f.asked.Load(); n < 5 || n > 20 {
			t.Errorf("in an hour of failures it was asked %d times", n)
		}
		f.broken.Store(false)
		time.Sleep(16 * time.Minute)
		synctest.Wait()
		if n := f.got.Load(); n != 1 {
			t.Errorf("once mended it got %d checkpoints, want 1", n)
		}
		size.Store(2)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := f.got.Load(); n != 2 {
			t.Errorf("it got %d checkpoints, want 2", n)
		}
		p.Close()
	})
}
