package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/api"
)

// The contents of files, so that a reader of one can tell whose it is.
const (
	keyOurs   = "ours"
	keyOther  = "another of the project"
	keySecret = "the host's own"
	keyHidden = "hidden from agents"
)

// ground is a project that agents write to, and a directory of the host that is not theirs.
type ground struct {
	project, secret string
}

func newGround(t *testing.T) ground {
	t.Helper()
	g := ground{t.TempDir(), t.TempDir()}
	for name, text := range map[string]string{
		"project/data/key": keyOurs, "project/a/b/key": keyOurs, "project/file": keyOurs, "project/conf/key": keyHidden, "project/.aiignore": "conf/key\n",
		"other/data/key": keyOther, "other/a/b/key": keyOther, "other/file": keyOther, "other/.aiignore": "",
		"secret/data/key": keySecret, "secret/a/b/key": keySecret, "secret/file": keySecret, "secret/.aiignore": "",
	} {
		root, rest, _ := strings.Cut(name, "/")
		path := filepath.Join(map[string]string{"project": g.project, "secret": g.secret, "other": filepath.Join(g.project, "other")}[root], rest)
		// Agents of any user write there.
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	err := filepath.WalkDir(g.project, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o777)
		}
		return err
	})
	if err == nil {
		err = os.Chmod(g.secret, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// hostPath is a path of the host that a request for a sandbox leads to, below the project,
// which is mounted at /w.
type hostPath struct {
	name    string
	mounted string // what is mounted at /inner beside the project; "": nothing
	swapped string // what has another put in its place
	shows   string // a file inside
	want    string
}

func hostPaths() []hostPath {
	return []hostPath{
		{"a directory in another mount", "data", "data", "/inner/key", keyOurs},
		{"a directory above one", "a/b", "a", "/inner/key", keyOurs},
		{"a file in another mount", "file", "file", "/inner", keyOurs},
		{"an ignore file", "", ".aiignore", "/w/conf/key", ""},
	}
}

func (h hostPath) request(g ground, engine string, readWrite bool) api.CreateSandbox {
	req := api.CreateSandbox{
		Template: "debian", Isolation: engine, Policy: api.Policy{Document: []byte(nothingAllowed)}, Linger: true,
		Mounts: []api.Mount{{Source: g.project, Destination: "/w", ReadWrite: readWrite}},
	}
	if h.mounted != "" {
		req.Mounts = append(req.Mounts, api.Mount{Source: filepath.Join(g.project, h.mounted), Destination: "/inner", ReadWrite: readWrite})
	}
	return req
}

// swap puts something else in a path's place, as anybody can who may write beside it; undo
// puts all back.
type swap struct {
	name  string
	do    func(t *testing.T, g ground, at string) (undo func())
	other bool // what lies there then is the project's, so that a new request may lead to it
}

// swaps are the ways. Aside is where the thing lies meanwhile.
func swaps() []swap {
	aside := func(t *testing.T, path string) func() {
		t.Helper()
		must(t, os.Rename(path, path+".aside"))
		return func() { must(t, errors.Join(os.RemoveAll(path), os.Rename(path+".aside", path))) }
	}
	return []swap{
		{name: "link", do: func(t *testing.T, g ground, at string) func() {
			t.Helper()
			path := filepath.Join(g.project, at)
			undo := aside(t, path)
			must(t, os.Symlink(filepath.Join(g.secret, at), path))
			return undo
		}},
		{name: "rename", other: true, do: func(t *testing.T, g ground, at string) func() {
			t.Helper()
			path, other := filepath.Join(g.project, at), filepath.Join(g.project, "other", at)
			back := aside(t, path)
			must(t, os.Rename(other, path))
			return func() { must(t, os.Rename(path, other)); back() }
		}},
		{name: "exchange", do: func(t *testing.T, g ground, at string) func() {
			t.Helper()
			path, link := filepath.Join(g.project, at), filepath.Join(g.project, "other", "link")
			must(t, os.Symlink(filepath.Join(g.secret, at), link))
			exchange := func() {
				must(t, unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE))
			}
			exchange()
			return func() { exchange(); must(t, os.Remove(link)) }
		}},
		{name: "fifo", do: func(t *testing.T, g ground, at string) func() {
			t.Helper()
			path := filepath.Join(g.project, at)
			undo := aside(t, path)
			must(t, unix.Mkfifo(path, 0o666))
			return undo
		}},
		{name: "bind", do: func(t *testing.T, g ground, at string) func() {
			t.Helper()
			path := filepath.Join(g.project, at)
			must(t, unix.Mount(filepath.Join(g.secret, at), path, "", unix.MS_BIND, ""))
			return func() { must(t, unix.Unmount(path, unix.MNT_DETACH)) }
		}},
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// moment is when a path is used again.
type moment struct {
	name string
	// before is done with a sandbox whose path is as it was asked for; then the path is
	// swapped; after gives the sandbox that shows it.
	before func(in *installation, sb api.Sandbox) error
	after  func(ctx context.Context, in *installation, sb api.Sandbox, req api.CreateSandbox) (api.Sandbox, error)
	fresh  bool // the path is a new request's: another's thing at its place is what is asked for
	copies bool // of sandboxes whose mounts are read-only, others are not copied
}

func nothing(*installation, api.Sandbox) error { return nil }

func moments(engine string) []moment {
	all := []moment{
		{"create", nothing, func(ctx context.Context, in *installation, _ api.Sandbox, req api.CreateSandbox) (api.Sandbox, error) {
			return in.Client.CreateSandbox(ctx, req)
		}, true, false},
		{"the next daemon", func(in *installation, _ api.Sandbox) error { in.kill(in.t); return nil }, func(ctx context.Context, in *installation, sb api.Sandbox, _ api.CreateSandbox) (api.Sandbox, error) {
			in.launch(in.t)
			in.answers(in.t)
			return in.Client.Sandbox(ctx, sb.ID)
		}, false, false},
	}
	if engine != "gvisor" {
		return all
	}
	return append(all,
		moment{"thaw", func(in *installation, sb api.Sandbox) error {
			_, err := in.Client.Pause(in.t.Context(), sb.ID)
			return err
		}, func(ctx context.Context, in *installation, sb api.Sandbox, _ api.CreateSandbox) (api.Sandbox, error) {
			return in.Client.Resume(ctx, sb.ID)
		}, false, false},
		moment{"thaw by the next daemon", func(in *installation, sb api.Sandbox) error {
			_, err := in.Client.Pause(in.t.Context(), sb.ID)
			in.kill(in.t)
			return err
		}, func(ctx context.Context, in *installation, sb api.Sandbox, _ api.CreateSandbox) (api.Sandbox, error) {
			in.launch(in.t)
			in.answers(in.t)
			return in.Client.Resume(ctx, sb.ID)
		}, false, false},
		moment{"restore", func(in *installation, sb api.Sandbox) error {
			_, err := in.Client.MakeSnapshot(in.t.Context(), sb.ID, api.MakeSnapshot{Name: "kept"})
			return err
		}, func(ctx context.Context, in *installation, _ api.Sandbox, req api.CreateSandbox) (api.Sandbox, error) {
			return in.Client.CreateSandbox(ctx, api.CreateSandbox{Snapshot: "kept", Policy: req.Policy, Linger: true})
		}, false, true},
		moment{"fork", nothing, func(ctx context.Context, in *installation, sb api.Sandbox, _ api.CreateSandbox) (api.Sandbox, error) {
			forks, err := in.Client.Fork(ctx, sb.ID, api.ForkSandbox{})
			switch {
			case err != nil:
				return api.Sandbox{}, err
			case forks[0].Sandbox == nil:
				return api.Sandbox{}, errors.New(forks[0].Error.Detail)
			}
			return *forks[0].Sandbox, nil
		}, false, true},
	)
}

// TestHostPathsAtEveryMoment: each path of the host that a request leads to, at each moment at
// which it is used again, with each thing put in its place by somebody who may write beside it:
// the sandbox shows what was asked for, or there is none, with a sentence. Nobody reads or
// writes what is the host's. The control of each cell is the same moment with nothing swapped.
// The long tests have all of it, and the others what differs most.
func TestHostPathsAtEveryMoment(t *testing.T) {
	t.Parallel()
	engines, paths := []string{"gvisor"}, hostPaths()[:1]
	long := os.Getenv("COFFERDAM_LONG") != ""
	if long {
		engines, paths = []string{"gvisor", "runc"}, hostPaths()
	}
	in := start(t, "default_template: debian\n")
	t.Cleanup(func() { in.revive(t) }) // before it is stopped
	for _, engine := range engines {
		for _, h := range paths {
			for _, m := range moments(engine) {
				for _, s := range append([]swap{{name: "nothing"}}, swaps()...) {
					if m.fresh && s.name == "bind" {
						continue // root of the host has mounted that, and a new request asks for it
					}
					if !long && (s.name == "exchange" || s.name == "bind" || m.name == "thaw by the next daemon") {
						continue
					}
					t.Run(strings.Join([]string{engine, h.name, m.name, s.name}, "/"), func(t *testing.T) {
						in.tryHostPath(t, engine, h, m, s)
					})
				}
			}
		}
	}
}

func (in *installation) tryHostPath(t *testing.T, engine string, h hostPath, m moment, s swap) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longestWait) // a fifo that is opened would wait for ever
	defer cancel()
	in.t = t
	g := newGround(t)
	if m.copies { // somebody else swaps: a sandbox that may write there, and lives
		_, err := in.Client.CreateSandbox(ctx, hostPath{}.request(g, engine, true))
		must(t, err)
	}
	req := h.request(g, engine, !m.copies)
	first, err := in.Client.CreateSandbox(ctx, req)
	must(t, err)
	in.wantShown(t, first, h, h.want)
	must(t, m.before(in, first))
	undo := func() {}
	if s.do != nil {
		undo = s.do(t, g, h.swapped)
	}
	sb, err := m.after(ctx, in, first, req)
	switch {
	case s.do == nil && err != nil:
		t.Fatalf("the control: nothing is swapped, and %v", err)
	case err != nil:
		t.Logf("refused: %v", err)
		if !strings.Contains(err.Error(), h.swapped) {
			t.Errorf("the refusal does not name it: %v", err)
		}
	case m.fresh && s.other && h.mounted == "": // another ignore file hides other things
	case m.fresh && s.other:
		in.wantShown(t, sb, h, keyOther)
	default:
		in.wantShown(t, sb, h, h.want)
	}
	undo()
	in.wantUntouched(t, g)
	in.clear(t)
}

// wantShown: inside there is what is wanted, and what is written there is not the host's.
func (in *installation) wantShown(t *testing.T, sb api.Sandbox, h hostPath, want string) {
	t.Helper()
	got := in.run(sb, "sh", "-c", "cat "+h.shows+"; touch "+filepath.Dir(h.shows)+"/planted 2>/dev/null; true")
	if got.Stdout != want {
		t.Errorf("%s shows %q, and not %q (%s)", h.shows, got.Stdout, want, got.Stderr)
	}
}

// wantUntouched: what is the host's has what it had.
func (in *installation) wantUntouched(t *testing.T, g ground) {
	t.Helper()
	count := 0
	must(t, filepath.WalkDir(g.secret, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			count++
		}
		if d != nil && d.Name() == "planted" {
			t.Errorf("a guest wrote %s", path)
		}
		return err
	}))
	if count != 4 {
		t.Errorf("the host's own directory has %d files", count)
	}
}

