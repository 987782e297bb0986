package mountpolicy

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func TestMountsThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	work := filepath.Join(dir, "work")
	for _, d := range []string{state, work} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(work, "innocent")
	if err := os.Symlink("/proc", link); err != nil {
		t.Fatal(err)
	}
	sock := filepath.Join(work, "engine.sock")
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	rules := Rules{Own: []string{state}}
	for name, tc := range map[string]struct {
		m    Mount
		want string
	}{
		"the root":             {Mount{Source: "/", Destination: "/w"}, "whole host"},
		"proc":                 {Mount{Source: "/proc", Destination: "/w"}, "kernel"},
		"below sys":            {Mount{Source: "/sys/kernel", Destination: "/w"}, "kernel"},
		"dev":                  {Mount{Source: "/dev", Destination: "/w"}, "kernel"},
		"a link to proc":       {Mount{Source: link, Destination: "/w"}, "kernel"},
		"a device":             {Mount{Source: "/dev/null", Destination: "/w"}, "kernel"},
		"a socket":             {Mount{Source: sock, Destination: "/w"}, "socket"},
		"the state":            {Mount{Source: state, Destination: "/w"}, "own state"},
		"what holds the state": {Mount{Source: dir, Destination: "/w"}, "own state"},
		"missing":              {Mount{Source: filepath.Join(dir, "none"), Destination: "/w"}, "does not exist"},
		"relative":             {Mount{Source: "work", Destination: "/w"}, "absolute"},
		"onto the root":        {Mount{Source: work, Destination: "/"}, "other than /"},
		"onto proc by dots":    {Mount{Source: work, Destination: "/w/../proc"}, "itself needs"},
		"onto the agent":       {Mount{Source: work, Destination: "/.cofferdam/bin"}, "itself needs"},
		"relative destination": {Mount{Source: work, Destination: "w"}, "absolute"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rules.Check(tc.m)
			if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want a refusal that says %q", err, tc.want)
			}
		})
	}
	// The control: what is fine passes, with its source resolved.
	got, err := rules.Check(Mount{Source: work + "/../work", Destination: "/workspace/", ReadWrite: true})
	if err != nil || got.Mount != (Mount{Source: work, Destination: "/workspace", ReadWrite: true}) {
		t.Fatalf("got %+v, %v", got, err)
	}
	got.Close()
}

func TestIgnoreFileHides(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(IgnoreFile, "*.key\n!public.key\nsecrets/\n")
	write("a.key", "x")
	write("public.key", "x")
	write("sub/b.key", "x")
	write("secrets/c", "x")
	write("sub/secrets.txt", "x")
	if err := os.Symlink("/etc", filepath.Join(dir, "link.key")); err != nil {
		t.Fatal(err)
	}
	over, err := Rules{EmptyFile: "/empty"}.Hide(t.Context(), opened(t, Mount{Source: dir, Destination: "/w"})[0], NewComparing())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, o := range over {
		if !o.ReadOnly {
			t.Errorf("%s is hidden by a writable mount", o.Destination)
		}
		got[o.Destination] = o.Source
	}
	want := map[string]string{"/w/a.key": "/empty", "/w/sub/b.key": "/empty", "/w/secrets": ""}
	if len(got) != len(want) {
		t.Fatalf("hidden: %v, want %v", got, want)
	}
	for dst, src := range want {
		if s, ok := got[dst]; !ok || s != src {
			t.Errorf("%s: hidden by %q (%v), want %q", dst, s, ok, src)
		}
	}
	rules := Rules{EmptyFile: "/empty"}
	if over, err := rules.Hide(t.Context(), opened(t, Mount{Source: filepath.Join(dir, "public.key"), Destination: "/k"})[0], NewComparing()); err != nil || over != nil {
		t.Errorf("a mounted file has no ignore file: got %v, %v", over, err)
	}
}
