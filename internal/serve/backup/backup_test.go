package backup_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/backup"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/store"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// installation is a state directory whose parts are written as its daemon writes them.
type installation struct {
	paths  config.Paths
	log    *audit.FileLog
	tokens *store.Tokens
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	dir := t.TempDir()
	i := &installation{paths: config.Paths{State: filepath.Join(dir, "state"), Runtime: filepath.Join(dir, "run")}}
	must(t, i.paths.Make())
	for name, text := range map[string]string{
		"templates/debian/0123/template.json": "{}", "templates/debian/0123/rootfs.erofs": strings.Repeat("t", 3<<20),
		"templates/.building-x/half": "no", "templates/.lock-debian": "",
		"snapshots/s0/manifest.json": "{}", "snapshots/s0/image/pages": strings.Repeat("p", 2<<20), "snapshots/.new-s9/manifest.json": "no",
		"engines/x/program": "no", "index/audit.db": "no", "frozen/f/image": "no", "cache/artifacts/blobs/b": "no", "cache/artifacts/seen/first": "yes",
		"policies/named/data": "yes", "ca/ca.crt": "yes", "homes/0/default/.agent/login": "yes", "policies/.named.new-1": "no",
	} {
		at := filepath.Join(i.paths.State, name)
		must(t, os.MkdirAll(filepath.Dir(at), 0o700))
		must(t, os.WriteFile(at, []byte(text), 0o600))
	}
	must(t, os.Symlink("0123", filepath.Join(i.paths.State, "templates/debian/current")))
	var err error
	i.log, err = audit.Open(i.paths.Audit(), audit.Options{KeyFile: i.paths.AuditKey(), SegmentBytes: 8 << 10, CheckpointEvery: time.Millisecond})
	must(t, err)
	t.Cleanup(func() { _ = i.log.Close() })
	i.tokens, err = store.OpenTokens(t.Context(), i.paths.Tokens())
	must(t, err)
	t.Cleanup(func() { _ = i.tokens.Close() })
	return i
}

// restored extracts an archive at another path, and fails if a name leads out of it.
func restored(t *testing.T, archive io.Reader) (config.Paths, []string) {
	t.Helper()
	dir := t.TempDir()
	paths := config.Paths{State: filepath.Join(dir, "state"), Runtime: filepath.Join(dir, "run")}
	must(t, paths.Make())
	root, err := os.OpenRoot(paths.State)
	must(t, err)
	defer root.Close()
	var names []string
	for in := tar.NewReader(archive); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return paths, names
		}
		must(t, err)
		if slices.Contains(names, h.Name) {
			t.Errorf("%s is in the archive twice", h.Name)
		}
		names = append(names, h.Name)
		switch h.Typeflag {
		case tar.TypeDir:
			must(t, root.Mkdir(strings.TrimSuffix(h.Name, "/"), fs.FileMode(h.Mode).Perm()))
		case tar.TypeSymlink:
			must(t, root.Symlink(h.Linkname, h.Name))
		default:
			f, err := root.OpenFile(h.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(h.Mode).Perm())
			must(t, err)
			_, err = io.Copy(f, in)
			must(t, errors.Join(err, f.Close()))
		}
	}
}

