package approval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// KindCall is a request for a call of a tool of the host.
const KindCall Kind = "call"

// MaxCallArguments is the longest text of arguments that a person is asked about, in bytes:
// nobody approves what was not shown.
const MaxCallArguments = 16 << 10

// Call is a call of a tool of the host with these arguments. An answer about it is bound to
// the tool, by its name, its source and its definition, and to the arguments' digest.
type Call struct {
	Tool string `json:"tool"`
	// Source is whose tool it is: SourceHost, or "sandbox ID" of one that the client gave to that
	// sandbox. "" in requests of earlier versions, whose answers hold for no call any more.
	Source string `json:"source,omitempty"`
	// Definition is the digest of the tool as it was when the call was asked for: its schema,
	// its description, its limits and what runs it ("sha256:...").
	Definition string `json:"definition,omitempty"`
	Digest     string `json:"digest"` // DigestOf the arguments
	// Arguments are JSON in the one form that is judged and handed to the tool. They are the
	// guest's, and "" once they were erased from the log.
	Arguments string `json:"arguments,omitempty"`
}

// SourceHost is the source of a tool that the daemon's configuration declares.
const SourceHost = "host"

// SourceSandbox is the source of a tool that a client has given to a sandbox.
func SourceSandbox(id string) string { return "sandbox " + id }

// Identity is what an answer about a call binds the tool by: whose it is, and its definition.
func (c Call) Identity() string { return DigestOf(c.Source + "\n" + c.Definition) }

// Bound are the digests that an answer about the call is bound to, all of them.
func (c Call) Bound() []string { return []string{c.Identity(), c.Digest} }

// DigestOf is what an answer about a call binds its arguments by.
func DigestOf(arguments string) string {
	sum := sha256.Sum256([]byte(arguments))
	return sha256Prefix + hex.EncodeToString(sum[:])
}

// String is "tool lookup_order sha256:...", with one digest of the tool and the arguments: two
// calls that an answer tells apart never have the same text.
func (c Call) String() string { return "tool " + c.Named() }

// Named is String without its first word.
func (c Call) Named() string { return c.Tool + " " + DigestOf(c.Identity()+"\n"+c.Digest) }

// Project is under what stores find requests and answers about the tool, whatever its
// arguments; no package has it.
func (c Call) Project() pkgref.Ref { return pkgref.Ref{Ecosystem: "tool", Name: c.Tool} }

func (c Call) isNamed() bool { return c != Call{} }

// ScopeOnce is of an approval that lets one call of a tool be made, for whichever of the
// runs that had asked makes it first.
const ScopeOnce Scope = "once"

// ScopeFor is the scope that an answer has about a request of a kind if nobody says one: a
// call of a tool does something, so it is let through once.
func ScopeFor(kind Kind, state State) Scope {
	if kind == KindCall && state == Approved {
		return ScopeOnce
	}
	return ScopeRun
}

// checkScope refuses the scope for an answer about something.
func (s Scope) checkScope(kind Kind, state State) error {
	if s == ScopeOnce && (kind != KindCall || state != Approved) {
		return fault.Invalid("the scope %s is for approving calls of tools; the scopes of every answer are %s, %s, %s", ScopeOnce, ScopeRun, ScopePolicy, ScopeEverywhere)
	}
	return nil
}

// checkCall refuses an ask for a call that is not one and no more.
func checkCall(ask Ask) error {
	c := ask.Call
	switch {
	case ask.Package != (pkgref.Ref{}) || ask.Upstream != "" || len(ask.Files) > 0 || ask.Host.isNamed():
		return fault.Invalid("a call of a tool and something else are asked for apart")
	case c.Tool == "" || len(c.Tool) > maxShort || boundText(c.Tool, maxShort) != c.Tool || c.Digest != DigestOf(c.Arguments):
		return fault.Invalid("%q is no call that a person can be asked about", boundText(c.String(), maxShort))
	case c.Source == "" || !showsPlainly(strings.ReplaceAll(c.Source, " ", "")) || len(c.Source) > maxShort || !digestIs(c.Definition):
		return fault.Invalid("nobody can be asked about %q without whose tool it is, and its definition", boundText(c.String(), maxShort))
	case len(c.Arguments) > MaxCallArguments:
		return fault.New(fault.ErrForbidden, "the arguments have %d bytes, and a person is shown %d at most", len(c.Arguments), MaxCallArguments)
	}
	return nil
}

// compareCall adds what earlier requests for the tool tell: how they were answered, for
// these arguments and for others.
func (q *Queue) compareCall(ctx context.Context, call Call, e evidence.Evidence) (evidence.Evidence, error) {
	project := call.Project()
	earlier, err := q.cfg.Store.List(ctx, Filter{Ecosystem: project.Ecosystem, Package: project.Name, Limit: lookBack})
	if err != nil {
		return evidence.Evidence{}, err
	}
	e = e.Apart()
	if e.Call == nil {
		e.Call = &evidence.Call{}
	}
	e.Call.Approved, e.Call.Others, e.Call.Denied = 0, 0, 0
	for _, r := range earlier { // the newest first
		same := r.Call.Digest == call.Digest && r.Call.Identity() == call.Identity()
		if same && (e.FirstSeen.IsZero() || r.Created.Before(e.FirstSeen)) {
			e.FirstSeen = r.Created
		}
		switch a := r.Answer; {
		case a == nil:
		case a.State == Denied:
			e.Call.Denied++
		case same:
			e.Call.Approved++
			if e.LastApproved == "" {
				e.LastApproved = r.ID + " by " + a.By
			}
		default:
			e.Call.Others++
		}
	}
	return cleanEvidence(e), nil
}

// Use takes an approval for a call that begins now. One that was given for one call ends
// with that, on record before Use returns; of two that use it at a time one is let through.
// fault.ErrConflict: it does not hold, or not any more.
func (q *Queue) Use(ctx context.Context, id string) error {
	q.write.Lock()
	defer q.write.Unlock()
	if err := q.ready(ctx); err != nil {
		return err
	}
	e, err := q.cfg.Store.Get(ctx, boundText(id, maxShort))
	if err != nil {
		return err
	}
	r := e.asOf(q.now())
	switch {
	case r.State != Approved:
		return fault.New(fault.ErrConflict, "%s", closed(r))
	case r.Answer.Scope != ScopeOnce:
		return nil
	}
	r.Ended = "it was for one call, which was begun"
	return q.commit(ctx, expired(e, r))
}

// Used tells that an answer that was for one call has let it be made: who waited for it
// together with that call asks again.
func (r Request) Used() bool {
	return r.State == Expired && r.Answer != nil && r.Answer.Scope == ScopeOnce
}

// scopes are all that an answer can have.
func scopes() []Scope { return []Scope{ScopeOnce, ScopeRun, ScopePolicy, ScopeEverywhere} }

func scopeTexts(scopes []Scope) []string {
	words := make([]string, len(scopes))
	for i, s := range scopes {
		words[i] = string(s)
	}
	return words
}

// isKnown tells whether there is such a scope; "" is the one that nobody says.
func (s Scope) isKnown() bool { return s == "" || slices.Contains(scopes(), s) }
