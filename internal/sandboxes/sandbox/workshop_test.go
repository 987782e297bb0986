package sandbox_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/building"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
)

func someSource() building.Source {
	return building.Source{Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: "foo", Version: "1.0"}, File: "foo-1.0.tar.gz", SHA256: strings.Repeat("a", 64)}
}

// TestAWorkshopHasNothingOfItsRun but template, lockfiles and policy, and is gone when it
// ends.
func TestAWorkshopHasNothingOfItsRun(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	s := d.create(t, sandbox.Request{
		Mounts: []mountpolicy.Mount{{Source: t.TempDir(), Destination: "/job", ReadWrite: true}}, Env: map[string]string{"OWN_SECRET": "s3cret"}, Workdir: "/job",
	})
	p := ask(t, sandbox.Request{}).Policy.Apart()
	w, err := d.Workshop(t.Context(), s.Info().ID, someSource(), p)
	if err != nil {
		t.Fatal(err)
	}
	of, got := s.Info(), w.Info()
	if !got.Workshop || got.Plan || got.ID == of.ID || got.Run == of.Run || got.PolicyDigest != of.PolicyDigest || got.Digest != of.Digest || got.Owner.Token != of.Owner.Token ||
		len(got.WritableMounts)+len(got.ReadOnlyMounts)+len(got.Placeholders) != 0 || got.Workdir == "/job" || !strings.HasPrefix(got.Run, "build-") || !got.Lifetime.HasEnd() {
		t.Errorf("the workshop is %+v, of %+v", got, of)
	}
	out, err := w.Output(t.Context(), []string{"sh", "-c", "echo own:$OWN_SECRET"}, 1<<10)
	if err != nil || strings.TrimSpace(string(out)) != "own:" {
		t.Errorf("it has %q, %v", out, err)
	}
	if err := w.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.wantOnly(t, of.ID)
	_, err = d.Workshop(t.Context(), "sb-nobody", someSource(), p)
	category(t, err, fault.ErrNotFound)
}

// TestOneFileComesOutOfAWorkshop: a plain one, and nothing if there are several or none.
func TestOneFileComesOutOfAWorkshop(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	s := d.create(t, sandbox.Request{})
	w, err := d.Workshop(t.Context(), s.Info().ID, someSource(), ask(t, sandbox.Request{}).Policy.Apart())
	if err != nil {
		t.Fatal(err)
	}
	write := func(dir string, names ...string) error {
		var errs []error
		for _, name := range names {
			errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte("wheel"), 0o644))
		}
		return errors.Join(errs...)
	}
	for name, tt := range map[string]struct {
		make func(dir string) error
		want string // its content; "": it is refused
	}{
		"one":      {func(dir string) error { return write(dir, "a.whl", "a.log") }, "wheel"},
		"none":     {func(dir string) error { return write(dir, "a.log") }, ""},
		"two":      {func(dir string) error { return write(dir, "a.whl", "b.whl") }, ""},
		"a link":   {func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "a.whl")) }, ""},
		"a FIFO":   {func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "a.whl"), 0o644) }, ""},
		"a folder": {func(dir string) error { return os.Mkdir(filepath.Join(dir, "a.whl"), 0o755) }, ""},
	} {
		inside := "/built-" + strings.ReplaceAll(name, " ", "-")
		dir := d.world.path("roots", w.Info().ID, inside)
		if err := errors.Join(os.MkdirAll(dir, 0o755), tt.make(dir)); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		file, err := w.Take(t.Context(), inside, ".whl", &got)
		_, failed := errors.AsType[*building.Failure](err)
		if tt.want == "" && (!failed || got.Len() > 0) || tt.want != "" && (err != nil || got.String() != tt.want || file != "a.whl") {
			t.Errorf("%s: %q, %q, %v", name, file, got.String(), err)
		}
	}
}

// TestAWorkshopEndsWithItsDaemon: the next one has no use for it.
func TestAWorkshopEndsWithItsDaemon(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	s := d.create(t, sandbox.Request{})
	w, err := d.Workshop(t.Context(), s.Info().ID, someSource(), ask(t, sandbox.Request{}).Policy.Apart())
	if err != nil {
		t.Fatal(err)
	}
	d.wantOnly(t, s.Info().ID, w.Info().ID)
	d.next(t)
	await(t, "the workshop is gone", func() bool {
		_, err := d.Get(w.Info().ID)
		return errors.Is(err, fault.ErrNotFound)
	})
	d.wantOnly(t, s.Info().ID)
}
