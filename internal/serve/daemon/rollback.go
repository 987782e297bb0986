package daemon

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os/user"
	"slices"
	"strconv"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/written"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// rememberEvery is how often the log's last checkpoint is kept apart from the log.
const rememberEvery = 10 * time.Second

// memory is what the daemon keeps of its log apart from it, so that a log that was rolled
// back is noticed; the daemon's loop alone has it.
type memory struct {
	paths    config.Paths
	keeping  config.Audit
	mayAny   bool           // what speaks against the log is accepted
	log      *audit.FileLog // nil: it is not open yet
	operator *slog.Logger

	note []byte
	at   time.Time
	// accepted are what speaks against the log and was accepted at the start.
	accepted []string
}

// RolledBack compares the log with what was kept of it elsewhere: the checkpoint that
// the last daemon remembered, and the last one in audit.publish.file. It changes
// nothing, and returns what speaks against the log, a sentence each.
func RolledBack(paths config.Paths, keeping config.Audit) ([]string, error) {
	var against []string
	for _, path := range []string{paths.AuditSeen(), keeping.Publish.File} {
		if path == "" {
			continue
		}
		note, err := lastNote(path, paths.Written())
		if err != nil {
			return nil, fault.Wrap(fault.ErrUnavailable, err, "the log's checkpoints in %s can't be read", path)
		}
		if note == nil {
			continue
		}
		wrong, err := audit.Begins(paths.Audit(), note)
		if err != nil {
			return nil, err
		}
		if wrong != "" {
			against = append(against, "the checkpoint in "+path+" says otherwise: "+wrong)
		}
	}
	return against, nil
}

// lastNote is the last checkpoint in a file; nil: there is none. A sandbox could have left a link in
// its place, or what is no file.
func lastNote(path, record string) ([]byte, error) {
	trees, err := written.Read(record)
	if err != nil {
		return nil, err
	}
	p, err := hostpath.Resolve(path, trees)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer p.Close()
	if p.ID.Type != hostpath.File {
		return nil, &hostpath.TypeError{Path: path}
	}
	return audit.LastNote(p.Proc())
}

// mayGoOn refuses a log that was rolled back, unless that is accepted.
func (m *memory) mayGoOn(against string) error {
	if m.mayAny {
		m.accepted = append(m.accepted, against)
		return nil
	}
	return ErrRolledBack(m.paths, against)
}

// ErrRolledBack says what is wrong with the log, and what to do.
func ErrRolledBack(paths config.Paths, against string) error {
	return fault.New(fault.ErrConflict,
		"the audit log in %s was rolled back, or is another one: %s. Put the newer log back; if that is lost, `cofferdam serve --accept-rollback` goes on with this one, once, and puts that on record",
		paths.Audit(), against)
}

// checkLog checks the log before it is opened, and so before anything can be added to it.
func (m *memory) checkLog() error {
	against, err := RolledBack(m.paths, m.keeping)
	if err != nil {
		return err
	}
	for _, sentence := range against {
		if err := m.mayGoOn(sentence); err != nil {
			return err
		}
	}
	return nil
}

// checkQueue compares the log with the last record of it that the approval queue's
// file has.
func (m *memory) checkQueue(ctx context.Context, s approval.Store) error {
	pos, err := s.Position(ctx)
	if err != nil || pos.At.IsZero() {
		return err
	}
	for r, err := range m.log.Records(ctx, audit.Filter{FromSeq: pos.Seq}) {
		if err != nil {
			return err
		}
		if r.Seq == pos.Seq && r.Time.Equal(pos.At) {
			return nil
		}
		break
	}
	return m.mayGoOn("the approval queue has seen a record " + strconv.FormatUint(pos.Seq, 10) + " of " + pos.At.UTC().Format(time.RFC3339) + ", which is not in it")
}

// recordRollback puts on record what was accepted; nothing else was recorded before.
func (m *memory) recordRollback(ctx context.Context) error {
	by := "unknown"
	if u, err := user.Current(); err == nil {
		by = u.Username
	}
	for _, against := range m.accepted {
		m.operator.ErrorContext(ctx, "the audit log was rolled back, or is another one, and somebody has accepted that", "why", against)
		if _, err := m.log.Append(ctx, audit.Record{
			Kind: audit.KindLog, Outcome: audit.Alarm, User: by,
			Reason: "The log was rolled back, or is another one, and somebody has accepted that: " + against + ".",
			Detail: map[string]string{"event": "rollback_accepted"},
		}); err != nil {
			return err
		}
	}
	m.accepted = nil
	return nil
}

// rememberCheckpoint keeps the log's last checkpoint apart from the log, if it is another.
func (m *memory) rememberCheckpoint() {
	if m.log == nil {
		return
	}
	_, note := m.log.Checkpoint()
	if note == nil || bytes.Equal(note, m.note) {
		return
	}
	if err := atomicfile.Replace(m.paths.AuditSeen(), slices.Concat(note, []byte{'\n'}), 0o600); err != nil {
		m.operator.Error("the log's last checkpoint can't be kept apart from it, so a log that was rolled back may not be noticed", "err", err)
		return
	}
	m.note = note
}

func (m *memory) rememberNowAndThen() {
	if time.Since(m.at) >= rememberEvery {
		m.at = time.Now()
		m.rememberCheckpoint()
	}
}
