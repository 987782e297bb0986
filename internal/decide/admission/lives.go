package admission

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Lives is what becomes of sandboxes, for the record: how they begin and end, sleep, are
// copied and built into templates. It decides nothing.
type Lives struct {
	log     audit.Log
	tenants *tenants
	files   *Files
	overdue overdue // has a lock of its own
	logger  *slog.Logger
	// settle is Config.Settle; nil: nobody counts anything.
	settle func(ctx context.Context, sandbox string) error
}

// SandboxStarted records that a registered sandbox begins, before it does.
func (l *Lives) SandboxStarted(ctx context.Context, sandbox string) error {
	t, err := l.tenants.getTenant(sandbox)
	if err != nil {
		return err
	}
	l.WriteOverdue(ctx)
	detail := map[string]string{"template": t.run.Template, "policy_source": redact.Cut(t.policy().Source(), 4_096)}
	if t.run.Lock != nil {
		detailLock(detail, t.run.Lock)
	}
	markOwner(t, detail)
	if t.run.Plan {
		detail[detailPlan] = "true"
	}
	if policy.Observes(t.policy()) {
		detail[detailMode] = modeObserve
	}
	if own := t.run.Tools.All(); len(own) > 0 {
		detail[detailOwnTools] = toolNames(own)
	}
	if !t.run.Narrowing.IsZero() {
		detail[detailNarrowing] = narrowingText(t.run.Narrowing)
	}
	_, err = t.book.Append(ctx, audit.Record{
		Kind: audit.KindSandbox, Outcome: audit.Started, User: t.run.User, Task: redact.Cut(t.run.Task, 8_192), Detail: detail,
	})
	return err
}

// markOwner puts in what tells whose run it is when that was erased, and that it is not its
// owner's to see.
func markOwner(t *tenant, detail map[string]string) {
	if t.run.StandsIn != "" {
		detail[DetailStandsIn] = t.run.StandsIn
	}
	if t.ownerKey != "" {
		detail[audit.DetailOwnerKey] = t.ownerKey
	}
}

// DetailStandsIn names, in the record of a sandbox's beginning, what the daemon made it for.
const DetailStandsIn = "stands_in"

// detailOwnTools has the names of the tools that a sandbox was given for itself.
const detailOwnTools = "own_tools"

func toolNames(tools []tool.Tool) string {
	var names []string
	for _, one := range tools {
		names = append(names, one.Name)
	}
	return redact.Cut(strings.Join(names, " "), 8_192)
}

// detailLock tells which lockfiles a run is held to, and whether they are
// trusted: that trust is given to these digests and to no others.
func detailLock(detail map[string]string, set *lockfile.Set) {
	detail["lockfiles_digest"], detail["lockfiles_mode"] = set.Digest(), string(set.Mode())
	if set.Trusted() {
		detail["lockfiles_trusted"] = "true"
	}
	var files []string
	for _, f := range set.Files() {
		files = append(files, f.Digest+" "+redact.Cut(f.Name, 1_024))
	}
	detail["lockfiles"] = redact.Cut(strings.Join(files, "\n"), 16_384)
}

// SandboxEnded records what a sandbox's connections, calls and files, those of packages and those of clients, came to, how often refusals
// were repeated, and that it is gone, with the reason. A record that can't be written keeps nothing of the rest
// from the record; the end itself is on record only when all of that is.
func (l *Lives) SandboxEnded(ctx context.Context, sandbox, reason string) error {
	t, err := l.tenants.getTenant(sandbox)
	if err != nil {
		return err
	}
	l.WriteOverdue(ctx)
	caller{t}.endCalls(ctx)
	reason = l.settled(ctx, sandbox, reason)
	err = t.settleConnections(ctx, "the sandbox ended")
	if aborted := t.abortAll(ctx, "the sandbox ended while it was sent"); !errors.Is(aborted, fault.ErrForbidden) { // past its quota there are no more records of it
		err = errors.Join(err, aborted)
	}
	err = errors.Join(err, l.files.endFilesOf(ctx, sandbox, "the sandbox ended"))
	if records.Kept(err) { // those are among what comes now
		err = nil
	}
	if owed := t.book.Summarise(ctx); owed != nil { // last: what came meanwhile is among it
		l.overdue.keepBook(t.book)
		err = errors.Join(err, owed)
	}
	if err == nil {
		_, err = t.book.Append(ctx, audit.Record{Kind: audit.KindSandbox, Outcome: audit.Finished, User: t.run.User, Reason: redact.Cut(reason, 1_024)})
	}
	if err != nil {
		first, _, _ := t.book.Range()
		l.overdue.keepEnd(overdueEnd{sandbox: sandbox, first: first, reason: reason})
	}
	return err
}

// settledTime bounds how long the end of a sandbox waits for what others count of it.
const settledTime = 5 * time.Second

// settled has put on record, before a sandbox is forgotten, what others count of it and tell at a time. It gives the
// reason of the end, which says if that may not be all on record.
func (l *Lives) settled(ctx context.Context, sandbox, reason string) string {
	if l.settle == nil {
		return reason
	}
	ctx, cancel := context.WithTimeout(ctx, settledTime)
	defer cancel()
	err := l.settle(ctx, sandbox)
	if err == nil {
		return reason
	}
	l.logger.Error("what a sandbox was refused at last may not all be on record", "sandbox", sandbox, "error", err)
	return reason + "; not all that it asked for at last is on record: " + fault.Sentence(err, "nobody could say what that was")
}

