package index

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// batchRecords are taken in one transaction.
const batchRecords = 8192

// feedRecords takes the log's records up to but not including end.
func (f *files) feedRecords(ctx context.Context, log Log, end uint64, progress func(done, end uint64)) error {
	scratch, most := f.next == 0, mostTexts
	if scratch {
		most = bulkTexts
	}
	for f.next < end {
		if progress != nil {
			progress(f.next, end)
		}
		if err := f.feedBatch(ctx, log, end, scratch); err != nil {
			f.forgetTables() // what got numbers may be rolled back
			return err
		}
		f.texts.shedUnused(most)
	}
	if !f.ready {
		for _, statement := range secondary() {
			if _, err := f.writer.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		f.ready = true
	}
	if scratch && f.texts.sizeInMemory() > mostTexts {
		f.forgetTables() // the memory is only worth it while much comes
	}
	return nil
}

// statements are a transaction with what it is to do many times.
type statements struct {
	tx                                               *sql.Tx
	find, text, rows, locks, findShape, shape, count *sql.Stmt
}

func (f *files) feedBatch(ctx context.Context, log Log, end uint64, scratch bool) (err error) {
	tx, err := f.writer.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreDone(tx.Rollback()))
		}
	}()
	b := feedBatch{files: f, st: &statements{tx: tx}, next: f.next, boxes: map[int64]*sandboxSums{}}
	for _, s := range []struct {
		to   **sql.Stmt
		text string
	}{
		{&b.st.find, findText},
		{&b.st.text, "INSERT INTO texts VALUES (?, ?, ?)"},
		{&b.st.locks, "SELECT locks FROM sandboxes WHERE sandbox = ?"},
		{&b.st.findShape, findShape},
		{&b.st.shape, "INSERT INTO shapes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)"},
		{&b.st.count, "UPDATE shapes SET count = count + ? WHERE shape = ?"},
		{&b.st.rows, insertRows(rowsAtOnce)},
	} {
		if *s.to, err = tx.PrepareContext(ctx, s.text); err != nil {
			return err
		}
	}
	if err := b.takeRecords(ctx, log, min(end, f.next+batchRecords), scratch); err != nil {
		return err
	}
	if err := b.flushRows(ctx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	f.next = b.next
	return nil
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// feedBatch is one transaction's work.
type feedBatch struct {
	files *files
	st    *statements
	next  uint64
	last  *audit.Record // nil: none was taken
	args  []any         // of rows not yet inserted
	boxes map[int64]*sandboxSums
}

// sandboxSums sums up a sandbox's records of this batch.
type sandboxSums struct {
	run, policy, locks int64
	user, token        int64
	first, last        uint64
	served, installed  int
}

// takeRecords takes the records up to end, decoded in another goroutine.
func (b *feedBatch) takeRecords(ctx context.Context, log Log, end uint64, scratch bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for part := range readAhead(ctx, log, b.next, end) {
		for _, r := range part.records {
			if err := b.takeRecord(ctx, r, scratch); err != nil {
				return err
			}
		}
		if part.err != nil {
			return part.err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	b.next = end // records between may be sealed and elsewhere
	return nil
}

func (b *feedBatch) takeRecord(ctx context.Context, r audit.Record, scratch bool) error {
	if r.Seq < b.next {
		return fault.Invalid("the log is damaged: record %d comes after record %d", r.Seq, int64(b.next)-1)
	}
	if !scratch && erases(r) {
		return errAnew // what was taken before may hold what is erased now
	}
	row, err := b.makeRow(ctx, r)
	if err != nil {
		return err
	}
	b.next, b.last = r.Seq+1, &r
	if err := b.sumRecord(ctx, r, &row); err != nil {
		return err
	}
	b.args = row.append(b.args, r)
	if len(b.args) < rowsAtOnce*columnCount {
		return nil
	}
	_, err = b.st.rows.ExecContext(ctx, b.args...)
	b.args = b.args[:0]
	return err
}

// rowsAtOnce are inserted by one statement.
const rowsAtOnce = 32

// insertRows inserts so many rows.
func insertRows(rows int) string {
	one := "(" + strings.TrimSuffix(strings.Repeat("?, ", columnCount), ", ") + ")"
	return "INSERT INTO records (" + columns + ") VALUES " + strings.TrimSuffix(strings.Repeat(one+", ", rows), ", ")
}

// flushRows writes what is left and what was summed up.
func (b *feedBatch) flushRows(ctx context.Context) error {
	if n := len(b.args) / columnCount; n > 0 {
		if _, err := b.st.tx.ExecContext(ctx, insertRows(n), b.args...); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(b.boxes)) {
		s := b.boxes[id]
		if _, err := b.st.tx.ExecContext(ctx, `INSERT INTO sandboxes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (sandbox) DO UPDATE SET
			run = iif(run = 0, excluded.run, run), policy = iif(policy = 0, excluded.policy, policy), locks = iif(locks = 0, excluded.locks, locks),
			user = iif(user = 0, excluded.user, user), token = iif(token = 0, excluded.token, token),
			last = excluded.last, served = served + excluded.served, installed = installed + excluded.installed`,
			id, s.run, s.policy, s.locks, s.user, s.token, int64(s.first), int64(s.last), s.served, s.installed); err != nil {
			return err
		}
	}
	if err := b.files.shapes.flushCounts(ctx, b.st); err != nil {
		return err
	}
	if b.last == nil {
		_, err := b.st.tx.ExecContext(ctx, "UPDATE state SET next = ?", int64(b.next))
		return err
	}
	fingerprint := audit.Fingerprint(*b.last)
	_, err := b.st.tx.ExecContext(ctx, "UPDATE state SET next = ?, last = ?, fingerprint = ?", int64(b.next), int64(b.last.Seq), fingerprint[:])
	return err
}

// row is a record's texts as numbers.
type row struct {
	kind, outcome, run, sandbox, policy, ecosystem, project, requested, version, file, source, host, sha256 int64
	resolvedBy, rule, reason, approval, user, token, task, command, detail, locks, shape                    int64
	flags                                                                                                   int
}

func (b *feedBatch) makeRow(ctx context.Context, r audit.Record) (row, error) {
	n := row{flags: recordFlags(r)}
	for _, part := range []struct {
		to   *int64
		text string
	}{
		{&n.kind, string(r.Kind)},
		{&n.outcome, string(r.Outcome)},
		{&n.run, r.Run},
		{&n.sandbox, r.Sandbox},
		{&n.policy, r.Policy},
		{&n.ecosystem, r.Ecosystem},
		{&n.project, r.Package},
		{&n.requested, r.RequestedVersion},
		{&n.version, r.InstalledVersion},
		{&n.file, r.File},
		{&n.source, r.SourceURL},
		{&n.host, Host(r.SourceURL)},
		{&n.sha256, r.SHA256},
		{&n.resolvedBy, r.ResolvedBy},
		{&n.rule, r.Rule},
		{&n.reason, r.Reason},
		{&n.approval, r.Approval},
		{&n.user, r.User},
		{&n.token, r.OwnerToken()},
		{&n.task, r.Task},
		{&n.command, strings.Join(r.Command, " ")},
		{&n.detail, detailText(r)},
		{&n.locks, r.Detail["lockfiles_digest"]},
	} {
		var err error
		if *part.to, err = b.files.texts.textID(ctx, b.st, part.text); err != nil {
			return n, err
		}
	}
	return n, nil
}

func (n row) append(args []any, r audit.Record) []any {
	var exit, request any
	if r.Exit != nil {
		exit = *r.Exit
	}
	if r.RequestID != "" {
		request = r.RequestID
	}
	return append(args, int64(r.Seq), r.Time.UnixNano(), n.kind, n.outcome, n.run, n.sandbox, n.policy, n.ecosystem, n.project, n.requested,
		n.version, n.file, n.source, n.host, n.sha256, n.resolvedBy, n.rule, n.reason, n.approval, n.user, n.token, n.task, n.command, n.detail,
		n.flags, n.shape, exit, request)
}

// sumRecord adds a record to its sandbox's, and gives it its shape.
func (b *feedBatch) sumRecord(ctx context.Context, r audit.Record, n *row) error {
	if n.sandbox != 0 {
		if err := b.sumSandbox(ctx, r, *n); err != nil {
			return err
		}
	}
	if r.Kind != audit.KindPackage || r.Outcome != audit.Served && r.Outcome != audit.Installed && r.Outcome != audit.Alarm {
		return nil
	}
	s := shape{
		n.outcome, n.ecosystem, n.project, n.requested, n.version, n.host, n.sha256, n.resolvedBy, n.approval, 0, n.flags &^ (FlagGuest | FlagAlarm | FlagErased),
	}
	if n.sandbox != 0 {
		s.locks = b.boxes[n.sandbox].locks
	}
	var err error
	n.shape, err = b.files.shapes.shapeOf(ctx, b.st, s, r.Seq)
	return err
}

func (b *feedBatch) sumSandbox(ctx context.Context, r audit.Record, n row) error {
	s := b.boxes[n.sandbox]
	if s == nil {
		s = &sandboxSums{first: r.Seq}
		b.boxes[n.sandbox] = s
		if err := b.st.locks.QueryRowContext(ctx, n.sandbox).Scan(&s.locks); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	s.last = r.Seq
	for _, part := range []struct {
		to *int64
		id int64
	}{{&s.run, n.run}, {&s.policy, n.policy}, {&s.locks, n.locks}, {&s.user, n.user}, {&s.token, n.token}} {
		if *part.to == 0 {
			*part.to = part.id
		}
	}
	switch {
	case r.Kind != audit.KindPackage:
	case r.Outcome == audit.Served:
		s.served++
	case r.Outcome == audit.Installed:
		s.installed++
	}
	return nil
}

func recordFlags(r audit.Record) int {
	set := 0
	for _, f := range []struct {
		is  bool
		bit int
	}{
		{r.RequestedClaimed, FlagClaimed},
		{r.GuestClaimed, FlagGuest},
		{r.Detail["unaccounted"] == "true", FlagUnaccounted},
		{brought(r), FlagBrought},
		{r.IsAlarm(), FlagAlarm},
		{r.Erased, FlagErased},
	} {
		if f.is {
			set |= f.bit
		}
	}
	return set
}

// brought reports what an inventory found that came inside of another release,
// with the template, or was written in the sandbox: no registry served it by
// itself, and none had to.
func brought(r audit.Record) bool {
	switch r.Detail["origin"] {
	case "bundled", "template", "local":
		return true
	}
	return r.Detail["bundled_in"] != ""
}

// detailText is what a search finds of a record's details.
func detailText(r audit.Record) string {
	if len(r.Detail) == 0 && len(r.Withheld) == 0 {
		return ""
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(r.Detail)) {
		b.WriteString(key + "=" + r.Detail[key] + "\n")
	}
	for _, w := range r.Withheld {
		b.WriteString(w.Rule + " " + w.From + " " + w.To + " " + strconv.Itoa(w.Versions) + " " + w.Reason + "\n")
	}
	return b.String()
}

// Host is where an URL leads, "https://files.example:8443"; "" if it has no host.
func Host(source string) string {
	u, err := url.Parse(source)
	if err != nil || u.Host == "" {
		return ""
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

// erases reports whether a record says that personal data was erased.
func erases(r audit.Record) bool {
	return r.Kind == audit.KindLog && r.Outcome == audit.Erased
}
