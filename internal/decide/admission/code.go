package admission

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
)

// Codes judges code that is handed over as text to run by itself, without a sandbox. Who
// runs it is registered as a sandbox is, so that the tools that it calls are judged and
// recorded as every other's.
type Codes struct{ tenants *tenants }

// Code is what is to be run.
type Code struct {
	ID        string // of the call; what it is registered as
	Language  string
	Isolation string // what runs it
	Text      string
	Token     string // whose call it is; "": the host's
}

// CodeEnd is what became of it.
type CodeEnd struct {
	// Failure is the kind of failure, in a word; "": it ended well. Reason may be the
	// code's own.
	Failure, Reason         string
	ValueBytes, OutputBytes int
	MemoryBytes             int64
	TookMS                  int64
}

// Keys of the records of calls.
const (
	detailIsolation  = "isolation"
	detailLanguage   = "language"
	detailCodeSize   = "code_bytes"
	detailCodeSHA256 = "code_sha256"
	detailFailure    = "failure"
	detailValueSize  = "value_bytes"
	detailOutputSize = "output_bytes"
	detailMemory     = "memory_bytes"
)

// CodeBegins judges code by the policy's rules before it runs. If it is allowed its
// `started` record is durable when CodeBegins returns; if not, its `blocked` record is.
func (c *Codes) CodeBegins(ctx context.Context, code Code) (door.Answer, error) {
	t, err := c.tenants.admitTenant(ctx, code.ID)
	if err != nil {
		return door.Answer{}, err
	}
	d, err := t.judging.judgeText(ctx, t, len(code.Text), func() policy.CommandInput { return codeInput(code.Language, code.Text) })
	if err != nil {
		return door.Answer{}, unjudged(ctx, t, codeRecord(t, code, policy.Decision{}), err)
	}
	d = t.known.settleDecision(d)
	if d.Effect == policy.Hold { // rules can't say so of code
		d.Effect = policy.Deny
	}
	r := codeRecord(t, code, d)
	if r, err = t.book.Append(ctx, r); err != nil {
		return door.Answer{}, err
	}
	if d.Allowed() {
		t.mu.Lock()
		t.running[code.ID] = r
		t.mu.Unlock()
	} else {
		t.book.Blocked(r)
	}
	return door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}, nil
}

// codeRecord is the record of code that begins, or is refused. The code is kept as a
// command's arguments are: by its beginning, and by its digest.
func codeRecord(t *tenant, code Code, d policy.Decision) audit.Record {
	sum := sha256.Sum256([]byte(code.Text))
	r := audit.Record{
		Kind: audit.KindCommand, Outcome: audit.Started, User: t.run.User, Token: code.Token, ResolvedBy: string(d.ResolvedBy), Rule: d.Rule, Reason: d.Reason,
		Detail: map[string]string{
			records.DetailCommand: code.ID, detailIsolation: code.Isolation, detailLanguage: code.Language,
			detailCodeSize: strconv.Itoa(len(code.Text)), detailCodeSHA256: hex.EncodeToString(sum[:]),
		},
	}
	keepCommand(&r, []string{code.Language, code.Text})
	if !d.Allowed() {
		r.Outcome = audit.Blocked
	}
	return r
}

// CodeEnded records how often its refusals were repeated, and what became of code that began, whatever
// the run's quota says.
func (c *Codes) CodeEnded(ctx context.Context, id string, end CodeEnd) error {
	t, err := c.tenants.getTenant(id)
	if err != nil {
		return err
	}
	caller{t}.endCalls(ctx)
	t.mu.Lock()
	started := t.running[id]
	delete(t.running, id)
	t.mu.Unlock()
	exit := 0
	detail := map[string]string{
		records.DetailCommand: id, detailValueSize: strconv.Itoa(end.ValueBytes), detailOutputSize: strconv.Itoa(end.OutputBytes),
		detailMemory: strconv.FormatInt(end.MemoryBytes, 10), detailTook: strconv.FormatInt(end.TookMS, 10),
	}
	if end.Failure != "" {
		exit, detail[detailFailure] = 1, end.Failure
	}
	owed := t.book.Summarise(ctx) // what can't be written is kept by Unregister
	_, err = t.book.Append(ctx, audit.Record{
		Kind: audit.KindCommand, Outcome: audit.Finished, User: t.run.User, Command: started.Command, RequestID: started.RequestID,
		Exit: &exit, Detail: detail, Reason: redact.Cut(printable(end.Reason), 1_024), GuestClaimed: end.Failure != "",
	})
	return errors.Join(owed, err)
}