// TestHostPathsAgainstAGuestThatFlips: a guest swaps a path for a link and back as fast as it
// can, while others are made, thawed, restored and forked that lead there.
func TestHostPathsAgainstAGuestThatFlips(t *testing.T) {
	t.Parallel()
	rounds, engines := 10, []string{"gvisor"}
	if os.Getenv("COFFERDAM_LONG") != "" {
		rounds, engines = 1000, []string{"gvisor", "runc"}
	}
	in := start(t, "default_template: debian\n")
	g := newGround(t)
	h := hostPaths()[0]
	flipper, err := in.Client.CreateSandbox(t.Context(), hostPath{}.request(g, "gvisor", true))
	must(t, err)
	const flip = `
import os, sys, time
os.chdir("/w")
for n in range(1 << 62):
    os.rename("data", "data.aside")
    os.symlink(sys.argv[1], "data")
    os.remove("data")
    os.rename("data.aside", "data")
    if n %% 64 == 0: open("flips", "w").write(str(n))
    time.sleep(%s)
`
	_, err = in.Client.StartCommand(t.Context(), flipper.ID, api.StartCommand{Argv: []string{"python3", "-c", fmt.Sprintf(flip, "0.002"), filepath.Join(g.secret, "data")}})
	must(t, err)
	flips := func() string { b, _ := os.ReadFile(filepath.Join(g.project, "flips")); return string(b) }
	until(t, "the guest flips", func() bool { return flips() != "" })
	subject := func(engine string, m moment) api.Sandbox { // made when the path happens to be there
		for {
			if sb, err := in.Client.CreateSandbox(t.Context(), h.request(g, engine, !m.copies)); err == nil {
				return sb
			}
		}
	}
	shown, refused := map[string]int{}, map[string]int{}
	for n := range rounds {
		engine := engines[n%len(engines)]
		all := moments(engine)
		m := all[n/len(engines)%len(all)]
		if strings.Contains(m.name, "daemon") {
			continue // which would end the flipper's clients with it; TestHostPathsAtEveryMoment has them
		}
		sb := subject(engine, m)
		in.wantShown(t, sb, h, keyOurs)
		in.t = t
		if err := m.before(in, sb); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), longestWait)
		again, err := m.after(ctx, in, sb, h.request(g, engine, !m.copies))
		cancel()
		if err == nil {
			shown[engine+" "+m.name]++
			in.wantShown(t, again, h, keyOurs)
		} else {
			refused[engine+" "+m.name]++
		}
		in.clear(t, flipper.ID)
	}
	last := flips()
	until(t, "the guest still flips", func() bool { return flips() != last })
	t.Logf("shown %v, refused %v, with %s flips", shown, refused, flips())
	in.wantUntouched(t, g)
}