// WriteOverdue writes what the log did not take before, of sandboxes that live and of those that have
// ended. Records that it does not take now are kept for the next time.
func (l *Lives) WriteOverdue(ctx context.Context) {
	l.overdue.writeOverdue(ctx, func(ctx context.Context, e overdueEnd) error { return l.endLost(ctx, e.sandbox, e.first, e.reason) })
}

// SummariseGrown is WriteOverdue, and records of sandboxes that live what has been repeated often since it
// was recorded, so that a crash takes little of that. It is for now and then.
func (l *Lives) SummariseGrown(ctx context.Context) error {
	return l.summarise(ctx, (*records.Book).SummariseGrown)
}

// Summarise is WriteOverdue, and records of sandboxes that live all that was repeated: the daemon ends, and
// the next one knows only what is on record.
func (l *Lives) Summarise(ctx context.Context) error {
	return l.summarise(ctx, (*records.Book).Summarise)
}

// summarise goes on to the next sandbox after a record that no log takes. A log that takes nothing is asked
// for one sandbox alone: each of the others could wait as long for one that hangs.
func (l *Lives) summarise(ctx context.Context, of func(*records.Book, context.Context) error) error {
	l.WriteOverdue(ctx)
	var errs []error
	for _, t := range l.tenants.listTenants() {
		if !t.book.Unsummarised() {
			continue
		}
		if err := of(t.book, ctx); err != nil {
			errs = append(errs, err)
			if !errors.Is(err, fault.ErrInvalid) {
				break
			}
		}
	}
	return errors.Join(errs...)
}

// OwesEnd reports whether the end of what a record of a sandbox began, by its number or, of a command, by
// its id, is kept until the log takes it: nobody else may tell it.
func (l *Lives) OwesEnd(kind audit.Kind, sandbox string, began uint64, command string) bool {
	if t, err := l.tenants.getTenant(sandbox); err == nil && t.book.OwesEnd(kind, began, command) {
		return true
	}
	return l.overdue.owesEnd(kind, sandbox, began, command)
}

// TendsSandbox reports whether a sandbox is registered, or its end is kept until the log takes it: nobody
// else may tell its end.
func (l *Lives) TendsSandbox(sandbox string) bool {
	if _, err := l.tenants.getTenant(sandbox); err == nil {
		return true
	}
	return l.overdue.keepsEnd(sandbox)
}

// SandboxAdopted records that a new daemon took a sandbox over.
func (l *Lives) SandboxAdopted(ctx context.Context, sandbox, state string) error {
	t, err := l.tenants.getTenant(sandbox)
	if err != nil {
		return err
	}
	_, err = t.book.Append(ctx, audit.Record{
		Kind: audit.KindSandbox, Outcome: audit.Adopted, User: t.run.User, Detail: map[string]string{"state": state},
	})
	return err
}

// SandboxExtended records that a sandbox's end was moved: how long it lives from now
// on, how long it may be idle (0: without end), and what becomes of it then.
func (l *Lives) SandboxExtended(ctx context.Context, sandbox string, ttl, idle time.Duration, then string) error {
	t, err := l.tenants.getTenant(sandbox)
	if err != nil {
		return err
	}
	detail := map[string]string{}
	for key, d := range map[string]time.Duration{"ttl": ttl, "idle": idle} {
		if d > 0 {
			detail[key] = d.String()
		}
	}
	if then != "" {
		detail["then"] = then
	}
	_, err = t.book.Append(ctx, audit.Record{Kind: audit.KindSandbox, Outcome: audit.Extended, User: t.run.User, Detail: detail})
	return err
}

// FirstRecord is the number of a registered sandbox's first record: where Restore and
// SandboxLostSince need to begin to read. 0 if there is none, or it is not known.
func (l *Lives) FirstRecord(sandbox string) uint64 {
	t, err := l.tenants.getTenant(sandbox)
	if err != nil {
		return 0
	}
	first, _, _ := t.book.Range()
	return first
}

// SandboxLost is SandboxLostSince for a sandbox whose first record is not known.
func (l *Lives) SandboxLost(ctx context.Context, sandbox, reason string) error {
	return l.SandboxLostSince(ctx, sandbox, 0, reason)
}

// SandboxLostSince records the end of a sandbox that the log knows to have begun, and
// not to have ended, in its records from first on. It need not be registered: what it
// was is lost with it.
func (l *Lives) SandboxLostSince(ctx context.Context, sandbox string, first uint64, reason string) error {
	l.WriteOverdue(ctx)
	return l.endLost(ctx, sandbox, first, reason)
}

// endLost does what SandboxLostSince does, and writes no overdue ends before.
func (l *Lives) endLost(ctx context.Context, sandbox string, first uint64, reason string) error {
	var began *audit.Record
	for r, err := range l.log.Records(ctx, audit.Filter{Sandbox: sandbox, Kinds: []audit.Kind{audit.KindSandbox}, FromSeq: first}) {
		if err != nil {
			return err
		}
		switch r.Outcome { //nolint:exhaustive // only its two ends count
		case audit.Started:
			began = &r
		case audit.Finished:
			began = nil
		}
	}
	if began == nil {
		return nil
	}
	_, err := l.log.Append(ctx, audit.Record{
		Kind: audit.KindSandbox, Outcome: audit.Finished, Run: began.Run, Sandbox: sandbox, Policy: began.Policy, User: began.User, Token: began.OwnerToken(), Reason: redact.Cut(reason, 1_024),
	})
	return err
}

// RunOf is the run that a sandbox works for; "" if the sandbox is not known. It
// is for who names both in a log line.
func (l *Lives) RunOf(sandbox string) string {
	t, err := l.tenants.getTenant(sandbox)
	if err != nil {
		return ""
	}
	return t.run.Run
}
