package admission

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	escape "github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Bounds of what a record has of a file, in bytes: a path is at most 4,095 long.
const (
	maxFilePath   = 4_096
	maxFileReason = 1_024
)

// Files puts on record which files clients write, read, move and remove in sandboxes, and which directories
// they make. It decides nothing. Safe for concurrent use.
type Files struct {
	tenants *tenants

	mu   sync.Mutex            // guards open; never held over I/O
	open map[uint64]*FileBegun // by the numbers of their begins
}

// FileBegun is what a client does with a file, between its begin and its end on record. Safe for
// concurrent use.
type FileBegun struct {
	files  *Files
	tenant *tenant // which it outlives: the end is on record behind that of the sandbox then
	record audit.Record
	bytes  atomic.Int64
	ending atomic.Bool // somebody puts the end on record, or has
	over   atomic.Bool // End was called, and nobody else does that
}

// FileEnd is how it ended.
type FileEnd struct {
	Outcome  audit.Outcome // Finished: whole; Failed: it was refused; Aborted: it broke off, or nobody knows
	Reason   string        // of the last two
	SHA256   string        // of the bytes, in hexadecimal; "": not all went in or out, or there are none
	Absolute string        // the path, as the guest says; "": it does not
	Claimed  bool          // the outcome is what the guest says
}

// FileBegins puts on record that a client is about to write, read, move or remove a file, or to make a
// directory. It is durable when FileBegins returns; after an error nothing may happen. End is told its end.
func (f *Files) FileBegins(ctx context.Context, sandbox string, file channel.File) (*FileBegun, error) {
	t, err := f.tenants.getTenant(sandbox)
	if err != nil {
		return nil, err
	}
	r := audit.Record{Kind: audit.KindFile, Outcome: audit.Started, User: t.run.User, File: recordedPath(file.Path), Detail: fileDetail(file)}
	if r, err = t.book.Append(ctx, r); err != nil {
		return nil, err
	}
	b := &FileBegun{files: f, tenant: t, record: r}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open[r.Seq] = b
	return b, nil
}

func fileDetail(file channel.File) map[string]string {
	d := map[string]string{audit.DetailOperation: string(file.Op)}
	switch file.Op { //nolint:exhaustive // the others go neither in nor out
	case channel.FileWrite:
		d[audit.DetailDirection] = audit.DirectionIn
	case channel.FileRead:
		d[audit.DetailDirection] = audit.DirectionOut
	}
	for key, text := range map[string]string{audit.DetailTo: file.To, audit.DetailAs: file.User} {
		if text != "" {
			d[key] = recordedPath(text)
		}
	}
	return d
}

// recordedPath is a path as a record can have it: bytes that are no UTF-8 become escapes.
func recordedPath(path string) string {
	if !utf8.ValidString(path) {
		path = escape.Line(path)
	}
	return redact.Cut(path, maxFilePath)
}

// FileUnderWay reports whether the end of what begins with a record is still to come.
func (f *Files) FileUnderWay(seq uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open[seq] != nil
}

// endFilesOf ends all that clients do with the files of a sandbox. After an end that the log does not take it
// is not asked to take the others: each could wait as long for one that hangs.
func (f *Files) endFilesOf(ctx context.Context, sandbox, reason string) error {
	var all []*FileBegun
	f.mu.Lock()
	for _, b := range f.open {
		if b.record.Sandbox == sandbox {
			all = append(all, b)
		}
	}
	f.mu.Unlock()
	var errs []error
	for _, b := range all {
		if !b.ending.CompareAndSwap(false, true) {
			continue
		}
		put := b.tenant.book.Append
		if len(errs) > 0 {
			put = b.tenant.book.AppendLater
		}
		err := b.writeEnd(ctx, FileEnd{Outcome: audit.Aborted, Reason: reason}, put)
		if !records.Kept(err) {
			b.leaveEnd()
			return err
		}
		b.forgetBegun()
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// leaveEnd has somebody else put the end on record that could not be written: whoever does it or, if
// he came and went meanwhile, who looks for begins that nobody follows.
func (b *FileBegun) leaveEnd() {
	b.ending.Store(false)
	if b.over.Load() && b.ending.CompareAndSwap(false, true) {
		b.forgetBegun()
	}
}

// Moved counts bytes that went in or out.
func (b *FileBegun) Moved(n int) { b.bytes.Add(int64(n)) }

// Bytes are those that went in or out so far.
func (b *FileBegun) Bytes() int64 { return b.bytes.Load() }

// End puts the end on record, once. An end that can't be written is an error, and is written later (see
// OwesEnd) or, if it can't be kept either, left to who looks for begins that nobody follows any more.
func (b *FileBegun) End(ctx context.Context, end FileEnd) error {
	b.over.Store(true)
	if !b.ending.CompareAndSwap(false, true) {
		return nil
	}
	defer b.forgetBegun() // behind the record: who finds that nobody follows it looks for its end then
	return b.writeEnd(ctx, end, b.tenant.book.Append)
}

func (b *FileBegun) writeEnd(ctx context.Context, end FileEnd, put func(context.Context, audit.Record) (audit.Record, error)) error {
	detail := map[string]string{records.DetailBegan: strconv.FormatUint(b.record.Seq, 10)}
	for _, key := range audit.FileDetail() {
		if text := b.record.Detail[key]; text != "" {
			detail[key] = text
		}
	}
	absolute := recordedPath(end.Absolute)
	if absolute != "" && absolute != b.record.File {
		detail[audit.DetailAbsolute] = absolute
	} else {
		absolute = ""
	}
	if end.SHA256 != "" {
		detail[audit.DetailContentSHA256] = end.SHA256
	}
	_, err := put(ctx, audit.Record{
		Kind: audit.KindFile, Outcome: end.Outcome, User: b.tenant.run.User, File: b.record.File, Size: b.Bytes(), Reason: redact.Cut(end.Reason, maxFileReason),
		GuestClaimed: end.Claimed || absolute != "", Detail: detail,
	})
	return err
}

func (b *FileBegun) forgetBegun() {
	b.files.mu.Lock()
	defer b.files.mu.Unlock()
	delete(b.files.open, b.record.Seq)
}
