package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Keys of Record.Detail, of records about copies.
const (
	detailSnapshot = "snapshot"
	detailDigest   = "digest"
	detailContents = "contents"
	detailBytes    = "bytes"
	detailCopyOf   = "copy_of"   // the sandbox of which it is a copy
	detailCameWith = "came_with" // releases that are in the copy from the first
	// detailCameWithFiles has the digests of their files, as they were served: a line
	// "ECOSYSTEM NAME VERSION sha256:HEX" for each.
	detailCameWithFiles = "came_with_files"
)

// The most that a record has of what came in a copy, in bytes: some two thousand releases. Their
// number is always there.
const (
	mostCameWith      = 64 << 10
	mostCameWithFiles = 150 << 10
)

// Copy is a snapshot, or the image of a fork, for the record.
type Copy struct {
	Snapshot string // its id; "": of a fork, which has none
	Name     string
	Digest   string
	Contents string
	Bytes    int64
	Of       string // the sandbox of which it is
}

func (c Copy) detail() map[string]string {
	d := map[string]string{detailContents: c.Contents}
	for key, text := range map[string]string{detailSnapshot: c.Snapshot, detailDigest: c.Digest, detailCopyOf: c.Of, records.DetailName: redact.Cut(c.Name, 256)} {
		if text != "" {
			d[key] = text
		}
	}
	if c.Bytes > 0 {
		d[detailBytes] = strconv.FormatInt(c.Bytes, 10)
	}
	return d
}

// SandboxSnapshotted records a copy of a sandbox before anybody can use it, and
// returns the record's number.
func (l *Lives) SandboxSnapshotted(ctx context.Context, sandbox string, made Copy) (uint64, error) {
	t, err := l.tenants.getTenant(sandbox)
	if err != nil {
		return 0, err
	}
	made.Of = ""
	r, err := t.book.Append(ctx, audit.Record{
		Kind: audit.KindSandbox, Outcome: audit.Snapshotted, User: t.run.User, Detail: made.detail(),
		Reason: fmt.Sprintf("the snapshot %s was written (%s)", made.Snapshot, made.Contents),
	})
	return r.Seq, err
}

// SnapshotRemoved records that a snapshot is removed, before it is. The sandbox of
// which it was may be long gone; owner is the token whose it is, "" the host. undo records that it was
// not removed after all, and why, and returns that.
func (l *Lives) SnapshotRemoved(ctx context.Context, owner string, gone Copy) (undo func(why error) error, err error) {
	return l.announceSnapshot(ctx, owner, gone, "snapshot_removed", fmt.Sprintf("the snapshot %s is removed", gone.Snapshot))
}

// SnapshotNamed records that a snapshot is given names, or loses them, before it is so. undo records that
// this did not come to be, and why, and returns that.
func (l *Lives) SnapshotNamed(ctx context.Context, owner string, of Copy, names []string, given bool) (undo func(why error) error, err error) {
	of.Name = strings.Join(names, " ")
	event, what := "snapshot_unnamed", "loses the names"
	if given {
		event, what = "snapshot_named", "is also called"
	}
	return l.announceSnapshot(ctx, owner, of, event, fmt.Sprintf("the snapshot %s %s %s", of.Snapshot, what, redact.Cut(of.Name, 256)))
}

// announceSnapshot records what is about to become of a snapshot. A caller that then can't do it calls undo, so
// that the log does not say for good what is not so.
func (l *Lives) announceSnapshot(ctx context.Context, owner string, of Copy, event, reason string) (undo func(why error) error, err error) {
	write := func(ctx context.Context, outcome audit.Outcome, reason string) error {
		detail := of.detail()
		detail[records.DetailEvent] = event
		_, err := l.log.Append(ctx, audit.Record{Kind: audit.KindDaemon, Outcome: outcome, Token: owner, Detail: detail, Reason: reason})
		return err
	}
	return func(why error) error {
		failed := write(context.WithoutCancel(ctx), audit.Failed, redact.Cut("this did not come to be: "+reason+": "+why.Error(), 1<<10))
		if failed != nil {
			return errors.Join(why, failed)
		}
		return why
	}, write(ctx, audit.Started, reason)
}

