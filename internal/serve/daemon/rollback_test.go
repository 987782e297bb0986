package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/written"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// keeping is an installation of which only the log is opened.
type keeping struct {
	t    *testing.T
	opts Options
}

// open opens the log as a daemon does; nil if it refuses.
func (k keeping) open() (*Daemon, error) {
	k.t.Helper()
	d := &Daemon{opts: k.opts}
	if err := d.openAudit(k.t.Context()); err != nil {
		d.closeAudit()
		return nil, err
	}
	return d, nil
}

// write has one daemon write so many records.
func (k keeping) write(records int) {
	k.t.Helper()
	d, err := k.open()
	must(k.t, err)
	for range records {
		_, err := d.log.Append(k.t.Context(), audit.Record{Kind: audit.KindDaemon, Outcome: audit.Started})
		must(k.t, err)
	}
	d.closeAudit()
}

// refused: the log is not opened, the sentence says what to do, and nothing is
// changed.
func (k keeping) refused(words string) {
	k.t.Helper()
	before := k.files()
	d, err := k.open()
	if err == nil {
		d.closeAudit()
		k.t.Error("a log that was rolled back was opened")
		return
	}
	if !errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), "was rolled back") || !strings.Contains(err.Error(), "serve --accept-rollback") || !strings.Contains(err.Error(), words) {
		k.t.Errorf("it says %v", err)
	}
	if k.files() != before {
		k.t.Error("what was refused was written to")
	}
}

// files are the log's, with their contents.
func (k keeping) files() string {
	k.t.Helper()
	var all strings.Builder
	must(k.t, filepath.WalkDir(k.opts.Paths.Audit(), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all.WriteString(path + "\n" + string(data))
		return err
	}))
	return all.String()
}

func (k keeping) copyTo(dir string) {
	k.t.Helper()
	must(k.t, os.CopyFS(dir, os.DirFS(k.opts.Paths.Audit())))
}

// putBack puts an older copy of the log in the place of the newer one.
func (k keeping) putBack(dir string) {
	k.t.Helper()
	must(k.t, os.RemoveAll(k.opts.Paths.Audit()))
	must(k.t, os.CopyFS(k.opts.Paths.Audit(), os.DirFS(dir)))
}

func newKeeping(t *testing.T) keeping {
	t.Helper()
	dir := t.TempDir()
	return keeping{t: t, opts: Options{Paths: config.Paths{State: dir, Runtime: dir}, Log: quiet()}}
}

// TestARolledBackLogIsRefused until somebody accepts that, which is a record.
func TestARolledBackLogIsRefused(t *testing.T) {
	t.Parallel()
	k, older := newKeeping(t), filepath.Join(t.TempDir(), "older")
	k.write(5)
	k.copyTo(older)
	k.write(5)
	k.write(0) // as it should be
	k.putBack(older)
	k.refused("5 records")
	k.refused("5 records") // a refusal is not remembered as good

	k.opts.AcceptRollback = true
	d, err := k.open()
	must(t, err)
	var last audit.Record
	for r, err := range d.log.Records(t.Context(), audit.Filter{}) {
		must(t, err)
		last = r
	}
	d.closeAudit()
	if last.Outcome != audit.Alarm || last.Detail["event"] != "rollback_accepted" || last.User == "" || !strings.Contains(last.Reason, "5 records") {
		t.Errorf("on record is %+v", last)
	}
	k.opts.AcceptRollback = false
	k.write(1)
}

// TestARewrittenLogIsRefused: it has as many records, and others.
func TestARewrittenLogIsRefused(t *testing.T) {
	t.Parallel()
	k, older := newKeeping(t), filepath.Join(t.TempDir(), "older")
	k.write(5)
	k.copyTo(older)
	k.write(5)
	k.putBack(older)
	log, err := audit.Open(k.opts.Paths.Audit(), audit.Options{KeyFile: k.opts.Paths.AuditKey()})
	must(t, err)
	for range 20 {
		_, err := log.Append(t.Context(), audit.Record{Kind: audit.KindDaemon, Outcome: audit.Finished})
		must(t, err)
	}
	must(t, log.Close())
	k.refused("its records are others")
	must(t, os.RemoveAll(k.opts.Paths.Audit()))
	must(t, os.Mkdir(k.opts.Paths.Audit(), 0o700))
	k.refused("no checkpoint")
}

// TestThePublishedCheckpointSpeaksAgainstARollback though all of the state was rolled
// back.
func TestThePublishedCheckpointSpeaksAgainstARollback(t *testing.T) {
	t.Parallel()
	k, older := newKeeping(t), filepath.Join(t.TempDir(), "older")
	k.opts.Config.Audit.Publish.File = filepath.Join(t.TempDir(), "kept")
	k.write(5)
	k.copyTo(older)
	k.write(5)
	k.putBack(older)
	must(t, os.Remove(k.opts.Paths.AuditSeen()))
	k.refused(k.opts.Config.Audit.Publish.File)
}

// TestThePublishedCheckpointIsNotASandboxs: where a sandbox could write, no link in the place of the
// published checkpoints is read, and a pipe keeps no daemon waiting. The control is a file.
func TestThePublishedCheckpointIsNotASandboxs(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	k.write(5)
	dir, host := t.TempDir(), t.TempDir()
	file, elsewhere := filepath.Join(dir, "kept"), filepath.Join(host, "kept")
	must(t, os.Rename(k.opts.Paths.AuditSeen(), elsewhere))
	p, err := hostpath.Resolve(dir, nil)
	must(t, err)
	defer p.Close()
	record, err := written.Open(k.opts.Paths.Written())
	must(t, err)
	must(t, record.Add([]hostpath.Tree{{Path: p.Name, ID: p.ID}}))
	for name, c := range map[string]struct {
		lay  func() error
		says string
	}{
		"a link": {func() error { return os.Symlink(elsewhere, file) }, "can't be read"},
		"a pipe": {func() error { return syscall.Mkfifo(file, 0o600) }, "can't be read"},
		"a file": {func() error { return os.Link(elsewhere, file) }, ""},
	} {
		must(t, c.lay())
		against, err := RolledBack(k.opts.Paths, config.Audit{Publish: config.Publish{File: file}})
		if len(against) > 0 || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v", name, against, err)
		}
		must(t, os.Remove(file))
	}
}

// TestTheApprovalQueueSpeaksAgainstARollback, and is not made anew from a log that was
// cut.
func TestTheApprovalQueueSpeaksAgainstARollback(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	k.write(5)
	d, err := k.open()
	must(t, err)
	defer d.closeAudit()
	var fourth audit.Record
	for r, err := range d.log.Records(t.Context(), audit.Filter{FromSeq: 4}) {
		must(t, err)
		fourth = r
	}
	for _, c := range []struct {
		at    approval.Position
		right bool
	}{
		{approval.Position{}, true},
		{approval.Position{Seq: fourth.Seq, At: fourth.Time}, true},
		{approval.Position{Seq: fourth.Seq, At: fourth.Time.Add(time.Second)}, false},
		{approval.Position{Seq: 40, At: fourth.Time}, false},
	} {
		s := approvaltest.NewMemory()
		must(t, s.Apply(t.Context(), approval.Batch{Position: c.at}))
		if err := d.seen.checkQueue(t.Context(), s); (err == nil) != c.right || err != nil && !strings.Contains(err.Error(), "was rolled back") {
			t.Errorf("%+v: %v", c.at, err)
		}
	}
}