// TestContents: all is in an archive but what it says that it left out, and what is being made.
func TestContents(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	must(t, i.tokens.Put(t.Context(), token.Token{ID: "tok-1", Name: "one"}))
	var to bytes.Buffer
	report, err := backup.Write(t.Context(), &to, backup.Options{Paths: i.paths})
	must(t, err)
	if int64(to.Len()) != report.Bytes || !slices.Equal(report.Templates, []string{"debian/0123"}) || !slices.Equal(report.Snapshots, []string{"s0"}) || !slices.Contains(report.LeftOut, "engines") {
		t.Errorf("%+v of %d bytes", report, to.Len())
	}
	paths, names := restored(t, &to)
	for _, name := range names {
		if text, err := os.ReadFile(filepath.Join(paths.State, name)); err == nil && string(text) == "no" {
			t.Errorf("%s is in the archive", name)
		}
	}
	for _, name := range []string{"cache/artifacts/seen/first", "policies/named/data", "ca/ca.crt", "homes/0/default/.agent/login", "templates/debian/current/template.json", "audit.key", "snapshots/s0/image/pages", "tokens.db"} {
		info, err := os.Stat(filepath.Join(paths.State, name))
		if err != nil || info.Size() == 0 || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	must(t, paths.CheckKept())

	elsewhere := filepath.Join(t.TempDir(), "snapshots")
	must(t, os.Rename(i.paths.Snapshots(), elsewhere))
	must(t, os.Symlink(elsewhere, i.paths.Snapshots()))
	to.Reset()
	linked, err := backup.Write(t.Context(), &to, backup.Options{Paths: i.paths})
	must(t, err)
	if len(linked.Snapshots) != 0 || !slices.Contains(linked.LeftOut, "snapshots") {
		t.Errorf("snapshots lie elsewhere: %+v", linked)
	}
	if paths, _ := restored(t, &to); !isLink(paths.Snapshots()) {
		t.Error("the link to the snapshots is not restored")
	}

	elsewhere = filepath.Join(t.TempDir(), "homes")
	must(t, os.Rename(i.paths.Homes(), elsewhere))
	must(t, os.Symlink(elsewhere, i.paths.Homes()))
	must(t, os.Rename(filepath.Join(i.paths.State, "ca"), elsewhere+"-ca"))
	must(t, os.Symlink(elsewhere+"-ca", filepath.Join(i.paths.State, "ca")))
	linked, err = backup.Write(t.Context(), io.Discard, backup.Options{Paths: i.paths})
	must(t, err)
	if !slices.Contains(linked.LeftOut, "homes") || !slices.Contains(linked.LeftOut, "ca") {
		t.Errorf("homes and the CA lie elsewhere, and it does not say that they are left out: %v", linked.LeftOut)
	}

	without, err := backup.Write(t.Context(), io.Discard, backup.Options{Paths: i.paths, Without: backup.Parts()})
	must(t, err)
	if len(without.Templates)+len(without.Snapshots) != 0 || without.Bytes > 1<<20 || !slices.Contains(without.LeftOut, "homes") {
		t.Errorf("%+v", without)
	}
	if _, err := backup.Write(t.Context(), io.Discard, backup.Options{Paths: i.paths, Without: []string{"audit"}}); !errors.Is(err, fault.ErrInvalid) {
		t.Error(err)
	}
}

func isLink(path string) bool {
	_, err := os.Readlink(path)
	return err == nil
}

// TestUnderLoad: whatever is written meanwhile, what is restored is whole: a log that verifies and goes on, with a
// record of each token, of whose policies none is missing, and snapshots that have all that they had.
func TestUnderLoad(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for _, work := range []func(n int) error{i.grant, i.snapshot, i.erase} {
		load.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if err := work(n); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var archives []bytes.Buffer
	for range 8 {
		var to bytes.Buffer
		if _, err := backup.Write(t.Context(), &to, backup.Options{Paths: i.paths}); err != nil {
			t.Error(err)
			break
		}
		archives = append(archives, to)
	}
	stop()
	load.Wait()
	for n := range archives {
		check(t, n, &archives[n])
	}
}

// grant writes the record of a policy and a token, then these.
func (i *installation) grant(n int) error {
	id := fmt.Sprintf("tok-%d", n)
	if _, err := i.log.Append(context.Background(), audit.Record{Kind: audit.KindDaemon, Outcome: audit.Started, Run: id, User: "root"}); err != nil {
		return err
	}
	if err := atomicfile.Replace(filepath.Join(i.paths.State, "policies", "named", id), []byte("yes"), 0o600); err != nil {
		return err
	}
	if err := i.tokens.Put(context.Background(), token.Token{ID: id, Name: id}); err != nil {
		return err
	}
	_, note := i.log.Checkpoint()
	if note == nil {
		return nil
	}
	return atomicfile.Replace(i.paths.AuditSeen(), note, 0o600)
}

// snapshot makes one as the store does, and removes the one before.
func (i *installation) snapshot(n int) error {
	dir, id := i.paths.Snapshots(), fmt.Sprintf("m%d", n)
	if err := os.MkdirAll(filepath.Join(dir, ".new-"+id, "image"), 0o700); err != nil {
		return err
	}
	for _, name := range []string{"image/a", "image/b", "manifest.json"} {
		if err := os.WriteFile(filepath.Join(dir, ".new-"+id, name), bytes.Repeat([]byte{1}, 64<<10), 0o600); err != nil {
			return err
		}
	}
	if err := os.Rename(filepath.Join(dir, ".new-"+id), filepath.Join(dir, id)); err != nil || n == 0 {
		return err
	}
	was := filepath.Join(dir, fmt.Sprintf(".gone-m%d", n-1))
	return errors.Join(os.Rename(filepath.Join(dir, fmt.Sprintf("m%d", n-1)), was), os.RemoveAll(was))
}

// erase takes personal data out of the log, and seals what it can.
func (i *installation) erase(n int) error {
	end := uint64(n)
	if _, err := i.log.Seal(context.Background(), audit.SealBefore{Record: end}, "root"); err != nil {
		return err
	}
	_, err := i.log.Erase(context.Background(), audit.EraseAsk{Run: fmt.Sprintf("tok-%d", n), By: "root"})
	if errors.Is(err, fault.ErrNotFound) {
		return nil
	}
	return err
}

// check restores an archive and looks at what its daemon would find.
func check(t *testing.T, n int, archive io.Reader) {
	t.Helper()
	paths, names := restored(t, archive)
	must(t, paths.CheckKept())
	if seen, err := os.ReadFile(paths.AuditSeen()); err == nil {
		if wrong, err := audit.Begins(paths.Audit(), seen); err != nil || wrong != "" {
			t.Errorf("backup %d: the log was rolled back: %s, %v", n, wrong, err)
		}
	}
	log, err := audit.Open(paths.Audit(), audit.Options{KeyFile: paths.AuditKey()})
	if err != nil {
		t.Errorf("backup %d: %v", n, err)
		return
	}
	begun := map[string]bool{}
	for r, err := range log.Records(t.Context(), audit.Filter{}) {
		must(t, err)
		begun[r.Run] = true
	}
	must(t, log.Close())
	verdict, err := audit.Verify(t.Context(), paths.Audit(), audit.VerifyOptions{})
	if err != nil || !verdict.Sound || verdict.Covered != verdict.Records {
		t.Errorf("backup %d: %+v, %v", n, verdict, err)
	}
	if torn, _ := filepath.Glob(filepath.Join(paths.Audit(), "*.torn")); len(torn) > 0 {
		t.Errorf("backup %d: the log has a torn end: %v", n, torn)
	}
	tokens, err := store.OpenTokens(t.Context(), paths.Tokens())
	must(t, err)
	defer tokens.Close()
	all, err := tokens.List(t.Context())
	must(t, err)
	for _, tok := range all {
		if !begun[tok.ID] || !slices.Contains(names, "policies/named/"+tok.ID) {
			t.Errorf("backup %d: the token %s has no record (%t) or no policy", n, tok.ID, begun[tok.ID])
		}
	}
	for _, name := range names {
		if id, is := strings.CutSuffix(name, "/manifest.json"); is && strings.HasPrefix(id, "snapshots/m") && (!slices.Contains(names, id+"/image/a") || !slices.Contains(names, id+"/image/b")) {
			t.Errorf("backup %d: %s is not whole", n, id)
		}
	}
}

// TestASnapshotHasItsTemplate: also one that is built and used while templates are copied, of which the older is copied
// once, with the link to it.
func TestASnapshotHasItsTemplate(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	done := false
	var to bytes.Buffer
	_, err := backup.Write(t.Context(), met{&to, func(written []byte) {
		if done || !bytes.Contains(written, []byte("templates/debian/0123/template.json")) {
			return
		}
		done = true
		for _, dir := range []string{i.paths.Templates() + "/debian/4567", i.paths.Snapshots() + "/s1"} {
			must(t, os.Mkdir(dir, 0o700))
			must(t, os.WriteFile(dir+"/manifest.json", []byte("{}"), 0o600))
		}
	}}, backup.Options{Paths: i.paths})
	must(t, err)
	_, names := restored(t, &to)
	for _, want := range []string{"snapshots/s1/manifest.json", "templates/debian/4567/manifest.json", "templates/debian/current"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not in the archive", want)
		}
	}
}

// TestNoCopyOfADatabaseHasAName while anything is written, since a pipe that breaks ends the program.
func TestNoCopyOfADatabaseHasAName(t *testing.T) {
	i := newInstallation(t)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	_, err := backup.Write(t.Context(), met{io.Discard, func([]byte) {
		if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
			t.Fatalf("while the archive is written there is %v, %v", left, err)
		}
	}}, backup.Options{Paths: i.paths})
	must(t, err)
}

// full is a disk that is full after so many bytes.
type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errors.New("the disk is full")
	}
	return len(p), nil
}

// TestEndsWithItsDisk, and with its context, wherever that is.
func TestEndsWithItsDisk(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	for left := 0; left < 5<<20; left += 300_000 {
		if _, err := backup.Write(t.Context(), &full{left}, backup.Options{Paths: i.paths}); err == nil {
			t.Errorf("an archive of %d bytes is whole", left)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := backup.Write(ctx, io.Discard, backup.Options{Paths: i.paths, Progress: func(int64) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
