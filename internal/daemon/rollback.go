package daemon

import (
	"bytes"
	"context"
	"os/user"
	"slices"
	"strconv"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/approval"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/config"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/wholefile"
)

// rememberEvery is how often the log's last checkpoint is kept apart from the log.
const rememberEvery = 10 * time.Second

// memory is what the daemon keeps of its log apart from it; its loop alone has it.
type memory struct {
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
		note, err := audit.LastNote(path)
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

// mayGoOn refuses a log that was rolled back, unless that is accepted.
func (d *Daemon) mayGoOn(against string) error {
	if d.opts.AcceptRollback {
		d.seen.accepted = append(d.seen.accepted, against)
		return nil
	}
	return ErrRolledBack(d.opts.Paths, against)
}

// ErrRolledBack says what is wrong with the log, and what to do.
func ErrRolledBack(paths config.Paths, against string) error {
	return fault.New(fault.ErrConflict,
		"the audit log in %s was rolled back, or is another one: %s. Put the newer log back; if that is lost, `cofferdam serve --accept-rollback` goes on with this one, once, and puts that on record",
		paths.Audit(), against)
}

// checkLog is done before the log is opened, and so before anything can be added to it.
func (d *Daemon) checkLog() error {
	against, err := RolledBack(d.opts.Paths, d.opts.Config.Audit)
	if err != nil {
		return err
	}
	for _, sentence := range against {
		if err := d.mayGoOn(sentence); err != nil {
			return err
		}
	}
	return nil
}

// checkQueue compares the log with the last record of it that the approval queue's
// file has.
func (d *Daemon) checkQueue(ctx context.Context, s approval.Store) error {
	pos, err := s.Position(ctx)
	if err != nil || pos.At.IsZero() {
		return err
	}
	for r, err := range d.log.Records(ctx, audit.Filter{FromSeq: pos.Seq}) {
		if err != nil {
			return err
		}
		if r.Seq == pos.Seq && r.Time.Equal(pos.At) {
			return nil
		}
		break
	}
	return d.mayGoOn("the approval queue has seen a record " + strconv.FormatUint(pos.Seq, 10) + " of " + pos.At.UTC().Format(time.RFC3339) + ", which is not in it")
}

// recordRollback puts on record what was accepted; nothing else was recorded before.
func (d *Daemon) recordRollback(ctx context.Context) error {
	by := "unknown"
	if u, err := user.Current(); err == nil {
		by = u.Username
	}
	for _, against := range d.seen.accepted {
		d.opts.Log.ErrorContext(ctx, "the audit log was rolled back, or is another one, and somebody has accepted that", "why", against)
		if _, err := d.log.Append(ctx, audit.Record{
			Kind: audit.KindLog, Outcome: audit.Alarm, User: by,
			Reason: "The log was rolled back, or is another one, and somebody has accepted that: " + against + ".",
			Detail: map[string]string{"event": "rollback_accepted"},
		}); err != nil {
			return err
		}
	}
	d.seen.accepted = nil
	return nil
}

// remember keeps the log's last checkpoint apart from the log, if it is another.
func (d *Daemon) remember() {
	if d.log == nil {
		return
	}
	_, note := d.log.Checkpoint()
	if note == nil || bytes.Equal(note, d.seen.note) {
		return
	}
	if err := wholefile.Replace(d.opts.Paths.AuditSeen(), slices.Concat(note, []byte{'\n'}), 0o600); err != nil {
		d.opts.Log.Error("the log's last checkpoint can't be kept apart from it, so a log that was rolled back may not be noticed", "err", err)
		return
	}
	d.seen.note = note
}

func (d *Daemon) rememberNowAndThen() {
	if time.Since(d.seen.at) >= rememberEvery {
		d.seen.at = time.Now()
		d.remember()
	}
}