// SandboxRestored records that a sandbox is a copy, before it starts, with what
// came in it.
func (l *Lives) SandboxRestored(ctx context.Context, sandbox string, from Copy) error {
	t, err := l.tenants.getTenant(sandbox)
	if err != nil {
		return err
	}
	detail := from.detail()
	markOwner(t, detail)
	names, files := t.installed()
	if len(names) > 0 {
		detail[detailCameWith] = joinWithin(names, ", ", mostCameWith)
	}
	if len(files) > 0 {
		detail[detailCameWithFiles] = joinWithin(files, "\n", mostCameWithFiles)
	}
	what := "a fork of sandbox " + from.Of
	if from.Snapshot != "" {
		what = fmt.Sprintf("made from the snapshot %s of sandbox %s", from.Snapshot, from.Of)
	}
	_, err = t.book.Append(ctx, audit.Record{
		Kind: audit.KindSandbox, Outcome: audit.Restored, User: t.run.User, Detail: detail,
		Reason: fmt.Sprintf("it is %s; %d packages came in it", what, len(names)),
	})
	return err
}

// installed are the releases that were found on a sandbox's disk, as they were served: what
// a disk says of itself may spell a version in another way, and who looks for what was served
// must find it. files are those of them of which a file was served, with its digest.
func (t *tenant) installed() (names, files []string) {
	called, digests := map[pkgref.Ref]pkgref.Ref{}, map[pkgref.Ref][]string{} // by the release's one key
	for _, p := range t.disk.Packages() {
		release := p.Ref.Release()
		called[release] = p.Ref
		if p.SHA256 != "" {
			digests[release] = []string{p.SHA256}
		}
	}
	for _, r := range t.served.All() {
		release := records.RefOf(r).Release()
		if _, found := called[release]; !found {
			continue
		}
		if r.SHA256 != "" && !slices.Contains(digests[release], r.SHA256) {
			digests[release] = append(digests[release], r.SHA256)
		}
	}
	for release, ref := range called {
		names = append(names, ref.String())
		for _, digest := range digests[release] {
			files = append(files, ref.String()+" sha256:"+digest)
		}
	}
	slices.Sort(names)
	slices.Sort(files)
	return names, files
}

// joinWithin joins words, and leaves out the last ones past so many bytes.
func joinWithin(words []string, between string, most int) string {
	var b strings.Builder
	for i, word := range words {
		if i > 0 {
			word = between + word
		}
		if b.Len()+len(word) > most {
			return strings.TrimPrefix(b.String()+between, between) + fmt.Sprintf("and %d more", len(words)-i)
		}
		b.WriteString(word)
	}
	return b.String()
}

// SnapshotOnRecord checks that a snapshot is the one that was recorded: the log
// can't be changed unnoticed, a directory can. fault.ErrConflict if it is not,
// fault.ErrUnavailable if the record is not here any more.
func (l *Lives) SnapshotOnRecord(ctx context.Context, seq uint64, made Copy) error {
	for r, err := range l.log.Records(ctx, audit.Filter{Seqs: []uint64{seq}}) {
		if err != nil {
			return err
		}
		if r.Outcome != audit.Snapshotted || r.Sandbox != made.Of || r.Detail[detailSnapshot] != made.Snapshot || r.Detail[detailDigest] != made.Digest {
			return fault.New(fault.ErrConflict, "the snapshot %s is not the one that the log has under record %d, so it is not used", made.Snapshot, seq)
		}
		return nil
	}
	return fault.New(fault.ErrUnavailable, "the record of the snapshot %s is not in the log here any more, so it is not known whether it is what was written", made.Snapshot)
}

// CommandCopied records that a command runs in a copy because it ran in its
// source.
func (l *Lives) CommandCopied(ctx context.Context, sandbox, id, of string, argv []string) error {
	t, err := l.tenants.getTenant(sandbox)
	if err != nil {
		return err
	}
	r := audit.Record{
		Kind: audit.KindCommand, Outcome: audit.Restored, User: t.run.User,
		Reason: "it ran in sandbox " + of + " when the copy was made, and goes on here",
		Detail: map[string]string{records.DetailCommand: id, detailCopyOf: of},
	}
	keepCommand(&r, argv)
	if r, err = t.book.Append(ctx, r); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running[id] = r
	return nil
}
