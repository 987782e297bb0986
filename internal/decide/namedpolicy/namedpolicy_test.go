package namedpolicy_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/namedpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

const (
	strict = "packages: { default: deny }\n"
	loose  = "packages: { default: allow }\n"
)

func open(t *testing.T, dir string, users ...string) *namedpolicy.Store {
	t.Helper()
	s, err := namedpolicy.Open(dir, func(name string) []string {
		if name == "used" || name == namedpolicy.DefaultName {
			return users
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t *testing.T, s *namedpolicy.Store, name, text string) *namedpolicy.Named {
	t.Helper()
	n, err := s.Put(name, "/home/ann/"+name+".yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func names(t *testing.T, s *namedpolicy.Store) string {
	t.Helper()
	all, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, n := range all {
		list = append(list, n.Name)
	}
	return strings.Join(list, " ")
}

func TestPut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "policies", "named")
	s := open(t, dir)
	if got := names(t, s); got != "default" {
		t.Errorf("an empty store has %s", got)
	}
	made := put(t, s, "web-1.x", strict)
	if made.Policy.Source() != filepath.Join(dir, "web-1.x.yaml") || made.Path != made.Policy.Source() || made.Changed.IsZero() {
		t.Errorf("%+v from %s", made, made.Policy.Source())
	}
	put(t, s, "data", loose)
	for _, again := range []*namedpolicy.Store{s, open(t, dir)} {
		if got := names(t, again); got != "data default web-1.x" {
			t.Errorf("there are %s", got)
		}
		n, err := again.Get("web-1.x")
		if err != nil || string(n.Text) != strict || n.Policy.Digest() != made.Policy.Digest() {
			t.Errorf("%+v %v", n, err)
		}
	}
	if _, err := s.Get("nothing"); !errors.Is(err, fault.ErrNotFound) {
		t.Error(err)
	}
}

// TestInvalidLeavesTheOld: nothing that is wrong with a text or a disk takes a
// policy out of force.
func TestInvalidLeavesTheOld(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	put(t, s, "web", strict)
	for text, want := range map[string]string{
		"packages: { default: perhaps }": "where.yaml:1:",
		"":                               "the document is empty",
		"packages: { lockfile: { files: [go.sum] } }":                                            "can't be in a named policy",
		"filesystem: { host_mounts: [ { source: /srv, destination: /srv, mode: read_write } ] }": "can't be mounted read-write",
	} {
		if _, err := s.Put("web", "where.yaml", []byte(text)); !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := s.Put("shared", "where.yaml", []byte("filesystem: { host_mounts: [ { source: /srv, destination: /srv } ] }")); err != nil {
		t.Errorf("a read-only mount: %v", err)
	}
	// A name that is taken by a directory can't be written.
	if err := os.MkdirAll(filepath.Join(dir, "stuck.yaml", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put("stuck", "where.yaml", []byte(loose)); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	for _, again := range []*namedpolicy.Store{s, open(t, dir)} {
		if n, err := again.Get("web"); err != nil || string(n.Text) != strict {
			t.Errorf("%+v %v", n, err)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, ".new-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
}

func TestNames(t *testing.T) {
	s := open(t, t.TempDir())
	for _, name := range []string{"", ".", "..", "-a", ".a", "A", "a/b", "../a", "a b", "a\x00", "ä", strings.Repeat("a", 64)} {
		if _, err := s.Put(name, "p", []byte(strict)); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := s.Get(name); !errors.Is(err, fault.ErrNotFound) {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := s.History(name); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	put(t, s, strings.Repeat("a", 63), strict)
	put(t, s, "0", strict)
}

func TestDefault(t *testing.T) {
	s := open(t, t.TempDir(), "ci")
	n, err := s.Get(namedpolicy.DefaultName)
	if err != nil || n.Path != "" || string(n.Text) != namedpolicy.Default {
		t.Fatalf("%+v %v", n, err)
	}
	if err := s.Remove(namedpolicy.DefaultName); !errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), "built-in") {
		t.Error(err)
	}
	put(t, s, namedpolicy.DefaultName, loose)
	if n, err = s.Get(namedpolicy.DefaultName); err != nil || string(n.Text) != loose || names(t, s) != "default" {
		t.Errorf("%+v %v", n, err)
	}
	// Tokens go on with the built-in one, so they do not keep it.
	if err := s.Remove(namedpolicy.DefaultName); err != nil {
		t.Fatal(err)
	}
	if n, err = s.Get(namedpolicy.DefaultName); err != nil || string(n.Text) != namedpolicy.Default {
		t.Errorf("%+v %v", n, err)
	}
}

func TestRemove(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, "a", "b", "c", "d", "e", "f")
	put(t, s, "used", strict)
	put(t, s, "free", strict)
	if err := s.Remove("used"); !errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), "a, b, c, d, e and others") {
		t.Error(err)
	}
	if err := s.Remove("free"); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove("free"); !errors.Is(err, fault.ErrNotFound) {
		t.Error(err)
	}
	for _, again := range []*namedpolicy.Store{s, open(t, dir)} {
		if _, err := again.Get("free"); !errors.Is(err, fault.ErrNotFound) {
			t.Error(err)
		}
		if _, err := again.Get("used"); err != nil {
			t.Error(err)
		}
	}
}

func TestHistory(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if h, err := s.History("web"); err != nil || h != nil {
		t.Errorf("%v %v", h, err)
	}
	first := put(t, s, "web", strict).Policy.Digest()
	// A line that a crash tore.
	f, err := os.OpenFile(filepath.Join(dir, "web.history"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"time":"20`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	second := put(t, s, "web", loose).Policy.Digest()
	if err := s.Remove("web"); err != nil {
		t.Fatal(err)
	}
	h, err := s.History("web")
	if err != nil {
		t.Fatal(err)
	}
	var digests []string
	for _, c := range h {
		digests = append(digests, c.Digest)
		if c.Time.IsZero() || (c.Digest != "" && c.Origin != "/home/ann/web.yaml") {
			t.Errorf("%+v", c)
		}
	}
	if !slices.Equal(digests, []string{first, second, ""}) {
		t.Errorf("%v, want %s, %s and its removal", digests, first, second)
	}
}

// TestBroken: a document that was damaged on the disk is refused by name until
// it is put again, the default too: it never falls back to something else.
func TestBroken(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"web", "default"} {
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte("packages: ["), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(t, open(t, dir), "good", strict)
	s := open(t, dir)
	for _, name := range []string{"web", "default"} {
		if _, err := s.Get(name); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(s.Broken()) != 2 || names(t, s) != "good" {
		t.Errorf("%v; %s", s.Broken(), names(t, s))
	}
	put(t, s, "web", strict)
	if err := s.Remove("default"); err != nil {
		t.Error(err)
	}
	if len(s.Broken()) != 0 || names(t, s) != "default good web" {
		t.Errorf("%v; %s", s.Broken(), names(t, s))
	}
}

// TestAtOnce: whoever reads meanwhile has one of the two, whole.
func TestAtOnce(t *testing.T) {
	s := open(t, t.TempDir())
	put(t, s, "web", strict)
	var work sync.WaitGroup
	for i := range 4 {
		work.Go(func() {
			for range 10 {
				put(t, s, "web", []string{strict, loose}[i%2])
			}
		})
		work.Go(func() {
			for range 200 {
				n, err := s.Get("web")
				if err != nil || string(n.Text) != strict && string(n.Text) != loose {
					t.Error(fmt.Sprint(n, err))
				}
			}
		})
	}
	work.Wait()
	h, err := s.History("web")
	if err != nil || len(h) != 41 {
		t.Errorf("%d changes, %v", len(h), err)
	}
}
